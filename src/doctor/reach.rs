//! The requests for which a webhook is called.

use std::collections::BTreeMap;

use admission::format::LabelSelector;
use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde_json::json;

use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::Facts;

type Labels = BTreeMap<String, String>;

/// The requests for which a webhook is called, as far as a cluster depends on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Whether pods are among it, in whatever namespace.
    pub pods: bool,
    /// What a cluster needs to come back to life, in words.
    pub vital: Vec<String>,
    /// Every resource of every group.
    pub everything: bool,
}

/// A kind of request.
struct VitalRequest {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    operations: &'static [&'static str],
    scope: &'static str,
}

const POD: VitalRequest =
    VitalRequest { group: "", version: "v1", resource: "pods", operations: &["CREATE"], scope: "Namespaced" };
/// A node that cannot register or report takes no pods.
const NODE: VitalRequest =
    VitalRequest { group: "", version: "v1", resource: "nodes", operations: &["CREATE", "UPDATE"], scope: "Cluster" };
const NODE_STATUS: VitalRequest =
    VitalRequest { group: "", version: "v1", resource: "nodes/status", operations: &["UPDATE"], scope: "Cluster" };
/// The heartbeat of a node, and every election.
const LEASE: VitalRequest = VitalRequest {
    group: "coordination.k8s.io",
    version: "v1",
    resource: "leases",
    operations: &["CREATE", "UPDATE"],
    scope: "Namespaced",
};

impl Reach {
    /// That of a converter, which is called for one kind.
    pub const NOTHING: Self = Self { pods: false, vital: Vec::new(), everything: false };

    pub fn of(entry: &ConfigurationEntry<'_>, facts: &Facts) -> Self {
        let asked = |request: &VitalRequest| entry.rules.iter().any(|rule| matches(rule, request));
        let everywhere = |namespace: &str| selects(entry.namespace_selector, &facts.namespace_labels(namespace));
        // An object without labels: a selector that it satisfies does not wait for anybody to opt in.
        let unlabelled = selects(entry.object_selector, &Labels::new());
        let mut vital = Vec::new();
        if asked(&POD) {
            if everywhere("kube-system") && unlabelled {
                vital.push("pods in kube-system".to_owned());
            }
            if let Some(namespace) = own_pods(entry, facts).filter(|namespace| everywhere(namespace)) {
                vital.push(format!("its own pods in {namespace}"));
            }
        }
        if (asked(&NODE) || asked(&NODE_STATUS)) && unlabelled {
            vital.push("nodes".to_owned());
        }
        if asked(&LEASE) && everywhere("kube-node-lease") && unlabelled {
            vital.push("node leases in kube-node-lease".to_owned());
        }
        Self { pods: asked(&POD), vital, everything: entry.rules.iter().any(is_everything) }
    }
}

/// The namespace of the pods behind the webhook's Service, if they may be among the objects for which the webhook is called.
/// kube-system is distinguished from it.
fn own_pods<'a>(entry: &ConfigurationEntry<'a>, facts: &Facts) -> Option<&'a str> {
    let reference = entry.client.service.as_ref()?;
    let namespace = reference.namespace.as_str();
    let service = facts.service(namespace, &reference.name);
    let labels = service.and_then(|service| service.spec.as_ref()?.selector.clone()).unwrap_or_default();
    (namespace != "kube-system" && selects(entry.object_selector, &labels)).then_some(namespace)
}

fn selects(selector: Option<&meta::LabelSelector>, labels: &Labels) -> bool {
    let Some(selector) = selector else { return true };
    let compiled = serde_json::from_value::<LabelSelector>(json!(selector)).ok().and_then(|it| it.compile().ok());
    // The API server stores no selector that cannot be compiled.
    compiled.is_none_or(|selector| selector.matches(labels))
}

/// As `k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules` matches.
fn matches(rule: &RuleWithOperations, request: &VitalRequest) -> bool {
    let has =
        |list: &Option<Vec<String>>, wanted: &str| list.iter().flatten().any(|found| found == "*" || found == wanted);
    let scope = rule.scope.as_deref().unwrap_or("*");
    has(&rule.api_groups, request.group)
        && has(&rule.api_versions, request.version)
        && request.operations.iter().any(|operation| has(&rule.operations, operation))
        && (scope == "*" || scope == request.scope)
        && rule.resources.iter().flatten().any(|pattern| matches_resource(pattern, request.resource))
}

fn matches_resource(pattern: &str, resource: &str) -> bool {
    let split = |text: &str| {
        text.split_once('/').map_or_else(|| (text.to_owned(), String::new()), |(a, b)| (a.to_owned(), b.to_owned()))
    };
    let ((resource, sub), (wanted, wanted_sub)) = (split(resource), split(pattern));
    (wanted == "*" || wanted == resource) && (wanted_sub == "*" || wanted_sub == sub)
}

fn is_everything(rule: &RuleWithOperations) -> bool {
    let all = |list: &Option<Vec<String>>| list.iter().flatten().any(|found| found == "*" || found == "*/*");
    all(&rule.api_groups) && all(&rule.resources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_match_as_the_api_server_matches_them() {
        for (pattern, resource, expected) in [
            ("pods", "pods", true),
            ("pods", "pods/status", false),
            ("*", "pods", true),
            ("*", "nodes/status", false),
            ("*/*", "nodes/status", true),
            ("*/*", "pods", true),
            ("nodes/*", "nodes", true),
            ("*/status", "nodes/status", true),
            ("nodes/status", "nodes", false),
        ] {
            assert_eq!(matches_resource(pattern, resource), expected, "{pattern} {resource}");
        }
    }
}
