//! The configuration of each plugin, a field of the spec.

use std::collections::BTreeMap;

use admission::format::LabelSelector;
use admission::review::null_as_default;
use serde::{Deserialize, Serialize};

use crate::plugins::toleration::TolerationSpec;

/// What has a bucket of its own under `EventRateLimit`.
pub const EVENT_LIMITS: [&str; 4] = ["Server", "Namespace", "User", "SourceAndObject"];
/// What labels of nodes become in a pod.
pub const TOPOLOGY_TARGETS: [&str; 3] = ["Labels", "Annotations", "Both"];
/// What is done to the pods of a `DaemonSet`.
pub const DAEMON_SET_PODS: [&str; 2] = ["Apply", "Skip"];

/// Configuration of `AlwaysPullImages`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AlwaysPullImagesSpec {
    /// Images that are left alone; `*` is any text.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub exempt_images: Vec<String>,
    /// Whether ephemeral containers that are added to a pod are covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_ephemeral_containers: Option<bool>,
}

/// Configuration of `PodNodeSelector`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodNodeSelectorSpec {
    /// The selector of namespaces without the annotation, as `key=value,…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_default_node_selector: Option<String>,
    /// By namespace, the labels that its pods may select, as `key=value,…`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub namespace_allow_lists: BTreeMap<String, String>,
    /// One of [`DAEMON_SET_PODS`]; `Apply` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_set_pods: Option<String>,
}

/// Configuration of `PodTolerationRestriction`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTolerationRestrictionSpec {
    /// Tolerations of pods in namespaces without the annotation.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub default: Vec<TolerationSpec>,
    /// What pods may tolerate in namespaces without the annotation; everything where empty.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub whitelist: Vec<TolerationSpec>,
    /// Whether tolerations that Kubernetes itself adds are always allowed; true where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_allow_builtin: Option<bool>,
    /// Whether annotations of namespaces are read; true where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations_allowed: Option<bool>,
}

/// Configuration of `DefaultTolerationSeconds`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultTolerationSecondsSpec {
    /// Seconds on a node that is not ready; 300 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_seconds: Option<i64>,
    /// Seconds on a node that cannot be reached; 300 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_seconds: Option<i64>,
}

/// Configuration of `ExtendedResourceToleration`, which has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtendedResourceTolerationSpec {}

/// Configuration of `Priority`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrioritySpec {
    /// The class that pods get which name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Classes that are replaced as if the pod named none.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub replaced_class_names: Vec<String>,
}

/// Configuration of `RuntimeClass`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeClassSpec {
    /// The class that pods get which name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
}

/// Configuration of `StorageObjectInUseProtection`, which has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageObjectInUseProtectionSpec {}

/// Configuration of `PersistentVolumeClaimResize`, which has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaimResizeSpec {}

/// Configuration of `TaintNodesByCondition`, which has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaintNodesByConditionSpec {}

/// Configuration of `ServiceAccount`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceAccountSpec {
    /// Whether every account counts as one with the annotation `kubernetes.io/enforce-mountable-secrets`; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_secret_references: Option<bool>,
    /// Pull secrets of pods that have none, and whose account names none.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<PullSecretSpec>,
}

/// A pull secret, as a pod names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullSecretSpec {
    /// Name of the Secret.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

/// Configuration of `NodeRestriction`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRestrictionSpec {
    /// Whether the author knows what a webhook in the path of kubelets can do to a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub i_understand_the_risk: Option<bool>,
}

/// Configuration of `LimitPodHardAntiAffinityTopology`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitTopologySpec {
    /// The topology keys that required anti-affinity may have; `kubernetes.io/hostname` where absent.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_topology_keys: Vec<String>,
}

/// Configuration of `DenyServiceExternalIPs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DenyServiceExternalIpsSpec {
    /// Ranges whose addresses are allowed.
    #[serde(rename = "allowedCIDRs", deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
}

/// Configuration of `NamespaceLifecycle`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceLifecycleSpec {
    /// Names of protected namespaces; `*` is any text.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub protected_namespaces: Vec<String>,
    /// Labels of protected namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_label_selector: Option<LabelSelector>,
    /// Annotation that lifts the protection of a namespace with the value `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub break_glass_annotation: Option<String>,
}

/// Configuration of `PodSecurity`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodSecuritySpec {
    /// Labels that new namespaces without them get.
    #[serde(deserialize_with = "null_as_default")]
    pub defaults: PodSecurityDefaults,
}

/// Levels and versions, under the names of `PodSecurityConfiguration` (pod-security.admission.config.k8s.io/v1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PodSecurityDefaults {
    /// Level that pods are refused by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce: Option<String>,
    /// Version of that level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_version: Option<String>,
    /// Level that the audit log goes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<String>,
    /// Version of that level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_version: Option<String>,
    /// Level that warnings go by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<String>,
    /// Version of that level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_version: Option<String>,
}

/// Configuration of `OwnerReferencesPermissionEnforcement`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReferencesSpec {
    /// Resources whose objects are covered, as `resource` or `resource.group`; all where empty.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
}

/// Configuration of `EventRateLimit`, under the names of `Configuration` (eventratelimit.admission.k8s.io/v1alpha1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventRateLimitSpec {
    /// The limits, all of which an event must pass.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<EventLimitSpec>,
    /// Whether events of the group `events.k8s.io` are limited as well; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cover_events_v1: Option<bool>,
}

/// A limit of `EventRateLimit`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventLimitSpec {
    /// What has a bucket of its own: one of [`EVENT_LIMITS`].
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub type_: String,
    /// Events in a second.
    #[serde(deserialize_with = "null_as_default")]
    pub qps: i64,
    /// Events at once.
    #[serde(deserialize_with = "null_as_default")]
    pub burst: i64,
    /// Buckets that are kept; 4096 where absent or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_size: Option<i64>,
}

/// Configuration of `ResourceQuota`, under the names of `ResourceQuotaConfiguration` (apiserver.config.k8s.io/v1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuotaSpec {
    /// What may be consumed only where a quota covers it.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub limited_resources: Vec<LimitedResourceSpec>,
}

/// Consumption that a quota must cover.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitedResourceSpec {
    /// API group; empty, as the core group is all that is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// `pods`, `persistentvolumeclaims` or `services`.
    #[serde(deserialize_with = "null_as_default")]
    pub resource: String,
    /// Parts of the names of what is consumed.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub match_contains: Vec<String>,
    /// Scopes, which limit objects of every resource that has such scopes.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub match_scopes: Vec<ScopeSpec>,
}

/// A scope of quotas, as `scopeSelector.matchExpressions` of a quota has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopeSpec {
    /// A scope as quotas name it, such as `PriorityClass`.
    #[serde(deserialize_with = "null_as_default")]
    pub scope_name: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "null_as_default")]
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Configuration of `ImagePolicyWebhook`, under the names of `imagePolicy` in the API server's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePolicyWebhookSpec {
    /// Key of the Secret with the kubeconfig of the backend; `kubeconfig` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config_key: Option<String>,
    /// Namespace that the backend runs in, which is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_namespace: Option<String>,
    /// Seconds for which a yes counts; 300 where absent or 0, none with -1.
    #[serde(rename = "allowTTL", skip_serializing_if = "Option::is_none")]
    pub allow_ttl: Option<i64>,
    /// Seconds for which a no counts; 30 where absent or 0, none with -1.
    #[serde(rename = "denyTTL", skip_serializing_if = "Option::is_none")]
    pub deny_ttl: Option<i64>,
    /// Milliseconds before the second try; 500 where absent or 0, none with -1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_backoff: Option<i64>,
    /// Whether images may run while the backend gives no verdict on them; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_allow: Option<bool>,
}

/// Configuration of `DefaultStorageClass`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultStorageClassSpec {
    /// The class that claims get; the default of the cluster where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Whether claims with the default of the cluster get it as well; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_cluster_default: Option<bool>,
}

/// Configuration of `PodTopologyLabels`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTopologyLabelsSpec {
    /// Labels of nodes that are copied.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub node_labels: Vec<String>,
    /// One of [`TOPOLOGY_TARGETS`]; `Labels` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}
