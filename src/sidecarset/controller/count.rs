//! The numbers in a set's status.

use serde::Serialize;

use crate::sidecarset::controller::pods::PodIndex;
use engine::pod::select::{Reach, reaches};
use engine::sidecarset::api::SidecarSetStatus;
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// What the controller owns of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// The generation that the numbers are about.
    pub observed_generation: i64,
    /// Active pods that the set selects and that carry it.
    pub matched_pods: i32,
    /// Of these, those that carry what the set injects now.
    pub updated_pods: i32,
    /// Of these, those that are ready.
    pub ready_pods: i32,
}

impl Counts {
    /// Counts the pods of a set.
    pub fn of(set: &CompiledSet, generation: i64, pods: &PodIndex, snapshot: &Snapshot) -> Self {
        let mut counts = Self { observed_generation: generation, matched_pods: 0, updated_pods: 0, ready_pods: 0 };
        for (key, pod) in pods.carrying(&set.name) {
            let namespace = &*key.namespace;
            let labels = snapshot.namespaces.labels(namespace);
            if !pod.active
                || !set.selector.matches(&pod.labels)
                || reaches(set, namespace, labels) != Reach::Yes
                || snapshot.exclusion.covers(namespace, labels)
            {
                continue;
            }
            let updated = pod.carried.iter().any(|carried| carried == (&set.name, &set.hash));
            counts.matched_pods = counts.matched_pods.saturating_add(1);
            counts.updated_pods = counts.updated_pods.saturating_add(i32::from(updated));
            counts.ready_pods = counts.ready_pods.saturating_add(i32::from(pod.ready));
        }
        counts
    }

    /// Whether a stored status says something else.
    pub fn differ_from(&self, stored: Option<&SidecarSetStatus>) -> bool {
        stored.is_none_or(|stored| {
            let stored = Self {
                observed_generation: stored.observed_generation,
                matched_pods: stored.matched_pods,
                updated_pods: stored.updated_pods,
                ready_pods: stored.ready_pods,
            };
            stored != *self
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::sidecarset::controller::pods::PodKey;
    use crate::sidecarset::controller::record::tests::{pod, wanted};
    use crate::sidecarset::controller::record::{PodRecord, WatchedPod};
    use engine::snapshot::Exclusion;
    use engine::snapshot::namespace::Namespaces;

    fn set(spec: &Value) -> CompiledSet {
        let mut spec = spec.clone();
        spec["containers"] = json!([{"name": "a-c", "image": "proxy:1"}]);
        let set = json!({"metadata": {"name": "a", "generation": 3}, "spec": spec});
        CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap()
    }

    fn index(pods: &[WatchedPod]) -> PodIndex {
        let mut index = PodIndex::default();
        index.sets_are(&wanted(&["a", "b"]).sets);
        for pod in pods {
            index.update(&PodKey::of(pod), PodRecord::of(pod, &wanted(&[])));
        }
        index
    }

    fn snapshot(labels: Value) -> Snapshot {
        let mut namespaces = Namespaces::default();
        namespaces.insert("default".to_owned(), serde_json::from_value(labels).unwrap());
        Snapshot {
            namespaces: Arc::new(namespaces),
            exclusion: Arc::new(Exclusion::new("outrider-system", [])),
            ..Snapshot::default()
        }
    }

    #[test]
    fn only_active_selected_pods_that_carry_the_set_are_counted() {
        let set = set(&json!({"selector": {"matchLabels": {"app": "web"}}}));
        let hash = set.hash.as_str();
        let mut finished = pod("finished", "web", &[("a", hash)], true);
        finished.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
        let pods = index(&[
            pod("ready", "web", &[("a", hash)], true),
            pod("starting", "web", &[("a", hash)], false),
            pod("outdated", "web", &[("a", "v1:old")], true),
            pod("relabelled", "other", &[("a", hash)], true),
            pod("of-another-set", "web", &[("b", hash)], true),
            pod("injected-by-nobody", "web", &[], true),
            finished,
        ]);
        let counts = Counts::of(&set, 3, &pods, &snapshot(json!({})));
        assert_eq!(counts, Counts { observed_generation: 3, matched_pods: 3, updated_pods: 2, ready_pods: 2 });
    }

    #[test]
    fn the_namespace_decides_as_it_does_at_injection() {
        let cases = [
            (json!({}), json!({}), 1),
            (json!({}), json!({"outrider.dev/exclude": ""}), 0),
            (json!({"namespace": "default"}), json!({}), 1),
            (json!({"namespace": "other"}), json!({}), 0),
            (json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), json!({"env": "prod"}), 1),
            (json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), json!({"env": "test"}), 0),
        ];
        for (mut spec, labels, expected) in cases {
            spec["selector"] = json!({"matchLabels": {"app": "web"}});
            let pods = index(&[pod("p", "web", &[("a", "v1:0")], true)]);
            let counts = Counts::of(&set(&spec), 1, &pods, &snapshot(labels.clone()));
            assert_eq!(counts.matched_pods, expected, "{spec} {labels}");
        }
    }

    #[test]
    fn a_status_is_written_only_when_a_number_differs() {
        let counts = Counts { observed_generation: 3, matched_pods: 2, updated_pods: 1, ready_pods: 2 };
        let stored: SidecarSetStatus = serde_json::from_value(json!({
            "observedGeneration": 3, "matchedPods": 2, "updatedPods": 1, "readyPods": 2, "latestRevision": "x",
        }))
        .unwrap();
        assert!(!counts.differ_from(Some(&stored)));
        assert!(counts.differ_from(None));
        for field in ["observedGeneration", "matchedPods", "updatedPods", "readyPods"] {
            let mut other = json!(stored);
            other[field] = json!(9);
            assert!(counts.differ_from(Some(&serde_json::from_value(other).unwrap())), "{field}");
        }
    }
}
