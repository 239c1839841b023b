//! Which events concern which sets.

use std::collections::BTreeSet;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt as _;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::controller::queue::{Queue, add_all};
use crate::logging::throttle::LogThrottle;
use crate::sidecarset::controller::conditions::has_conflict;
use crate::sidecarset::controller::injection_counts::missing;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::pod_state_metric::PodStateMetric;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::{PodRecord, Wanted};
use crate::sidecarset::controller::watched_pod::WatchedPod;
use crate::watch::coverage::Coverage;
use crate::watch::follow::{Follower, WatchStep, events};
use crate::watch::read_model::{Change, ReadModel, until, watch_config};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use engine::snapshot::sets::SetRecord;

type Sets = BTreeSet<Arc<str>>;

/// Sets come in bursts, and a list of all pods is not cheap.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Keeps the index of the pods of `api` and the metric of their states, and adds to the queue every set that an event concerns. `listed` is cancelled
/// when all pods are known. Does not end.
pub async fn run(
    api: Api<WatchedPod>,
    model: &ReadModel,
    pods: &Mutex<PodIndex>,
    mut coverage: Receiver<Coverage>,
    queue: &Queue<Arc<str>>,
    metric: PodStateMetric,
    listed: CancellationToken,
) {
    let (mut changes, mut publications) = (model.changes(), model.publications());
    let mut handler = PodEventHandler::new(pods, metric, model);
    add_all(queue, handler.sets_are());
    let watch = || model.ungated.counting("pods".into(), events(api.clone(), watch_config()));
    let mut pod_events = pin!(watch());
    loop {
        let is_countable = handler.all_listed && model.is_published();
        let touched = tokio::select! {
            Some(event) = pod_events.next() => handler.pod(event),
            Ok(()) = coverage.changed() => all_sets(model),
            Ok(()) = publications.changed() => handler.published(),
            () = handler.metric.due(), if is_countable => {
                handler.metric.take(pods, &model.snapshot.load_full()).await;
                Sets::new()
            }
            () = until(handler.read_again_at) => {
                handler.read_again_at = None;
                pod_events.set(watch());
                Sets::new()
            }
            change = changes.recv() => match change {
                Ok(Change::Set(name)) => handler.set(name),
                Ok(Change::Namespace(name)) => handler.namespace(&name),
                Err(RecvError::Lagged(_)) => handler.sets_are(),
                // The read model is gone with the process.
                Err(RecvError::Closed) => return,
            },
        };
        add_all(queue, touched);
        if handler.all_listed {
            listed.cancel();
        }
    }
}

/// The names of all sets.
pub fn all_sets(model: &ReadModel) -> Sets {
    model.sets.names()
}

struct PodEventHandler<'a> {
    pods: &'a Mutex<PodIndex>,
    follower: Follower<PodKey>,
    all_listed: bool,
    metric: PodStateMetric,
    model: &'a ReadModel,
    wanted: Wanted,
    // By which the labels that are wanted were found.
    sets: Arc<SetIndex>,
    // When to list all pods anew: what was left out of some may be wanted by now.
    read_again_at: Option<Instant>,
    clipping: LogThrottle,
}

impl<'a> PodEventHandler<'a> {
    fn new(pods: &'a Mutex<PodIndex>, metric: PodStateMetric, model: &'a ReadModel) -> Self {
        Self {
            pods,
            follower: Follower::default(),
            all_listed: false,
            metric,
            model,
            wanted: Wanted::default(),
            sets: Arc::default(),
            read_again_at: None,
            clipping: LogThrottle::default(),
        }
    }
}

impl PodEventHandler<'_> {
    fn index(&self) -> MutexGuard<'_, PodIndex> {
        locked(self.pods)
    }

    /// The sets that a change of a namespace concerns. The snapshot, by which they are counted, has it.
    fn namespace(&self, name: &str) -> Sets {
        let index = self.index();
        let snapshot = self.model.snapshot.load();
        let lacking = index.of_namespace(name).flat_map(|pod| missing(name, pod, &snapshot)).map(Arc::from);
        let mut touched: Sets = index.sets_in(name).into_iter().chain(lacking).collect();
        drop(index);
        // Pods of the namespace may be among those that lacked them.
        let counted = |set: &Arc<SetRecord>| {
            let status = set.status.as_ref();
            status.and_then(|status| status.uninjected_pods).is_some_and(|pods| pods > 0)
        };
        touched.extend(self.model.sets.all().iter().filter(|set| counted(set)).map(|set| Arc::from(set.name.as_str())));
        touched
    }

    /// There is a new snapshot. Returns the sets that are in conflict with another while sets are others than before: that one may be
    /// gone. Which sets it concerns else, changes say.
    fn published(&mut self) -> Sets {
        self.metric.sets_changed();
        let before = Arc::clone(&self.sets);
        if Arc::ptr_eq(&before, &self.model.snapshot.load().sets) {
            return Sets::new();
        }
        self.sets_are();
        let is_same = |set: &&Arc<CompiledSet>| before.get(&set.name).is_some_and(|old| Arc::ptr_eq(old, set));
        if before.len() == self.sets.len() && self.sets.iter().filter(is_same).count() == before.len() {
            return Sets::new();
        }
        let in_conflict = |set: &Arc<SetRecord>| has_conflict(set.status.as_ref());
        self.model.sets.all().into_iter().filter(in_conflict).map(|set| Arc::from(set.name.as_str())).collect()
    }

    /// A set appeared, changed or went; returns the sets that this concerns.
    fn set(&mut self, name: Arc<str>) -> Sets {
        if self.wanted.sets.contains(&name) != self.model.sets.get(&name).is_some() {
            self.sets_are();
        }
        Sets::from([name])
    }

    /// Takes in which sets there are, and returns them all.
    fn sets_are(&mut self) -> Sets {
        let snapshot = self.model.snapshot.load();
        let wanted = Wanted::of(&self.model.sets, &snapshot);
        self.sets = Arc::clone(&snapshot.sets);
        if wanted != self.wanted {
            let mut index = self.index();
            index.sets_are(&wanted.sets);
            let clipped = index.clipped();
            drop(index);
            self.wanted = wanted;
            if clipped > 0 {
                self.read_again_at.get_or_insert_with(|| Instant::now() + READ_AGAIN_AFTER);
            }
        }
        self.wanted.sets.clone()
    }

    /// Takes in an event; returns the sets that it concerns.
    fn pod(&mut self, event: Result<Event<WatchedPod>, watcher::Error>) -> Sets {
        let (mut follower, mut touched) = (mem::take(&mut self.follower), Sets::new());
        let pods = self.pods;
        follower.follow_some(
            event,
            |pod| locked(pods).shared(&PodKey::of(pod)),
            |step| match step {
                WatchStep::Is((pod, key)) => self.is(key, &pod, &mut touched),
                WatchStep::Gone(key) => {
                    touched.extend(self.update(&key, None));
                    false
                }
                WatchStep::Listed => {
                    self.all_listed = true;
                    false
                }
            },
        );
        self.follower = follower;
        touched
    }

    /// Takes in a pod and adds the sets that this concerns; returns whether the pod has anything to do with a set.
    fn is(&mut self, key: &PodKey, pod: &WatchedPod, touched: &mut Sets) -> bool {
        let record = PodRecord::of(pod, &self.wanted).map(|record| record.verified(pod, &self.sets));
        if record.as_ref().is_some_and(|record| record.some_left_out) && self.clipping.is_news(&"pods") {
            let (namespace, name) = (&*key.namespace, &*key.name);
            tracing::warn!(
                namespace,
                name,
                "The annotations of a pod about sets are too large to keep: {}",
                PodRecord::limits()
            );
        }
        let matters = record.is_some();
        touched.extend(self.update(key, record));
        matters
    }

    fn update(&mut self, key: &PodKey, record: Option<PodRecord>) -> Sets {
        self.metric.pod(key, record.as_ref(), &self.model.snapshot.load());
        let mut index = locked(self.pods);
        let snapshot = self.model.snapshot.load();
        let touched = index.update_by(key, record, &snapshot);
        self.metric.clipped(index.clipped());
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Freshness, Metrics};
    use crate::sidecarset::controller::record::tests::pod;
    use engine::snapshot::Exclusion;
    use engine::snapshot::builder::SnapshotBuilder;

    /// A snapshot builder of these sets, and a read model that it publishes to.
    fn model(sets: &[&str]) -> (SnapshotBuilder, ReadModel) {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        for set in sets {
            apply(&mut builder, set);
        }
        let model = ReadModel::of(&builder);
        (builder, model)
    }

    fn object(set: &str, generation: i64) -> serde_json::Value {
        serde_json::json!({
            "metadata": {"name": set, "uid": set, "generation": generation},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "i"}]},
        })
    }

    fn apply(builder: &mut SnapshotBuilder, set: &str) {
        builder.collections.sets.apply(&serde_json::from_value(object(set, 1)).unwrap());
    }

    fn handler<'a>(pods: &'a Mutex<PodIndex>, model: &'a ReadModel) -> PodEventHandler<'a> {
        let mut handler = PodEventHandler::new(pods, PodStateMetric::new(Metrics::new(Freshness::default())), model);
        handler.sets_are();
        handler
    }

    fn sets(sets: &Sets) -> Vec<&str> {
        sets.iter().map(AsRef::as_ref).collect()
    }

    #[test]
    fn pods_that_vanished_while_the_watch_was_away_touch_their_sets() {
        let (pods, (_builder, model)) = (Mutex::default(), model(&["a", "b"]));
        let mut handler = handler(&pods, &model);
        let first = pod("p", "web", &[("a", "1")], true);
        let second = pod("q", "web", &[("b", "1")], true);
        handler.pod(Ok(Event::Init));
        assert_eq!(sets(&handler.pod(Ok(Event::InitApply(first)))), ["a"]);
        assert_eq!(sets(&handler.pod(Ok(Event::InitApply(second.clone())))), ["b"]);
        assert!(!handler.all_listed);
        handler.pod(Ok(Event::InitDone));
        assert!(handler.all_listed);

        handler.pod(Ok(Event::Init));
        assert!(handler.pod(Ok(Event::InitApply(second))).is_empty());
        assert_eq!(sets(&handler.pod(Ok(Event::InitDone))), ["a"]);
        assert_eq!(handler.index().carrying("a").count(), 0);
        assert_eq!(handler.index().carrying("b").count(), 1);
    }

    #[test]
    fn a_change_of_a_namespace_touches_the_sets_of_its_pods() {
        let (pods, (_builder, model)) = (Mutex::default(), model(&["a", "b"]));
        let mut handler = handler(&pods, &model);
        handler.pod(Ok(Event::Apply(pod("p", "web", &[("a", "1")], true))));
        assert_eq!(sets(&handler.namespace("default")), ["a"]);
        assert!(handler.namespace("another").is_empty());
    }

    fn write_conflict(builder: &mut SnapshotBuilder, set: &str) {
        let mut object = object(set, 1);
        object["status"] = serde_json::json!({"conditions": [{"type": "Conflict", "status": "True"}]});
        builder.collections.sets.apply(&serde_json::from_value(object).unwrap());
    }

    #[test]
    fn sets_in_conflict_are_reconciled_once_the_snapshot_has_other_sets_and_not_for_a_status() {
        let (pods, (mut builder, model)) = (Mutex::default(), model(&["a", "b"]));
        let mut handler = handler(&pods, &model);
        builder.publish(&model.snapshot);
        assert!(handler.published().is_empty(), "none is in conflict");
        write_conflict(&mut builder, "a");
        assert_eq!(sets(&handler.set("a".into())), ["a"]);
        builder.publish(&model.snapshot);
        assert!(handler.published().is_empty(), "sets are what they were");
        assert_eq!(sets(&handler.set("b".into())), ["b"], "its status alone");

        builder.collections.sets.remove("b");
        assert_eq!(sets(&handler.set("b".into())), ["b"], "the snapshot has the set still");
        builder.publish(&model.snapshot);
        assert_eq!(sets(&handler.published()), ["a"]);
        for (generation, expected) in [(2, 1), (2, 0)] {
            builder.collections.sets.apply(&serde_json::from_value(object("c", generation)).unwrap());
            builder.publish(&model.snapshot);
            assert_eq!(handler.published().len(), expected, "generation {generation}");
        }
    }

    #[test]
    fn pods_without_a_set_touch_none() {
        let (pods, (_builder, model)) = (Mutex::default(), model(&["a", "b"]));
        let mut handler = handler(&pods, &model);
        assert!(handler.pod(Ok(Event::Apply(pod("p", "web", &[], true)))).is_empty());
        assert_eq!(handler.pod(Ok(Event::Delete(pod("p", "web", &[], true)))), Sets::new());
    }

    #[test]
    fn forged_names_touch_no_set_and_a_set_that_appears_later_finds_the_pods_that_carry_it() {
        let (pods, (mut builder, model)) = (Mutex::default(), model(&[]));
        let mut handler = handler(&pods, &model);
        let forged = pod("p", "web", &[("later", "1"), ("never", "1")], true);
        assert!(handler.pod(Ok(Event::Apply(forged))).is_empty());
        assert_eq!(handler.index().carrying("later").count(), 0);
        apply(&mut builder, "later");
        assert_eq!(sets(&handler.set("later".into())), ["later"]);
        assert_eq!(handler.index().carrying("later").count(), 1);
        assert_eq!(handler.read_again_at, None, "everything that pods say is known");
        builder.collections.sets.remove("later");
        handler.set("later".into());
        assert!(handler.pod(Ok(Event::Apply(pod("p", "web", &[("later", "1")], false)))).is_empty());
    }

    #[test]
    fn pods_of_which_something_was_left_out_are_read_again_when_other_sets_exist() {
        let (pods, (mut builder, model)) = (Mutex::default(), model(&["a"]));
        let mut handler = handler(&pods, &model);
        let names: Vec<String> = (0..100).map(|n| format!("s{n:03}")).collect();
        let carried: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        handler.pod(Ok(Event::Apply(pod("p", "web", &carried, true))));
        assert_eq!(handler.read_again_at, None);
        apply(&mut builder, "s099");
        handler.set("s099".into());
        assert!(handler.read_again_at.is_some());
        assert_eq!(handler.index().carrying("s099").count(), 0, "it was left out");
        assert_eq!(sets(&handler.pod(Ok(Event::InitApply(pod("p", "web", &carried, true))))), ["s099"]);
        assert_eq!(handler.index().carrying("s099").count(), 1);
    }
}
