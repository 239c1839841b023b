//! Names in a cluster that several parts of the process share.

/// Name of the application, and of what there is one of: service account, roles.
pub const APP: &str = "outrider";

/// Name of the `MutatingWebhookConfiguration`.
pub const MUTATING: &str = "outrider-mutating";

/// Name of the `ValidatingWebhookConfiguration`.
pub const VALIDATING: &str = "outrider-validating";

/// Name of the `MutatingWebhookConfiguration` whose entries exist only while an object needs them. Configurations are called in the order
/// of their names, so it follows [`MUTATING`].
pub const ON_DEMAND_MUTATING: &str = "outrider-on-demand-mutating";

/// Name of the `ValidatingWebhookConfiguration` whose entries exist only while an object needs them.
pub const ON_DEMAND_VALIDATING: &str = "outrider-on-demand-validating";

/// Name of the webhook's Service.
pub const SERVICE: &str = "outrider-webhook";

/// Label of an `EndpointSlice` with the name of its Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// Name of the Secret, of type `kubernetes.io/tls`, in which replicas share their certificate authorities.
pub const CA_SECRET: &str = "outrider-ca";

/// Name of the Secret with the kubeconfigs of `ImageReview` backends, in the namespace of Outrider.
pub const IMAGE_POLICY_SECRET: &str = "outrider-image-policy";

/// Name of the lease that the leader holds, unless another is given.
pub const LEASE: &str = concat!("outrider.", api_domain!());

/// Annotation of a webhook configuration while break-glass is in force.
pub const BREAK_GLASS: &str = concat!(api_domain!(), "/break-glass");

/// Annotation of a webhook configuration that was turned to Ignore because no replica serves.
pub const FAIL_OPEN: &str = concat!(api_domain!(), "/fail-open");

/// Name of the match condition of the entry for pods.
pub const NARROW: &str = concat!(api_domain!(), "/narrow");

/// Type of the condition of a pod that says which sets cannot be updated in it.
pub const UPGRADABLE: &str = concat!(api_domain!(), "/SidecarSetUpgradable");
