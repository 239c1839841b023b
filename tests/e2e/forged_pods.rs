//! Pods that a user of one namespace may store, whose annotations name tens of thousands of sets.

use serde_json::{Value, json};

/// As many as in the attack that they are from.
pub const PODS: usize = 150;
/// Names in each of their lists: as many as an annotation holds.
const NAMES: usize = 45_000;

/// The pods, of 256 KiB each.
pub fn forged_pods() -> Vec<Value> {
    let names: Vec<String> = (0..NAMES).map(|number| format!("{number:x}")).collect();
    let opened = names.join(",");
    let record: serde_json::Map<String, Value> =
        names.iter().take(NAMES / 4).map(|name| (name.clone(), json!({"hash": "v1:0"}))).collect();
    let record = Value::Object(record).to_string();
    let annotated = |number: usize| match number % 3 {
        0 => json!({"kruise.io/sidecarset-injected-list": opened}),
        1 => json!({"outrider.dev/injected": record}),
        _ => json!({"outrider.dev/skip": opened}),
    };
    let pod = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("forged-{number}"), "labels": {"app": "x"}, "annotations": annotated(number)},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
    };
    (0..PODS).map(pod).collect()
}
