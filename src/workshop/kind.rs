//! What the rest of the process knows of a kind.

use admission::Registry;
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};

use crate::controller::Context;
use engine::snapshot::Snapshot;

/// Starts a controller. It works until the term of its context ends.
pub type Start = fn(Context) -> BoxFuture<'static, ()>;

/// A kind: from this are made the router, the manifests and the manager.
#[derive(Debug)]
pub struct Kind {
    /// As `--enable-kinds` and `--controllers` take it: the kind in lower case.
    pub name: &'static str,
    /// The definition. The argument is where the API server finds the conversion of kinds with several versions.
    pub crd: fn(&WebhookClientConfig) -> CustomResourceDefinition,
    /// What the controller may do in the whole cluster.
    pub rules: fn() -> Vec<PolicyRule>,
    /// Adds the webhooks and the conversion.
    pub webhooks: fn(Registry<Snapshot>) -> Registry<Snapshot>,
    /// The controller, if the kind has one.
    pub controller: Option<Start>,
}

impl Kind {
    /// The definition, for whom it does not matter where objects are converted.
    pub fn definition(&self) -> CustomResourceDefinition {
        (self.crd)(&WebhookClientConfig::default())
    }
}
