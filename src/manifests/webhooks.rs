//! The webhook configurations, from the registry.

use admission::Registry;
use admission::registry::{MatchPolicy, Phase, Rule, Scope};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as conversion;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::manifests::metadata;
use crate::names::{MUTATING, SERVICE, VALIDATING};
use crate::server::webhooks::CONVERT_PATH;
use engine::sidecarset::api::{GROUP, PLURAL};
use engine::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use engine::snapshot::EXCLUDE_LABEL;
use engine::snapshot::Exclusion;

/// The longest that anybody should wait for us; the API server's own default.
const TIMEOUT_SECONDS: i32 = 10;

/// An entry of the registry as far as the API server is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// When it is called.
    pub phase: Phase,
    /// What it is called for.
    pub rule: Rule,
    /// Where it is called.
    pub path: String,
}

impl Hook {
    /// The entries of a registry, in its order.
    pub fn all<W: 'static>(registry: &Registry<W>) -> Vec<Self> {
        let hook = |entry: &admission::registry::Entry<W>| Self {
            phase: entry.phase,
            rule: entry.rule.clone(),
            path: entry.path.clone(),
        };
        registry.entries().iter().map(hook).collect()
    }

    /// Name of the definition without which there is nothing to ask about: its kind's own, and for pods that of the sets.
    pub fn definition(&self) -> String {
        let Rule { group, resource, .. } = &self.rule;
        if is_core(&self.rule) { format!("{PLURAL}.{GROUP}") } else { format!("{resource}.{group}") }
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
        let policy = if is_core(rule) { self.pod_failure_policy } else { FailurePolicy::Fail };
        policy.as_str().to_owned()
    }

    /// Only for objects of the core group: they are what keeps a cluster alive.
    fn namespace_selector(&self, rule: &Rule) -> Option<LabelSelector> {
        is_core(rule).then(|| {
            let names = self.exclusion.namespaces.iter().cloned().collect();
            let by_name = requirement(NAMESPACE_NAME_LABEL, "NotIn", Some(names));
            let by_label = requirement(EXCLUDE_LABEL, "DoesNotExist", None);
            LabelSelector { match_expressions: Some(vec![by_name, by_label]), match_labels: None }
        })
    }
}

fn is_core(rule: &Rule) -> bool {
    rule.group.is_empty()
}

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

/// The `MutatingWebhookConfiguration`.
pub fn mutating(hooks: &[Hook], settings: &Settings<'_>) -> MutatingWebhookConfiguration {
    let webhook = |hook: &Hook| MutatingWebhook {
        name: hook.rule.name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: settings.client_config(&hook.path),
        failure_policy: Some(settings.failure_policy(&hook.rule)),
        match_policy: Some(match_policy(&hook.rule)),
        namespace_selector: settings.namespace_selector(&hook.rule),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        rules: Some(vec![rule(&hook.rule)]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        ..MutatingWebhook::default()
    };
    let webhooks = hooks.iter().filter(|hook| hook.phase == Phase::Mutating).map(webhook).collect();
    MutatingWebhookConfiguration { metadata: metadata(MUTATING), webhooks: Some(webhooks) }
}

/// The `ValidatingWebhookConfiguration`.
pub fn validating(hooks: &[Hook], settings: &Settings<'_>) -> ValidatingWebhookConfiguration {
    let webhook = |hook: &Hook| ValidatingWebhook {
        name: hook.rule.name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: settings.client_config(&hook.path),
        failure_policy: Some(settings.failure_policy(&hook.rule)),
        match_policy: Some(match_policy(&hook.rule)),
        namespace_selector: settings.namespace_selector(&hook.rule),
        rules: Some(vec![rule(&hook.rule)]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        ..ValidatingWebhook::default()
    };
    let webhooks = hooks.iter().filter(|hook| hook.phase == Phase::Validating).map(webhook).collect();
    ValidatingWebhookConfiguration { metadata: metadata(VALIDATING), webhooks: Some(webhooks) }
}

fn match_policy(rule: &Rule) -> String {
    match rule.match_policy {
        MatchPolicy::Exact => "Exact",
        MatchPolicy::Equivalent => "Equivalent",
    }
    .to_owned()
}

fn rule(rule: &Rule) -> RuleWithOperations {
    let scope = match rule.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    RuleWithOperations {
        api_groups: Some(vec![rule.group.to_owned()]),
        api_versions: Some(vec![rule.version.to_owned()]),
        operations: Some(rule.operations.iter().map(|operation| operation.as_str().to_owned()).collect()),
        resources: Some(vec![rule.resource.to_owned()]),
        scope: Some(scope.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use admission::Operation;
    use serde_json::json;

    use super::*;

    fn hook(phase: Phase, group: &'static str) -> Hook {
        let rule = Rule {
            group,
            version: "v1",
            kind: "Thing",
            resource: "things",
            scope: Scope::Namespaced,
            operations: &[Operation::Create, Operation::Update],
            match_policy: MatchPolicy::Exact,
            name: "thing.example.com",
        };
        Hook { phase, path: rule.path(phase), rule }
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
        let named = ["", "example.com"].map(|group| hook(Phase::Mutating, group).definition());
        assert_eq!(named, ["sidecarsets.apps.outrider.dev", "things.example.com"]);
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
