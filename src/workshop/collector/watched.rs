//! Pods as the watch keeps them: only what is reported.

use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Deserializer};

use crate::watch::partial::Partial;
use crate::workshop::object::first_kept;

/// A pod. Every pod of the cluster is watched, as a Collector may mean any.
pub type PartialPod = Partial<Pod, PartialPodSpec, PartialPodStatus>;

/// Where a pod runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartialPodSpec {
    /// Absent until the scheduler has chosen one.
    pub node_name: Option<String>,
}

/// Addresses of a pod and how it does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PartialPodStatus {
    /// Whether it has ended.
    #[serde(rename = "phase", deserialize_with = "is_finished")]
    pub finished: bool,
    /// Whether its condition Ready holds.
    #[serde(rename = "conditions", deserialize_with = "is_ready")]
    pub ready: bool,
    /// Its first address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// All of them.
    #[serde(rename = "podIPs", deserialize_with = "first_kept::<4, _, _>")]
    pub pod_ips: Option<Vec<PodIp>>,
}

/// One address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodIp {
    /// The address.
    pub ip: String,
}

fn is_finished<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let phase = Option::<String>::deserialize(deserializer)?;
    Ok(matches!(phase.as_deref(), Some("Succeeded" | "Failed")))
}

fn is_ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Condition {
        #[serde(rename = "type")]
        type_: String,
        status: String,
    }
    let conditions = Option::<Vec<Condition>>::deserialize(deserializer)?;
    Ok(conditions.iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}
