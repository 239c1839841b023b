//! The controller's read model of pods: those that carry a set or could, and of these only what is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Bound, Deref};
use std::sync::Arc;

use engine::sidecarset::compiled::{CompiledSet, NamespaceScope};
use engine::snapshot::Snapshot;
use kube::ResourceExt as _;

use crate::sidecarset::controller::lacking::LackingIndex;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::texts::Texts;
use crate::sidecarset::controller::watched_pod::WatchedPod;

/// Namespace and name, in one pointer: a key is in several indexes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey(Arc<PodName>);

/// Namespace and name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`: a `StatefulSet` gives a new pod the name of the last one.
    pub name: Box<str>,
}

impl Deref for PodKey {
    type Target = PodName;

    fn deref(&self) -> &PodName {
        &self.0
    }
}

impl PodKey {
    fn new(namespace: Arc<str>, name: &str) -> Self {
        Self(Arc::new(PodName { namespace, name: name.into() }))
    }

    /// The key of a watched pod.
    pub fn of(pod: &WatchedPod) -> Self {
        Self::new(pod.namespace().unwrap_or_default().into(), &pod.name_any())
    }
}

/// Pods by name, and by the sets that they carry, as far as these exist.
///
/// What a change touches follows from the records alone: the status of a set counts only pods that carry it, so the sets named in a
/// pod's old and new record are all that a change of the pod, its labels included, can concern. The author of a pod's
/// annotations may name any number of sets in them; those that do not exist take no place in the index and concern no set.
#[derive(Debug, Default)]
pub struct PodIndex {
    pods: Pods,
    // Every set that exists has an entry, and no other.
    by_set: HashMap<Arc<str>, BTreeSet<PodKey>>,
    lacking: LackingIndex,
    // Those with a controller, by the workload that they are of.
    by_owner: HashMap<u64, BTreeSet<PodKey>>,
    in_flight: BTreeSet<PodKey>,
    // Pods that end and whose condition names a set that they do not carry.
    ending_without_sets: BTreeSet<PodKey>,
    texts: Texts,
    clipped: usize,
}

/// Pods with their keys, in the order of these.
type Pods = BTreeMap<PodKey, Arc<PodRecord>>;

fn in_namespace<'p>(pods: &'p Pods, namespace: &str) -> impl Iterator<Item = (&'p PodKey, &'p Arc<PodRecord>)> {
    let first = PodKey::new(namespace.into(), "");
    let namespace = Arc::clone(&first.namespace);
    pods.range(first..).take_while(move |(key, _)| key.namespace == namespace)
}

impl PodIndex {
    /// Takes in which sets exist. A set that is new finds the pods that have named it before.
    pub fn sets_are(&mut self, sets: &BTreeSet<Arc<str>>) {
        self.by_set.retain(|set, _| sets.contains(set));
        self.lacking.retain(|set| sets.contains(set));
        let new: Vec<&Arc<str>> = sets.iter().filter(|set| !self.by_set.contains_key(*set)).collect();
        if new.is_empty() {
            return;
        }
        let mut found: HashMap<Arc<str>, BTreeSet<PodKey>> =
            new.into_iter().map(|set| (Arc::clone(set), BTreeSet::new())).collect();
        for (key, record) in &self.pods {
            for (set, _) in record.carried.iter() {
                if let Some(keys) = found.get_mut(set) {
                    keys.insert(key.clone());
                }
            }
        }
        self.by_set.extend(found);
    }

    /// Whether the pods of this set are known.
    pub fn knows(&self, set: &str) -> bool {
        self.by_set.contains_key(set)
    }

    /// As [`Self::update`], and returns the sets too that the pod lacks since, or no longer, by this snapshot. It is the current one: loaded
    /// while the index is locked.
    pub fn update_by(&mut self, key: &PodKey, record: Option<PodRecord>, snapshot: &Snapshot) -> BTreeSet<Arc<str>> {
        let before = self.pods.get(key).map(|record| &**record);
        if before == record.as_ref() {
            return BTreeSet::new();
        }
        let mut touched = self.lacking.update(key, before, record.as_ref(), snapshot);
        touched.extend(self.update(key, record));
        touched
    }

    /// Takes in what a pod is now, nothing if it is gone. Returns the sets whose numbers of pods that carry them may have changed.
    pub fn update(&mut self, key: &PodKey, record: Option<PodRecord>) -> BTreeSet<Arc<str>> {
        let before = self.pods.get(key).map(|record| &**record);
        if before == record.as_ref() {
            return BTreeSet::new();
        }
        self.clipped += usize::from(record.as_ref().is_some_and(|record| record.some_left_out));
        self.clipped -= usize::from(before.is_some_and(|record| record.some_left_out));
        let mut touched = BTreeSet::new();
        if let Some(old) = self.pods.remove(key) {
            self.in_flight.remove(key);
            self.ending_without_sets.remove(key);
            if let Some(keys) = self.by_owner.get_mut(&old.facts.owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(&old.facts.owner);
                }
            }
            for (set, _) in old.carried.iter() {
                touched.extend(self.filed(set, |keys| keys.remove(key)));
            }
        }
        if let Some(mut new) = record {
            for (set, _) in new.carried.iter() {
                touched.extend(self.filed(set, |keys| keys.insert(key.clone())));
            }
            if new.is_in_flight() {
                self.in_flight.insert(key.clone());
            }
            if new.is_terminating && new.is_refused_others {
                self.ending_without_sets.insert(key.clone());
            }
            if new.facts.owner != 0 {
                self.by_owner.entry(new.facts.owner).or_default().insert(key.clone());
            }
            new.share(&mut self.texts);
            self.pods.insert(key.clone(), Arc::new(new));
        }
        touched
    }

    fn filed(&mut self, set: &str, change: impl FnOnce(&mut BTreeSet<PodKey>) -> bool) -> Option<Arc<str>> {
        let name = self.by_set.get_key_value(set).map(|(name, _)| Arc::clone(name))?;
        change(self.by_set.get_mut(set)?);
        Some(name)
    }

    /// The key as it is kept, or as it is to be: with the text of its namespace shared with the other pods there.
    pub fn shared(&self, key: &PodKey) -> PodKey {
        if let Some((kept, _)) = self.pods.get_key_value(key) {
            return kept.clone();
        }
        let neighbour = in_namespace(&self.pods, &key.namespace).next();
        neighbour.map_or_else(|| key.clone(), |(other, _)| PodKey::new(Arc::clone(&other.namespace), &key.name))
    }

    /// How many pods say more than is kept.
    pub const fn clipped(&self) -> usize {
        self.clipped
    }

    /// The pods that carry a set, active or not, whether or not it selects them.
    pub fn carrying(&self, set: &str) -> impl Iterator<Item = (&PodKey, &Arc<PodRecord>)> {
        let keys = self.by_set.get(set).into_iter().flatten();
        keys.filter_map(|key| self.pods.get_key_value(key))
    }

    /// How many pods lack a set of the snapshot that they would carry if they were created now, and the first of them.
    pub fn lacking(&mut self, set: &Arc<CompiledSet>, snapshot: &Snapshot) -> (usize, Option<PodKey>) {
        match &set.scope {
            NamespaceScope::Named(name) => self.lacking.of(set, snapshot, in_namespace(&self.pods, name)),
            _ => self.lacking.of(set, snapshot, self.pods.iter()),
        }
    }

    /// Pods that rollouts have touched and that are not back.
    pub fn in_flight(&self) -> impl Iterator<Item = (&PodKey, &Arc<PodRecord>)> {
        self.in_flight.iter().filter_map(|key| self.pods.get_key_value(key))
    }

    /// The pods that carry a set, and those that lack it and end, and whose condition names a set that they lack.
    pub fn carrying_or_ending(&self, set: &str) -> impl Iterator<Item = (&PodKey, &Arc<PodRecord>)> {
        let ending = self.ending_without_sets.iter().filter_map(|key| self.pods.get_key_value(key));
        self.carrying(set).chain(ending.filter(move |(_, pod)| pod.hash_of(set).is_none()))
    }

    /// The pods that lack a set, as [`Self::lacking`] has counted them.
    pub fn lacking_it(&self, set: &str) -> impl Iterator<Item = (&PodKey, &Arc<PodRecord>)> {
        self.lacking.keys(set).filter_map(|key| self.pods.get_key_value(key))
    }

    /// What is kept of a pod.
    pub fn get(&self, key: &PodKey) -> Option<&Arc<PodRecord>> {
        self.pods.get(key)
    }

    /// The pods of a workload, active or not, as far as they are kept.
    pub fn of_workload(&self, owner: u64) -> impl Iterator<Item = (&PodKey, &Arc<PodRecord>)> {
        let keys = self.by_owner.get(&owner).into_iter().flatten();
        keys.filter_map(|key| self.pods.get_key_value(key))
    }

    /// The pods of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &PodRecord> {
        in_namespace(&self.pods, namespace).map(|(_, record)| &**record)
    }

    /// Pods in the order of their keys, those after `last`.
    pub fn after(&self, last: Option<&PodKey>) -> impl Iterator<Item = (&PodKey, &Arc<PodRecord>)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.pods.range((from, Bound::Unbounded))
    }

    /// The sets that exist and that pods of a namespace carry.
    pub fn sets_in(&self, namespace: &str) -> BTreeSet<Arc<str>> {
        let carried = self.of_namespace(namespace).flat_map(|record| record.carried.iter());
        carried.filter_map(|(set, _)| self.by_set.get_key_value(set)).map(|(set, _)| Arc::clone(set)).collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;
    use crate::sidecarset::controller::record::tests::{pod, wanted};

    /// An index without pods, where these sets exist.
    fn index_of(sets: &[&str]) -> PodIndex {
        let mut index = PodIndex::default();
        index.sets_are(&wanted(sets).sets);
        index
    }

    fn touched(index: &mut PodIndex, pod: &WatchedPod) -> Vec<String> {
        let touched = index.update(&PodKey::of(pod), PodRecord::of(pod, &wanted(&[])));
        touched.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_touches_the_sets_of_the_old_and_of_the_new_record() {
        let mut index = index_of(&["a", "b"]);
        let steps: [(&str, WatchedPod, &[&str]); 6] = [
            ("added", pod("p", "web", &[("a", "1")], false), &["a"]),
            ("same again", pod("p", "web", &[("a", "1")], false), &[]),
            ("ready", pod("p", "web", &[("a", "1")], true), &["a"]),
            ("relabelled", pod("p", "other", &[("a", "1")], true), &["a"]),
            ("another set recorded", pod("p", "other", &[("b", "1")], true), &["a", "b"]),
            ("nothing carried any more", pod("p", "other", &[], true), &["b"]),
        ];
        for (case, pod, expected) in steps {
            assert_eq!(touched(&mut index, &pod), expected, "{case}");
        }
        assert!(index.by_set.values().all(BTreeSet::is_empty));
    }

    #[test]
    fn case_101_a_new_pod_and_one_that_becomes_ready_touch_their_set_and_an_image_of_the_app_does_not() {
        let mut index = index_of(&["a"]);
        let with_image = |image: &str, ready: bool| {
            let mut pod = pod("p", "web", &[("a", "1")], ready);
            let containers = pod.spec.as_mut().unwrap().containers.iter_mut().flatten();
            containers.filter(|container| container.name == "app").for_each(|app| app.image = image.to_owned());
            pod
        };
        assert_eq!(touched(&mut index, &with_image("app:1", false)), ["a"], "created");
        assert_eq!(touched(&mut index, &with_image("app:1", true)), ["a"], "ready");
        assert!(touched(&mut index, &with_image("app:2", true)).is_empty(), "another image of the app");
        // There, none: its status is stale until something else happens.
        assert_eq!(index.update(&PodKey::of(&with_image("app:2", true)), None).len(), 1, "deleted");
    }

    #[test]
    fn case_102_a_pod_touches_the_sets_that_it_lists_and_that_exist() {
        let mut index = index_of(&["s1", "s2", "s3"]);
        for (list, expected) in [("s2", &["s2"][..]), ("s1,s3", &["s1", "s3"]), ("s4", &[])] {
            let mut pod = pod(list, "web", &[], true);
            pod.annotations.get_or_insert_default().openkruise_list = Some(list.into());
            assert_eq!(touched(&mut index, &pod), expected, "{list}");
        }
    }

    #[test]
    fn a_deleted_pod_touches_its_sets_and_leaves_nothing_behind() {
        let mut index = index_of(&["a", "b"]);
        let pod = pod("p", "web", &[("a", "1"), ("b", "1")], true);
        touched(&mut index, &pod);
        assert_eq!(index.update(&PodKey::of(&pod), None).len(), 2);
        assert!(index.pods.is_empty() && index.by_set.values().all(BTreeSet::is_empty));
    }

    #[test]
    fn the_pods_of_a_workload_are_found_without_those_of_others_and_nothing_is_left_of_it() {
        let mut index = index_of(&["a"]);
        let of = |name: &str, owner: &str| {
            let mut pod = pod(name, "web", &[("a", "1")], true);
            let owner = serde_json::json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "s", "controller": true}]);
            pod.meta_mut().owner_references = serde_json::from_value(owner).unwrap();
            pod
        };
        for (name, owner) in [("p", "v"), ("q", "v"), ("r", "w")] {
            touched(&mut index, &of(name, owner));
        }
        touched(&mut index, &pod("bare", "web", &[("a", "1")], true));
        let owner = index.get(&PodKey::of(&of("p", "v"))).unwrap().facts.owner;
        let names =
            |index: &PodIndex| index.of_workload(owner).map(|(key, _)| key.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&index), ["p", "q"]);
        // A label or a new owner may make it one of another workload.
        touched(&mut index, &of("q", "w"));
        assert_eq!(names(&index), ["p"]);
        index.update(&PodKey::of(&of("p", "v")), None);
        assert_eq!((names(&index).len(), index.by_owner.len()), (0, 1));
    }

    #[test]
    fn sets_of_a_namespace_are_those_its_pods_carry() {
        let mut index = index_of(&["a", "b"]);
        touched(&mut index, &pod("p", "web", &[("a", "1")], true));
        let mut elsewhere = pod("p", "web", &[("b", "1")], true);
        elsewhere.meta_mut().namespace = Some("default-2".to_owned());
        touched(&mut index, &elsewhere);
        assert_eq!(index.sets_in("default").into_iter().collect::<Vec<_>>(), ["a".into()]);
        assert!(index.sets_in("none").is_empty());
    }

    #[test]
    fn a_set_that_does_not_exist_is_neither_indexed_nor_touched_until_it_does() {
        let mut index = index_of(&["a"]);
        let forged: Vec<String> = (0..16).map(|n| format!("forged-{n}")).collect();
        let mut sets: Vec<(&str, &str)> = forged.iter().map(|set| (set.as_str(), "")).collect();
        sets.truncate(15);
        sets.push(("a", "1"));
        assert_eq!(touched(&mut index, &pod("p", "web", &sets, true)), ["a"]);
        assert_eq!(touched(&mut index, &pod("p", "web", &sets, false)), ["a"]);
        assert_eq!(index.by_set.len(), 1);
        assert_eq!(index.sets_in("default").len(), 1);

        assert_eq!(index.carrying("forged-3").count(), 0);
        index.sets_are(&wanted(&["forged-3"]).sets);
        assert_eq!((index.carrying("forged-3").count(), index.carrying("a").count()), (1, 0));
        assert_eq!(touched(&mut index, &pod("p", "web", &sets, true)), ["forged-3"]);
        assert!(touched(&mut index, &pod("p", "other", &[], true)) == ["forged-3"]);
        assert_eq!(index.carrying("forged-3").count(), 0);
    }

    #[test]
    fn pods_that_say_more_than_is_kept_are_counted_while_they_are_there() {
        let mut index = index_of(&[]);
        let names: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
        let sets: Vec<(&str, &str)> = names.iter().map(|set| (set.as_str(), "")).collect();
        touched(&mut index, &pod("p", "web", &sets, true));
        touched(&mut index, &pod("p", "web", &sets, false));
        touched(&mut index, &pod("q", "web", &[], false));
        assert_eq!(index.clipped(), 1);
        touched(&mut index, &pod("p", "web", &[], true));
        assert_eq!(index.clipped(), 0);
    }

    #[test]
    fn the_keys_of_one_namespace_share_its_text() {
        let mut index = index_of(&[]);
        for name in ["p", "q"] {
            let pod = pod(name, "web", &[], true);
            let key = index.shared(&PodKey::of(&pod));
            index.update(&key, PodRecord::of(&pod, &wanted(&[])));
        }
        let keys: Vec<&PodKey> = index.pods.keys().collect();
        assert!(Arc::ptr_eq(&keys[0].namespace, &keys[1].namespace));
        assert!(Arc::ptr_eq(&index.shared(keys[0]).0, &keys[0].0));
    }

    #[test]
    fn a_pod_is_in_flight_from_a_rollout_until_it_is_back() {
        let mut index = index_of(&["a"]);
        let touched_pod = |container: &str, ready: bool| {
            let mut pod = pod("p", "web", &[("a", "1")], ready);
            let state = serde_json::json!({"a": {"revision": "1", "wasReady": true, "lastContainerStatuses": {"a-c": {"containerID": "c1"}}}});
            pod.annotations.get_or_insert_default().in_place_state = Some(state.to_string().into());
            let status = serde_json::json!({
                "phase": "Running", "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
                "containerStatuses": [{"name": "a-c", "image": "old", "containerID": container}],
            });
            pod.status = serde_json::from_value(status).unwrap();
            pod
        };
        for (case, pod, expected) in [
            ("as created", pod("p", "web", &[("a", "1")], false), 0),
            ("the old container", touched_pod("c1", true), 1),
            ("down", touched_pod("c1", false), 1),
            ("another one, starting", touched_pod("c2", false), 1),
            ("back", touched_pod("c2", true), 0),
        ] {
            touched(&mut index, &pod);
            assert_eq!(index.in_flight().count(), expected, "{case}");
        }
        touched(&mut index, &touched_pod("c1", true));
        index.update(&PodKey::of(&touched_pod("c1", true)), None);
        assert_eq!(index.in_flight().count(), 0, "gone");
    }

    #[test]
    fn pods_of_one_workload_share_their_labels_and_records() {
        let mut index = index_of(&["a"]);
        for name in ["p", "q"] {
            touched(&mut index, &pod(name, "web", &[("a", "1")], true));
        }
        let texts: Vec<[*const u8; 2]> = index
            .carrying("a")
            .map(|(_, pod)| [pod.labels.iter(), pod.carried.iter()])
            .map(|all| all.map(first))
            .collect();
        assert_eq!(texts[0], texts[1]);
    }

    fn first<'s>(mut pairs: impl Iterator<Item = (&'s str, &'s str)>) -> *const u8 {
        pairs.next().unwrap().0.as_ptr()
    }
}
