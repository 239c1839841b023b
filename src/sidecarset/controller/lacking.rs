//! Which pods lack a set that selects them, kept up to date pod by pod.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use engine::pod::select::{Reach, Skip, reaches};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::namespace::Namespaces;
use engine::snapshot::{Exclusion, Snapshot};

use crate::sidecarset::controller::injection_counts::{lacks, missing};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::PodRecord;

/// The pods that lack each set, as far as somebody has asked for them.
#[derive(Debug, Default)]
pub struct LackingIndex {
    by_set: HashMap<Box<str>, Lacking>,
}

/// The pods that lack a set, found by this form of it, in these namespaces.
#[derive(Debug)]
struct Lacking {
    set: Weak<CompiledSet>,
    canaries: Vec<Weak<CompiledSet>>,
    namespaces: Weak<Namespaces>,
    exclusion: Weak<Exclusion>,
    pods: BTreeSet<PodKey>,
}

impl Lacking {
    fn is_of(&self, set: &Arc<CompiledSet>, snapshot: &Snapshot) -> bool {
        self.set.as_ptr() == Arc::as_ptr(set)
            && self.canaries.iter().map(Weak::as_ptr).eq(snapshot.sets.canaries_of(set).map(Arc::as_ptr))
            && self.namespaces.as_ptr() == Arc::as_ptr(&snapshot.namespaces)
            && self.exclusion.as_ptr() == Arc::as_ptr(&snapshot.exclusion)
    }
}

impl LackingIndex {
    /// How many of these pods, which are all that the set can reach, lack it, and the first of them. They are walked only if the set or
    /// the namespaces are others than they were.
    pub fn of<'p>(
        &mut self,
        set: &Arc<CompiledSet>,
        snapshot: &Snapshot,
        pods: impl Iterator<Item = (&'p PodKey, &'p Arc<PodRecord>)>,
    ) -> (usize, Option<PodKey>) {
        let known = self.by_set.get(set.name.as_str()).is_some_and(|known| known.is_of(set, snapshot));
        if !known {
            let mut reached = ReachedNamespace::default();
            let is_lacking = |(key, pod): &(&PodKey, &Arc<PodRecord>)| {
                pod.active
                    && reached.is_reached(&key.namespace, set, snapshot)
                    && set.selector.matches(&pod.labels)
                    && lacks(set, &key.namespace, pod, &Skip::read(pod.skip.as_deref()), snapshot)
            };
            let found = Lacking {
                set: Arc::downgrade(set),
                canaries: snapshot.sets.canaries_of(set).map(Arc::downgrade).collect(),
                namespaces: Arc::downgrade(&snapshot.namespaces),
                exclusion: Arc::downgrade(&snapshot.exclusion),
                pods: pods.filter(is_lacking).map(|(key, _)| key.clone()).collect(),
            };
            self.by_set.insert(set.name.as_str().into(), found);
        }
        let pods = self.by_set.get(set.name.as_str()).map(|known| &known.pods);
        pods.map_or((0, None), |pods| (pods.len(), pods.first().cloned()))
    }

    /// The pods that lack a set, if they have been counted.
    pub fn keys(&self, set: &str) -> impl Iterator<Item = &PodKey> {
        self.by_set.get(set).into_iter().flat_map(|known| &known.pods)
    }

    /// Takes in that a pod has changed. Returns the sets that it lacks since, or no longer. `snapshot` is not older than any that
    /// [`Self::of`] was called with.
    pub fn update(
        &mut self,
        key: &PodKey,
        before: Option<&PodRecord>,
        after: Option<&PodRecord>,
        snapshot: &Snapshot,
    ) -> BTreeSet<Arc<str>> {
        let sets = |pod: Option<&PodRecord>| -> BTreeSet<Arc<str>> {
            pod.into_iter().flat_map(|pod| missing(&key.namespace, pod, snapshot)).map(Arc::from).collect()
        };
        let (lacked, lacking) = (sets(before), sets(after));
        for name in lacked.union(&lacking) {
            let Some(known) = self.by_set.get_mut(&**name) else { continue };
            if !snapshot.sets.get(name).is_some_and(|set| known.is_of(set, snapshot)) {
                self.by_set.remove(&**name);
            } else if lacking.contains(name) {
                known.pods.insert(key.clone());
            } else {
                known.pods.remove(key);
            }
        }
        lacked.symmetric_difference(&lacking).cloned().collect()
    }

    /// Forgets sets that are gone.
    pub fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.by_set.retain(|set, _| exists(set));
    }
}

/// Whether a set reaches the namespace of a pod: looked up once for pods that follow each other.
#[derive(Default)]
pub struct ReachedNamespace {
    name: String,
    is_reached: bool,
}

impl ReachedNamespace {
    /// Whether the set reaches the namespace, and Outrider does not leave that alone.
    pub fn is_reached(&mut self, name: &str, set: &CompiledSet, snapshot: &Snapshot) -> bool {
        if self.name != name {
            let labels = snapshot.namespaces.labels(name);
            name.clone_into(&mut self.name);
            self.is_reached = reaches(set, name, labels) == Reach::Yes && !snapshot.exclusion.covers(name, labels);
        }
        self.is_reached
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sidecarset::controller::injection_counts::tests::{set, snapshot};
    use crate::sidecarset::controller::pods::PodIndex;
    use crate::sidecarset::controller::record::tests::{pod, wanted};
    use crate::sidecarset::controller::watched_pod::WatchedPod;

    fn apply(index: &mut PodIndex, pod: &WatchedPod, snapshot: &Snapshot) -> usize {
        index.update_by(&PodKey::of(pod), PodRecord::of(pod, &wanted(&["a"])), snapshot).len()
    }

    #[test]
    fn pods_that_lack_a_set_are_counted_pod_by_pod_and_by_its_new_form() {
        let before = snapshot([set(&json!({}))], &json!({}));
        let mut index = PodIndex::default();
        index.sets_are(&wanted(&["a"]).sets);
        let of = |index: &mut PodIndex, snapshot: &Snapshot| {
            let (pods, first) = index.lacking(snapshot.sets.get("a").unwrap(), snapshot);
            (pods, first.map(|key| key.name.to_string()))
        };
        assert_eq!(of(&mut index, &before), (0, None));
        assert_eq!(apply(&mut index, &pod("p", "web", &[], true), &before), 1);
        assert_eq!(apply(&mut index, &pod("q", "web", &[], true), &before), 1);
        assert_eq!(apply(&mut index, &pod("r", "web", &[("a", "1")], true), &before), 1);
        assert_eq!(apply(&mut index, &pod("s", "other", &[], true), &before), 0);
        assert_eq!(of(&mut index, &before), (2, Some("p".to_owned())));
        // One got it, or was created anew.
        assert_eq!(apply(&mut index, &pod("p", "web", &[("a", "1")], true), &before), 1);
        assert_eq!(of(&mut index, &before), (1, Some("q".to_owned())));

        // The set selects others now; a pod that changes before the set is counted anew is in that count.
        let selects_others = json!({"selector": {"matchLabels": {"app": "other"}}});
        let after = snapshot([set(&selects_others)], &json!({}));
        apply(&mut index, &pod("t", "other", &[], true), &after);
        assert_eq!(of(&mut index, &after), (2, Some("s".to_owned())));
        // And so with the labels of a namespace.
        let excluded = Snapshot { sets: Arc::clone(&after.sets), ..snapshot([], &json!({"outrider.dev/exclude": ""})) };
        assert_eq!(of(&mut index, &excluded), (0, None));
    }
}
