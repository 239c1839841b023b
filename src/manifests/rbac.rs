//! What the process may do, and no more.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};

use crate::kind::{Family, Kind};
use crate::kinds::Kinds;
use crate::manifests::{metadata, namespaced};
use crate::names::{APP, CA_SECRET, LEASE, MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};
use crate::permissions::{READ, rule};
use engine::snapshot::configuration::CONFIG_MAP;

/// The objects of a deployment in `namespace`.
#[derive(Debug, Clone)]
pub struct Rbac {
    /// Who the process is.
    pub account: ServiceAccount,
    /// What it may do in the whole cluster.
    pub cluster_role: ClusterRole,
    /// Gives it that.
    pub cluster_role_binding: ClusterRoleBinding,
    /// What it may do in its own namespace.
    pub role: Role,
    /// Gives it that.
    pub role_binding: RoleBinding,
}

impl Rbac {
    /// Of a deployment in this namespace with these kinds. `own_deployment` is the name of the Deployment that the process reads
    /// with `--fail-open-when-scaled-to-zero`.
    pub fn of(namespace: &str, kinds: &Kinds, own_deployment: Option<&str>) -> Self {
        let subject = Subject {
            kind: "ServiceAccount".to_owned(),
            name: APP.to_owned(),
            namespace: Some(namespace.to_owned()),
            api_group: None,
        };
        let role_ref = |kind: &str| RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: kind.to_owned(),
            name: APP.to_owned(),
        };
        Self {
            account: ServiceAccount { metadata: namespaced(APP, namespace), ..ServiceAccount::default() },
            cluster_role: ClusterRole {
                metadata: metadata(APP),
                rules: Some(cluster_rules(kinds)),
                ..ClusterRole::default()
            },
            cluster_role_binding: ClusterRoleBinding {
                metadata: metadata(APP),
                role_ref: role_ref("ClusterRole"),
                subjects: Some(vec![subject.clone()]),
            },
            role: Role { metadata: namespaced(APP, namespace), rules: Some(namespace_rules(kinds, own_deployment)) },
            role_binding: RoleBinding {
                metadata: namespaced(APP, namespace),
                role_ref: role_ref("Role"),
                subjects: Some(vec![subject]),
            },
        }
    }
}

fn cluster_rules(kinds: &Kinds) -> Vec<PolicyRule> {
    let of_family = |family| kinds.iter().filter(move |kind| kind.family == family).flat_map(Kind::cluster_rules);
    let process = [
        rule(
            "admissionregistration.k8s.io",
            &["mutatingwebhookconfigurations"],
            &[MUTATING, ON_DEMAND_MUTATING],
            &["get", "patch"],
        ),
        rule(
            "admissionregistration.k8s.io",
            &["validatingwebhookconfigurations"],
            &[VALIDATING, ON_DEMAND_VALIDATING],
            &["get", "patch"],
        ),
        rule("events.k8s.io", &["events"], &[], &["create", "patch"]),
    ];
    let definitions = kinds
        .converted()
        .into_iter()
        .map(|name| rule("apiextensions.k8s.io", &["customresourcedefinitions"], &[name.as_str()], &["get", "patch"]));
    let mut rules = Vec::new();
    let product = of_family(Family::Product).chain(process);
    for rule in product.chain(definitions).chain(of_family(Family::Workshop)) {
        // Two kinds may keep the same resource.
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// `create` cannot be limited to a name: the API server does not know it when it authorizes.
fn namespace_rules(kinds: &Kinds, own_deployment: Option<&str>) -> Vec<PolicyRule> {
    let mut rules = vec![
        rule("", &["configmaps"], &[CONFIG_MAP], READ),
        rule("coordination.k8s.io", &["leases"], &[], &["create"]),
        rule("coordination.k8s.io", &["leases"], &[LEASE], &["get", "update"]),
        rule("", &["secrets"], &[], &["create"]),
        rule("", &["secrets"], &[CA_SECRET], &["get", "update"]),
    ];
    rules.extend(kinds.iter().flat_map(|kind| (kind.namespace_rules)()));
    rules.extend(own_deployment.map(|name| rule("apps", &["deployments"], &[name], &["get"])));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leases_webhooks_and_definitions_are_reached_by_name_only() {
        let rbac = Rbac::of("outrider-system", &Kinds::all(), Some("outrider"));
        let rules = rbac.cluster_role.rules.into_iter().chain(rbac.role.rules).flatten();
        let sensitive = [
            "secrets",
            "leases",
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            "customresourcedefinitions",
        ];
        for rule in rules {
            assert!(!rule.verbs.iter().any(|verb| verb == "*"), "{rule:?}");
            // Of a CronJob, when there are too many or a newer one takes its place; of a SidecarSet, when there are too many.
            let own = ["jobs", "controllerrevisions"].map(|own| Some(vec![own.to_owned()])).contains(&rule.resources);
            assert!(own || !rule.verbs.iter().any(|verb| verb == "delete"), "{rule:?}");
            if rule.resources.iter().flatten().any(|resource| sensitive.contains(&resource.as_str())) {
                assert!(rule.resource_names.is_some() || rule.verbs == ["create"], "{rule:?}");
            }
        }
    }

    #[test]
    fn the_own_deployment_is_read_only_where_it_is_asked_for() {
        let deployments = |own: Option<&str>| -> Vec<PolicyRule> {
            let rules = Rbac::of("outrider-system", &Kinds::default(), own).role.rules.unwrap();
            rules.into_iter().filter(|rule| rule.resources == Some(vec!["deployments".to_owned()])).collect()
        };
        assert_eq!(deployments(None), []);
        assert_eq!(deployments(Some("mine")), [rule("apps", &["deployments"], &["mine"], &["get"])]);
    }
}
