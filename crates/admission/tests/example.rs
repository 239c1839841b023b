//! The example answers as its first lines say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

#[allow(dead_code, reason = "nobody calls main")]
#[path = "../examples/backup_webhook.rs"]
mod backup_webhook;

fn answer(path: &str, request: &Value) -> Value {
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let reply = backup_webhook::answer(path, body.to_string().as_bytes()).unwrap();
    serde_json::from_slice::<Value>(&reply).unwrap()["response"].take()
}

#[test]
fn the_example_defaults_and_validates() {
    let create = |object| {
        json!({"uid": "u", "operation": "CREATE", "name": "nightly", "object": object,
            "kind": {"group": "acme.example", "version": "v1", "kind": "Backup"}})
    };
    let defaulted = answer("/mutate-acme-example-v1-backup", &create(json!({"spec": {}})));
    assert_eq!((&defaulted["allowed"], &defaulted["patchType"]), (&json!(true), &json!("JSONPatch")));

    let refused = answer("/validate-acme-example-v1-backup", &create(json!({"spec": {"keep": 0}})));
    assert_eq!(
        refused["status"]["message"],
        r#"Backup.acme.example "nightly" is invalid: spec.keep: Invalid value: 0: must be at least 1"#
    );

    let mut update = create(json!({"spec": {"keep": -1}}));
    update["operation"] = "UPDATE".into();
    update["oldObject"] = json!({"spec": {"keep": 1}});
    assert_eq!(answer("/validate-acme-example-v1-backup", &update)["status"]["code"], 422);

    let allowed = answer("/validate-acme-example-v1-backup", &create(json!({"spec": {"keep": 7}})));
    assert_eq!(allowed, json!({"uid": "u", "allowed": true}));
}

#[test]
fn the_example_serves_only_its_paths() {
    let error = backup_webhook::answer("/nowhere", b"{}").unwrap_err();
    assert_eq!(error.to_string(), r#"nothing is served at "/nowhere""#);
}
