//! What the rest of the process knows of a kind: a row of the table of kinds.

use admission::Registry;
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};

use crate::controller::Context;
use engine::demand::Demand;
use engine::pod::stages::Stage;
use engine::snapshot::Snapshot;

/// Starts a controller. It works until the term of its context ends.
pub type Start = fn(Context) -> BoxFuture<'static, ()>;

/// Whether a kind can be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Always on.
    Product,
    /// On where `--enable-kinds` names it. A kind that is off leaves nothing behind: no definition, no RBAC rule, no watch, no
    /// webhook, no metric.
    Workshop,
}

/// Who may edit the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editors {
    /// Users who may edit a namespace: the role is part of `edit` and `admin`. Only for kinds whose objects give their author no more
    /// than that.
    OfNamespaces,
    /// Users who were given the role by name.
    Named,
}

/// A collection of objects that decisions or the controller of a kind read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Resource: the plural in URLs.
    pub plural: &'static str,
    /// Who reads it.
    pub reader: Reader,
}

/// Who reads a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Decisions: every replica watches it, and is ready once it was read.
    Decisions,
    /// The controller: the leader alone watches it.
    Controller,
}

/// A kind: from this are made the router, the manifests, the parts of the chart, and the manager.
#[derive(Debug)]
pub struct Kind {
    /// As `--enable-kinds` and `--controllers` take it: the kind in lower case.
    pub name: &'static str,
    /// Whether it can be off.
    pub family: Family,
    /// The definition, which says also whether objects have a namespace. The argument is where the API server finds the conversion of
    /// kinds with several versions.
    pub crd: fn(&WebhookClientConfig) -> CustomResourceDefinition,
    /// What the process may do for the kind in the whole cluster.
    pub rules: fn() -> Vec<PolicyRule>,
    /// What the process may do for the kind in its own namespace.
    pub namespace_rules: fn() -> Vec<PolicyRule>,
    /// Adds the webhooks and the conversion.
    pub webhooks: fn(Registry<Snapshot>) -> Registry<Snapshot>,
    /// Deciders on new pods, in their order, after `SidecarSet`s and the stages of the kinds above.
    pub stages: &'static [&'static dyn Stage],
    /// The on-demand entries that its accepted objects need, of rules that `webhooks` adds.
    pub demands: fn(&Snapshot) -> Vec<Demand>,
    /// The controller, if the kind has one.
    pub controller: Option<Start>,
    /// What is watched for the kind. `rules` allow it.
    pub watches: &'static [Watched],
    /// Who may edit its objects.
    pub editors: Editors,
    /// Its files in `config/samples`.
    pub samples: &'static [&'static str],
}

/// For a kind that needs no on-demand entries.
pub fn no_demands(_: &Snapshot) -> Vec<Demand> {
    Vec::new()
}

/// For a kind that needs nothing in our own namespace.
pub const fn no_rules() -> Vec<PolicyRule> {
    Vec::new()
}

impl Kind {
    /// The definition, for callers to which it does not matter where objects are converted.
    pub fn definition(&self) -> CustomResourceDefinition {
        (self.crd)(&WebhookClientConfig::default())
    }

    /// Whether its objects lie in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.definition().spec.scope == "Namespaced"
    }

    /// Every served version with the kind, as manifests write them: `apiVersion`, a space, `kind`.
    pub fn types(&self) -> Vec<String> {
        let spec = self.definition().spec;
        let served = spec.versions.iter().filter(|version| version.served);
        served.map(|version| format!("{}/{} {}", spec.group, version.name, spec.names.kind)).collect()
    }
}
