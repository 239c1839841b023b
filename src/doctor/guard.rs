//! Whether the policies about our service account are there, of this version, and in force.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicySpec, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;

use crate::doctor::report::{Check, Finding, Severity};
use crate::manifests::guard::{ACTIONS, Guard, may_be_chosen};
use crate::names::APP;

/// What was read about one service account.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct GuardFacts {
    /// Its name.
    pub account: String,
    /// Policies of ours.
    pub policies: Vec<ValidatingAdmissionPolicy>,
    /// What puts policies of ours in force.
    pub bindings: Vec<ValidatingAdmissionPolicyBinding>,
}

/// What is wrong, one finding for each policy that should be there.
pub fn examine(facts: &GuardFacts, namespace: &str) -> Vec<Finding> {
    let account = &facts.account;
    Guard::all(APP, namespace, account, &[])
        .iter()
        .filter_map(|guard| {
            let found = facts.wrong(guard)?;
            Some(Finding {
                severity: Severity::Warning,
                check: Check::AccountNotLimited,
                object: format!("system:serviceaccount:{namespace}:{account}"),
                webhook: None,
                found,
                remedy: "have the chart make the policies (guard.enabled=true), or apply them: outrider manifests policies | \
                         kubectl apply --server-side -f -; docs/security.md says what the account may do without them"
                    .to_owned(),
            })
        })
        .collect()
}

impl GuardFacts {
    fn wrong(&self, guard: &Guard) -> Option<String> {
        let resources = resources(&guard.spec).join(" and ");
        let about = |policy: &&ValidatingAdmissionPolicy| {
            policy.spec.as_ref().is_some_and(|spec| {
                spec.match_conditions == guard.spec.match_conditions
                    && self::resources(spec) == self::resources(&guard.spec)
            })
        };
        let candidates: Vec<&ValidatingAdmissionPolicy> = self.policies.iter().filter(about).collect();
        let Some(first) = candidates.first() else {
            return Some(format!(
                "no policy limits what this account may change in {resources}, beside the names in its roles"
            ));
        };
        if candidates.iter().any(|policy| is_as_shipped(policy, guard) && self.is_in_force(policy)) {
            return None;
        }
        let name = first.metadata.name.as_deref().unwrap_or_default();
        Some(if candidates.iter().any(|policy| self.is_in_force(policy)) {
            format!(
                "the policy {name} on {resources} is not that of this outrider, {}: what the account may change is limited otherwise",
                env!("CARGO_PKG_VERSION")
            )
        } else {
            format!("the policy {name} on {resources} is not in force: no binding of it denies in the whole cluster")
        })
    }

    fn is_in_force(&self, policy: &ValidatingAdmissionPolicy) -> bool {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        self.bindings.iter().map(|binding| &binding.spec).any(|spec| {
            let limits = spec.match_resources.as_ref();
            let everywhere = limits.is_none_or(|limits| {
                selects_all(limits.namespace_selector.as_ref())
                    && selects_all(limits.object_selector.as_ref())
                    && limits.resource_rules.as_ref().is_none_or(Vec::is_empty)
                    && limits.exclude_resource_rules.as_ref().is_none_or(Vec::is_empty)
            });
            spec.policy_name == name
                && everywhere
                && ACTIONS.iter().all(|action| spec.validation_actions.iter().any(|it| it == action))
        })
    }
}

/// Resources of the policy, as it names them.
fn resources(spec: &ValidatingAdmissionPolicySpec) -> Vec<String> {
    let rules = spec.match_constraints.iter().flat_map(|constraints| constraints.resource_rules.iter().flatten());
    rules.flat_map(|rule| rule.resources.iter().flatten().cloned()).collect()
}

/// Compares all that decides; the API server fills in selectors that select everything.
fn is_as_shipped(policy: &ValidatingAdmissionPolicy, guard: &Guard) -> bool {
    let (Some(found), shipped) = (policy.spec.as_ref(), &guard.spec) else { return false };
    let of = |spec: &ValidatingAdmissionPolicySpec| -> Vec<Variable> {
        let variables = spec.variables.iter().flatten();
        variables.filter(|it| !may_be_chosen(&it.name, &it.expression)).cloned().collect()
    };
    let constraints = found.match_constraints.as_ref();
    let operations = |spec: &ValidatingAdmissionPolicySpec| {
        let rules = spec.match_constraints.iter().flat_map(|constraints| constraints.resource_rules.iter().flatten());
        rules
            .map(|rule| (rule.api_groups.clone(), rule.api_versions.clone(), rule.operations.clone()))
            .collect::<Vec<_>>()
    };
    found.failure_policy == shipped.failure_policy
        && found.validations == shipped.validations
        && of(found) == of(shipped)
        && operations(found) == operations(shipped)
        && constraints.is_some_and(|constraints| {
            selects_all(constraints.namespace_selector.as_ref())
                && selects_all(constraints.object_selector.as_ref())
                && constraints.exclude_resource_rules.as_ref().is_none_or(Vec::is_empty)
        })
}

fn selects_all(selector: Option<&LabelSelector>) -> bool {
    selector.is_none_or(|selector| {
        selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
            && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::guard::ALL_RESOURCES_VARIABLE;

    type Change<'a> = &'a dyn Fn(&mut GuardFacts);

    fn shipped() -> GuardFacts {
        let guards = Guard::all("mine", "sidecars", "injector", &[]);
        GuardFacts {
            account: "injector".to_owned(),
            policies: guards.iter().map(Guard::policy).collect(),
            bindings: guards.iter().map(Guard::binding).collect(),
        }
    }

    fn found(change: impl FnOnce(&mut GuardFacts)) -> Vec<String> {
        let mut facts = shipped();
        change(&mut facts);
        examine(&facts, "sidecars").into_iter().map(|finding| finding.found).collect()
    }

    #[test]
    fn policies_that_are_in_force_as_shipped_are_no_finding() {
        assert_eq!(found(|_| {}), Vec::<String>::new());
        let widened = found(|facts| {
            let variables = facts.policies[0].spec.as_mut().unwrap().variables.as_mut().unwrap();
            for variable in variables.iter_mut().filter(|it| it.name == ALL_RESOURCES_VARIABLE) {
                variable.expression = "true".to_owned();
            }
            let constraints = facts.policies[0].spec.as_mut().unwrap().match_constraints.as_mut().unwrap();
            constraints.namespace_selector = Some(LabelSelector::default());
        });
        assert_eq!(widened, Vec::<String>::new(), "the chart may widen them, and the API server fills in selectors");
    }

    #[test]
    fn what_does_not_limit_the_account_is_a_finding() {
        let none = "no policy limits what this account may change in mutatingwebhookconfigurations and";
        let idle = "the policy mine-guard-webhooks on mutatingwebhookconfigurations and";
        let spec = |facts: &mut GuardFacts| facts.policies[0].spec.clone().unwrap();
        let put = |facts: &mut GuardFacts, spec| facts.policies[0].spec = Some(spec);
        let changes: [(&str, Change<'_>); 8] = [
            (none, &|facts| drop(facts.policies.remove(0))),
            (none, &|facts| {
                let mut other = spec(facts);
                other.match_conditions.as_mut().unwrap()[0].expression = "false".to_owned();
                put(facts, other);
            }),
            (idle, &|facts| drop(facts.bindings.remove(0))),
            (idle, &|facts| facts.bindings[0].spec.validation_actions = vec!["Audit".to_owned()]),
            (idle, &|facts| {
                let selector: LabelSelector =
                    serde_json::from_value(serde_json::json!({"matchLabels": {"a": "b"}})).unwrap();
                facts.bindings[0].spec.match_resources =
                    Some(serde_json::from_value(serde_json::json!({"objectSelector": selector})).unwrap());
            }),
            (idle, &|facts| {
                let mut other = spec(facts);
                other.validations.as_mut().unwrap()[4].expression = "true".to_owned();
                put(facts, other);
            }),
            (idle, &|facts| {
                let mut other = spec(facts);
                let resources = other.variables.as_mut().unwrap().iter_mut().find(|it| it.name == "resources").unwrap();
                resources.expression += " + ['secrets']";
                put(facts, other);
            }),
            (idle, &|facts| {
                let mut other = spec(facts);
                other.failure_policy = Some("Ignore".to_owned());
                put(facts, other);
            }),
        ];
        for (expected, change) in changes {
            let found = found(change);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{expected}: {found:?}");
        }
        assert_eq!(found(|facts| facts.policies.clear()).len(), 3);
        assert_eq!(found(|facts| facts.account = "other".to_owned()).len(), 3);
    }
}
