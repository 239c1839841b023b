//! What makes a `SidecarSet` wrong, and what its author would want to know.
//!
//! A validating webhook runs after defaulting and after the API server's own schema check. Offline there is no API server, so the
//! schema is checked here as well. The object is read as it was sent and every fault is reported at once.

mod allowed;
mod app_containers;
mod canary;
mod compiles;
pub mod conflicts;
mod hot_upgrade;
mod metadata;
mod names;
mod node;
mod older;
mod overrides;
mod pod;
mod resources;
mod revision;
mod security;
mod selectors;
mod shape;
mod strategy;
pub mod template;
#[cfg(test)]
mod tests;
mod transfer;

use std::collections::HashMap;

use admission::field::{Error, ErrorList};
use admission::review::is_terminating;
use admission::{Denial, Findings, ObjectLimit, Reason, Request, Validating};
use serde_json::Value;

use self::node::Node;
pub use self::shape::{FieldValidation, told, unknown_fields};
use super::api::{API_VERSION, KIND};
use super::size::{LIMIT, beyond};
use crate::snapshot::Snapshot;

/// Validates a `SidecarSet` when it is created and when it changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SidecarSetValidation;

impl Validating<Snapshot> for SidecarSetValidation {
    type Object<'a> = Value;

    const LIMIT: Option<ObjectLimit> = Some(LIMIT);

    fn create(&self, object: &Value, request: &Request<'_, Value>, cluster: &Snapshot, findings: &mut Findings) {
        // An old object that cannot be decoded: see `Validating`.
        if request.is_of_leaving(object) {
            findings.reason = Reason::TERMINATING;
        } else if is_served(object, findings) {
            create(object, FieldValidation::of(request), cluster, findings);
        }
    }

    fn update(
        &self,
        object: &Value,
        old: &Value,
        request: &Request<'_, Value>,
        cluster: &Snapshot,
        findings: &mut Findings,
    ) {
        if is_served(object, findings) {
            update(object, old, FieldValidation::of(request), cluster, findings);
        }
    }
}

/// Whether the object is a set of this version. The API server converts what it sends; people post what they have.
fn is_served(object: &Value, findings: &mut Findings) -> bool {
    let differs = |field: &str, wanted: &str| object.get(field).is_some_and(|found| *found != wanted);
    let served = !differs("apiVersion", API_VERSION) && !differs("kind", KIND);
    if !served {
        let message =
            format!("this path serves {API_VERSION} {KIND}, and apiVersion and kind of the object say otherwise");
        findings.denial = Some((Reason::NOT_SERVED, Denial::bad_request(message)));
    }
    served
}

/// Faults that are listed one by one: a reply must not be many times as long as the request.
const FAULTS_TOLD: usize = 100;

/// Validates a new set. Whatever its author wrote into `deletionTimestamp`, it is not being deleted.
pub fn create(object: &Value, validation: FieldValidation, cluster: &Snapshot, findings: &mut Findings) {
    let faults = faults(object, validation, cluster, &mut findings.warnings);
    tell(faults.into_iter().collect(), findings);
    warn(object, cluster, &mut findings.warnings);
}

/// Validates a change. A fault that was there before does not refuse it: else a set that an older build let through could not even
/// be relabelled. It becomes a warning.
pub fn update(object: &Value, old: &Value, validation: FieldValidation, cluster: &Snapshot, findings: &mut Findings) {
    if is_terminating(old) {
        findings.reason = Reason::TERMINATING;
        return;
    }
    let mut faults = faults(object, validation, cluster, &mut findings.warnings);
    canary::check_change(&Node::root(object, "metadata"), &Node::root(old, "metadata"), &mut faults);
    if !faults.is_empty() {
        let mut new = Vec::new();
        let mut known = HashMap::<FaultKey, usize>::new();
        for error in self::faults(old, validation, cluster, &mut Vec::new()) {
            *known.entry(fault(&error)).or_default() += 1;
        }
        for error in faults {
            match known.get_mut(&fault(&error)) {
                Some(left @ 1..) => {
                    *left -= 1;
                    findings.warnings.push(format!("{error} (allowed, as it was so before)"));
                }
                _ => new.push(error),
            }
        }
        tell(new, findings);
    }
    warn(object, cluster, &mut findings.warnings);
}

fn tell(faults: Vec<Error>, findings: &mut Findings) {
    if let Some(left_out @ 1..) = faults.len().checked_sub(FAULTS_TOLD) {
        findings.warnings.push(format!("{left_out} more errors are not listed"));
    }
    findings.errors.extend(faults.into_iter().take(FAULTS_TOLD));
}

/// Identifies a fault when positions in lists have changed.
type FaultKey = (String, Option<String>, String);

fn fault(error: &Error) -> FaultKey {
    let mut field = String::with_capacity(error.field.len());
    let mut parts = error.field.split('[');
    field.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (key, rest) = part.split_once(']').unwrap_or((part, ""));
        let is_position = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
        field.push('[');
        field.push_str(if is_position { "" } else { key });
        field.push(']');
        field.push_str(rest);
    }
    (field, error.bad_value.clone(), format!("{:?}: {}", error.kind, error.detail))
}

/// Everything that is wrong. Unknown fields, which only this walk sees, become warnings, or errors where they are to be refused.
fn faults(object: &Value, validation: FieldValidation, cluster: &Snapshot, warnings: &mut Vec<String>) -> ErrorList {
    let mut errors = named_faults(object, validation, cluster, warnings);
    if errors.is_empty() {
        compiles::check(object, &mut errors);
    }
    errors
}

/// What the checks say that name each fault by its field.
fn named_faults(
    object: &Value,
    validation: FieldValidation,
    cluster: &Snapshot,
    warnings: &mut Vec<String>,
) -> ErrorList {
    let (metadata, spec) = (Node::root(object, "metadata"), Node::root(object, "spec"));
    let mut errors = ErrorList::new();
    if let Some((list, found, most)) = beyond(spec.value) {
        let list = list.map(|list| spec.path.child(list));
        errors.push(Error::too_many(list.as_ref().unwrap_or(&spec.path), found, most));
        return errors;
    }
    names::check_set_name(&metadata, &mut errors);
    canary::check(&metadata, &spec, &cluster.sets, &mut errors);
    shape::check(spec.value, &spec.path, validation, &mut errors, warnings);
    selectors::check(&spec, &mut errors);
    check_not_empty(&spec, &mut errors);
    names::check_unique(&spec, &mut errors);
    names::check_references(&spec, &mut errors);
    strategy::check(&spec, &mut errors);
    revision::check(&metadata, &spec, cluster, &mut errors);
    revision::check_version(&metadata, &spec, &mut errors);
    transfer::check(&spec, &mut errors);
    hot_upgrade::check(&spec, &mut errors);
    self::metadata::check(&metadata, &spec, &cluster.configuration, &mut errors);
    allowed::check(&spec, &mut errors);
    resources::check(&spec, &mut errors);
    app_containers::check(&spec, &mut errors);
    overrides::check(&spec, &mut errors);
    security::check(&spec, &mut errors);
    pod::check(&spec, &mut errors);
    conflicts::check(&metadata, &spec, &cluster.sets, &mut errors);
    errors
}

fn check_not_empty(spec: &Node<'_>, errors: &mut ErrorList) {
    let is_empty = |list: &'static str| match spec.child(list).value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if is_empty("containers") && is_empty("initContainers") && is_empty("appContainers") {
        let detail = "no containers, initContainers or appContainers defined for sidecarset";
        errors.push(Error::required(&spec.path.child("containers"), detail));
    }
}

fn warn(object: &Value, cluster: &Snapshot, warnings: &mut Vec<String>) {
    let spec = Node::root(object, "spec");
    selectors::warn(&spec, &cluster.exclusion, warnings);
    strategy::warn(&spec, warnings);
    revision::warn(&spec, warnings);
    revision::warn_of_versions(&Node::root(object, "metadata"), &spec, warnings);
    allowed::warn(&spec, warnings);
    security::warn(&spec, warnings);
    transfer::warn(&spec, warnings);
    if let Some(minor) = cluster.minor_version {
        older::warn(&spec, minor, warnings);
    }
}
