//! Sets that were stored before there was a limit, and hold more than it allows.

use admission::{Answer, Decision, Registry};
use serde_json::{Value, json};

use super::super::SidecarSetValidation;
use super::{cluster, container, set};
use crate::sidecarset::defaults::SidecarSetDefaults;
use crate::sidecarset::size::LISTS;
use crate::sidecarset::{mutating_rule, validating_rule};
use crate::snapshot::Snapshot;

/// A set with one container more than may be stored now.
fn large() -> Value {
    let (_, most) = LISTS[0];
    let containers: Vec<Value> =
        (0..=most).map(|index| container(&json!({"name": format!("c{index}"), "image": "a"}))).collect();
    let mut object = set(&json!({"containers": containers}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

/// What both endpoints decide, the defaults first.
fn decisions(operation: &str, object: &Value, old: &Value) -> Vec<(Decision, String)> {
    let registry = Registry::<Snapshot>::default()
        .defaulting(mutating_rule(), SidecarSetDefaults)
        .validating(validating_rule(), SidecarSetValidation);
    let about = |name: &str, value: &str| json!({"group": "apps.outrider.dev", "version": "v1alpha1", name: value});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": about("kind", "SidecarSet"), "resource": about("resource", "sidecarsets"), "name": "a",
        "operation": operation, "object": object, "oldObject": old}})
    .to_string();
    let answers =
        registry.entries().iter().map(|entry| entry.endpoint.answer(review.as_bytes(), &cluster(&[])).unwrap());
    answers.map(|Answer { decision, message, .. }| (decision, message)).collect()
}

#[test]
fn a_set_beyond_the_limit_loses_its_finalizers_and_is_deleted() {
    let stored = large();
    let mut leaving = stored.clone();
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut without_finalizers = leaving.clone();
    without_finalizers["metadata"]["finalizers"] = json!([]);
    for (operation, object, old) in [
        ("UPDATE", &without_finalizers, &leaving),
        ("DELETE", &Value::Null, &stored),
        ("DELETE", &Value::Null, &leaving),
    ] {
        let decisions = decisions(operation, object, old);
        assert_eq!(decisions.len(), 2);
        assert!(decisions.iter().all(|(decision, _)| *decision == Decision::Allowed), "{operation}: {decisions:?}");
    }
}

#[test]
fn a_set_beyond_the_limit_may_become_smaller_and_no_new_one_is_stored() {
    let (stored, mut smaller) = (large(), large());
    smaller["spec"]["containers"].as_array_mut().unwrap().pop();
    for (decision, message) in decisions("UPDATE", &smaller, &stored) {
        assert_ne!(decision, Decision::Denied, "{message}");
    }
    for (decision, message) in decisions("CREATE", &stored, &Value::Null) {
        assert_eq!(decision, Decision::Denied);
        assert!(message.contains("spec.containers holds more than 100 elements"), "{message}");
    }
}
