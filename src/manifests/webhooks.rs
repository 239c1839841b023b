//! The webhook configurations, from the registry.

mod settings;

use std::collections::BTreeSet;

use admission::Registry;
use admission::registry::{self, MatchPolicy, Phase, Rule, Scope};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration,
};
use serde_json::{Value, json};

use self::settings::requirement_of;
pub use self::settings::{PodFailurePolicy, Settings, WebhookTarget};
use crate::manifests::metadata;
use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};
use engine::demand::Demand;

/// Whether resources of the group have definitions: Kubernetes' own groups have no dot, or end in `.k8s.io`.
fn is_defined(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// An entry of the registry as far as the API server is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEntry {
    /// When it is called.
    pub phase: Phase,
    /// What it is called for.
    pub rule: Rule,
    /// Where it is called.
    pub path: String,
}

impl WebhookEntry {
    /// The entries of a registry, in its order.
    pub fn all<W: 'static>(registry: &Registry<W>) -> Vec<Self> {
        let webhook = |entry: &admission::registry::Entry<W>| Self {
            phase: entry.phase,
            rule: entry.rule,
            path: entry.path.clone(),
        };
        registry.entries().iter().map(webhook).collect()
    }

    /// Names of the definitions of which one must exist for the entry to have something to serve; empty where none is needed.
    pub fn definitions(&self) -> Vec<String> {
        let named = self.rule.definitions.iter().map(|&name| name.to_owned());
        let own = self.rule.resources.iter().filter(|served| is_defined(served.group));
        named.chain(own.map(|served| format!("{}.{}", served.parts().0, served.group))).collect()
    }

    /// Whether it is to be registered, while these definitions are missing.
    pub fn is_wanted(&self, missing: &BTreeSet<String>) -> bool {
        let definitions = self.definitions();
        definitions.is_empty() || definitions.iter().any(|name| !missing.contains(name))
    }
}

/// The `MutatingWebhookConfiguration`. Entries that exist on demand are not in it.
pub fn mutating(entries: &[WebhookEntry], settings: &Settings<'_>) -> MutatingWebhookConfiguration {
    let webhooks = always(entries, Phase::Mutating).map(|webhook| mutating_entry(webhook, settings)).collect();
    MutatingWebhookConfiguration { metadata: metadata(MUTATING), webhooks: Some(webhooks) }
}

/// The `ValidatingWebhookConfiguration`. Entries that exist on demand are not in it.
pub fn validating(entries: &[WebhookEntry], settings: &Settings<'_>) -> ValidatingWebhookConfiguration {
    let webhooks = always(entries, Phase::Validating).map(|webhook| validating_entry(webhook, settings)).collect();
    ValidatingWebhookConfiguration { metadata: metadata(VALIDATING), webhooks: Some(webhooks) }
}

/// The on-demand configurations without entries, which the leader writes.
pub fn on_demand() -> (MutatingWebhookConfiguration, ValidatingWebhookConfiguration) {
    (
        MutatingWebhookConfiguration { metadata: metadata(ON_DEMAND_MUTATING), webhooks: None },
        ValidatingWebhookConfiguration { metadata: metadata(ON_DEMAND_VALIDATING), webhooks: None },
    )
}

/// The entry of an on-demand configuration.
pub fn demanded(demand: &Demand, settings: &Settings<'_>) -> Value {
    let Demand { phase, rule, .. } = demand;
    let rule = Rule { failure_policy: demand.failure_policy, timeout_seconds: demand.timeout_seconds, ..*rule };
    let webhook = WebhookEntry { phase: *phase, path: rule.path(*phase), rule };
    let mut exclusion = settings.exclusion.clone();
    exclusion.namespaces.extend(demand.excluded_namespaces.iter().cloned());
    let settings = Settings { exclusion: &exclusion, ..settings.clone() };
    let mut entry = match phase {
        Phase::Mutating => json!(mutating_entry(&webhook, &settings)),
        Phase::Validating => json!(validating_entry(&webhook, &settings)),
    };
    entry["name"] = demand.name.as_str().into();
    if let Some(namespaces) = &demand.namespaces {
        let more = namespaces.requirements().iter().map(|one| json!(requirement_of(one)));
        if let Some(terms) = entry.pointer_mut("/namespaceSelector/matchExpressions").and_then(Value::as_array_mut) {
            terms.extend(more);
        }
    }
    let own = demand.match_conditions.iter().map(|(name, expression)| json!({"name": name, "expression": expression}));
    let conditions: Vec<Value> =
        match_conditions(&webhook.rule).iter().flatten().map(|one| json!(one)).chain(own).collect();
    if !conditions.is_empty() {
        entry["matchConditions"] = conditions.into();
    }
    entry
}

fn always(entries: &[WebhookEntry], phase: Phase) -> impl Iterator<Item = &WebhookEntry> {
    entries.iter().filter(move |webhook| webhook.phase == phase && !webhook.rule.on_demand)
}

/// An entry of one of the two types, which differ in the fields named.
macro_rules! entry {
    ($type:ident, $webhook:expr, $settings:expr $(, $field:ident: $value:expr)*) => {
        $type {
            name: $webhook.rule.name.to_owned(),
            admission_review_versions: vec!["v1".to_owned()],
            client_config: $settings.client_config(&$webhook.path),
            failure_policy: Some($settings.failure_policy(&$webhook.rule)),
            match_policy: Some(match_policy(&$webhook.rule)),
            namespace_selector: $settings.namespace_selector(&$webhook.rule),
            match_conditions: match_conditions(&$webhook.rule),
            rules: Some(rules(&$webhook.rule)),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(i32::from($webhook.rule.timeout_seconds)),
            $($field: $value,)*
            ..$type::default()
        }
    };
}

fn mutating_entry(webhook: &WebhookEntry, settings: &Settings<'_>) -> MutatingWebhook {
    entry!(MutatingWebhook, webhook, settings, reinvocation_policy: Some("IfNeeded".to_owned()))
}

fn validating_entry(webhook: &WebhookEntry, settings: &Settings<'_>) -> ValidatingWebhook {
    entry!(ValidatingWebhook, webhook, settings)
}

fn match_policy(rule: &Rule) -> String {
    match rule.match_policy {
        MatchPolicy::Exact => "Exact",
        MatchPolicy::Equivalent => "Equivalent",
    }
    .to_owned()
}

/// The rules of an entry: resources of one group and version share one.
fn rules(rule: &Rule) -> Vec<RuleWithOperations> {
    let scope = match rule.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
        Scope::Any => "*",
    };
    let mut rules: Vec<((&str, &str), Vec<String>)> = Vec::new();
    for served in rule.resources {
        let (place, name) = ((served.group, served.version), served.resource.to_owned());
        match rules.iter_mut().find(|(known, _)| *known == place) {
            Some((_, resources)) => resources.push(name),
            None => rules.push((place, vec![name])),
        }
    }
    let of_group = |((group, version), resources): ((&str, &str), Vec<String>)| RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![version.to_owned()]),
        operations: Some(rule.operations.iter().map(|operation| operation.as_str().to_owned()).collect()),
        resources: Some(resources),
        scope: Some(scope.to_owned()),
    };
    rules.into_iter().map(of_group).collect()
}

fn match_conditions(rule: &Rule) -> Option<Vec<MatchCondition>> {
    let condition = |condition: &registry::MatchCondition| MatchCondition {
        name: condition.name.to_owned(),
        expression: condition.expression.to_owned(),
    };
    Some(rule.match_conditions.iter().map(condition).collect()).filter(|conditions: &Vec<_>| !conditions.is_empty())
}

#[cfg(test)]
mod tests;
