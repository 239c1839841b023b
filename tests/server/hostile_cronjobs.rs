//! Reviews of `CronJob`s, each as large as what is decoded, for a process and for the test that counts what a decision allocates.

use serde_json::{Value, json};

/// Objects as large as any that is decoded, of as many values, and such as have a fault in every value.
pub fn reviews() -> Vec<(String, String)> {
    let pad = "x".repeat(1_100_000);
    let maps = |count: usize| vec![json!({"": 0}); count];
    let containers = |one: Value, count: usize| json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"containers": vec![one; count]}}}}});
    let objects = [
        ("managed fields", json!({"name": "a", "managedFields": maps(19_900)}), containers(json!({"name": "a"}), 1)),
        ("annotations", json!({"name": "a", "annotations": {"a": pad}}), json!({"schedule": pad})),
        ("maps in the template", json!({"name": "a"}), json!({"schedule": "@x", "jobTemplate": maps(19_900)})),
        ("a list for a flag", json!({"name": "a"}), json!({"schedule": "@x", "suspend": maps(19_900)})),
        ("empty containers", json!({"name": "a"}), containers(json!({}), 39_900)),
        ("numbers for containers", json!({"name": "a"}), containers(json!(0), 39_900)),
        ("numbers in containers", json!({"name": "a"}), containers(json!({"name": 0, "image": 0}), 13_000)),
        ("a long name", json!({"name": pad}), json!({"schedule": "@x"})),
    ];
    let mut reviews = Vec::new();
    for (what, metadata, spec) in objects {
        let object =
            json!({"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "metadata": metadata, "spec": spec});
        let mut changed = object.clone();
        changed["spec"]["startingDeadlineSeconds"] = json!(5);
        for (operation, old) in [("CREATE", Value::Null), ("UPDATE", object)] {
            let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                "uid": "u", "operation": operation, "name": "a", "namespace": "b", "object": changed, "oldObject": old}});
            reviews.push((format!("{operation} with {what}"), review.to_string()));
        }
    }
    reviews
}
