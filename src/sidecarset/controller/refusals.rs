//! Which namespaces refuse new pods with a set, and why: found anew when sets, namespaces, or what limits these have changed.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use kube::Client;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::controller::options::ControllerOptions;
use crate::controller::queue::{Queue, add_all};
use crate::sidecarset::controller::limits_watch::{LimitsWatch, Read};
use crate::sidecarset::controller::locks::locked;
use crate::watch::read_model::{ReadModel, until};
use engine::findings::namespace_limits::{NamespaceLimits, Room};
use engine::findings::{Refused, Search, refused};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// From one search over all sets to the next, at least: what is left of quotas changes with every pod.
const PAUSE: Duration = Duration::from_secs(5);
/// The pause is so many times as long as the search took, if that is longer.
const SHARE: u32 = 20;

/// What refuses new pods, by set.
#[derive(Default)]
pub struct Refusals {
    limits: Mutex<NamespaceLimits>,
    found: Mutex<HashMap<String, LastSearch>>,
}

/// What was found, and for which form of the set.
type LastSearch = (Weak<CompiledSet>, Arc<Refused>);

impl Refusals {
    /// Those of a set. What was found for the same form is valid until the next search.
    pub fn of(&self, set: &Arc<CompiledSet>, snapshot: &Snapshot) -> Arc<Refused> {
        if let Some((form, found)) = locked(&self.found).get(&set.name)
            && form.as_ptr() == Arc::as_ptr(set)
        {
            return Arc::clone(found);
        }
        self.find(set, snapshot).0
    }

    /// Why each of these namespaces refuses a new pod with the set in place of one that is evicted and lacks the set, or does not; only of
    /// namespaces that do. What a pod with an older form of the set gives back to quotas is not known: it may be all that these have.
    pub fn in_place_of<'n>(
        &self,
        set: &CompiledSet,
        snapshot: &Snapshot,
        evicted: impl Iterator<Item = (&'n str, bool)>,
    ) -> HashMap<(&'n str, bool), String> {
        let Some(mut search) = Search::of(set, snapshot) else { return HashMap::new() };
        let limits = locked(&self.limits);
        let mut refuse = |(namespace, lacks_set): (&'n str, bool)| {
            let labels = snapshot.namespaces.labels(namespace)?;
            let room = if lacks_set { Room::Left } else { Room::Whole };
            let cause = search.causes(namespace, labels, limits.of(namespace), room).into_iter().next()?;
            Some(((namespace, lacks_set), cause))
        };
        evicted.filter_map(&mut refuse).collect()
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        locked(&self.found).remove(set);
    }

    /// What is known of a quota for cpu.
    #[cfg(test)]
    pub fn quota(&self, namespace: &str, hard: &str, used: &str) {
        locked(&self.limits).quota(namespace, "q", tests::left_of(hard, used));
    }

    /// Searches for one set; returns also whether that is another than before.
    fn find(&self, set: &Arc<CompiledSet>, snapshot: &Snapshot) -> (Arc<Refused>, bool) {
        let new = Arc::new(refused(set, snapshot, &locked(&self.limits)));
        let before = locked(&self.found).insert(set.name.clone(), (Arc::downgrade(set), Arc::clone(&new)));
        let is_other = before.is_none_or(|(_, before)| before != new);
        (new, is_other)
    }

    /// Searches for all sets; returns those of which another thing is found than before.
    async fn find_all(&self, snapshot: &Snapshot) -> Vec<Arc<str>> {
        let mut changed = Vec::new();
        for set in snapshot.sets.iter() {
            if self.find(set, snapshot).1 {
                changed.push(Arc::from(set.name.as_str()));
            }
            yield_now().await;
        }
        changed
    }

    /// Watches what limits namespaces, and adds to the queue each set of which another thing is found. `known` is cancelled after the
    /// first search. Does not end.
    pub async fn follow(
        &self,
        client: Client,
        (model, options): (&ReadModel, &ControllerOptions),
        queue: &Queue<Arc<str>>,
        known: CancellationToken,
    ) {
        model.published().await;
        let mut publications = model.publications();
        let (mut watch, mut seen): (Option<LimitsWatch>, Option<Arc<Snapshot>>) = (None, None);
        let (mut is_stale, mut next) = (true, Instant::now());
        loop {
            let snapshot = model.snapshot.load_full();
            if seen.as_ref().is_none_or(|seen| is_other(seen, &snapshot)) {
                is_stale = true;
                seen = Some(Arc::clone(&snapshot));
            }
            if snapshot.sets.is_empty() {
                watch = None;
                *locked(&self.limits) = NamespaceLimits::default();
            } else if watch.is_none() {
                watch =
                    Some(LimitsWatch::new(options.api(client.clone()), options.api(client.clone()), &model.ungated));
            }
            let is_answered = watch.as_ref().is_none_or(LimitsWatch::is_answered);
            tokio::select! {
                Ok(()) = publications.changed() => {}
                event = next_of(&mut watch) => if let Some(watch) = &mut watch {
                    is_stale |= watch.take(event, &mut locked(&self.limits));
                },
                () = until(Some(next)), if is_stale && is_answered => {
                    let begun = Instant::now();
                    add_all(queue, self.find_all(&snapshot).await);
                    is_stale = false;
                    next = Instant::now() + PAUSE.max(begun.elapsed() * SHARE);
                    known.cancel();
                }
            }
        }
    }
}

/// The next event; none, for ever, while there is no watch.
async fn next_of(watch: &mut Option<LimitsWatch>) -> Read {
    match watch {
        Some(watch) => watch.next().await,
        None => pending().await,
    }
}

/// Whether something else may be found in the one than in the other.
fn is_other(before: &Snapshot, now: &Snapshot) -> bool {
    !(Arc::ptr_eq(&before.sets, &now.sets)
        && Arc::ptr_eq(&before.namespaces, &now.namespaces)
        && Arc::ptr_eq(&before.pinned, &now.pinned))
}

#[cfg(test)]
mod tests {
    use engine::findings::namespace_limits::{Left, QuotaUse};
    use serde_json::json;

    use super::*;
    use crate::sidecarset::controller::injection_counts::tests::{set, snapshot};

    fn left(used: &str) -> Option<Left> {
        left_of("1", used)
    }

    pub fn left_of(hard: &str, used: &str) -> Option<Left> {
        let status = json!({"hard": {"requests.cpu": hard}, "used": {"requests.cpu": used}});
        Left::of(None, Some(&serde_json::from_value::<QuotaUse>(status).unwrap()))
    }

    #[tokio::test]
    async fn a_search_names_the_sets_of_which_another_thing_is_found_and_a_new_form_is_judged_at_once() {
        let refusals = Refusals::default();
        let model = snapshot([set(&json!({}))], &json!({}));
        assert_eq!(refusals.find_all(&model).await, ["a".into()], "for the first time");
        assert_eq!(refusals.find_all(&model).await, [] as [Arc<str>; 0]);
        locked(&refusals.limits).quota("default", "q", left("0"));
        assert_eq!(refusals.find_all(&model).await, ["a".into()]);
        locked(&refusals.limits).quota("default", "q", left("1"));
        assert_eq!(refusals.find_all(&model).await, [] as [Arc<str>; 0], "no request is none, whatever is left");

        let current = model.sets.get("a").unwrap();
        assert_eq!(refusals.of(current, &model).namespaces, 1);
        let elsewhere = snapshot([set(&json!({"namespace": "elsewhere"}))], &json!({}));
        assert_eq!(refusals.of(elsewhere.sets.get("a").unwrap(), &elsewhere).namespaces, 0);
        refusals.forget("a");
        assert!(locked(&refusals.found).is_empty());
    }

    #[test]
    fn only_sets_namespaces_and_revisions_ask_for_a_search() {
        let before = snapshot([], &json!({}));
        let mut now = before.clone();
        now.generation += 1;
        assert!(!is_other(&before, &now));
        now.namespaces = Arc::default();
        assert!(is_other(&before, &now));
    }
}
