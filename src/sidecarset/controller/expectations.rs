//! Pods that rollouts are changing, or have changed without the watch having shown it yet: of all sets, in one place.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;

/// After so long what was written would have been seen: whatever happened to it, it holds up nothing any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The pods. It is lost with the leader: the next one lists what was written.
#[derive(Debug, Default)]
pub struct Expectations {
    pods: HashMap<PodKey, Vec<Expectation>>,
}

#[derive(Debug)]
struct Expectation {
    set: Box<str>,
    uid: u64,
    hash: Box<str>,
    takes_place: bool,
    at: Instant,
}

impl Expectation {
    fn is_fresh(&self, now: Instant) -> bool {
        now.duration_since(self.at) <= FORGOTTEN_AFTER
    }
}

impl Expectations {
    /// The pod of this uid is given the form of the set that has this hash. It `takes_place` in the set's budget where it served.
    pub fn enter(&mut self, key: &PodKey, uid: u64, (set, hash): (&str, &str), takes_place: bool, now: Instant) {
        self.strike(key, set);
        let entry = Expectation { set: set.into(), uid, hash: hash.into(), takes_place, at: now };
        self.pods.entry(key.clone()).or_default().push(entry);
    }

    /// The pod was not changed for the set.
    pub fn strike(&mut self, key: &PodKey, set: &str) {
        if let Some(entries) = self.pods.get_mut(key) {
            entries.retain(|entry| &*entry.set != set);
            if entries.is_empty() {
                self.pods.remove(key);
            }
        }
    }

    /// What the pod of this uid was given of the set: the hash of the form, which may not be the current one any more, and whether it
    /// takes a place in the budget.
    pub fn given(&self, key: &PodKey, uid: u64, set: &str, now: Instant) -> Option<(&str, bool)> {
        let entries = self.pods.get(key).into_iter().flatten();
        let mut fresh = entries.filter(|entry| entry.is_fresh(now));
        let found = fresh.find(|entry| (entry.uid, &*entry.set) == (uid, set))?;
        Some((&found.hash, found.takes_place))
    }

    /// Forgets what the watch has shown by now, and pods that are gone or others: one that vanished at the wrong moment blocks nothing.
    pub fn prune(&mut self, pods: &PodIndex, now: Instant) {
        self.pods.retain(|key, entries| {
            let Some(pod) = pods.get(key) else { return false };
            entries.retain(|entry| {
                let is_shown = !pod.active || pod.recorded_hash_of(&entry.set) == Some(&*entry.hash);
                entry.is_fresh(now) && pod.facts.uid == entry.uid && !is_shown
            });
            !entries.is_empty()
        });
    }

    /// Pods that are on their way down for any set, and that a `PodDisruptionBudget` may still take for healthy: each once.
    pub fn in_flight<'p>(&'p self, pods: &'p PodIndex) -> impl Iterator<Item = (&'p PodKey, &'p PodRecord)> {
        let entered = self.pods.keys().filter_map(|key| Some((key, pods.get(key)?)));
        let all: BTreeMap<&PodKey, &Arc<PodRecord>> = pods.in_flight().chain(entered).collect();
        all.into_iter().map(|(key, pod)| (key, &**pod)).filter(|(_, pod)| !pod.is_known_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecarset::controller::record::tests::{pod, wanted};

    const FORM: (&str, &str) = ("a", "new");

    fn index(hash: &str) -> (PodIndex, PodKey, u64) {
        let pod = pod("p", "web", &[("a", hash), ("b", "1")], true);
        let (mut index, key) = (PodIndex::default(), PodKey::of(&pod));
        index.update(&key, PodRecord::of(&pod, &wanted(&["a", "b"])));
        let uid = index.get(&key).unwrap().facts.uid;
        (index, key, uid)
    }

    #[test]
    fn a_pod_is_entered_for_each_set_until_the_watch_shows_its_form() {
        let ((old, key, uid), now) = (index("old"), Instant::now());
        let mut expectations = Expectations::default();
        expectations.enter(&key, uid, FORM, true, now);
        expectations.enter(&key, uid, ("b", "2"), false, now);
        expectations.prune(&old, now);
        let given = |expectations: &Expectations, set: &str| {
            expectations.given(&key, uid, set, now).map(|(hash, takes)| (hash.to_owned(), takes))
        };
        let (of_a, of_b) = (Some(("new".to_owned(), true)), Some(("2".to_owned(), false)));
        assert_eq!((given(&expectations, "a"), given(&expectations, "b")), (of_a, of_b.clone()));
        assert!(given(&expectations, "c").is_none() && expectations.given(&key, uid + 1, "a", now).is_none());
        assert_eq!(expectations.in_flight(&old).count(), 1, "it goes down once");
        expectations.prune(&index("new").0, now);
        assert_eq!((given(&expectations, "a"), given(&expectations, "b")), (None, of_b));
        expectations.strike(&key, "b");
        assert!(expectations.pods.is_empty());
    }

    /// Case 103: there, a pod that is deleted before the expectation is recorded blocks the set for ever.
    #[test]
    fn case_103_a_pod_that_is_gone_or_another_or_was_never_seen_blocks_nothing() {
        let ((old, key, uid), now) = (index("old"), Instant::now());
        let later = now + FORGOTTEN_AFTER * 2;
        for (case, pods, uid, at) in
            [("gone", &PodIndex::default(), uid, now), ("another", &old, uid + 1, now), ("not seen", &old, uid, later)]
        {
            let mut expectations = Expectations::default();
            expectations.enter(&key, uid, FORM, true, now);
            expectations.prune(pods, at);
            assert!(expectations.pods.is_empty(), "{case}");
        }
    }
}
