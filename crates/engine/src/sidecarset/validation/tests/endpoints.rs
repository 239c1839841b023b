//! Requests that are no set to default or to check.

use admission::{Answer, Decision, Reason, Registry, Unserved};
use serde_json::{Value, json};

use super::{cluster, set};
use crate::sidecarset::defaults::SidecarSetDefaults;
use crate::sidecarset::validation::SidecarSetValidation;
use crate::sidecarset::{mutating_rule, validating_rule};
use crate::snapshot::Snapshot;

/// What both endpoints answer, the defaults first.
fn answers(body: &str) -> Vec<Result<Answer, Unserved>> {
    let registry = Registry::<Snapshot>::default()
        .defaulting(mutating_rule(), SidecarSetDefaults)
        .validating(validating_rule(), SidecarSetValidation);
    registry.entries().iter().map(|entry| entry.endpoint.answer(body.as_bytes(), &cluster(&[]))).collect()
}

fn review(changes: &Value) -> String {
    let about = |name: &str, value: &str| json!({"group": "apps.outrider.dev", "version": "v1alpha1", name: value});
    let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": about("kind", "SidecarSet"), "resource": about("resource", "sidecarsets"), "name": "log-agent",
        "operation": "CREATE", "object": set(&json!({}))}});
    json_patch::merge(&mut review["request"], changes);
    review.to_string()
}

#[test]
fn case_85_a_deletion_is_allowed_as_it_is_and_what_is_no_set_of_this_version_is_refused() {
    let wanted: Vec<Decision> = answers(&review(&json!({}))).into_iter().map(|it| it.unwrap().decision).collect();
    assert_eq!(wanted, [Decision::Patched, Decision::Allowed]);
    for answer in answers(&review(&json!({"operation": "DELETE", "object": null, "oldObject": {"spec": "x"}}))) {
        let answer = answer.unwrap();
        assert_eq!((answer.decision, answer.reason), (Decision::Allowed, Reason::ALLOWED));
    }
    let of_another = json!({"kind": {"version": "v9"}, "resource": {"version": "v9"}});
    for answer in answers(&review(&of_another)) {
        let answer = answer.unwrap();
        assert_eq!((answer.decision, answer.reason), (Decision::Denied, Reason::NOT_SERVED));
        assert_eq!(serde_json::from_slice::<Value>(&answer.body).unwrap()["response"]["status"]["code"], 400);
    }
    // Defaults leave it to the check.
    let no_set: Vec<Decision> =
        answers(&review(&json!({"object": ["no set"]}))).into_iter().map(|it| it.unwrap().decision).collect();
    assert_eq!(no_set, [Decision::Allowed, Decision::Denied]);
    for answer in answers("{\"request\":") {
        assert!(matches!(answer, Err(Unserved::Unreadable(_))));
    }
}
