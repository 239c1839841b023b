//! `AdmissionPlugin`: admission plugins of the API server, served by webhooks.
//!
//! One file for each plugin: what it reads, what it changes and what it refuses, as in Kubernetes 1.36
//! (`k8s.io/kubernetes/plugin/pkg/admission`). Their order, modes and scopes are in [`index`], the endpoints in [`endpoints`].

pub mod always_pull_images;
pub mod amounts;
pub mod api;
pub mod catalog;
pub mod change;
pub mod compiled;
pub mod conflict;
pub mod default_storage_class;
pub mod default_toleration_seconds;
pub mod deny_service_external_ips;
pub mod endpoints;
pub mod event_rate_limit;
pub mod extended_resource_toleration;
pub mod image_policy;
pub mod index;
pub mod limit_pod_hard_anti_affinity_topology;
pub mod namespace_facts;
pub mod namespace_lifecycle;
pub mod node_restriction;
pub mod owner_references;
pub mod persistent_volume_claim_resize;
pub mod placement;
pub mod pod_class;
pub mod pod_facts;
pub mod pod_node_selector;
pub mod pod_security;
pub mod pod_toleration_restriction;
pub mod pod_topology_labels;
pub mod references;
pub mod resource_quota;
pub mod service_account;
pub mod storage_classes;
pub mod storage_object_in_use_protection;
pub mod taint_nodes_by_condition;
pub mod toleration;
pub mod validation;
pub(crate) mod work;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;

use std::fmt;

/// The name of an object in messages: that of the request, its own, or the beginning of one that the API server makes up. A request
/// for many objects has none.
pub(crate) fn said_name(names: [&str; 3]) -> &str {
    names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
}

/// The plugins that are served: those of pods in the order of the API server, then the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plugin {
    /// Images are pulled at each start.
    AlwaysPullImages,
    /// Node selectors by namespace.
    PodNodeSelector,
    /// The class of priority of pods that name none.
    Priority,
    /// Seconds that pods stay on nodes that fail.
    DefaultTolerationSeconds,
    /// Tolerations by namespace.
    PodTolerationRestriction,
    /// Tolerations for extended resources.
    ExtendedResourceToleration,
    /// The class of runtimes of pods that name none.
    RuntimeClass,
    /// Which topology keys required anti-affinity may have.
    LimitPodHardAntiAffinityTopology,
    /// No external IPs of services.
    DenyServiceExternalIPs,
    /// Namespaces that may not be deleted.
    NamespaceLifecycle,
    /// Labels of namespaces by which pods are judged.
    PodSecurity,
    /// Who may set owners of objects.
    OwnerReferencesPermissionEnforcement,
    /// How many events are stored.
    EventRateLimit,
    /// What may be consumed only where a quota covers it.
    ResourceQuota,
    /// Which images may run.
    ImagePolicyWebhook,
    /// The storage class of claims that name none.
    DefaultStorageClass,
    /// Labels of nodes for the pods on them.
    PodTopologyLabels,
    /// Finalizers of storage that is in use.
    StorageObjectInUseProtection,
    /// Which claims may grow.
    PersistentVolumeClaimResize,
    /// The taint of nodes that are not ready yet.
    TaintNodesByCondition,
    /// Which secrets the pods of an account may use.
    ServiceAccount,
    /// What kubelets may do with nodes and pods.
    NodeRestriction,
}

impl Plugin {
    /// Every plugin.
    pub const ALL: [Self; 22] = [
        Self::AlwaysPullImages,
        Self::PodNodeSelector,
        Self::DefaultTolerationSeconds,
        Self::PodTolerationRestriction,
        Self::Priority,
        Self::ExtendedResourceToleration,
        Self::RuntimeClass,
        Self::LimitPodHardAntiAffinityTopology,
        Self::DenyServiceExternalIPs,
        Self::NamespaceLifecycle,
        Self::PodSecurity,
        Self::OwnerReferencesPermissionEnforcement,
        Self::EventRateLimit,
        Self::ResourceQuota,
        Self::ImagePolicyWebhook,
        Self::DefaultStorageClass,
        Self::PodTopologyLabels,
        Self::StorageObjectInUseProtection,
        Self::PersistentVolumeClaimResize,
        Self::TaintNodesByCondition,
        Self::ServiceAccount,
        Self::NodeRestriction,
    ];

    /// The API server's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlwaysPullImages => "AlwaysPullImages",
            Self::PodNodeSelector => "PodNodeSelector",
            Self::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Self::PodTolerationRestriction => "PodTolerationRestriction",
            Self::ExtendedResourceToleration => "ExtendedResourceToleration",
            Self::LimitPodHardAntiAffinityTopology => "LimitPodHardAntiAffinityTopology",
            Self::DenyServiceExternalIPs => "DenyServiceExternalIPs",
            Self::NamespaceLifecycle => "NamespaceLifecycle",
            Self::PodSecurity => "PodSecurity",
            Self::OwnerReferencesPermissionEnforcement => "OwnerReferencesPermissionEnforcement",
            Self::EventRateLimit => "EventRateLimit",
            Self::ResourceQuota => "ResourceQuota",
            Self::ImagePolicyWebhook => "ImagePolicyWebhook",
            Self::DefaultStorageClass => "DefaultStorageClass",
            Self::PodTopologyLabels => "PodTopologyLabels",
            Self::Priority => "Priority",
            Self::RuntimeClass => "RuntimeClass",
            Self::StorageObjectInUseProtection => "StorageObjectInUseProtection",
            Self::PersistentVolumeClaimResize => "PersistentVolumeClaimResize",
            Self::TaintNodesByCondition => "TaintNodesByCondition",
            Self::ServiceAccount => "ServiceAccount",
            Self::NodeRestriction => "NodeRestriction",
        }
    }

    /// The field of the spec with its configuration.
    pub const fn section(self) -> &'static str {
        match self {
            Self::AlwaysPullImages => "alwaysPullImages",
            Self::PodNodeSelector => "podNodeSelector",
            Self::DefaultTolerationSeconds => "defaultTolerationSeconds",
            Self::PodTolerationRestriction => "podTolerationRestriction",
            Self::ExtendedResourceToleration => "extendedResourceToleration",
            Self::LimitPodHardAntiAffinityTopology => "limitPodHardAntiAffinityTopology",
            Self::DenyServiceExternalIPs => "denyServiceExternalIPs",
            Self::NamespaceLifecycle => "namespaceLifecycle",
            Self::PodSecurity => "podSecurity",
            Self::OwnerReferencesPermissionEnforcement => "ownerReferencesPermissionEnforcement",
            Self::EventRateLimit => "eventRateLimit",
            Self::ResourceQuota => "resourceQuota",
            Self::ImagePolicyWebhook => "imagePolicyWebhook",
            Self::DefaultStorageClass => "defaultStorageClass",
            Self::PodTopologyLabels => "podTopologyLabels",
            Self::Priority => "priority",
            Self::RuntimeClass => "runtimeClass",
            Self::StorageObjectInUseProtection => "storageObjectInUseProtection",
            Self::PersistentVolumeClaimResize => "persistentVolumeClaimResize",
            Self::TaintNodesByCondition => "taintNodesByCondition",
            Self::ServiceAccount => "serviceAccount",
            Self::NodeRestriction => "nodeRestriction",
        }
    }

    /// The plugin of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// Whether no request may fail because the webhook does not answer.
    pub const fn never_fails(self) -> bool {
        matches!(self, Self::EventRateLimit | Self::PodTopologyLabels) || self.is_of_nodes()
    }

    /// Whether it decides on nodes. One that cannot register or report takes no pods, and may be the one that is to run Outrider.
    pub const fn is_of_nodes(self) -> bool {
        matches!(self, Self::TaintNodesByCondition | Self::NodeRestriction)
    }

    /// Whether it decides in the one call for new pods.
    pub const fn is_of_pods(self) -> bool {
        !matches!(
            self,
            Self::DenyServiceExternalIPs
                | Self::NamespaceLifecycle
                | Self::PodSecurity
                | Self::OwnerReferencesPermissionEnforcement
                | Self::EventRateLimit
                | Self::ResourceQuota
                | Self::ImagePolicyWebhook
                | Self::DefaultStorageClass
                | Self::PodTopologyLabels
                | Self::StorageObjectInUseProtection
                | Self::PersistentVolumeClaimResize
                | Self::TaintNodesByCondition
                | Self::ServiceAccount
                | Self::NodeRestriction
        )
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Characters of a text from a review that a message repeats.
const REPEATED: usize = 253;

/// As much of a text from a review as a message repeats.
pub(crate) fn shortened(text: &str) -> &str {
    admission::bounded::first_chars(text, REPEATED)
}

/// A refusal as the API server words it (`NewForbidden` of k8s.io/apimachinery/pkg/api/errors).
pub(crate) fn forbidden(resource: &str, name: &str, why: &str) -> String {
    format!("{resource} {} is forbidden: {why}", admission::field::quote(shortened(name)))
}
