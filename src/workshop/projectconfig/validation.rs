//! What no `ProjectConfig` may be: what the file may not be.

use admission::registry::{Resource, Rule};
use admission::{Findings, Operation, Request, Validating};
use serde_json::Value;

use crate::config::{Checked, GROUP, KIND, PLURAL, VERSION, check};
use engine::snapshot::Snapshot;

/// New objects and changes.
pub const fn validating_rule() -> Rule {
    const CONFIGS: &[Resource] = &[Resource { group: GROUP, version: VERSION, resource: PLURAL, kind: KIND }];
    Rule::new(concat!("projectconfig.config.", api_domain!()), CONFIGS, &[Operation::Create, Operation::Update])
}

/// Refuses what a process could not be configured with.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProjectConfigValidation;

impl Validating<Snapshot> for ProjectConfigValidation {
    type Object<'a> = Value;

    fn create(&self, object: &Value, _: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) {
        let Checked { faults, warnings } = check(object);
        findings.errors.extend(faults);
        findings.warnings.extend(warnings);
    }

    /// A fault that was there before is a warning: the object was let through while no webhook ran, and must still be
    /// relabelled and let go.
    fn update(&self, object: &Value, old: &Value, _: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) {
        let Checked { faults, warnings } = check(object);
        findings.warnings.extend(warnings);
        let known = check(old).faults;
        for fault in faults {
            if known.contains(&fault) {
                findings.warnings.push(format!("{fault} (allowed, as it was so before)"));
            } else {
                findings.errors.push(fault);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use admission::Registry;
    use serde_json::json;

    use super::*;
    use engine::yaml;

    fn answer(operation: &str, object: &Value, old: &Value) -> Value {
        let registry = Registry::default().validating(validating_rule(), ProjectConfigValidation);
        let entry = registry.find("/validate-config-outrider-dev-v2-projectconfig").unwrap();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": operation, "name": "p",
            "kind": {"group": GROUP, "version": VERSION, "kind": KIND}, "object": object, "oldObject": old,
        }});
        let answer = entry.endpoint.answer(review.to_string().as_bytes(), &Snapshot::default()).unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take()
    }

    fn with(sync_period: &str, labels: &Value) -> Value {
        json!({"metadata": {"name": "p", "labels": labels}, "syncPeriod": sync_period})
    }

    #[test]
    fn the_sample_is_allowed_and_a_bad_duration_is_not() {
        let sample = include_str!("../../../config/samples/config_v2_projectconfig.yaml");
        let sample = yaml::read(sample).unwrap().remove(0).value;
        let response = answer("CREATE", &sample, &Value::Null);
        assert_eq!((&response["allowed"], &response["warnings"]), (&json!(true), &Value::Null));

        let response = answer("CREATE", &with("often", &Value::Null), &Value::Null);
        assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(422)));
        assert_eq!(
            response["status"]["message"],
            "ProjectConfig.config.outrider.dev \"p\" is invalid: syncPeriod: Invalid value: \"often\": write a duration such \
             as 10s, 1m30s or 500ms"
        );
        assert_eq!(response["status"]["details"]["causes"][0]["field"], "syncPeriod");
    }

    #[test]
    fn an_update_may_keep_a_fault_and_bring_none() {
        let old = with("often", &Value::Null);
        let relabelled = answer("UPDATE", &with("often", &json!({"a": "b"})), &old);
        assert_eq!(relabelled["allowed"], true);
        assert_eq!(
            relabelled["warnings"],
            json!([
                "syncPeriod: Invalid value: \"often\": write a duration such as 10s, 1m30s or 500ms (allowed, as it was so before)"
            ])
        );
        assert_eq!(answer("UPDATE", &with("rarely", &Value::Null), &old)["allowed"], false);
        assert_eq!(answer("UPDATE", &with("1h", &Value::Null), &old)["allowed"], true);
        assert_eq!(answer("UPDATE", &old, &with("1h", &Value::Null))["allowed"], false);
    }
}
