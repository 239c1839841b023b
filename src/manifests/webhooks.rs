//! The webhook configurations, from the registry.

use std::collections::BTreeSet;

use admission::Registry;
use admission::registry::{self, MatchPolicy, Namespaces, Phase, Rule, Scope};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as conversion;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::{Value, json};

use crate::manifests::metadata;
use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, SERVICE, VALIDATING};
use crate::server::webhooks::CONVERT_PATH;
use engine::demand::Demand;
use engine::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use engine::snapshot::EXCLUDE_LABEL;
use engine::snapshot::Exclusion;

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
        let hook = |entry: &admission::registry::Entry<W>| Self {
            phase: entry.phase,
            rule: entry.rule,
            path: entry.path.clone(),
        };
        registry.entries().iter().map(hook).collect()
    }

    /// Names of the definitions of which one must be there for there to be something to ask about; none where nothing must.
    pub fn definitions(&self) -> Vec<String> {
        let named = self.rule.definitions.iter().map(|&name| name.to_owned());
        let own = self.rule.resources.iter().filter(|served| is_defined(served.group));
        named.chain(own.map(|served| format!("{}.{}", served.parts().0, served.group))).collect()
    }

    /// Whether it is to be registered, with these definitions missing.
    pub fn is_wanted(&self, missing: &BTreeSet<String>) -> bool {
        let definitions = self.definitions();
        definitions.is_empty() || definitions.iter().any(|name| !missing.contains(name))
    }
}

/// What the API server does with a pod when nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// Refuse it: a missing sidecar is often a missing control.
    #[default]
    Fail,
    /// Let it pass.
    Ignore,
}

impl FailurePolicy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// Where the API server reaches us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The Service in this namespace.
    Service {
        /// The namespace.
        namespace: String,
    },
    /// An address, for a process outside the cluster.
    Url {
        /// Scheme, host and port, without a slash at the end.
        base: String,
    },
}

/// What the configurations depend on beside the registry.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// Where the API server reaches us.
    pub target: Target,
    /// Whom the API server trusts there, as PEM. Absent in files: the caBundle has an owner of its own.
    pub ca_bundle: Option<&'a str>,
    /// Namespaces whose pods are left alone.
    pub exclusion: &'a Exclusion,
    /// For pods. Our own kinds are always `Fail`: nothing in a cluster waits for them.
    pub pod_failure_policy: FailurePolicy,
}

impl Target {
    /// How the API server calls the conversion of our kinds, and whom it trusts there, as PEM.
    pub fn converter(&self, ca_bundle: Option<&str>) -> conversion::WebhookClientConfig {
        let WebhookClientConfig { ca_bundle, service, url } = self.client_config(ca_bundle, CONVERT_PATH);
        let service = service.map(|ServiceReference { name, namespace, path, port }| conversion::ServiceReference {
            name,
            namespace,
            path,
            port,
        });
        conversion::WebhookClientConfig { ca_bundle, service, url }
    }

    fn client_config(&self, ca_bundle: Option<&str>, path: &str) -> WebhookClientConfig {
        let ca_bundle = ca_bundle.map(|pem| ByteString(pem.as_bytes().to_vec()));
        match self {
            Self::Service { namespace } => WebhookClientConfig {
                service: Some(ServiceReference {
                    name: SERVICE.to_owned(),
                    namespace: namespace.clone(),
                    path: Some(path.to_owned()),
                    port: Some(443),
                }),
                ca_bundle,
                url: None,
            },
            Self::Url { base } => WebhookClientConfig { url: Some(format!("{base}{path}")), ca_bundle, service: None },
        }
    }
}

impl Settings<'_> {
    /// How the API server calls the conversion of our kinds.
    pub fn converter(&self) -> conversion::WebhookClientConfig {
        self.target.converter(self.ca_bundle)
    }

    fn client_config(&self, path: &str) -> WebhookClientConfig {
        self.target.client_config(self.ca_bundle, path)
    }

    fn failure_policy(&self, rule: &Rule) -> String {
        let policy = match rule.failure_policy {
            registry::FailurePolicy::Chosen => self.pod_failure_policy,
            registry::FailurePolicy::Fail => FailurePolicy::Fail,
            registry::FailurePolicy::Ignore => FailurePolicy::Ignore,
        };
        policy.as_str().to_owned()
    }

    fn namespace_selector(&self, rule: &Rule) -> Option<LabelSelector> {
        (rule.namespaces == Namespaces::NotExcluded).then(|| {
            let names = self.exclusion.namespaces.iter().cloned().collect();
            let by_name = requirement(NAMESPACE_NAME_LABEL, "NotIn", Some(names));
            let by_label = requirement(EXCLUDE_LABEL, "DoesNotExist", None);
            LabelSelector { match_expressions: Some(vec![by_name, by_label]), match_labels: None }
        })
    }
}

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

/// The `MutatingWebhookConfiguration`. Entries that exist on demand are not in it.
pub fn mutating(hooks: &[WebhookEntry], settings: &Settings<'_>) -> MutatingWebhookConfiguration {
    let webhooks = always(hooks, Phase::Mutating).map(|hook| mutating_entry(hook, settings)).collect();
    MutatingWebhookConfiguration { metadata: metadata(MUTATING), webhooks: Some(webhooks) }
}

/// The `ValidatingWebhookConfiguration`. Entries that exist on demand are not in it.
pub fn validating(hooks: &[WebhookEntry], settings: &Settings<'_>) -> ValidatingWebhookConfiguration {
    let webhooks = always(hooks, Phase::Validating).map(|hook| validating_entry(hook, settings)).collect();
    ValidatingWebhookConfiguration { metadata: metadata(VALIDATING), webhooks: Some(webhooks) }
}

/// The on-demand configurations without entries, which are the leader's.
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
    let hook = WebhookEntry { phase: *phase, path: rule.path(*phase), rule };
    let mut exclusion = settings.exclusion.clone();
    exclusion.namespaces.extend(demand.excluded_namespaces.iter().cloned());
    let settings = Settings { exclusion: &exclusion, ..settings.clone() };
    let mut entry = match phase {
        Phase::Mutating => json!(mutating_entry(&hook, &settings)),
        Phase::Validating => json!(validating_entry(&hook, &settings)),
    };
    entry["name"] = demand.name.as_str().into();
    let own = demand.match_conditions.iter().map(|(name, expression)| json!({"name": name, "expression": expression}));
    let conditions: Vec<Value> =
        match_conditions(&hook.rule).iter().flatten().map(|one| json!(one)).chain(own).collect();
    if !conditions.is_empty() {
        entry["matchConditions"] = conditions.into();
    }
    entry
}

fn always(hooks: &[WebhookEntry], phase: Phase) -> impl Iterator<Item = &WebhookEntry> {
    hooks.iter().filter(move |hook| hook.phase == phase && !hook.rule.on_demand)
}

fn mutating_entry(hook: &WebhookEntry, settings: &Settings<'_>) -> MutatingWebhook {
    MutatingWebhook {
        name: hook.rule.name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: settings.client_config(&hook.path),
        failure_policy: Some(settings.failure_policy(&hook.rule)),
        match_policy: Some(match_policy(&hook.rule)),
        namespace_selector: settings.namespace_selector(&hook.rule),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        match_conditions: match_conditions(&hook.rule),
        rules: Some(rules(&hook.rule)),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(i32::from(hook.rule.timeout_seconds)),
        ..MutatingWebhook::default()
    }
}

fn validating_entry(hook: &WebhookEntry, settings: &Settings<'_>) -> ValidatingWebhook {
    ValidatingWebhook {
        name: hook.rule.name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: settings.client_config(&hook.path),
        failure_policy: Some(settings.failure_policy(&hook.rule)),
        match_policy: Some(match_policy(&hook.rule)),
        namespace_selector: settings.namespace_selector(&hook.rule),
        match_conditions: match_conditions(&hook.rule),
        rules: Some(rules(&hook.rule)),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(i32::from(hook.rule.timeout_seconds)),
        ..ValidatingWebhook::default()
    }
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
mod tests {
    use admission::Operation;
    use admission::registry::Resource;

    use super::*;

    fn hook(phase: Phase, group: &'static str) -> WebhookEntry {
        let resources = vec![Resource { group, version: "v1", resource: "things", kind: "Thing" }].leak();
        let rule = Rule::new("thing.example.com", resources, &[Operation::Create, Operation::Update]);
        let ours =
            Rule { failure_policy: registry::FailurePolicy::Chosen, namespaces: Namespaces::NotExcluded, ..rule };
        let rule = if group.is_empty() { ours } else { rule };
        WebhookEntry { phase, path: rule.path(phase), rule }
    }

    fn exclusion() -> Exclusion {
        Exclusion::new("outrider-system", ["cert-manager".to_owned()])
    }

    #[test]
    fn core_objects_are_left_alone_where_a_cluster_lives_and_own_kinds_are_not() {
        let exclusion = exclusion();
        let settings = Settings {
            target: Target::Service { namespace: "outrider-system".to_owned() },
            ca_bundle: None,
            exclusion: &exclusion,
            pod_failure_policy: FailurePolicy::Ignore,
        };
        let hooks = [hook(Phase::Mutating, ""), hook(Phase::Mutating, "example.com"), hook(Phase::Validating, "")];
        let configuration = json!(mutating(&hooks, &settings));
        let webhooks = configuration["webhooks"].as_array().unwrap();
        assert_eq!(webhooks.len(), 2);
        let selector = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values":
                ["cert-manager", "kube-node-lease", "kube-public", "kube-system", "outrider-system"]},
            {"key": "outrider.dev/exclude", "operator": "DoesNotExist"},
        ]});
        assert_eq!((&webhooks[0]["namespaceSelector"], &webhooks[0]["failurePolicy"]), (&selector, &json!("Ignore")));
        assert_eq!((webhooks[1].get("namespaceSelector"), &webhooks[1]["failurePolicy"]), (None, &json!("Fail")));
        assert_eq!(
            webhooks[1]["clientConfig"],
            json!({"service": {"name": "outrider-webhook", "namespace": "outrider-system", "port": 443,
                "path": "/mutate-example-com-v1-thing"}})
        );
        assert_eq!(
            webhooks[1]["rules"],
            json!([{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["things"], "scope": "Namespaced"}])
        );
    }

    #[test]
    fn there_is_nothing_to_ask_about_without_the_definition_of_the_kind_and_for_pods_that_of_the_sets() {
        let all = WebhookEntry::all(&crate::registry::registry(&crate::kinds::Kinds::default()));
        let of_pods = all.iter().find(|hook| hook.rule.name == "pod.outrider.dev").unwrap();
        assert_eq!(of_pods.definitions(), ["sidecarsets.apps.outrider.dev"]);
        let ours = hook(Phase::Mutating, "example.com");
        assert_eq!(ours.definitions(), ["things.example.com"]);
        let missing = BTreeSet::from(["sidecarsets.apps.outrider.dev".to_owned()]);
        assert_eq!((of_pods.is_wanted(&missing), ours.is_wanted(&missing)), (false, true));
        // Kubernetes' own resources have no definition.
        assert!(hook(Phase::Mutating, "").is_wanted(&missing));
    }

    #[test]
    fn an_entry_says_all_that_its_rule_says() {
        const SEVERAL: &[Resource] = &[
            Resource { group: "", version: "v1", resource: "services", kind: "Service" },
            Resource { group: "events.k8s.io", version: "v1", resource: "events", kind: "Event" },
            Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" },
        ];
        let rule = Rule {
            scope: Scope::Any,
            match_policy: MatchPolicy::Exact,
            failure_policy: registry::FailurePolicy::Ignore,
            timeout_seconds: 3,
            match_conditions: &[registry::MatchCondition { name: "a", expression: "true" }],
            ..Rule::new("several.example.com", SEVERAL, &[Operation::Update, Operation::Delete])
        };
        let hook = WebhookEntry { phase: Phase::Validating, path: rule.path(Phase::Validating), rule };
        let exclusion = exclusion();
        let settings = Settings {
            target: Target::Url { base: String::new() },
            ca_bundle: None,
            exclusion: &exclusion,
            pod_failure_policy: FailurePolicy::Fail,
        };
        let entry = json!(validating(&[hook], &settings))["webhooks"][0].clone();
        let operations = json!(["UPDATE", "DELETE"]);
        assert_eq!(
            entry["rules"],
            json!([
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "scope": "*",
                    "resources": ["services", "pods/ephemeralcontainers"]},
                {"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": operations, "scope": "*",
                    "resources": ["events"]},
            ])
        );
        assert_eq!(
            json!([entry["failurePolicy"], entry["timeoutSeconds"], entry["matchConditions"], entry["matchPolicy"]]),
            json!(["Ignore", 3, [{"name": "a", "expression": "true"}], "Exact"])
        );
        assert_eq!(
            (&entry["clientConfig"]["url"], entry.get("namespaceSelector")),
            (&json!("/validate--v1-service"), None)
        );
    }

    #[test]
    fn a_process_outside_the_cluster_is_reached_by_its_url_and_its_bundle() {
        let exclusion = exclusion();
        let settings = Settings {
            target: Target::Url { base: "https://127.0.0.1:9443".to_owned() },
            ca_bundle: Some("pem"),
            exclusion: &exclusion,
            pod_failure_policy: FailurePolicy::Fail,
        };
        let configuration = json!(validating(&[hook(Phase::Validating, "")], &settings));
        assert_eq!(
            configuration["webhooks"][0]["clientConfig"],
            json!({"url": "https://127.0.0.1:9443/validate--v1-thing", "caBundle": "cGVt"})
        );
    }
}
