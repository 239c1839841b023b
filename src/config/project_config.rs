//! The type. A field that is `None` was not given.

use std::collections::BTreeMap;

use admission::review::null_as_default;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duration::{GoDuration, StopBudget};
use super::{API_VERSION, KIND};

/// The configuration of the process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectConfig {
    /// Name of the cluster, which is logged at start and used for nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// How often controllers reconcile every object again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<GoDuration>,
    /// The only namespace that controllers see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_namespace: Option<String>,
    /// How long stopping may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graceful_shut_down: Option<StopBudget>,
    /// How much controllers do at one time, and how long they wait to begin.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub controller: ControllerConfig,
    /// The metrics.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub metrics: MetricsConfig,
    /// The probes.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub health: Health,
    /// The webhooks.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub webhook: Webhook,
    /// Which lease makes a replica the leader, and for how long.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub leader_election: LeaderElection,
    /// Kubebuilder's example.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub spec: Spec,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `controller`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerConfig {
    /// Workers by `Kind.group`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    pub group_kind_concurrency: BTreeMap<String, usize>,
    /// How long to wait until every object was listed, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_sync_timeout: Option<u64>,
}

/// `metrics`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsConfig {
    /// Where they are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<String>,
}

/// `health`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Where the probes are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_probe_bind_address: Option<String>,
    /// Path of the readiness probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_endpoint_name: Option<String>,
    /// Path of the liveness probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_endpoint_name: Option<String>,
}

/// `webhook`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// Port of the webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Address that webhooks are served on; all of the machine where only a port is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Directory of the serving certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<String>,
}

/// `leaderElection`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderElection {
    /// Whether there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_elect: Option<bool>,
    /// Name of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// Namespace of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_namespace: Option<String>,
    /// Where the lock is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_lock: Option<String>,
    /// How long other replicas wait for a leader that does not renew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration: Option<GoDuration>,
    /// How long the leader tries to renew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_deadline: Option<GoDuration>,
    /// Pause between two tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_period: Option<GoDuration>,
}

/// `spec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// Kubebuilder's example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

impl ProjectConfig {
    /// The object as a file could hold it.
    pub fn to_object(&self) -> Value {
        let mut object = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), API_VERSION.into());
            fields.insert("kind".to_owned(), KIND.into());
        }
        object
    }
}
