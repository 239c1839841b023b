//! Admission plugins, ranges and profiles that do not do what their objects say.

use engine::limitrange::api as limits;
use engine::plugins::api::{self as plugins, PluginStatus};
use engine::podsecurityprofile::api as profiles;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::doctor::facts::{Facts, UnreadableAnnotation};
use crate::doctor::report::{Check, Finding, Severity};
use crate::plugins::conditions::NO_BACKEND;

/// What is wrong with plugins, and with the annotations that they read.
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let plugins = facts.plugins.iter().flat_map(|it| of_object(plugins::KIND, &it.metadata, it.status.as_ref()));
    let ranges = facts.limit_ranges.iter().flat_map(|it| of_object(limits::KIND, &it.metadata, it.status.as_ref()));
    let profiles =
        facts.security_profiles.iter().flat_map(|it| of_object(profiles::KIND, &it.metadata, it.status.as_ref()));
    plugins.chain(ranges).chain(profiles).chain(facts.unreadable_annotations.iter().map(unreadable)).collect()
}

/// What the leader wrote into the status: of a generation that it has not seen it says nothing.
fn of_object(kind: &str, metadata: &ObjectMeta, status: Option<&PluginStatus>) -> Vec<Finding> {
    let object = format!("{}/{}", kind.to_lowercase(), metadata.name.as_deref().unwrap_or_default());
    let finding = |found: String, remedy: &str| Finding {
        severity: Severity::Warning,
        check: Check::AdmissionPlugin,
        object: object.clone(),
        webhook: None,
        found,
        remedy: remedy.to_owned(),
    };
    let Some(status) = status.filter(|status| status.observed_generation == metadata.generation) else {
        let found = "its status is not of its last change: no leader has seen it".to_owned();
        return vec![finding(found, "read the log of the replica that holds the lease")];
    };
    let mut findings = Vec::new();
    for condition in status.conditions.iter().flatten() {
        let (reason, message) = (condition.reason.as_str(), &condition.message);
        match (condition.type_.as_str(), condition.status.as_str()) {
            ("Accepted", "False") => {
                findings.push(finding(format!("it cannot be used: {message}"), "correct the object"));
            }
            ("Programmed", "False") if reason == "Pending" => {
                let remedy = "read the log of the leader, and check the configurations outrider-on-demand-mutating and -validating";
                findings.push(finding(format!("the API server does not call for it: {message}"), remedy));
            }
            ("Programmed", "False") if reason == NO_BACKEND => {
                let remedy = "put the kubeconfig of a backend that answers into the Secret outrider-image-policy in the namespace of \
                              Outrider; docs/plugins/ImagePolicyWebhook.md shows one";
                findings.push(finding(format!("images are not reviewed: {message}"), remedy));
            }
            ("Conflict", "True") => {
                let remedy = "give both objects the same values, or selectors that no namespace fits both of";
                findings.push(finding(format!("another object contradicts it: {message}"), remedy));
            }
            _ => {}
        }
    }
    findings
}

fn unreadable(annotation: &UnreadableAnnotation) -> Finding {
    let UnreadableAnnotation { namespace, key, why } = annotation;
    Finding {
        severity: Severity::Warning,
        check: Check::UnreadableAnnotation,
        object: format!("namespace/{namespace}"),
        webhook: None,
        found: format!("admission plugins cannot read its annotation {key}, and refuse its pods: {why}"),
        remedy: format!("kubectl annotate --overwrite namespace {namespace} {key}=…"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::watch::{AdmissionPluginResource, ClusterLimitRangeResource, PodSecurityProfileResource};

    fn plugin(conditions: &Value) -> AdmissionPluginResource {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "generation": 2}, "spec": {"plugin": "PodNodeSelector"},
            "status": {"observedGeneration": 2, "conditions": conditions},
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "because"})
    }

    #[test]
    fn plugins_that_cannot_be_used_are_not_called_or_contradict_each_other_are_found() {
        for (conditions, expected) in [
            (vec![condition("Accepted", "True", "Accepted"), condition("Programmed", "True", "Programmed")], None),
            (vec![condition("Accepted", "False", "Invalid")], Some("it cannot be used: because")),
            (vec![condition("Programmed", "False", "Off")], None),
            (vec![condition("Programmed", "False", "Pending")], Some("the API server does not call for it: because")),
            (vec![condition("Programmed", "False", NO_BACKEND)], Some("images are not reviewed: because")),
            (vec![condition("Conflict", "True", "Contradicted")], Some("another object contradicts it: because")),
        ] {
            let facts = Facts { plugins: vec![plugin(&json!(conditions))], ..Facts::default() };
            let found: Vec<String> = examine(&facts).into_iter().map(|finding| finding.found).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
        let mut unseen = plugin(&json!([]));
        unseen.metadata.generation = Some(3);
        let facts = Facts { plugins: vec![unseen], ..Facts::default() };
        assert!(examine(&facts)[0].found.contains("no leader has seen it"));
    }

    #[test]
    fn a_range_that_is_not_called_for_is_found() {
        let status = json!({"observedGeneration": 1, "conditions": [condition("Programmed", "False", "Pending")]});
        let range = json!({"metadata": {"name": "r", "generation": 1}, "spec": {"limits": []}, "status": status});
        let range: ClusterLimitRangeResource = serde_json::from_value(range).unwrap();
        let found = examine(&Facts { limit_ranges: vec![range], ..Facts::default() }).remove(0);
        assert_eq!(found.object, "clusterlimitrange/r");
        assert_eq!(found.found, "the API server does not call for it: because");
    }

    #[test]
    fn a_profile_that_is_not_called_for_is_found() {
        let status = json!({"observedGeneration": 1, "conditions": [condition("Programmed", "False", "Pending")]});
        let profile = json!({"metadata": {"name": "r", "generation": 1}, "spec": {}, "status": status});
        let profile: PodSecurityProfileResource = serde_json::from_value(profile).unwrap();
        let found = examine(&Facts { security_profiles: vec![profile], ..Facts::default() }).remove(0);
        assert_eq!(found.object, "podsecurityprofile/r");
        assert_eq!(found.found, "the API server does not call for it: because");
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_found_with_its_namespace() {
        let annotation = UnreadableAnnotation {
            namespace: "shop".to_owned(),
            key: "k".to_owned(),
            why: "expected key=value".to_owned(),
        };
        let found = examine(&Facts { unreadable_annotations: vec![annotation], ..Facts::default() }).remove(0);
        assert_eq!((found.object.as_str(), found.check), ("namespace/shop", Check::UnreadableAnnotation));
        assert!(found.found.contains("expected key=value"));
    }
}
