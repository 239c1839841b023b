//! The `AdmissionPlugin` type, `policy.outrider.dev/v1alpha1`.

mod sections;

use admission::format::LabelSelector;
use admission::review::null_as_default;
use serde::{Deserialize, Serialize};

pub use self::sections::{
    AlwaysPullImagesSpec, DAEMON_SET_PODS, DefaultStorageClassSpec, DefaultTolerationSecondsSpec,
    DenyServiceExternalIpsSpec, EVENT_LIMITS, EventLimitSpec, EventRateLimitSpec, ExtendedResourceTolerationSpec,
    ImagePolicyWebhookSpec, LimitTopologySpec, LimitedResourceSpec, NamespaceLifecycleSpec, NodeRestrictionSpec,
    OwnerReferencesSpec, PersistentVolumeClaimResizeSpec, PodNodeSelectorSpec, PodSecurityDefaults, PodSecuritySpec,
    PodTolerationRestrictionSpec, PodTopologyLabelsSpec, PrioritySpec, PullSecretSpec, ResourceQuotaSpec,
    RuntimeClassSpec, ScopeSpec, ServiceAccountSpec, StorageObjectInUseProtectionSpec, TOPOLOGY_TARGETS,
    TaintNodesByConditionSpec,
};
use crate::sidecarset::api::{Condition, Metadata};

/// API group.
pub const GROUP: &str = concat!("policy.", api_domain!());
/// API version.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as manifests have it.
pub const API_VERSION: &str = concat!("policy.", api_domain!(), "/v1alpha1");
/// `kind` in manifests and in reviews.
pub const KIND: &str = "AdmissionPlugin";
/// Resource: the plural in URLs.
pub const PLURAL: &str = "admissionplugins";

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
