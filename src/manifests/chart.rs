//! What the templates of the Helm chart cannot know by themselves: definitions, rules and webhooks, one file for what is always
//! there and one for each kind that can be off.

use std::iter;

use serde_json::{Value, json};

use crate::manifests::rbac::Rbac;
use crate::manifests::webhooks::{FailurePolicy, Hook, Settings, Target, mutating, validating};
use crate::registry::registry;
use crate::sidecarset::crd;
use crate::workshop::{KINDS, Kinds};
use crate::world::Exclusion;

/// The templates put the namespace of the release in its place.
const NAMESPACE: &str = "outrider-system";

/// The files by their path in the chart.
pub fn files() -> Vec<(String, Value)> {
    let exclusion = Exclusion::new(NAMESPACE, []);
    let settings = Settings {
        target: Target::Service { namespace: NAMESPACE.to_owned() },
        ca_bundle: None,
        exclusion: &exclusion,
        pod_failure_policy: FailurePolicy::Fail,
    };
    let none = Part::of(&Kinds::default());
    let kinds = KINDS.iter().map(|kind| {
        let own = Part::of(&Kinds::only(kind)).without(&none);
        (format!("files/kinds/{}.yaml", kind.name), own.file(&json!((kind.crd)(&settings.converter())), &settings))
    });
    iter::once(("files/always.yaml".to_owned(), none.file(&json!(crd::sidecarset()), &settings))).chain(kinds).collect()
}

/// What a deployment needs.
struct Part {
    rules: Vec<Value>,
    hooks: Vec<Hook>,
}

impl Part {
    fn of(kinds: &Kinds) -> Self {
        let rules = Rbac::of(NAMESPACE, kinds, None).cluster_role.rules.unwrap_or_default();
        Self { rules: rules.iter().map(|rule| json!(rule)).collect(), hooks: Hook::all(&registry(kinds)) }
    }

    fn without(mut self, other: &Self) -> Self {
        self.rules.retain(|rule| !other.rules.contains(rule));
        self.hooks.retain(|hook| !other.hooks.contains(hook));
        self
    }

    fn file(&self, definition: &Value, settings: &Settings<'_>) -> Value {
        json!({
            "definitions": [definition],
            "rules": self.rules,
            "mutating": mutating(&self.hooks, settings).webhooks,
            "validating": validating(&self.hooks, settings).webhooks,
        })
    }
}
