//! The `AdmissionPlugin` type, `policy.outrider.dev/v1alpha1`.

use std::collections::BTreeMap;

use admission::format::LabelSelector;
use admission::review::null_as_default;
use serde::{Deserialize, Serialize};

use super::toleration::TolerationSpec;
use crate::sidecarset::api::{Condition, Metadata};

/// API group.
pub const GROUP: &str = concat!("policy.", api_domain!());
/// API version.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as manifests have it.
pub const API_VERSION: &str = concat!("policy.", api_domain!(), "/v1alpha1");
/// Kind.
pub const KIND: &str = "AdmissionPlugin";
/// Resource: the plural in URLs.
pub const PLURAL: &str = "admissionplugins";

/// What has a bucket of its own under `EventRateLimit`.
pub const EVENT_LIMITS: [&str; 4] = ["Server", "Namespace", "User", "SourceAndObject"];
/// What labels of nodes become in a pod.
pub const TOPOLOGY_TARGETS: [&str; 3] = ["Labels", "Annotations", "Both"];
/// What is done to the pods of a `DaemonSet`.
pub const DAEMON_SET_PODS: [&str; 2] = ["Apply", "Skip"];

/// An admission plugin of the API server, switched on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdmissionPlugin {
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: PluginSpec,
    /// What the controller found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PluginStatus>,
}

/// What an `AdmissionPlugin` asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginSpec {
    /// Name of the plugin.
    #[serde(deserialize_with = "null_as_default")]
    pub plugin: String,
    /// `Enforce`, `Warn`, `Audit` or `Off`; `Enforce` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Which requests it is about.
    #[serde(rename = "match", deserialize_with = "null_as_default")]
    pub scope: Scope,
    /// What happens to a request if the webhook does not answer: `Fail` or `Ignore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// Not served yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Configuration of `PodTopologyLabels`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_topology_labels: Option<PodTopologyLabelsSpec>,
    /// Configuration of `Priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PrioritySpec>,
    /// Configuration of `RuntimeClass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<RuntimeClassSpec>,
    /// Configuration of `StorageObjectInUseProtection`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_object_in_use_protection: Option<StorageObjectInUseProtectionSpec>,
    /// Configuration of `PersistentVolumeClaimResize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_resize: Option<PersistentVolumeClaimResizeSpec>,
    /// Configuration of `TaintNodesByCondition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taint_nodes_by_condition: Option<TaintNodesByConditionSpec>,
    /// Configuration of `ServiceAccount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountSpec>,
    /// Configuration of `NodeRestriction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_restriction: Option<NodeRestrictionSpec>,
    /// How long the API server waits, from 1 to 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Configuration of `AlwaysPullImages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_pull_images: Option<AlwaysPullImagesSpec>,
    /// Configuration of `PodNodeSelector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_node_selector: Option<PodNodeSelectorSpec>,
    /// Configuration of `PodTolerationRestriction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_toleration_restriction: Option<PodTolerationRestrictionSpec>,
    /// Configuration of `DefaultTolerationSeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_toleration_seconds: Option<DefaultTolerationSecondsSpec>,
    /// Configuration of `ExtendedResourceToleration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_resource_toleration: Option<ExtendedResourceTolerationSpec>,
    /// Configuration of `LimitPodHardAntiAffinityTopology`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_pod_hard_anti_affinity_topology: Option<LimitTopologySpec>,
    /// Configuration of `DenyServiceExternalIPs`.
    #[serde(rename = "denyServiceExternalIPs", skip_serializing_if = "Option::is_none")]
    pub deny_service_external_ips: Option<DenyServiceExternalIpsSpec>,
    /// Configuration of `NamespaceLifecycle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_lifecycle: Option<NamespaceLifecycleSpec>,
    /// Configuration of `PodSecurity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecuritySpec>,
    /// Configuration of `OwnerReferencesPermissionEnforcement`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_references_permission_enforcement: Option<OwnerReferencesSpec>,
    /// Configuration of `EventRateLimit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_rate_limit: Option<EventRateLimitSpec>,
    /// Configuration of `ResourceQuota`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_quota: Option<ResourceQuotaSpec>,
    /// Configuration of `ImagePolicyWebhook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_policy_webhook: Option<ImagePolicyWebhookSpec>,
    /// Configuration of `DefaultStorageClass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_storage_class: Option<DefaultStorageClassSpec>,
}

/// Which requests a plugin is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scope {
    /// Namespaces by their labels; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Names of namespaces that are left alone.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub exclude_namespaces: Vec<String>,
    /// Names of users who are exempt.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub exclude_users: Vec<String>,
    /// Groups whose members are exempt.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub exclude_groups: Vec<String>,
    /// Service accounts that are exempt, as `namespace/name`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub exclude_service_accounts: Vec<String>,
}

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
    /// The resource.
    #[serde(deserialize_with = "null_as_default")]
    pub resource: String,
    /// Parts of the names of what is consumed.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub match_contains: Vec<String>,
    /// Scopes.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub match_scopes: Vec<ScopeSpec>,
}

/// A scope of quotas, as `scopeSelector.matchExpressions` of a quota has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopeSpec {
    /// Name of the scope.
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

/// What the controller found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginStatus {
    /// The generation that the rest is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`, `Programmed` and `Conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

impl PluginStatus {
    /// Whether the API server calls for this generation of the object.
    pub fn is_programmed(&self, generation: i64) -> bool {
        let is_it = |one: &Condition| one.type_ == "Programmed" && one.status == "True";
        self.observed_generation == Some(generation) && self.conditions.iter().flatten().any(is_it)
    }
}
