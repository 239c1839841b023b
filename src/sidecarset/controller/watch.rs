//! Which events concern which sets.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use futures::StreamExt as _;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::controller::queue::{Queue, add_all};
use crate::logging::trouble::Trouble;
use crate::sidecarset::controller::census::Census;
use crate::sidecarset::controller::pods::{PodIndex, PodKey, PodRecord, WatchedPod};
use crate::sidecarset::controller::programmed::Coverage;
use crate::watch::patience::Patience;
use crate::watch::read_model::{Change, World, watch_config};
use crate::watch::relist::Relist;
use crate::watch::report::report;
use engine::snapshot::Snapshot;

type Sets = BTreeSet<Arc<str>>;

/// Keeps the index of the pods of `api` and the census, and adds to the queue every set that an event concerns. `listed` is cancelled
/// when all pods are known. Does not end.
pub async fn run(
    api: Api<WatchedPod>,
    world: &World,
    pods: &Mutex<PodIndex>,
    mut coverage: Receiver<Coverage>,
    queue: &Queue<Arc<str>>,
    census: Census,
    listed: CancellationToken,
) {
    let (mut changes, mut publications) = (world.changes(), world.publications());
    add_all(queue, all_sets(world));
    let events = watcher(api, watch_config());
    let mut events = pin!(events.backoff(Patience::default()));
    let mut intake = Intake::new(pods, census, &world.snapshot);
    loop {
        let is_countable = intake.all_listed && world.is_published();
        let touched = tokio::select! {
            Some(event) = events.next() => intake.pod(event),
            Ok(()) = coverage.changed() => all_sets(world),
            Ok(()) = publications.changed() => intake.published(),
            () = intake.census.due(), if is_countable => {
                intake.census.take(pods, &world.snapshot.load_full()).await;
                Sets::new()
            }
            change = changes.recv() => match change {
                Ok(Change::Set(name)) => Sets::from([name]),
                Ok(Change::Namespace(name)) => intake.namespace(&name),
                Err(RecvError::Lagged(_)) => all_sets(world),
                // The world is gone with the process.
                Err(RecvError::Closed) => return,
            },
        };
        add_all(queue, touched);
        if intake.all_listed {
            listed.cancel();
        }
    }
}

/// The names of all sets.
pub fn all_sets(world: &World) -> Sets {
    world.sets.all().iter().map(|set| set.name.as_str().into()).collect()
}

struct Intake<'a> {
    pods: &'a Mutex<PodIndex>,
    relist: Relist<PodKey>,
    all_listed: bool,
    census: Census,
    snapshot: &'a ArcSwap<Snapshot>,
    // Sets to count again when the snapshot has the namespaces that concern them.
    counted_early: Sets,
    trouble: Trouble,
}

impl<'a> Intake<'a> {
    fn new(pods: &'a Mutex<PodIndex>, census: Census, snapshot: &'a ArcSwap<Snapshot>) -> Self {
        let (relist, counted_early) = (Relist::default(), Sets::new());
        Self { pods, relist, all_listed: false, census, snapshot, counted_early, trouble: Trouble::default() }
    }
}

impl Intake<'_> {
    fn index(&self) -> MutexGuard<'_, PodIndex> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sets that a change of a namespace concerns. It is told before the snapshot has it, or after that.
    fn namespace(&mut self, name: &str) -> Sets {
        let sets = self.index().sets_in(name);
        self.counted_early.extend(sets.iter().cloned());
        sets
    }

    /// There is a new snapshot; returns the sets that it concerns.
    fn published(&mut self) -> Sets {
        self.census.sets_changed();
        std::mem::take(&mut self.counted_early)
    }

    /// Takes in an event; returns the sets that it concerns.
    fn pod(&mut self, event: Result<Event<WatchedPod>, watcher::Error>) -> Sets {
        report(&event, &mut self.trouble);
        match event {
            Ok(Event::Init) => {
                self.relist.begin();
                Sets::new()
            }
            Ok(Event::Apply(pod) | Event::InitApply(pod)) => self.is(&pod),
            Ok(Event::Delete(pod)) => self.gone(&PodKey::of(&pod)),
            Ok(Event::InitDone) => {
                self.all_listed = true;
                let gone = self.relist.finish();
                gone.iter().flat_map(|key| self.update(key, None)).collect()
            }
            Err(_) => Sets::new(),
        }
    }

    fn is(&mut self, pod: &WatchedPod) -> Sets {
        let key = PodKey::of(pod);
        let record = PodRecord::of(pod);
        if record.is_some() {
            self.relist.seen(key.clone());
        } else {
            self.relist.gone(&key);
        }
        self.update(&key, record)
    }

    fn gone(&mut self, key: &PodKey) -> Sets {
        self.relist.gone(key);
        self.update(key, None)
    }

    fn update(&mut self, key: &PodKey, record: Option<PodRecord>) -> Sets {
        self.census.pod(key, record.as_ref(), &self.snapshot.load());
        self.index().update(key, record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Freshness, Metrics};
    use crate::sidecarset::controller::pods::tests::pod;

    fn intake<'a>(pods: &'a Mutex<PodIndex>, snapshot: &'a ArcSwap<Snapshot>) -> Intake<'a> {
        Intake::new(pods, Census::new(Metrics::new(Freshness::default())), snapshot)
    }

    fn sets(sets: &Sets) -> Vec<&str> {
        sets.iter().map(AsRef::as_ref).collect()
    }

    #[test]
    fn pods_that_vanished_while_the_watch_was_away_touch_their_sets() {
        let (pods, snapshot) = (Mutex::default(), ArcSwap::default());
        let mut intake = intake(&pods, &snapshot);
        let first = pod("p", "web", &[("a", "1")], true);
        let second = pod("q", "web", &[("b", "1")], true);
        intake.pod(Ok(Event::Init));
        assert_eq!(sets(&intake.pod(Ok(Event::InitApply(first)))), ["a"]);
        assert_eq!(sets(&intake.pod(Ok(Event::InitApply(second.clone())))), ["b"]);
        assert!(!intake.all_listed);
        intake.pod(Ok(Event::InitDone));
        assert!(intake.all_listed);

        intake.pod(Ok(Event::Init));
        assert!(intake.pod(Ok(Event::InitApply(second))).is_empty());
        assert_eq!(sets(&intake.pod(Ok(Event::InitDone))), ["a"]);
        assert_eq!(intake.index().carrying("a").count(), 0);
        assert_eq!(intake.index().carrying("b").count(), 1);
    }

    /// The change is told before it is in the snapshot that sets are counted by.
    #[test]
    fn a_change_of_a_namespace_touches_its_sets_again_once_it_is_in_the_snapshot() {
        let (pods, snapshot) = (Mutex::default(), ArcSwap::default());
        let mut intake = intake(&pods, &snapshot);
        intake.pod(Ok(Event::Apply(pod("p", "web", &[("a", "1")], true))));
        assert_eq!(sets(&intake.namespace("default")), ["a"]);
        assert_eq!(sets(&intake.published()), ["a"]);
        assert!(intake.published().is_empty());
    }

    #[test]
    fn pods_without_a_set_touch_none() {
        let (pods, snapshot) = (Mutex::default(), ArcSwap::default());
        let mut intake = intake(&pods, &snapshot);
        assert!(intake.pod(Ok(Event::Apply(pod("p", "web", &[], true)))).is_empty());
        assert_eq!(intake.pod(Ok(Event::Delete(pod("p", "web", &[], true)))), Sets::new());
    }
}
