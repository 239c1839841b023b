//! The controller's read model of pods: those that carry a set or could, and of these only what is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::{Resource as _, ResourceExt as _};
use serde::Deserialize;

use crate::pod::select::SKIP_ANNOTATION;
use crate::pod::skip::MIRROR_ANNOTATION;
use crate::sidecarset::controller::carried::carried;
use crate::sidecarset::controller::packed::Packed;
use crate::sidecarset::platform::{Affinity, Platform};
use crate::world::slim::Slim;

/// A pod as it is watched.
pub type WatchedPod = Slim<Pod, PodSpec, PodStatus>;

/// The names of a pod's containers, and what tells its operating system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    os: Option<Os>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Os {
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
}

/// Phase and conditions of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    phase: Option<String>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl PodKey {
    /// The key of a watched pod.
    pub fn of(pod: &WatchedPod) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default().into(), name: pod.name_any().into() }
    }
}

/// What is kept of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRecord {
    /// Labels.
    pub labels: Packed,
    /// Neither finished nor on its way out.
    pub active: bool,
    /// Running, with the condition Ready.
    pub ready: bool,
    /// The sets in the pod, each with the hash that was recorded.
    pub carried: Packed,
    /// Where it runs.
    pub platform: Platform,
    /// Its annotation about sets that it goes without.
    pub skip: Option<Box<str>>,
}

impl PodRecord {
    /// The record of a pod. Nothing for one that carries no set and never will: it has finished, is on its way out, or is the
    /// kubelet's mirror of a static pod.
    pub fn of(pod: &WatchedPod) -> Option<Self> {
        let spec = pod.spec.as_ref();
        let containers =
            spec.into_iter().flat_map(|spec| [&spec.containers, &spec.init_containers]).flatten().flatten();
        let names: BTreeSet<&str> = containers.map(|container| container.name.as_str()).collect();
        let carried = carried(pod.annotations(), &names);
        let status = pod.status.clone().unwrap_or_default();
        let phase = status.phase.as_deref().unwrap_or_default();
        let ready = status.conditions.iter().flatten().any(|it| it.kind == "Ready" && it.status == "True");
        let terminating = pod.meta().deletion_timestamp.is_some();
        let active = !terminating && !matches!(phase, "Succeeded" | "Failed");
        let annotation = |key: &str| pod.annotations().get(key);
        if carried.is_empty() && (!active || annotation(MIRROR_ANNOTATION).is_some()) {
            return None;
        }
        let os = spec.and_then(|spec| spec.os.as_ref()).map(|os| os.name.as_str());
        let nodes = spec.and_then(|spec| spec.node_selector.as_ref());
        let affinity = spec.and_then(|spec| spec.affinity.as_ref());
        Some(Self {
            labels: Packed::of(pod.labels().iter().map(|(key, value)| (key.as_str(), value.as_str()))),
            active,
            ready: phase == "Running" && ready,
            carried,
            platform: Platform::of_pod(os, |label| nodes?.get(label).map(String::as_str), affinity),
            skip: annotation(SKIP_ANNOTATION).map(|value| value.as_str().into()),
        })
    }
}

/// Pods by name, and by the sets that they carry.
///
/// What a change touches follows from the records alone: the status of a set counts only pods that carry it, so the sets named in a
/// pod's old and new record are all that a change of the pod, its labels included, can concern.
#[derive(Debug, Default)]
pub struct PodIndex {
    pods: BTreeMap<PodKey, PodRecord>,
    by_set: HashMap<Arc<str>, BTreeSet<PodKey>>,
}

impl PodIndex {
    /// Takes in what a pod is now, nothing if it is gone. Returns the sets whose numbers may have changed.
    pub fn update(&mut self, key: &PodKey, record: Option<PodRecord>) -> BTreeSet<Arc<str>> {
        if self.pods.get(key) == record.as_ref() {
            return BTreeSet::new();
        }
        let mut touched = BTreeSet::new();
        if let Some(old) = self.pods.remove(key) {
            for (set, _) in old.carried.iter() {
                self.unfile(set, key);
                touched.insert(set.into());
            }
        }
        if let Some(new) = record {
            let key = self.sharing_its_namespace(key);
            for (set, _) in new.carried.iter() {
                touched.insert(self.file(set, &key));
            }
            self.pods.insert(key, new);
        }
        touched
    }

    /// The key, with the text of its namespace shared with the other pods there.
    fn sharing_its_namespace(&self, key: &PodKey) -> PodKey {
        let first = self.in_namespace(&key.namespace).next();
        let namespace = first.map_or_else(|| Arc::clone(&key.namespace), |(other, _)| Arc::clone(&other.namespace));
        PodKey { namespace, name: Arc::clone(&key.name) }
    }

    fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = (&PodKey, &PodRecord)> {
        let first = PodKey { namespace: namespace.into(), name: "".into() };
        self.pods.range(first..).take_while(move |(key, _)| &*key.namespace == namespace)
    }

    fn file(&mut self, set: &str, key: &PodKey) -> Arc<str> {
        let set = self.by_set.get_key_value(set).map_or_else(|| set.into(), |(name, _)| name.clone());
        self.by_set.entry(Arc::clone(&set)).or_default().insert(key.clone());
        set
    }

    fn unfile(&mut self, set: &str, key: &PodKey) {
        if let Some(keys) = self.by_set.get_mut(set) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_set.remove(set);
            }
        }
    }

    /// The pods that carry a set.
    pub fn carrying(&self, set: &str) -> impl Iterator<Item = (&PodKey, &PodRecord)> {
        let keys = self.by_set.get(set).into_iter().flatten();
        keys.filter_map(|key| self.pods.get_key_value(key))
    }

    /// Pods in the order of their keys, those after `last`.
    pub fn after(&self, last: Option<&PodKey>) -> impl Iterator<Item = (&PodKey, &PodRecord)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.pods.range((from, Bound::Unbounded))
    }

    /// The sets that pods of a namespace carry.
    pub fn sets_in(&self, namespace: &str) -> BTreeSet<Arc<str>> {
        let carried = self.in_namespace(namespace).flat_map(|(_, record)| record.carried.iter());
        carried.map(|(set, _)| set.into()).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A pod that carries the sets named, ready or not.
    pub fn pod(name: &str, app: &str, sets: &[(&str, &str)], ready: bool) -> WatchedPod {
        let injected: serde_json::Map<String, serde_json::Value> = sets
            .iter()
            .map(|(set, hash)| ((*set).to_owned(), json!({"hash": hash, "containers": [format!("{set}-c")]})))
            .collect();
        let mut containers: Vec<_> = sets.iter().map(|(set, _)| json!({"name": format!("{set}-c")})).collect();
        containers.push(json!({"name": "app"}));
        serde_json::from_value(json!({
            "metadata": {
                "namespace": "default", "name": name, "labels": {"app": app},
                "annotations": {crate::sidecarset::injection::INJECTED_ANNOTATION: json!(injected).to_string()},
            },
            "spec": {"containers": containers},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            },
        }))
        .unwrap()
    }

    fn touched(index: &mut PodIndex, pod: &WatchedPod) -> Vec<String> {
        let touched = index.update(&PodKey::of(pod), PodRecord::of(pod));
        touched.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_touches_the_sets_of_the_old_and_of_the_new_record() {
        let mut index = PodIndex::default();
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
        assert!(index.by_set.is_empty());
    }

    #[test]
    fn a_deleted_pod_touches_its_sets_and_leaves_nothing_behind() {
        let mut index = PodIndex::default();
        let pod = pod("p", "web", &[("a", "1"), ("b", "1")], true);
        touched(&mut index, &pod);
        assert_eq!(index.update(&PodKey::of(&pod), None).len(), 2);
        assert!(index.pods.is_empty() && index.by_set.is_empty());
    }

    #[test]
    fn phase_deletion_and_condition_decide_what_is_active_and_ready() {
        let cases: [(&str, serde_json::Value, bool, bool); 6] = [
            (
                "running, ready",
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
                true,
                true,
            ),
            (
                "pending, ready",
                json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}),
                true,
                false,
            ),
            ("running, no condition", json!({"phase": "Running", "conditions": null}), true, false),
            ("succeeded", json!({"phase": "Succeeded"}), false, false),
            ("failed", json!({"phase": "Failed"}), false, false),
            ("no status", json!(null), true, false),
        ];
        for (case, status, active, ready) in cases {
            let mut pod = pod("p", "web", &[("a", "1")], false);
            pod.status = serde_json::from_value(status).unwrap();
            let record = PodRecord::of(&pod).unwrap();
            assert_eq!((record.active, record.ready), (active, ready), "{case}");
            pod.meta_mut().deletion_timestamp = Some(serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap());
            assert!(!PodRecord::of(&pod).unwrap().active, "{case}, terminating");
        }
    }

    #[test]
    fn a_pod_that_carries_nothing_is_kept_only_while_it_could_carry_something() {
        let mirror = json!({"metadata": {"annotations": {crate::pod::skip::MIRROR_ANNOTATION: "x"}}});
        let cases = [
            ("running", json!({}), true),
            ("no status yet", json!({"status": null}), true),
            ("finished", json!({"status": {"phase": "Succeeded"}}), false),
            ("on its way out", json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}), false),
            ("a mirror", mirror, false),
        ];
        for (case, pod, kept) in cases {
            assert_eq!(PodRecord::of(&serde_json::from_value(pod).unwrap()).is_some(), kept, "{case}");
        }
    }

    #[test]
    fn sets_of_a_namespace_are_those_its_pods_carry() {
        let mut index = PodIndex::default();
        touched(&mut index, &pod("p", "web", &[("a", "1")], true));
        let mut elsewhere = pod("p", "web", &[("b", "1")], true);
        elsewhere.meta_mut().namespace = Some("default-2".to_owned());
        touched(&mut index, &elsewhere);
        assert_eq!(index.sets_in("default").into_iter().collect::<Vec<_>>(), ["a".into()]);
        assert!(index.sets_in("none").is_empty());
    }
}
