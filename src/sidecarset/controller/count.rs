//! The numbers in a set's status.

use serde::Serialize;

use crate::sidecarset::controller::members::Members;
use crate::sidecarset::rollout::Waits;
use engine::sidecarset::api::SidecarSetStatus;
use engine::sidecarset::compiled::CompiledSet;

/// What the controller counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// The generation that the numbers are about.
    pub observed_generation: i64,
    /// Active pods that the set selects and that carry it.
    pub matched_pods: i32,
    /// Of these, those that carry what the set injects now.
    pub updated_pods: i32,
    /// Of these, those that are ready, and whose containers of the set run what the pod asks for.
    pub ready_pods: i32,
    /// Pods that are both.
    pub updated_ready_pods: i32,
    /// Active pods that the set selects and that lack it, though they would carry it if they were created now.
    pub uninjected_pods: i32,
}

impl Counts {
    /// Counts the pods of a set.
    pub fn of(set: &CompiledSet, generation: i64, members: &Members) -> Self {
        let mut counts = Self { observed_generation: generation, ..Self::default() };
        for (_, pod) in &members.carrying {
            let updated = pod.hash_of(&set.name) == Some(&*set.hash);
            let ready = pod.ready && pod.is_settled(&set.name);
            counts.matched_pods = counts.matched_pods.saturating_add(1);
            counts.updated_pods = counts.updated_pods.saturating_add(i32::from(updated));
            counts.ready_pods = counts.ready_pods.saturating_add(i32::from(ready));
            counts.updated_ready_pods = counts.updated_ready_pods.saturating_add(i32::from(updated && ready));
        }
        counts.uninjected_pods = i32::try_from(members.uninjected.0).unwrap_or(i32::MAX);
        counts
    }

    /// What a rollout waits for that may not go on.
    pub const fn waits_without_rollout(&self) -> Waits {
        if self.updated_pods == self.matched_pods { Waits::Done } else { Waits::Failed }
    }

    /// Whether a stored status says something else.
    pub fn differ_from(&self, stored: Option<&SidecarSetStatus>) -> bool {
        stored.is_none_or(|stored| {
            let shown = |number: Option<i32>| number.unwrap_or(-1);
            let stored = Self {
                observed_generation: stored.observed_generation,
                matched_pods: stored.matched_pods,
                updated_pods: stored.updated_pods,
                ready_pods: stored.ready_pods,
                updated_ready_pods: shown(stored.updated_ready_pods),
                uninjected_pods: shown(stored.uninjected_pods),
            };
            stored != *self
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::Resource as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::sidecarset::controller::pods::{PodIndex, PodKey};
    use crate::sidecarset::controller::record::PodRecord;
    use crate::sidecarset::controller::record::tests::{pod, wanted};
    use crate::sidecarset::controller::watched_pod::WatchedPod;
    use engine::snapshot::namespace::Namespaces;
    use engine::snapshot::{Exclusion, Snapshot};

    fn set(spec: &Value) -> Arc<CompiledSet> {
        let mut spec = spec.clone();
        spec["containers"] = json!([{"name": "a-c", "image": "proxy:1"}]);
        let set = json!({"metadata": {"name": "a", "generation": 3}, "spec": spec});
        Arc::new(CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap())
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

    fn counted(set: &Arc<CompiledSet>, pods: &[WatchedPod], labels: Value) -> Counts {
        Counts::of(set, 3, &Members::of(set, &mut index(pods), &snapshot(labels)))
    }

    #[test]
    fn only_active_selected_pods_are_counted_each_by_what_it_carries() {
        let set = set(&json!({"selector": {"matchLabels": {"app": "web"}}}));
        let hash = String::from(&*set.hash);
        let mut finished = pod("finished", "web", &[("a", &hash)], true);
        finished.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
        let mut opted_out = pod("opted-out", "web", &[], true);
        opted_out.annotations.get_or_insert_default().skip = Some("a".into());
        let mut restarting = pod("restarting", "web", &[("a", &hash)], true);
        let state = json!({"a": {"lastContainerStatuses": {"a-c": {"containerID": "1"}}}}).to_string();
        restarting.annotations.get_or_insert_default().in_place_state = Some(state.into());
        let pods = [
            pod("ready", "web", &[("a", &hash)], true),
            pod("starting", "web", &[("a", &hash)], false),
            restarting,
            pod("outdated", "web", &[("a", "v1:old")], true),
            pod("relabelled", "other", &[("a", &hash)], true),
            pod("of-another-set", "web", &[("b", &hash)], true),
            pod("injected-by-nobody", "web", &[], true),
            opted_out,
            finished,
        ];
        let expected = Counts {
            observed_generation: 3,
            matched_pods: 4,
            updated_pods: 3,
            ready_pods: 2,
            updated_ready_pods: 1,
            uninjected_pods: 2,
        };
        assert_eq!(counted(&set, &pods, json!({})), expected);
    }

    #[test]
    fn case_8_of_a_hundred_pods_those_of_the_selected_namespace_are_counted() {
        let set = set(&json!({
            "selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {"matchLabels": {"test": "true"}},
        }));
        let pods: Vec<WatchedPod> = (0..100)
            .map(|n| {
                let mut pod = pod(&format!("p{n}"), "web", &[("a", "v1:0")], true);
                pod.meta_mut().namespace = Some(if n % 2 == 0 { "default" } else { "other" }.to_owned());
                pod
            })
            .collect();
        let mut snapshot = snapshot(json!({"test": "true"}));
        let mut namespaces = Namespaces::clone(&snapshot.namespaces);
        namespaces.insert("other".to_owned(), serde_json::from_value(json!({"test": "false"})).unwrap());
        snapshot.namespaces = Arc::new(namespaces);
        let counts = Counts::of(&set, 3, &Members::of(&set, &mut index(&pods), &snapshot));
        assert_eq!((counts.matched_pods, counts.uninjected_pods), (50, 0));
    }

    /// Revisions in use are not deleted, whether or not their pods count.
    #[test]
    fn every_form_that_a_pod_carries_is_in_use() {
        let set = set(&json!({"selector": {"matchLabels": {"app": "web"}}}));
        let mut ends = pod("ends", "web", &[("a", "v1:2")], true);
        ends.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
        let pods = [
            pod("counts", "web", &[("a", "v1:1")], true),
            ends,
            pod("relabelled", "other", &[("a", "v1:3")], true),
            pod("of-another-set", "web", &[("b", "v1:4")], true),
        ];
        let members = Members::of(&set, &mut index(&pods), &snapshot(json!({"outrider.dev/exclude": ""})));
        assert_eq!(members.hashes.iter().collect::<Vec<_>>(), ["v1:1", "v1:2", "v1:3"]);
        assert_eq!(members.carrying.len(), 0);
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
            let pods = [pod("p", "web", &[("a", "v1:0")], true), pod("q", "web", &[], true)];
            let counts = counted(&set(&spec), &pods, labels.clone());
            assert_eq!((counts.matched_pods, counts.uninjected_pods), (expected, expected), "{spec} {labels}");
        }
    }

    #[test]
    fn a_status_is_written_only_when_a_number_differs() {
        let counts = Counts {
            observed_generation: 3,
            matched_pods: 2,
            updated_pods: 1,
            ready_pods: 2,
            updated_ready_pods: 1,
            uninjected_pods: 0,
        };
        let mut stored = json!(counts);
        stored["latestRevision"] = "x".into();
        assert!(!counts.differ_from(Some(&serde_json::from_value(stored.clone()).unwrap())));
        assert!(counts.differ_from(None));
        for field in json!(counts).as_object().unwrap().keys() {
            let mut other = stored.clone();
            other[field] = json!(9);
            assert!(counts.differ_from(Some(&serde_json::from_value(other).unwrap())), "{field}");
        }
    }
}
