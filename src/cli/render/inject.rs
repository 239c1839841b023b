//! One object: its pod, what the webhooks make of that pod, and the same change in the object.

use admission::Reason;
use serde_json::{Map, Value, json};

use super::unchanged::why;
use crate::admit::{self, Admitted, Creation, Patch};
use crate::cli::offline::World;
use crate::cli::streams::Outcome;
use crate::manifest::{Identity, Manifest, identity, pod_template};
use crate::pod::older;

/// An object of the output.
pub struct Rendered {
    /// `file:line`.
    pub source: String,
    /// Kind, namespace and name for messages.
    pub title: String,
    /// What it is.
    pub identity: Identity,
    /// As it came.
    pub before: Value,
    /// As it goes.
    pub after: Value,
    /// From the one to the other.
    pub patch: Vec<Value>,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Whether it has pods, or is one.
    pub has_pods: bool,
    /// Sentences about what was replaced.
    pub replaced: Vec<String>,
    /// Why its pods stay as they are, where no warning says so.
    pub unchanged: Option<String>,
}

/// An object that keeps anything from being printed.
pub struct Failure {
    /// `file:line`.
    pub source: String,
    /// Kind, namespace and name for messages.
    pub title: String,
    /// Why.
    pub message: String,
    /// Warnings up to here.
    pub warnings: Vec<String>,
    /// Refused, or not readable.
    pub outcome: Outcome,
}

/// Renders an object; without a pod template it stays as it is.
pub fn render(manifest: Manifest, namespace: &str, world: &World) -> Result<Rendered, Failure> {
    let Manifest { source, value } = manifest;
    let identity = match identity(&value) {
        Ok(identity) => identity,
        Err(error) => return Err(bad_input(source, "object".to_owned(), error.to_string())),
    };
    let Some(at) = pod_template(&identity.api_version, &identity.kind) else {
        let title = title(&identity, None, &value);
        return Ok(untouched(source, title, identity, value, Vec::new()));
    };
    let namespace = identity.namespace.clone().unwrap_or_else(|| namespace.to_owned());
    let title = title(&identity, Some(&namespace), &value);
    if value.pointer(at).is_none_or(Value::is_null) {
        // As the Rollout of Argo that refers to a Deployment.
        let warning = format!("{} is missing, so there is no pod to look at", field(at));
        return Ok(untouched(source, title, identity, value, vec![warning]));
    }
    let pod = match pod(&value, at, &identity, &namespace) {
        Ok(pod) => pod,
        Err(message) => return Err(bad_input(source, title, message)),
    };
    let (stripped, taken_out, replaced) = match without_older_forms(&pod, &namespace, world) {
        Ok(stripped) => stripped,
        Err(message) => return Err(bad_input(source, title, message)),
    };
    let creation = Creation { namespace: &namespace, object: &stripped };
    match admit::create(&world.registry, &creation, &world.snapshot) {
        Ok(Admitted::Allowed(allowed)) => {
            let patch = in_object([taken_out, allowed.patch].concat(), at, &value);
            let mut after = value.clone();
            let warnings = allowed.warnings;
            let unchanged = allowed
                .reason
                .filter(|_| patch.is_empty() && warnings.is_empty())
                .map(|reason| why(reason, &pod, &namespace, &world.snapshot));
            match (Patch { operations: patch.clone() }).apply(&mut after) {
                Ok(()) => Ok(Rendered {
                    source,
                    title,
                    identity,
                    before: value,
                    after,
                    patch,
                    warnings,
                    has_pods: true,
                    replaced,
                    unchanged,
                }),
                Err(error) => Err(bad_input(source, title, error.to_string())),
            }
        }
        Ok(Admitted::Refused { reason, status, warnings }) => {
            let outcome = if reason == Reason::Undecodable { Outcome::BadInput } else { Outcome::Refused };
            Err(Failure { source, title, message: status.message, warnings, outcome })
        }
        Err(error) => Err(bad_input(source, title, error.to_string())),
    }
}

fn untouched(source: String, title: String, identity: Identity, value: Value, warnings: Vec<String>) -> Rendered {
    let (after, patch, has_pods, unchanged) = (value.clone(), Vec::new(), !warnings.is_empty(), None);
    let replaced = Vec::new();
    Rendered { source, title, identity, before: value, after, patch, warnings, has_pods, replaced, unchanged }
}

/// A JSON pointer as a field path.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn bad_input(source: String, title: String, message: String) -> Failure {
    Failure { source, title, message, warnings: Vec::new(), outcome: Outcome::BadInput }
}

fn title(identity: &Identity, namespace: Option<&str>, value: &Value) -> String {
    let name = match (identity.name.as_str(), value.pointer("/metadata/generateName").and_then(Value::as_str)) {
        ("", Some(prefix)) => format!("{prefix}*"),
        ("", None) => "without a name".to_owned(),
        (name, _) => name.to_owned(),
    };
    match namespace.or(identity.namespace.as_deref()) {
        Some(namespace) => format!("{} {namespace}/{name}", identity.kind),
        None => format!("{} {name}", identity.kind),
    }
}

/// The pod as its controller would create it: metadata and spec of the template, in the namespace of the object, with a name
/// that the API server is to complete.
fn pod(value: &Value, at: &str, identity: &Identity, namespace: &str) -> Result<Value, String> {
    let Some(template @ Value::Object(_)) = value.pointer(at) else {
        return Err(format!("{} must be an object with metadata and spec", field(at)));
    };
    let mut metadata = match template.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(format!("{} must be an object", field(&format!("{at}/metadata")))),
    };
    metadata.insert("namespace".to_owned(), namespace.into());
    if !at.is_empty() {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), format!("{}-", identity.name).into());
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    if let (Value::Object(pod), Value::Object(template)) = (&mut pod, template) {
        // Whatever else a newer API has beside metadata and spec.
        for (name, field) in template.iter().filter(|(name, _)| *name != "metadata") {
            pod.insert(name.clone(), field.clone());
        }
    }
    Ok(pod)
}

/// The pod without what its record says is of older forms of its sets, the patch that makes it so, and sentences about it.
fn without_older_forms(
    pod: &Value,
    namespace: &str,
    world: &World,
) -> Result<(Value, Vec<Value>, Vec<String>), String> {
    let taken_out = older::take_out(pod, namespace, &world.snapshot);
    let (operations, replaced) = taken_out.map_err(|error| error.to_string())?;
    let mut stripped = pod.clone();
    let patch = Patch { operations };
    patch.apply(&mut stripped).map_err(|error| error.to_string())?;
    Ok((stripped, patch.operations, replaced))
}

/// The patch of the pod as a patch of the object whose template is at `at`.
fn in_object(patch: Vec<Value>, at: &str, object: &Value) -> Vec<Value> {
    let metadata = format!("{at}/metadata");
    let mut moved: Vec<Value> = patch.into_iter().map(|operation| below(operation, at)).collect();
    let touched = moved.iter().any(|operation| {
        operation.get("path").and_then(Value::as_str).is_some_and(|path| path.starts_with(&format!("{metadata}/")))
    });
    // The pod had metadata, its template need not have any.
    if touched && object.pointer(&metadata).is_none_or(Value::is_null) {
        moved.insert(0, json!({"op": "add", "path": metadata, "value": {}}));
    }
    moved
}

fn below(mut operation: Value, at: &str) -> Value {
    for field in ["path", "from"] {
        if let Some(Value::String(pointer)) = operation.get_mut(field) {
            pointer.insert_str(0, at);
        }
    }
    operation
}
