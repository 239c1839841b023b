//! What a patch may not do: take away or change what the pod had, or put it elsewhere than where patches put things.

use serde_json::{Map, Value};

/// Annotations whose value a patch may change: Outrider's record, and those that sets of the targets overwrite, merge or extend.
const CHANGED_ANNOTATIONS: [&str; 6] = [
    "outrider.dev/injected",
    "outrider.dev/sidecarset-working-hotupgrade-container",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
    "example.com/overwritten",
    "example.com/merged",
    "kubectl.kubernetes.io/default-container",
];

/// Fields of a pod's spec that a patch may add to a pod without them.
const ADDED_TO_SPEC: [&str; 4] = ["containers", "initContainers", "volumes", "imagePullSecrets"];
/// Fields of the pod's own containers that a patch may add.
const ADDED_TO_CONTAINERS: [&str; 2] = ["env", "volumeMounts"];

/// Checks that every field of the pod is in the patched pod as it was, and that nothing was added where no patch adds.
pub fn check(pod: &Value, patched: &Value) {
    let mut path = Vec::new();
    if let Err(at) = keeps(pod, patched, &mut path) {
        panic!("{at} was taken away or changed: {pod} became {patched}");
    }
}

/// Whether `new` holds all of `old`. The error is the path of what it does not hold.
fn keeps(old: &Value, new: &Value, path: &mut Vec<String>) -> Result<(), String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => keeps_fields(old, new, path),
        (Value::Array(old), Value::Array(new)) => keeps_elements(old, new, path),
        _ if old == new => Ok(()),
        // A list or map of the pod that is null holds nothing.
        (Value::Null, Value::Array(_) | Value::Object(_)) => Ok(()),
        (Value::String(_), Value::String(_)) if is_changed_annotation(path) => Ok(()),
        _ => Err(format!("/{}", path.join("/"))),
    }
}

fn is_changed_annotation(path: &[String]) -> bool {
    matches!(path, [metadata, annotations, key]
        if metadata == "metadata" && annotations == "annotations" && CHANGED_ANNOTATIONS.contains(&key.as_str()))
}

fn keeps_fields(old: &Map<String, Value>, new: &Map<String, Value>, path: &mut Vec<String>) -> Result<(), String> {
    for (key, value) in old {
        path.push(key.clone());
        match new.get(key) {
            Some(now) => keeps(value, now, path)?,
            None => return Err(format!("/{}", path.join("/"))),
        }
        path.pop();
    }
    match new.keys().find(|key| !old.contains_key(*key) && !may_be_added(path, key)) {
        Some(key) => Err(format!("/{}/{key}, which no patch adds,", path.join("/"))),
        None => Ok(()),
    }
}

fn may_be_added(path: &[String], key: &str) -> bool {
    match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Of a pod that has none: the API server refuses it, and the webhook may be called with it all the same.
        [] => matches!(key, "metadata" | "spec"),
        ["metadata"] => key == "annotations",
        ["metadata", "annotations"] => true,
        ["spec"] => ADDED_TO_SPEC.contains(&key),
        ["spec", "containers" | "initContainers", _] => ADDED_TO_CONTAINERS.contains(&key),
        _ => false,
    }
}

/// The old elements are among the new ones, in their order.
fn keeps_elements(old: &[Value], new: &[Value], path: &mut Vec<String>) -> Result<(), String> {
    let depth = path.len();
    let mut rest = new.iter();
    for (index, element) in old.iter().enumerate() {
        path.push(index.to_string());
        if !rest.any(|candidate| {
            let kept = keeps(element, candidate, path).is_ok();
            path.truncate(depth + 1);
            kept
        }) {
            return Err(format!("/{}", path.join("/")));
        }
        path.pop();
    }
    Ok(())
}
