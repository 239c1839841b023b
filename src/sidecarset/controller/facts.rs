//! What rollouts read of a pod, in a few bytes.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use kube::ResourceExt as _;

use crate::sidecarset::controller::watched_pod::{PodStatus, WatchedPod};
use crate::sidecarset::rollout::Phase;
use engine::sidecarset::workload::{TEMPLATE_HASH_LABEL, of_controller};

/// What rollouts read of a pod. Identities are kept as hashes of 64 bits: two in one cluster are never the same by chance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// Hash of its uid.
    pub uid: u64,
    /// Of the workload that the pod is of; 0 for a pod without a controller, which would not be created again.
    pub owner: u64,
    /// When it was created, in seconds since 1970.
    pub created: u32,
    /// When its readiness changed last, in seconds since 1970.
    pub ready_since: u32,
    /// How often its containers were started again.
    pub restarts: u16,
    /// Of `status.phase`.
    pub phase: Phase,
    /// Whether a node is to run it.
    pub is_assigned: bool,
    /// Whether it is to end, as the pods of Jobs are.
    pub ends: bool,
    /// Whether its controller may create no new pod while another one is not ready, as a `StatefulSet`.
    pub is_ordered: bool,
}

/// After so long every controller has seen that a pod is not ready.
const LONG_UNREADY: Duration = Duration::from_secs(10);

impl PodFacts {
    /// Whether the readiness is so old, by this clock, that every controller has seen it.
    pub fn is_long_unready(&self) -> bool {
        self.is_unready_for(LONG_UNREADY)
    }

    /// Whether the readiness of a pod that is not ready is so old, by this clock.
    pub fn is_unready_for(&self, time: Duration) -> bool {
        u64::from(seconds_now().saturating_sub(self.ready_since)) >= time.as_secs()
    }

    /// Whether the pod was created so long ago, by this clock.
    pub fn is_older_than(&self, time: Duration) -> bool {
        u64::from(seconds_now().saturating_sub(self.created)) >= time.as_secs()
    }

    /// Of a pod.
    pub fn of(pod: &WatchedPod) -> Self {
        let status = pod.status.as_ref();
        let restarts = status.into_iter().flat_map(PodStatus::containers).map(|status| status.restart_count);
        let restarts = restarts.fold(0_i32, i32::saturating_add);
        let controller = pod.owner_references().first();
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        Self {
            uid: hashed(pod.uid().unwrap_or_default()),
            owner: controller.map_or(0, |owner| {
                let template_hash = pod.labels().get(TEMPLATE_HASH_LABEL);
                hashed((pod.namespace(), of_controller(&owner.kind, &owner.name, template_hash)))
            }),
            created: pod.creation_timestamp().map_or(0, |time| seconds(time.0.as_second())),
            ready_since: status.and_then(PodStatus::ready_since).map_or(0, seconds),
            restarts: u16::try_from(restarts).unwrap_or(u16::MAX),
            phase: match status.and_then(|status| status.phase.as_deref()) {
                Some("Running") => Phase::Running,
                Some("Pending") | None => Phase::Pending,
                Some(_) => Phase::Unknown,
            },
            is_assigned: !node.is_empty(),
            ends: matches!(policy, Some("Never" | "OnFailure")) || controller.is_some_and(|owner| owner.kind == "Job"),
            is_ordered: controller.is_some_and(|owner| owner.kind == "StatefulSet"),
        }
    }
}

/// The same in every process, so that tests may rely on it.
pub fn hashed(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish().max(1)
}

/// The time by this clock, in seconds since 1970.
pub fn seconds_now() -> u32 {
    seconds(jiff::Timestamp::now().as_second())
}

fn seconds(seconds: i64) -> u32 {
    u32::try_from(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(pod: serde_json::Value) -> PodFacts {
        PodFacts::of(&serde_json::from_value(pod).unwrap())
    }

    fn owned(kind: &str, name: &str, template_hash: Option<&str>, is_controller: bool) -> u64 {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": is_controller});
        let labels = template_hash.map(|hash| json!({TEMPLATE_HASH_LABEL: hash}));
        facts(json!({"metadata": {"namespace": "n", "name": "p", "labels": labels, "ownerReferences": [owner]}})).owner
    }

    #[test]
    fn pods_of_two_replica_sets_of_one_deployment_have_one_owner() {
        let (old, new) =
            (owned("ReplicaSet", "web-1a", Some("1a"), true), owned("ReplicaSet", "web-2b", Some("2b"), true));
        assert_eq!(old, new);
        assert_ne!(old, owned("ReplicaSet", "api-1a", Some("1a"), true));
        assert_ne!(old, owned("StatefulSet", "web", None, true));
        assert_ne!(owned("ReplicaSet", "web-1a", None, true), owned("ReplicaSet", "web-2b", None, true));
        assert_eq!(owned("ReplicaSet", "web-1a", Some("1a"), false), 0, "nobody creates it again");
    }

    #[test]
    fn what_orders_pods_is_read_from_spec_and_status() {
        let pod = json!({
            "metadata": {"name": "p", "creationTimestamp": "1970-01-01T00:01:00Z"},
            "spec": {"nodeName": "n", "restartPolicy": "Never"},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:02:00Z"}],
                "containerStatuses": [{"name": "a", "restartCount": 2}],
                "initContainerStatuses": [{"name": "b", "restartCount": 3}],
            },
        });
        let facts = facts(pod);
        let numbers = (facts.created, facts.ready_since, facts.restarts);
        assert_eq!((numbers, facts.phase, facts.is_assigned, facts.ends), ((60, 120, 5), Phase::Running, true, true));
    }
}
