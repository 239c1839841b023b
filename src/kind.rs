//! What the rest of the process knows of a kind: a row of the table of kinds.

use admission::Registry;
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};
use kube::api::{ApiResource, GroupVersionKind};

use crate::controller::Context;
use crate::permissions::applied;
use engine::demand::Demand;
use engine::pod::stages::Stage;
use engine::sidecarset::api::Condition;
use engine::snapshot::Snapshot;

/// Starts a controller. It works until the term of its context ends.
pub type Start = fn(Context) -> BoxFuture<'static, ()>;

/// What a condition of an object says is wrong, and what to do about it; none where nothing is.
pub type Diagnosis = fn(&Condition) -> Option<(String, &'static str)>;

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

/// A resource: its API group, empty for the core group, and its plural in URLs.
pub type GroupPlural = (&'static str, &'static str);

/// A kind: from this are made the router, the manifests, the parts of the chart, and the manager.
#[derive(Debug)]
pub struct Kind {
    /// As `--enable-kinds` and `--controllers` take it: the kind in lower case.
    pub name: &'static str,
    /// Whether it can be off.
    pub family: Family,
    /// Whether a cluster may be without its definition (`plugins.enabled` of the chart is false): then there are no objects.
    pub is_optional: bool,
    /// The definition, which says also whether objects have a namespace. The argument is where the API server finds the conversion of
    /// kinds with several versions.
    pub crd: fn(&WebhookClientConfig) -> CustomResourceDefinition,
    /// What the process may do for the kind in the whole cluster, beside what follows from `keeps`.
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
    /// What every replica watches for decisions, some of it only while an accepted object reads it. What the leader's controller watches
    /// in addition is said where it begins to: a test compares both with `rules`.
    pub watches: &'static [GroupPlural],
    /// The objects that its controller keeps by server-side apply. That it may watch and apply them follows.
    pub keeps: &'static [GroupPlural],
    /// How `outrider doctor` examines the conditions of its objects; without it, no object is read.
    pub diagnosis: Option<Diagnosis>,
    /// Who may edit its objects.
    pub editors: Editors,
    /// Its files in `config/samples`.
    pub samples: &'static [&'static str],
}

impl Kind {
    /// A kind that has a definition and nothing else, for a row to say what it has in addition. Its editors are named: who else may
    /// edit its objects is to be decided.
    pub const fn new(
        name: &'static str,
        family: Family,
        crd: fn(&WebhookClientConfig) -> CustomResourceDefinition,
    ) -> Self {
        Self {
            name,
            family,
            is_optional: false,
            crd,
            rules: Vec::new,
            namespace_rules: Vec::new,
            webhooks: |registry| registry,
            stages: &[],
            demands: |_| Vec::new(),
            controller: None,
            watches: &[],
            keeps: &[],
            diagnosis: None,
            editors: Editors::Named,
            samples: &[],
        }
    }

    /// What the process may do for the kind in the whole cluster.
    pub fn cluster_rules(&self) -> Vec<PolicyRule> {
        let mut rules = (self.rules)();
        rules.extend(self.keeps.iter().map(|(group, plural)| applied(group, plural)));
        rules
    }

    /// The definition, for callers to which it does not matter where objects are converted.
    pub fn definition(&self) -> CustomResourceDefinition {
        (self.crd)(&WebhookClientConfig::default())
    }

    /// Its objects, in the version that is stored.
    pub fn api_resource(&self) -> ApiResource {
        let spec = self.definition().spec;
        let stored = spec.versions.iter().find(|version| version.storage).map_or("", |version| &version.name);
        let of_kind = GroupVersionKind::gvk(&spec.group, stored, &spec.names.kind);
        ApiResource::from_gvk_with_plural(&of_kind, &spec.names.plural)
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
