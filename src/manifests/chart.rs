//! What the templates of the Helm chart cannot know by themselves: definitions, rules, roles of people, policies and webhooks, one
//! file for what is always there and one for each kind that can be off.

use std::iter;

use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::kinds::{Kinds, product, workshop};
use crate::manifests::guard::{ACTIONS, Guard};
use crate::manifests::rbac::Rbac;
use crate::manifests::user_roles::user_roles;
use crate::manifests::webhooks::{PodFailurePolicy, Settings, WebhookEntry, WebhookTarget, mutating, validating};
use crate::names::APP;
use crate::registry::registry;
use engine::snapshot::Exclusion;

/// The templates put the namespace of the release in its place.
const NAMESPACE: &str = "outrider-system";

/// The files by their path in the chart.
pub fn files() -> Vec<(String, Value)> {
    let exclusion = Exclusion::new(NAMESPACE, []);
    let settings = Settings {
        target: WebhookTarget::Service { namespace: NAMESPACE.to_owned() },
        ca_bundle: None,
        exclusion: &exclusion,
        pod_failure_policy: PodFailurePolicy::Fail,
    };
    let none = Part::of(&Kinds::default());
    let definition = |kind: &Kind| json!((kind.crd)(&settings.converter()));
    let kinds = workshop().map(|kind| {
        let own = Part::of(&Kinds::default().with(kind)).without(&none);
        (format!("files/kinds/{}.yaml", kind.name), own.file(&[definition(kind)], &settings))
    });
    let definitions: Vec<Value> = product().map(definition).collect();
    let mut always = none.file(&definitions, &settings);
    always["policies"] = Guard::all(APP, NAMESPACE, APP, &[]).iter().map(policy).collect();
    iter::once(("files/always.yaml".to_owned(), always)).chain(kinds).collect()
}

/// A policy without what the release gives it: the beginning of its name.
fn policy(guard: &Guard) -> Value {
    json!({"name": suffix(&guard.name), "spec": guard.spec, "binding": {"validationActions": ACTIONS}})
}

fn suffix(name: &str) -> &str {
    name.strip_prefix(APP).unwrap_or(name).trim_start_matches('-')
}

/// What a deployment needs.
struct Part {
    rules: Vec<Value>,
    roles: Vec<ClusterRole>,
    entries: Vec<WebhookEntry>,
}

impl Part {
    fn of(kinds: &Kinds) -> Self {
        let rules = Rbac::of(NAMESPACE, kinds, None).cluster_role.rules.unwrap_or_default();
        Self {
            rules: rules.iter().map(|rule| json!(rule)).collect(),
            roles: user_roles(kinds),
            entries: WebhookEntry::all(&registry(kinds)),
        }
    }

    fn without(mut self, other: &Self) -> Self {
        self.rules.retain(|rule| !other.rules.contains(rule));
        self.roles.retain(|role| !other.roles.contains(role));
        self.entries.retain(|entry| !other.entries.contains(entry));
        self
    }

    fn file(&self, definitions: &[Value], settings: &Settings<'_>) -> Value {
        json!({
            "definitions": definitions,
            "rules": self.rules,
            "userRoles": self.roles.iter().map(user_role).collect::<Vec<_>>(),
            "mutating": mutating(&self.entries, settings).webhooks,
            "validating": validating(&self.entries, settings).webhooks,
        })
    }
}

/// A role without what the release gives it: the beginning of its name, and the labels that all its objects have.
fn user_role(role: &ClusterRole) -> Value {
    let name = role.metadata.name.as_deref().unwrap_or_default();
    let labels = role.metadata.labels.iter().flatten();
    let own: serde_json::Map<String, Value> = labels
        .filter(|(label, _)| label.starts_with("rbac.authorization.k8s.io/"))
        .map(|(label, value)| (label.clone(), json!(value)))
        .collect();
    json!({"name": suffix(name), "labels": own, "rules": role.rules})
}
