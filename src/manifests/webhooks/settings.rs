//! What webhook configurations depend on beside the registry.

use admission::format::selector::Requirement;
use admission::registry::{self, Namespaces, Rule};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as conversion;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::names::SERVICE;
use crate::server::webhooks::CONVERT_PATH;
use engine::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use engine::snapshot::EXCLUDE_LABEL;
use engine::snapshot::Exclusion;

/// What the API server does with a pod when no replica answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PodFailurePolicy {
    /// Refuse it: a missing sidecar is often a missing control.
    #[default]
    Fail,
    /// Let it pass.
    Ignore,
}

impl PodFailurePolicy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// Where the API server reaches us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookTarget {
    /// The Service in this namespace.
    Service {
        /// That of the Deployment.
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
    pub target: WebhookTarget,
    /// The authorities that the API server trusts there, as PEM. Absent in files: the caBundle has another owner.
    pub ca_bundle: Option<&'a str>,
    /// Namespaces without injection.
    pub exclusion: &'a Exclusion,
    /// For pods. Our own kinds are always `Fail`: nothing in a cluster waits for them.
    pub pod_failure_policy: PodFailurePolicy,
}

impl WebhookTarget {
    /// How the API server calls the conversion of our kinds; it trusts the authorities in `ca_bundle`, which is PEM.
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

    pub(super) fn client_config(&self, path: &str) -> WebhookClientConfig {
        self.target.client_config(self.ca_bundle, path)
    }

    pub(super) fn failure_policy(&self, rule: &Rule) -> String {
        let policy = match rule.failure_policy {
            registry::FailurePolicy::Chosen => self.pod_failure_policy,
            registry::FailurePolicy::Fail => PodFailurePolicy::Fail,
            registry::FailurePolicy::Ignore => PodFailurePolicy::Ignore,
        };
        policy.as_str().to_owned()
    }

    pub(super) fn namespace_selector(&self, rule: &Rule) -> Option<LabelSelector> {
        (rule.namespaces == Namespaces::NotExcluded).then(|| {
            let names = self.exclusion.namespaces.iter().cloned().collect();
            let by_name = requirement(NAMESPACE_NAME_LABEL, "NotIn", Some(names));
            let by_label = requirement(EXCLUDE_LABEL, "DoesNotExist", None);
            LabelSelector { match_expressions: Some(vec![by_name, by_label]), match_labels: None }
        })
    }
}

/// The term of a selector for this condition.
pub(super) fn requirement_of(condition: &Requirement) -> LabelSelectorRequirement {
    match condition {
        Requirement::In(key, values) => requirement(key, "In", Some(values.clone())),
        Requirement::NotIn(key, values) => requirement(key, "NotIn", Some(values.clone())),
        Requirement::Exists(key) => requirement(key, "Exists", None),
        Requirement::DoesNotExist(key) => requirement(key, "DoesNotExist", None),
    }
}

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}
