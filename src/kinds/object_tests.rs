//! No kind takes a list, or anything else, for an object: the API server does not either, but a client may ask a webhook directly, and a
//! schema may be missing.

use std::sync::Arc;

use admission::registry::Phase;
use admission::{Decision, Operation, Registry};
use engine::snapshot::Snapshot;
use serde_json::{Value, json};

use super::KINDS;

/// The field of each kind that is to be an object.
fn field(kind: &str) -> &'static str {
    // It has no spec.
    if kind == "projectconfig" { "health" } else { "spec" }
}

#[test]
fn a_list_in_place_of_an_object_is_refused_by_every_kind() {
    let snapshot = Arc::new(Snapshot::default());
    for kind in KINDS {
        let definition = kind.definition().spec;
        let registry = (kind.webhooks)(Registry::default());
        let mut asked = 0;
        for entry in registry.entries() {
            let Some(resource) = entry.rule.resources.iter().find(|resource| resource.kind == definition.names.kind)
            else {
                continue;
            };
            if !entry.rule.operations.contains(&Operation::Create) {
                continue;
            }
            let (group, version, kind_name) = (resource.group, resource.version, resource.kind);
            for wrong in [json!([]), json!([1]), json!(["x"]), json!([{}]), json!("x"), json!(1), json!(true)] {
                let mut object = json!({
                    "apiVersion": format!("{group}/{version}"), "kind": kind_name, "metadata": {"name": "a"},
                });
                object[field(kind.name)] = wrong.clone();
                let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                    "uid": "1", "operation": "CREATE", "name": "a", "namespace": "shop",
                    "kind": {"group": group, "version": version, "kind": kind_name},
                    "resource": {"group": group, "version": version, "resource": resource.resource},
                    "object": object,
                }});
                let answer = entry.endpoint.answer(review.to_string().as_bytes(), &snapshot).unwrap();
                let reply: Value = serde_json::from_slice(&answer.body).unwrap();
                let status = &reply["response"]["status"];
                println!("{} {wrong}: {} {}", entry.path, status["code"], status["message"]);
                if entry.phase == Phase::Validating {
                    assert_eq!(answer.decision, Decision::Denied, "{}: {wrong}", entry.path);
                    asked += 1;
                } else {
                    assert_ne!(answer.decision, Decision::Patched, "{}: {wrong}", entry.path);
                }
            }
        }
        assert!(asked > 0, "{}", kind.name);
    }
}
