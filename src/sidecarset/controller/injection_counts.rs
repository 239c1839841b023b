//! The state of a pod for each set that selects it.

use std::sync::Arc;

use crate::sidecarset::controller::record::PodRecord;
use engine::pod::select::{Hold, Reach, Skip, gives_way, holds_back, reaches};
use engine::sidecarset::compiled::{CompiledSet, JobPods};
use engine::snapshot::Snapshot;

/// Whether a pod that the set selects lacks it, and would carry it if it were created now, or would be refused. Of a pod that carries
/// more sets than are counted, one that is not counted may be carried.
pub fn lacks(set: &CompiledSet, namespace: &str, pod: &PodRecord, skip: &Skip<'_>, snapshot: &Snapshot) -> bool {
    pod.hash_of(&set.name).is_none()
        && !pod.some_left_out
        && !leaves_out(set, pod)
        && matches!(holds_back(set, pod.platform, skip), None | Some(Hold::Unbound))
        && !is_shadowed(set, namespace, pod, skip, snapshot)
}

/// Whether the set leaves out the pod as one that ends.
fn leaves_out(set: &CompiledSet, pod: &PodRecord) -> bool {
    set.job_pods == JobPods::Skip && pod.facts.ends
}

/// Whether the pod would get a canary in place of the set.
fn is_shadowed(set: &CompiledSet, namespace: &str, pod: &PodRecord, skip: &Skip<'_>, snapshot: &Snapshot) -> bool {
    snapshot.sets.canaries_of(set).any(|canary| {
        gives_way(set, canary)
            && canary.selector.matches(&pod.labels)
            && reaches(canary, namespace, snapshot.namespaces.labels(namespace)) == Reach::Yes
            && holds_back(canary, pod.platform, skip).is_none()
            && !leaves_out(canary, pod)
    })
}

/// The sets that a pod is to carry and does not.
pub fn missing<'s>(namespace: &str, pod: &PodRecord, snapshot: &'s Snapshot) -> Vec<&'s str> {
    let skip = Skip::read(pod.skip.as_deref());
    let lacking = selecting(namespace, pod, snapshot).into_iter();
    lacking.filter(|set| lacks(set, namespace, pod, &skip, snapshot)).map(|set| set.name.as_str()).collect()
}

/// The sets that select a pod: none where no pod is touched, and none for a pod that has finished.
fn selecting<'s>(namespace: &str, pod: &PodRecord, snapshot: &'s Snapshot) -> Vec<&'s Arc<CompiledSet>> {
    let labels = snapshot.namespaces.labels(namespace);
    if !pod.active || snapshot.exclusion.covers(namespace, labels) {
        return Vec::new();
    }
    let mut sets = snapshot.sets.candidates(pod.labels.iter(), namespace, labels);
    sets.retain(|set| set.selector.matches(&pod.labels) && reaches(set, namespace, labels) == Reach::Yes);
    sets
}

/// How often a pod, or many, stand one way or the other to a set that selects them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InjectionCounts {
    /// Carries what the set injects now.
    pub updated: u32,
    /// Carries the set as it was once.
    pub outdated: u32,
    /// Carries nothing of the set, and would if it were created now, or would be refused.
    pub missing: u32,
    /// Carries nothing of the set, and would not if it were created now.
    pub exempt: u32,
}

impl InjectionCounts {
    /// That of a pod in this namespace to all sets. All zero where no pod is touched, and for one that has finished.
    pub fn of(namespace: &str, pod: &PodRecord, snapshot: &Snapshot) -> Self {
        let mut counts = Self::default();
        let skip = Skip::read(pod.skip.as_deref());
        for set in selecting(namespace, pod, snapshot) {
            let state = counts.state(set, (namespace, pod), &skip, snapshot);
            *state = state.saturating_add(1);
        }
        counts
    }

    fn state(
        &mut self,
        set: &CompiledSet,
        (namespace, pod): (&str, &PodRecord),
        skip: &Skip<'_>,
        snapshot: &Snapshot,
    ) -> &mut u32 {
        match pod.carried.iter().find(|(name, _)| *name == set.name) {
            Some((_, hash)) if hash == set.hash => &mut self.updated,
            Some(_) => &mut self.outdated,
            None if lacks(set, namespace, pod, skip, snapshot) => &mut self.missing,
            None => &mut self.exempt,
        }
    }

    /// The numbers by their names.
    pub const fn by_state(self) -> [(&'static str, u32); 4] {
        [("updated", self.updated), ("outdated", self.outdated), ("missing", self.missing), ("exempt", self.exempt)]
    }

    /// With those of further pods.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            updated: self.updated.saturating_add(other.updated),
            outdated: self.outdated.saturating_add(other.outdated),
            missing: self.missing.saturating_add(other.missing),
            exempt: self.exempt.saturating_add(other.exempt),
        }
    }

    /// Without those of some of the pods.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            updated: self.updated.saturating_sub(other.updated),
            outdated: self.outdated.saturating_sub(other.outdated),
            missing: self.missing.saturating_sub(other.missing),
            exempt: self.exempt.saturating_sub(other.exempt),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sidecarset::controller::record::tests::{pod, wanted};
    use engine::sidecarset::index::SetIndex;
    use engine::snapshot::Exclusion;
    use engine::snapshot::namespace::Namespaces;

    /// A set `a` of pods labelled `app=web`, with this beside it in the spec.
    pub fn set(more: &Value) -> CompiledSet {
        let mut spec = json!({
            "selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "a-c", "image": "proxy:1"}],
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let set = json!({"metadata": {"name": "a"}, "spec": spec});
        CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap()
    }

    /// What is decided from with these sets, where the namespace `default` has these labels.
    pub fn snapshot(sets: impl IntoIterator<Item = CompiledSet>, labels: &Value) -> Snapshot {
        let mut namespaces = Namespaces::default();
        namespaces.insert("default".to_owned(), serde_json::from_value(labels.clone()).unwrap());
        Snapshot {
            sets: Arc::new(SetIndex::build(sets.into_iter().map(Arc::new))),
            namespaces: Arc::new(namespaces),
            exclusion: Arc::new(Exclusion::new("outrider-system", [])),
            ..Snapshot::default()
        }
    }

    const UPDATED: InjectionCounts = InjectionCounts { updated: 1, outdated: 0, missing: 0, exempt: 0 };
    const OUTDATED: InjectionCounts = InjectionCounts { updated: 0, outdated: 1, missing: 0, exempt: 0 };
    const MISSING: InjectionCounts = InjectionCounts { updated: 0, outdated: 0, missing: 1, exempt: 0 };
    const EXEMPT: InjectionCounts = InjectionCounts { updated: 0, outdated: 0, missing: 0, exempt: 1 };
    const NONE: InjectionCounts = InjectionCounts { updated: 0, outdated: 0, missing: 0, exempt: 0 };

    #[test]
    fn what_the_pod_carries_decides_then_what_the_set_would_do_now() {
        let (open, paused) = (json!({}), json!({"injectionStrategy": {"paused": true}}));
        let denied = json!({"optOut": "Denied"});
        let container = json!({"name": "a-c", "image": "proxy:1", "securityContext": {"windowsOptions": {}}});
        let windows_set = json!({"containers": [container]});
        let windows_must = json!({"containers": [container], "optOut": "Denied"});
        let hash = set(&open).hash;
        let carrying = |hash: &str| pod("p", "web", &[("a", hash)], true);
        let skipping = |skip: &str| {
            let mut pod = pod("p", "web", &[], true);
            pod.annotations.get_or_insert_default().skip = Some(skip.into());
            pod
        };
        let more: Vec<String> = (0..20).map(|n| format!("b{n}")).collect();
        let more: Vec<(&str, &str)> = more.iter().map(|name| (name.as_str(), "v1:0")).collect();
        let no_jobs = json!({"jobPods": "Skip"});
        let ending = || {
            let mut pod = pod("p", "web", &[], true);
            pod.spec = serde_json::from_value(json!({"restartPolicy": "Never"})).unwrap();
            pod
        };
        let mut windows = pod("p", "web", &[], true);
        windows.spec = serde_json::from_value(json!({"nodeSelector": {"kubernetes.io/os": "windows"}})).unwrap();
        let cases = [
            ("as it is now", &open, carrying(&hash), UPDATED),
            ("as it was", &open, carrying("v1:old"), OUTDATED),
            ("as it was, paused", &paused, carrying("v1:old"), OUTDATED),
            ("not at all", &open, pod("p", "web", &[], true), MISSING),
            ("another set", &open, pod("p", "web", &[("b", &hash)], true), MISSING),
            ("not at all, paused", &paused, pod("p", "web", &[], true), EXEMPT),
            ("opted out", &open, skipping("true"), EXEMPT),
            ("opted out of it", &open, skipping("b, a"), EXEMPT),
            ("opted out of another", &open, skipping("b"), MISSING),
            ("opted out in vain", &denied, skipping("true"), MISSING),
            ("on Windows", &open, windows, EXEMPT),
            ("perhaps on Windows, for a must there", &windows_must, pod("p", "web", &[], true), MISSING),
            ("perhaps on Windows, for another set there", &windows_set, pod("p", "web", &[], true), EXEMPT),
            ("more others than are counted", &open, pod("p", "web", &more, true), EXEMPT),
            ("not selected", &open, pod("p", "other", &[], true), NONE),
            ("to end", &open, ending(), MISSING),
            ("to end, for a set that leaves such pods out", &no_jobs, ending(), EXEMPT),
        ];
        for (case, spec, pod, expected) in cases {
            let snapshot = snapshot([set(spec)], &json!({}));
            assert_eq!(
                InjectionCounts::of("default", &PodRecord::of(&pod, &wanted(&[])).unwrap(), &snapshot),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn the_namespace_decides_as_it_does_at_injection() {
        let prod = json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}});
        let by_name = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}});
        let cases = [
            ("every namespace", json!({}), "default", json!({}), MISSING),
            ("an excluded one", json!({}), "kube-system", json!({}), NONE),
            ("one excluded by its label", json!({}), "default", json!({"outrider.dev/exclude": ""}), NONE),
            ("by name", json!({"namespace": "default"}), "default", json!({}), MISSING),
            ("another name", json!({"namespace": "other"}), "default", json!({}), NONE),
            ("by label", prod.clone(), "default", json!({"env": "prod"}), MISSING),
            ("another label", prod.clone(), "default", json!({"env": "test"}), NONE),
            ("by label, not known", prod, "elsewhere", json!({}), NONE),
            ("by name, not known", by_name, "elsewhere", json!({}), MISSING),
        ];
        for (case, spec, namespace, labels, expected) in cases {
            let record = PodRecord::of(&pod("p", "web", &[], true), &wanted(&[])).unwrap();
            let snapshot = snapshot([set(&spec)], &labels);
            assert_eq!(InjectionCounts::of(namespace, &record, &snapshot), expected, "{case}");
        }
    }

    #[test]
    fn a_canary_that_leaves_out_pods_that_end_takes_no_place_in_them() {
        let (base, mut canary) = (set(&json!({})), set(&json!({"jobPods": "Skip"})));
        canary.name = "b".to_owned();
        let bases: Vec<Box<str>> = vec!["a".into()];
        canary.bases = bases.into_boxed_slice();
        let snapshot = snapshot([base, canary], &json!({}));
        for (restart, expected) in [("Always", "b"), ("OnFailure", "a")] {
            let mut pod = pod("p", "web", &[], true);
            pod.spec = serde_json::from_value(json!({"restartPolicy": restart})).unwrap();
            let record = PodRecord::of(&pod, &wanted(&[])).unwrap();
            assert_eq!(missing("default", &record, &snapshot), [expected], "{restart}");
        }
    }

    #[test]
    fn a_pod_that_two_sets_select_counts_for_both() {
        let (first, mut second) = (set(&json!({})), set(&json!({})));
        second.name = "b".to_owned();
        let pod = pod("p", "web", &[("a", &first.hash)], true);
        let counts = InjectionCounts::of(
            "default",
            &PodRecord::of(&pod, &wanted(&[])).unwrap(),
            &snapshot([first, second], &json!({})),
        );
        assert_eq!(counts, UPDATED.plus(MISSING));
        assert_eq!(counts.minus(MISSING), UPDATED);
    }
}
