//! A pod as it is watched: only what counts and rollouts read.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource as _, ResourceExt as _};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::names::UPGRADABLE;
use crate::sidecarset::controller::carried::MAX_SETS;
use crate::sidecarset::controller::in_place_state::{ContainerStatus, due, started, touched, unresized, unsettled};
use crate::sidecarset::controller::packed::Packed;
use crate::sidecarset::controller::records::Records;
use crate::sidecarset::controller::requested::{Requested, Resources};
use crate::watch::partial::Partial;
use engine::sidecarset::affinity::Affinity;
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::hot_upgrade::{Pair, names};
use engine::sidecarset::platform::{Platform, WINDOWS_BUILD};
use engine::sidecarset::sameness::is_image_of;
use engine::sidecarset::workload::{OfPod, TEMPLATE_HASH_LABEL, Workload};

/// A pod as it is watched.
pub type WatchedPod = Partial<Pod, PodSpec, PodStatus, Records>;

/// The names and images of a pod's containers, their requests and limits, what names its operating system, and where and how long it runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub(super) containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    /// `Always`, `OnFailure` or `Never`.
    pub restart_policy: Option<String>,
    /// The node that it is assigned to.
    pub node_name: Option<String>,
    os: Option<Os>,
    node_selector: Option<NodeSelector>,
    affinity: Option<Affinity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Os {
    name: String,
}

/// Of a node selector, which may be as long as its author likes, what names an operating system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeSelector {
    #[serde(rename = "kubernetes.io/os")]
    os: Option<String>,
    #[serde(rename = "beta.kubernetes.io/os")]
    old_os: Option<String>,
    #[serde(rename = "node.kubernetes.io/windows-build")]
    windows_build: Option<String>,
}

impl NodeSelector {
    fn get(&self, label: &str) -> Option<&str> {
        match label {
            "kubernetes.io/os" => self.os.as_deref(),
            "beta.kubernetes.io/os" => self.old_os.as_deref(),
            WINDOWS_BUILD => self.windows_build.as_deref(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    /// Unique among all containers of the pod.
    pub name: String,
    /// As the spec names it, not the runtime.
    pub image: String,
    resources: Option<Resources>,
}

/// Phase and conditions of a pod, and what its containers run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running` and so on.
    pub phase: Option<String>,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
}

impl PodStatus {
    /// What containers and init containers run.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        [&self.container_statuses, &self.init_container_statuses].into_iter().flatten().flatten()
    }

    /// When the condition Ready became what it is.
    pub fn ready_since(&self) -> Option<i64> {
        let ready = self.conditions.iter().flatten().find(|it| it.kind == "Ready")?;
        ready.last_transition_time.as_ref().map(|time| time.0.as_second())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
    last_transition_time: Option<Time>,
}

/// Some of the sets that a pod carries, by their positions among these: of most pods there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SomeSets(u16);

const _: () = assert!(MAX_SETS <= u16::BITS as usize, "each set that a pod carries has a bit");

impl SomeSets {
    /// Those of the carried sets that are meant by name and hash.
    fn of(carried: &Packed, is_meant: impl Fn(&str, &str) -> bool) -> Self {
        let bits = carried.iter().take(MAX_SETS).enumerate();
        let meant = bits.filter(|(_, (set, hash))| is_meant(set, hash));
        Self(meant.fold(0, |bits, (position, _)| bits | (1 << position)))
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set is among them. `carried` are the sets that the pod carries.
    pub fn has(self, carried: &Packed, set: &str) -> bool {
        self.0 != 0 && carried.iter().position(|(name, _)| name == set).is_some_and(|at| self.0 & (1 << at) != 0)
    }
}

impl WatchedPod {
    /// Containers and init containers.
    pub(super) fn containers(&self) -> impl Iterator<Item = &Container> {
        let lists = self.spec.iter().flat_map(|spec| [&spec.containers, &spec.init_containers]);
        lists.flatten().flatten()
    }

    /// What rollouts wrote down of the pod. They touch none before it runs on a node: it came with the pod's template then.
    fn in_place_state(&self) -> Option<&str> {
        let runs = |status: &PodStatus| status.container_statuses.as_ref().is_some_and(|all| !all.is_empty());
        let node = self.spec.as_ref()?.node_name.as_deref().unwrap_or_default();
        if node.is_empty() || !self.status.as_ref().is_some_and(runs) {
            return None;
        }
        self.annotations.as_ref()?.in_place_state.as_deref()
    }

    /// Whether each container of the set that is in the pod has the set's image, or of a pair one of the two while it is upgraded.
    pub(super) fn has_images_of(&self, set: &CompiledSet) -> bool {
        let images: BTreeMap<&str, &str> = self.containers().map(|it| (it.name.as_str(), it.image.as_str())).collect();
        // Read only where a pair is not as it is between upgrades, as of nearly every pod it is.
        let started = LazyCell::new(|| self.started().remove(&set.name).unwrap_or_default());
        let mut in_pairs = BTreeSet::new();
        let has_pair = |pair: &Pair, in_pairs: &mut BTreeSet<String>| {
            let [first, second] = names(&pair.name);
            let both = images.get(first.as_str()).zip(images.get(second.as_str()));
            let has = |images, is_handed_over| pair.has(images, is_handed_over, &set.allowed);
            let is_upgraded = || started.contains(&first) || started.contains(&second);
            let is_right = both
                .is_none_or(|(&one, &other)| has([one, other], false) || (is_upgraded() && has([one, other], true)));
            in_pairs.extend([first, second]);
            is_right
        };
        set.pairs.iter().all(|pair| has_pair(pair, &mut in_pairs))
            && set.pieces().filter(|piece| !in_pairs.contains(&piece.name)).all(|piece| {
                images.get(piece.name.as_str()).is_none_or(|image| is_image_of(&piece.image, image, &set.allowed))
            })
    }

    fn started(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.in_place_state().map(|state| started(state, &self.requested())).unwrap_or_default()
    }

    /// By set, the containers that were started in a hot upgrade and may take over, as they serve.
    pub(super) fn due(&self) -> BTreeMap<String, BTreeSet<String>> {
        let Some(state) = self.in_place_state() else { return BTreeMap::new() };
        let statuses = self.status.iter().flat_map(PodStatus::containers);
        due(state, &self.requested(), statuses, self.refused_resize().is_some())
    }

    /// The sets among these in the middle of a hot upgrade, and those of them that can end it.
    pub(super) fn upgrading(&self, carried: &Packed) -> (SomeSets, SomeSets) {
        let started = self.started();
        if started.is_empty() {
            return (SomeSets::default(), SomeSets::default());
        }
        let due = self.due();
        (
            SomeSets::of(carried, |set, _| started.contains_key(set)),
            SomeSets::of(carried, |set, _| due.contains_key(set)),
        )
    }

    pub(super) fn is_in_phase(&self, phases: &[&str]) -> bool {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        phase.is_some_and(|phase| phases.contains(&phase))
    }

    pub(super) fn has_condition_ready(&self) -> bool {
        let conditions = self.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        conditions.into_iter().any(|it| it.kind == "Ready" && it.status == "True")
    }

    /// The sets among these with containers that do not run yet what a rollout gave them.
    pub(super) fn unsettled(&self, carried: &Packed) -> SomeSets {
        let Some(state) = self.in_place_state() else { return SomeSets::default() };
        let statuses = self.status.iter().flat_map(PodStatus::containers);
        let sets = unsettled(state, &self.requested(), statuses, self.refused_resize().is_some());
        SomeSets::of(carried, |set, _| sets.contains(set))
    }

    /// The sets among these with containers that a rollout has resized, and that the kubelet does not give what they ask for.
    pub(super) fn unresized(&self, carried: &Packed) -> SomeSets {
        if self.refused_resize().is_none() {
            return SomeSets::default();
        }
        let sets = self.unresized_sets();
        SomeSets::of(carried, |set, _| sets.contains(set))
    }

    /// Why the kubelet does not give the containers of the set what a rollout made the pod ask for; nothing where it does.
    pub(super) fn why_unresized(&self, set: &str) -> Option<String> {
        let refused = self.refused_resize()?;
        let (reason, message) = (refused.reason.as_deref()?, refused.message.as_deref().unwrap_or_default());
        let said = if message.is_empty() { String::new() } else { format!(": {message}") };
        self.unresized_sets().contains(set).then(|| format!("the kubelet has not resized the pod ({reason}){said}"))
    }

    fn unresized_sets(&self) -> BTreeSet<String> {
        let statuses = self.status.iter().flat_map(PodStatus::containers);
        self.in_place_state().map(|state| unresized(state, &self.requested(), statuses)).unwrap_or_default()
    }

    fn requested(&self) -> BTreeMap<&str, Requested<'_>> {
        let containers = self.containers();
        containers
            .map(|it| (it.name.as_str(), Requested { image: &it.image, resources: it.resources.as_ref() }))
            .collect()
    }

    /// The condition by which the kubelet says that it does not resize the pod, now or ever.
    fn refused_resize(&self) -> Option<&Condition> {
        let conditions = self.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let mut waiting = conditions.filter(|it| it.kind == "PodResizePending" && it.status == "True");
        waiting.find(|it| matches!(it.reason.as_deref(), Some("Deferred" | "Infeasible")))
    }

    /// The sets among these for which a rollout took the pod down.
    pub(super) fn touched(&self, carried: &Packed) -> SomeSets {
        let Some(state) = self.in_place_state() else { return SomeSets::default() };
        let touched = touched(state);
        SomeSets::of(carried, |set, _| touched.contains(set))
    }

    /// The sets among these that our condition names.
    pub(super) fn refused(&self, carried: &Packed) -> SomeSets {
        let named = self.named_as_refused();
        SomeSets::of(carried, |set, _| named.contains_key(set))
    }

    /// Whether the condition names a set that is none of these.
    pub(super) fn is_refused_others(&self, carried: &Packed) -> bool {
        let mut named = self.named_as_refused();
        for (set, _) in carried.iter() {
            named.remove(set);
        }
        !named.is_empty()
    }

    // Keys of a JSON object, whatever the values are.
    #[allow(clippy::zero_sized_map_values)]
    fn named_as_refused(&self) -> BTreeMap<String, IgnoredAny> {
        let mut conditions = self.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let message = conditions.find(|it| it.kind == UPGRADABLE).and_then(|it| it.message.as_deref());
        message.and_then(|message| serde_json::from_str(message).ok()).unwrap_or_default()
    }

    /// For each of the carried sets the bucket of the pod's workload.
    pub(super) fn buckets(&self, carried: &Packed) -> Box<[u16]> {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        let workload = Workload::of(OfPod {
            namespace: &namespace,
            name: &name,
            generate_name: self.meta().generate_name.as_deref().unwrap_or_default(),
            controller: self.owner_references().first().map(|owner| (owner.kind.as_str(), owner.name.as_str())),
            template_hash: self.labels().get(TEMPLATE_HASH_LABEL),
        });
        carried.iter().map(|(set, _)| workload.bucket(set)).collect()
    }

    pub(super) fn platform(&self) -> Option<Platform> {
        let os = self.spec.as_ref().and_then(|spec| spec.os.as_ref()).map(|os| os.name.as_str());
        let nodes = self.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
        let affinity = || self.spec.as_ref().and_then(|spec| spec.affinity);
        Platform::of_pod(os, |label| nodes?.get(label), affinity)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sidecarset::controller::record::{PodRecord, Wanted};

    #[test]
    fn the_operating_system_is_read_from_either_label_of_the_node_selector() {
        for (selector, platform) in [
            (json!({"kubernetes.io/os": "windows"}), Some(Platform::Windows)),
            (json!({"beta.kubernetes.io/os": "windows", "a": "b"}), Some(Platform::Windows)),
            (json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows"}), Some(Platform::Linux)),
            (json!({}), None),
        ] {
            let pod = serde_json::from_value(json!({"spec": {"nodeSelector": selector}})).unwrap();
            assert_eq!(PodRecord::of(&pod, &Wanted::default()).unwrap().platform, platform, "{selector}");
        }
    }
}
