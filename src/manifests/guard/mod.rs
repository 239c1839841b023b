//! `ValidatingAdmissionPolicies` about our own service account.
//!
//! Who may patch a webhook configuration can have the API server send every object to an address of their choice, Secrets included.
//! RBAC cannot limit a patch to fields; policies can, and the API server carries them out without us. So it is with pods, of which rollouts
//! change a few fields.

mod cel;
mod pods;
mod validations;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Variable,
};

use self::cel::text;
use crate::manifests::metadata;
use crate::names::{ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING};
use crate::permissions::texts;

/// End of the name of the policy on webhook configurations.
pub const WEBHOOKS: &str = "guard-webhooks";
/// End of the name of the policy on custom resource definitions.
pub const DEFINITIONS: &str = "guard-definitions";
/// End of the name of the policy on pods.
pub const PODS: &str = "guard-pods";

/// Configurations whose entries the leader writes, as objects need them.
pub const ON_DEMAND: [&str; 2] = [ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING];

/// The variable that holds the namespace of our Service. The chart puts that of the release into it. `namespace` is reserved in CEL.
const NAMESPACE_VARIABLE: &str = "ownNamespace";

/// What puts a policy in force: everything that it does not allow is denied.
pub const ACTIONS: [&str; 1] = ["Deny"];

/// The variable that says whether an entry of the validating on-demand configuration may name every resource. The chart's value
/// `guard.allResources` makes it true.
pub const ALL_RESOURCES_VARIABLE: &str = "allResources";

/// The variable with the names of namespaces that are left alone; the chart knows more of them.
pub const EXCLUDED_VARIABLE: &str = "excludedNamespaces";

/// Whether `expression` is a value that an installation may choose for the variable `name`: it makes a policy no other one.
pub fn may_be_chosen(name: &str, expression: &str) -> bool {
    match name {
        ALL_RESOURCES_VARIABLE => ["false", "true"].contains(&expression),
        EXCLUDED_VARIABLE => true,
        _ => false,
    }
}

/// A policy.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Of the policy and of its binding.
    pub name: String,
    /// What may be written.
    pub spec: ValidatingAdmissionPolicySpec,
}

impl Guard {
    /// The policies about a service account. Their names begin with `prefix`. Pods of `excluded` namespaces are left alone, as are those of
    /// the namespaces that always are.
    pub fn all(prefix: &str, namespace: &str, account: &str, excluded: &[String]) -> [Self; 3] {
        let webhooks = spec(
            namespace,
            account,
            ("admissionregistration.k8s.io", &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]),
            validations::of_webhooks(),
        );
        // A rule on a resource does not cover its subresources.
        let definitions = spec(
            namespace,
            account,
            ("apiextensions.k8s.io", &["customresourcedefinitions", "customresourcedefinitions/status"]),
            validations::of_definitions(),
        );
        let pods = spec(namespace, account, ("", &["pods", "pods/*"]), pods::of_pods(excluded));
        [
            Self { name: format!("{prefix}-{WEBHOOKS}"), spec: webhooks },
            Self { name: format!("{prefix}-{DEFINITIONS}"), spec: definitions },
            Self { name: format!("{prefix}-{PODS}"), spec: pods },
        ]
    }

    /// The policy as an object.
    pub fn policy(&self) -> ValidatingAdmissionPolicy {
        ValidatingAdmissionPolicy {
            metadata: metadata(&self.name),
            spec: Some(self.spec.clone()),
            ..ValidatingAdmissionPolicy::default()
        }
    }

    /// Puts it in force in the whole cluster.
    pub fn binding(&self) -> ValidatingAdmissionPolicyBinding {
        let spec = ValidatingAdmissionPolicyBindingSpec {
            policy_name: self.name.clone(),
            validation_actions: texts(&ACTIONS),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        };
        ValidatingAdmissionPolicyBinding { metadata: metadata(&self.name), spec }
    }
}

/// The condition by which a policy concerns this service account alone.
pub fn only_the_account(namespace: &str, account: &str) -> String {
    format!("request.userInfo.username == {}", text(&format!("system:serviceaccount:{namespace}:{account}")))
}

fn spec(
    namespace: &str,
    account: &str,
    (group, resources): (&str, &[&str]),
    rules: validations::PolicyRules,
) -> ValidatingAdmissionPolicySpec {
    let rule = NamedRuleWithOperations {
        api_groups: Some(texts(&[group])),
        // All of them also means that the expressions are not checked against a schema, which would know fewer fields than are
        // stored: the keys of an object are walked.
        api_versions: Some(texts(&["*"])),
        operations: Some(texts(&["CREATE", "UPDATE", "DELETE"])),
        resources: Some(texts(resources)),
        ..NamedRuleWithOperations::default()
    };
    let mut variables = vec![Variable { name: NAMESPACE_VARIABLE.to_owned(), expression: text(namespace) }];
    variables.extend(rules.variables);
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(MatchResources {
            match_policy: Some("Equivalent".to_owned()),
            resource_rules: Some(vec![rule]),
            ..MatchResources::default()
        }),
        match_conditions: Some(vec![MatchCondition {
            name: "only-the-account".to_owned(),
            expression: only_the_account(namespace, account),
        }]),
        variables: Some(variables),
        validations: Some(rules.validations),
        ..ValidatingAdmissionPolicySpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_and_account_are_named_where_the_chart_puts_its_own_and_nowhere_else() {
        for Guard { mut spec, .. } in Guard::all("mine", "NAMESPACE", "ACCOUNT", &[]) {
            let conditions = spec.match_conditions.as_mut().unwrap();
            assert_eq!(
                conditions[0].expression,
                "request.userInfo.username == 'system:serviceaccount:NAMESPACE:ACCOUNT'"
            );
            conditions.clear();
            let variables = spec.variables.as_mut().unwrap();
            let of_namespace: Vec<Variable> = variables.extract_if(.., |it| it.name == NAMESPACE_VARIABLE).collect();
            assert_eq!(of_namespace[0].expression, "'NAMESPACE'");
            let rest = serde_json::to_string(&spec).unwrap();
            assert!(!rest.contains("NAMESPACE") && !rest.contains("ACCOUNT"), "{rest}");
        }
    }

    #[test]
    fn entries_that_exist_on_demand_name_only_what_the_policy_allows() {
        let registry = crate::registry::registry(&crate::kinds::Kinds::all());
        let rules: Vec<_> = registry.entries().iter().map(|entry| entry.rule).filter(|rule| rule.on_demand).collect();
        assert!(!rules.is_empty());
        // An entry for all resources is there only where the installation allows it.
        let named = |served: &&admission::registry::Resource| served.resource != "*/*";
        for served in rules.iter().flat_map(|rule| rule.resources).filter(named) {
            assert!(validations::GROUPS.contains(&served.group), "{served:?}");
            assert!(validations::RESOURCES.contains(&served.resource), "{served:?}");
        }
    }

    #[test]
    fn every_variable_is_used_and_every_used_one_is_there() {
        for Guard { spec, .. } in Guard::all("mine", "n", "a", &[]) {
            let text = serde_json::to_string(&spec).unwrap();
            let known: Vec<&str> = spec.variables.iter().flatten().map(|it| it.name.as_str()).collect();
            for name in &known {
                assert!(text.contains(&format!("variables.{name}")), "{name} is not used");
            }
            for used in text.split("variables.").skip(1) {
                let name = used.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
                assert!(known.contains(&name), "{name} is not there");
            }
        }
    }
}
