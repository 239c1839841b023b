//! What no Collector may be.

use admission::field::{Error, ErrorList, Path};
use admission::format::names::dns1123_subdomain;
use admission::object::object_or_default;
use admission::registry::Rule;
use admission::{Findings, Operation, Reason, Request, Validating, only_objects};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::api::{CollectorSpec, DEPLOYMENT, MOST_IPS, RESET_MAX_BYTES, Target};
use crate::watch::deployment::SelectorText;
use crate::workshop::object::rule;
use engine::snapshot::Snapshot;

/// New objects and changes.
pub const fn validating_rule() -> Rule {
    rule::<CollectorSpec>(&[Operation::Create, Operation::Update])
}

/// Refuses a Collector whose pods are ambiguous.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectorValidation;

/// What is read of a Collector: all but its status, which may be large.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct Written {
    #[serde(deserialize_with = "object_or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "object_or_default")]
    spec: CollectorSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    deletion_timestamp: Option<IgnoredAny>,
}

only_objects!(Written);

impl Validating<Snapshot> for CollectorValidation {
    type Object<'a> = Written;

    fn create(&self, object: &Written, _: &Request<'_, Written>, _: &Snapshot, findings: &mut Findings) {
        findings.errors.extend(faults(&object.spec));
    }

    /// An object that was let through while no webhook ran must still be relabelled and let go.
    fn update(&self, new: &Written, old: &Written, _: &Request<'_, Written>, _: &Snapshot, findings: &mut Findings) {
        if old.metadata.deletion_timestamp.is_some() {
            findings.reason = Reason::TERMINATING;
        } else if new.spec != old.spec {
            findings.errors.extend(faults(&new.spec));
        }
    }
}

/// What is wrong with a spec.
pub fn faults(spec: &CollectorSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    match (&spec.selector, &spec.target) {
        (None, None) => errors.push(Error::required(&path, "must specify either `selector` or `target`")),
        (Some(_), Some(_)) => {
            errors.push(Error::forbidden(&path.child("target"), "may not be specified together with `selector`"));
        }
        _ => {}
    }
    if let Some(selector) = spec.selector.as_ref().map(SelectorText::decoded) {
        let path = path.child("selector");
        if selector.is_empty() {
            errors.push(Error::invalid(&path, serde_json::json!({}), "empty selector is invalid for collector"));
        }
        selector.validate(&path, &mut errors);
    }
    if let Some(target) = &spec.target {
        check_target(target, &path.child("target"), &mut errors);
    }
    if let Some(most) = spec.max_ips.filter(|most| !(1..=MOST_IPS).contains(most)) {
        let range = format!("must be between 1 and {MOST_IPS}, inclusive");
        errors.push(Error::invalid(&path.child("maxIPs"), most, range));
    }
    if spec.reset.as_ref().is_some_and(|reset| reset.len() > RESET_MAX_BYTES) {
        errors.push(Error::too_long(&path.child("reset"), RESET_MAX_BYTES));
    }
    errors
}

fn check_target(target: &Target, path: &Path, errors: &mut ErrorList) {
    if let Some(kind) = target.kind.as_deref().filter(|kind| *kind != DEPLOYMENT) {
        errors.push(Error::not_supported(&path.child("kind"), kind, &[DEPLOYMENT]));
    }
    let (name, path) = (target.name.as_str(), path.child("name"));
    if name.is_empty() {
        errors.push(Error::required(&path, ""));
    } else {
        errors.extend(dns1123_subdomain(name).into_iter().map(|fault| Error::invalid(&path, name, fault)));
    }
}

#[cfg(test)]
mod tests {
    use admission::Registry;
    use serde_json::{Value, json};

    use super::*;
    use crate::workshop::object::KindSpec as _;

    fn answer(operation: &str, object: &Value, old: &Value) -> Value {
        let registry = Registry::default().validating(validating_rule(), CollectorValidation);
        let entry = registry.find("/validate-collector-ip-outrider-dev-v1-collector").unwrap();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": operation, "name": "c",
            "kind": {"group": CollectorSpec::GROUP, "version": CollectorSpec::VERSION, "kind": CollectorSpec::KIND}, "object": object, "oldObject": old,
        }});
        let answer = entry.endpoint.answer(review.to_string().as_bytes(), &Snapshot::default()).unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take()
    }

    fn with(spec: &Value) -> Value {
        json!({"metadata": {"name": "c"}, "spec": spec, "status": {"ips": "not looked at"}})
    }

    #[test]
    fn a_collector_means_the_pods_of_a_selector_or_of_a_target() {
        let selector = json!({"matchLabels": {"app": "web"}});
        for spec in [
            json!({"selector": selector}),
            json!({"selector": selector, "target": null, "maxIPs": 10_000, "includeIPv6": false, "reset": ""}),
            json!({"target": {"name": "web"}}),
            json!({"target": {"kind": "Deployment", "name": "web.a"}, "maxIPs": 1}),
        ] {
            assert_eq!(answer("CREATE", &with(&spec), &Value::Null)["allowed"], true, "{spec}");
        }
        for (spec, field, message) in [
            (Value::Null, "spec", "Required value: must specify either `selector` or `target`"),
            (json!({}), "spec", "Required value: must specify either `selector` or `target`"),
            (
                json!({"selector": selector, "target": {"name": "web"}}),
                "spec.target",
                "Forbidden: may not be specified together with `selector`",
            ),
            (
                json!({"selector": {"matchLabels": {}}}),
                "spec.selector",
                "Invalid value: {}: empty selector is invalid for collector",
            ),
            (
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
                "spec.selector.matchExpressions[0].operator",
                "Invalid value: \"Like\": not a valid selector operator",
            ),
            (json!({"target": {}}), "spec.target.name", "Required value"),
            (
                json!({"target": {"kind": "StatefulSet", "name": "web"}}),
                "spec.target.kind",
                "Unsupported value: \"StatefulSet\": supported values: \"Deployment\"",
            ),
            (
                json!({"selector": selector, "maxIPs": 0}),
                "spec.maxIPs",
                "Invalid value: 0: must be between 1 and 10000, inclusive",
            ),
            (
                json!({"selector": selector, "maxIPs": 10_001}),
                "spec.maxIPs",
                "Invalid value: 10001: must be between 1 and 10000, inclusive",
            ),
            (
                json!({"selector": selector, "reset": "r".repeat(257)}),
                "spec.reset",
                "Too long: may not be more than 256 bytes",
            ),
        ] {
            let response = answer("CREATE", &with(&spec), &Value::Null);
            assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(422)), "{spec}");
            let causes = response["status"]["details"]["causes"].as_array().unwrap();
            let [cause] = causes.as_slice() else { panic!("{causes:?}") };
            assert_eq!((&cause["field"], &cause["message"]), (&json!(field), &json!(message)));
        }
        let bad_name = answer("CREATE", &with(&json!({"target": {"name": "Web"}})), &Value::Null);
        assert_eq!(bad_name["status"]["details"]["causes"][0]["field"], "spec.target.name");
    }

    #[test]
    fn a_list_is_no_object() {
        let selector = json!({"matchLabels": {"app": "web"}});
        for object in [
            with(&json!([])),
            with(&json!({"target": ["Deployment", "web"]})),
            with(&json!({"selector": []})),
            json!({"metadata": [], "spec": {"selector": selector}}),
            json!([{}, {"selector": selector}]),
        ] {
            let response = answer("CREATE", &object, &Value::Null);
            assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)), "{object}");
        }
    }

    #[test]
    fn an_object_that_is_wrong_can_be_relabelled_and_deleted_and_not_made_worse() {
        let wrong = with(&json!({"maxIPs": 0}));
        let mut relabelled = wrong.clone();
        relabelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(answer("UPDATE", &relabelled, &wrong)["allowed"], true);
        assert_eq!(answer("UPDATE", &with(&json!({"maxIPs": 1})), &wrong)["allowed"], false);
        let mut terminating = with(&json!({"maxIPs": 1}));
        terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(answer("UPDATE", &with(&json!({"maxIPs": 0})), &terminating)["allowed"], true);
        assert_eq!(answer("UPDATE", &terminating, &with(&json!({})))["allowed"], false);
        assert_eq!(answer("DELETE", &Value::Null, &wrong)["allowed"], true);
    }
}
