//! Every admission plugin of Kubernetes 1.36, and `PodSecurityPolicy`: whether it is on by default, what providers do, and what
//! Outrider does about it.
//!
//! Facts: `k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go` (names, order, defaults); the user guides of Amazon EKS (platform
//! versions) and Azure AKS (frequently asked questions, CIS benchmark), and Google's CIS benchmark pages.

/// What Outrider does about a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// An `AdmissionPlugin` can turn it on.
    Served,
    /// It runs on every cluster, with nothing to configure.
    OnEverywhere,
    /// A webhook cannot do it, or had better not.
    Not,
}

impl Service {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Served => "yes",
            Self::OnEverywhere => "no need",
            Self::Not => "no",
        }
    }
}

/// A plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The API server's name.
    pub name: &'static str,
    /// Whether the API server runs it if no flag names it.
    pub is_default: bool,
    /// Whether EKS, AKS and GKE run it. None lets a user choose. `None` where nothing is published.
    pub providers: [Option<bool>; 3],
    /// What Outrider does.
    pub service: Service,
    how: &'static str,
}

impl Entry {
    /// How it is served, or why it is not.
    pub const fn how(&self) -> &'static str {
        self.how
    }
}

const Y: Option<bool> = Some(true);
const N: Option<bool> = Some(false);
const U: Option<bool> = None;
const ON: [Option<bool>; 3] = [Y, Y, Y];
const OFF: [Option<bool>; 3] = [N, N, N];
const DEFAULTED: [Option<bool>; 3] = [Y, U, U];
const UNKNOWN: [Option<bool>; 3] = [U, U, U];

const fn entry(
    name: &'static str,
    is_default: bool,
    providers: [Option<bool>; 3],
    service: Service,
    how: &'static str,
) -> Entry {
    Entry { name, is_default, providers, service, how }
}

use Service::{Not, OnEverywhere, Served};

/// In the order of the API server.
pub const ALL: &[Entry] = &[
    entry("AlwaysAdmit", false, OFF, Not, "it allows everything, as the API server does without it; deprecated"),
    entry(
        "NamespaceAutoProvision",
        false,
        OFF,
        Not,
        "a request into a missing namespace is refused by NamespaceLifecycle before any webhook is called; `outrider render --create-namespaces` prints the missing Namespaces in front of the objects, as `helm --create-namespace` and CreateNamespace=true of Argo CD create them",
    ),
    entry(
        "NamespaceLifecycle",
        true,
        ON,
        Served,
        "it runs on every cluster with a list that cannot be set; refuses the deletion of further namespaces by an on-demand entry",
    ),
    entry(
        "NamespaceExists",
        false,
        OFF,
        Not,
        "NamespaceLifecycle refuses the same requests first, and its rule would be every DELETE in the cluster",
    ),
    entry(
        "LimitPodHardAntiAffinityTopology",
        false,
        OFF,
        Served,
        "validates new pods in the call for pods, changed ones by an on-demand entry",
    ),
    entry(
        "LimitRanger",
        true,
        ON,
        Served,
        "it runs on every cluster with a LimitRange in each namespace; a ClusterLimitRange is one for many namespaces: new pods in the call for pods, resized pods and claims by on-demand entries",
    ),
    entry(
        "ServiceAccount",
        true,
        ON,
        Served,
        "it runs on every cluster, and limits pods to the secrets of their account where an annotation requires it; limits those of all accounts of a namespace, and gives pods pull secrets, by on-demand entries",
    ),
    entry(
        "NodeRestriction",
        false,
        [Y, Y, U],
        Served,
        "it is on wherever it matters; elsewhere an on-demand entry, which never fails, limits what kubelets may do with nodes and pods, but not by nodes/status, leases or tokens: a webhook in the path of heartbeats can make every node NotReady",
    ),
    entry(
        "TaintNodesByCondition",
        true,
        DEFAULTED,
        Served,
        "it runs on every cluster unless its flags say otherwise; there an on-demand entry, which never fails, taints new nodes",
    ),
    entry(
        "AlwaysPullImages",
        false,
        OFF,
        Served,
        "changes new pods in the call for pods, and checks them as they are stored; changed pods and ephemeral containers by on-demand entries",
    ),
    entry(
        "ImagePolicyWebhook",
        false,
        OFF,
        Served,
        "validates pods and ephemeral containers by an on-demand entry; asks an ImageReview backend that a Secret names",
    ),
    entry(
        "PodSecurity",
        true,
        ON,
        Served,
        "it runs on every cluster with defaults that cannot be set; gives new namespaces the labels of your defaults by on-demand entries",
    ),
    entry(
        "PodNodeSelector",
        false,
        [N, Y, N],
        Served,
        "changes new pods in the call for pods, and checks them as they are stored",
    ),
    entry(
        "Priority",
        true,
        ON,
        Served,
        "it runs on every cluster with one default for all namespaces; gives new pods of a namespace a class in the call for pods, and checks them as they are stored",
    ),
    entry(
        "DefaultTolerationSeconds",
        true,
        ON,
        Served,
        "it runs on every cluster with seconds that cannot be set; changes those seconds in new pods",
    ),
    entry(
        "PodTolerationRestriction",
        false,
        [N, Y, N],
        Served,
        "changes new pods in the call for pods, and checks them as they are stored; changed pods by on-demand entries",
    ),
    entry(
        "EventRateLimit",
        false,
        OFF,
        Served,
        "validates events by an on-demand entry with token buckets in each replica; a FlowSchema of API Priority and Fairness limits what events cost the API server itself",
    ),
    entry(
        "ExtendedResourceToleration",
        false,
        ON,
        Served,
        "changes new pods in the call for pods, changed ones by an on-demand entry",
    ),
    entry(
        "DefaultStorageClass",
        true,
        ON,
        Served,
        "it runs on every cluster with one default for all namespaces; gives claims of a namespace a class by an on-demand entry",
    ),
    entry(
        "StorageObjectInUseProtection",
        true,
        DEFAULTED,
        Served,
        "it runs on every cluster unless its flags say otherwise; there an on-demand entry gives claims, volumes and classes of attributes their finalizers",
    ),
    entry("PodGroupProtection", true, UNKNOWN, OnEverywhere, "idle unless an alpha feature gate is on"),
    entry(
        "OwnerReferencesPermissionEnforcement",
        false,
        OFF,
        Served,
        "validates changes of owner references by an on-demand entry for all resources, which the installation must allow; asks the API server for the rights of the user",
    ),
    entry(
        "PersistentVolumeClaimResize",
        true,
        DEFAULTED,
        Served,
        "it runs on every cluster unless its flags say otherwise; there an on-demand entry validates claims that grow",
    ),
    entry(
        "RuntimeClass",
        true,
        DEFAULTED,
        Served,
        "it runs on every cluster without a default; gives new pods of a namespace a class in the call for pods, and checks them as they are stored",
    ),
    entry("CertificateApproval", true, DEFAULTED, OnEverywhere, "it runs on every cluster"),
    entry("CertificateSigning", true, DEFAULTED, OnEverywhere, "it runs on every cluster"),
    entry("ClusterTrustBundleAttest", true, UNKNOWN, OnEverywhere, "idle unless a feature gate is on"),
    entry("CertificateSubjectRestriction", true, DEFAULTED, OnEverywhere, "it runs on every cluster"),
    entry("DefaultIngressClass", true, [Y, Y, U], OnEverywhere, "it runs on every cluster"),
    entry(
        "DenyServiceExternalIPs",
        false,
        OFF,
        Served,
        "validates services by an on-demand entry; GKE has a switch of its own",
    ),
    entry(
        "PodTopologyLabels",
        true,
        UNKNOWN,
        Served,
        "it runs on every cluster since 1.35 for zone and region; copies other labels of nodes by an on-demand entry",
    ),
    entry("PodGroupWorkloadExists", true, UNKNOWN, OnEverywhere, "idle unless an alpha feature gate is on"),
    entry("NodeDeclaredFeatureValidator", true, UNKNOWN, OnEverywhere, "it runs on every cluster since 1.35"),
    entry("JobValidation", true, UNKNOWN, OnEverywhere, "it runs on every cluster"),
    entry("PodResizeValidator", true, UNKNOWN, OnEverywhere, "it runs on every cluster"),
    entry("MutatingAdmissionPolicy", true, UNKNOWN, OnEverywhere, "create MutatingAdmissionPolicy objects"),
    entry("MutatingAdmissionWebhook", true, ON, Not, "it is what calls Outrider"),
    entry("ValidatingAdmissionPolicy", true, UNKNOWN, OnEverywhere, "create ValidatingAdmissionPolicy objects"),
    entry("ValidatingAdmissionWebhook", true, ON, Not, "it is what calls Outrider"),
    entry(
        "ResourceQuota",
        true,
        ON,
        Served,
        "it runs on every cluster with a configuration that cannot be set; validates limitedResources by an on-demand entry",
    ),
    entry("AlwaysDeny", false, OFF, Not, "it refuses everything; deprecated"),
    entry(
        "PodSecurityPolicy",
        false,
        OFF,
        Served,
        "removed in Kubernetes 1.25, with its API; a PodSecurityProfile has its fields: new pods in the call for pods, changed pods and ephemeral containers by on-demand entries; for levels of whole namespaces label them for PodSecurity",
    ),
];

/// Plugins that are served by objects of a kind of their own, with that kind.
pub const OF_OTHER_KINDS: [(&str, &str); 2] =
    [("LimitRanger", "ClusterLimitRange"), ("PodSecurityPolicy", "PodSecurityProfile")];

/// The kind whose objects switch on a plugin that no `AdmissionPlugin` can.
pub fn kind_of(plugin: &str) -> Option<&'static str> {
    OF_OTHER_KINDS.into_iter().find(|(name, _)| *name == plugin).map(|(_, kind)| kind)
}

/// The plugin of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}
