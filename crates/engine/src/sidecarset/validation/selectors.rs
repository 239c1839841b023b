//! Which pods, in which namespaces.

use admission::field::{Error, ErrorList};
use admission::format::LabelSelector;
use admission::format::selector::{Requirement, Selector};
use serde::Deserialize as _;

use super::node::Node;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use crate::snapshot::Exclusion;

/// Checks the three fields that select.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    let (selector, namespaces) = (spec.child("selector"), spec.child("namespaceSelector"));
    let has_namespace = !spec.text("namespace").is_empty();
    let narrowed = has_namespace || has_terms(&namespaces);
    if !selector.is_there() {
        errors.push(Error::required(&selector.path, "no selector defined for sidecarset"));
    } else if selector.value.is_object() && !has_terms(&selector) && !narrowed {
        let detail =
            "empty selector is not valid for sidecarset. It may be empty only beside a namespaceSelector or namespace";
        errors.push(Error::invalid(&selector.path, selector.value, detail));
    }
    if namespaces.value.is_object() && !has_terms(&namespaces) {
        let detail = "empty namespaceSelector is not valid for sidecarset. Leave it out to reach every namespace";
        errors.push(Error::invalid(&namespaces.path, namespaces.value, detail));
    }
    if namespaces.is_there() && has_namespace {
        errors.push(Error::forbidden(&namespaces.path, "may not be set together with namespace; choose one"));
    }
    check_terms(&selector, errors);
    check_terms(&namespaces, errors);
}

/// Checks the terms of a label selector, if there is one.
pub fn check_terms(node: &Node<'_>, errors: &mut ErrorList) {
    // What cannot be decoded has a field of the wrong type, and the schema walk has named it.
    if let Ok(selector) = LabelSelector::deserialize(node.value) {
        selector.validate(&node.path, errors);
    }
}

/// Whether a label selector has terms.
pub fn has_terms(node: &Node<'_>) -> bool {
    let full = |field: &'static str| match node.child(field).value {
        serde_json::Value::Object(map) => !map.is_empty(),
        serde_json::Value::Array(list) => !list.is_empty(),
        other => !other.is_null(),
    };
    full("matchLabels") || full("matchExpressions")
}

/// The selector in the form that decides, if it is a valid one.
pub fn compiled(node: &Node<'_>) -> Option<Selector> {
    LabelSelector::deserialize(node.value).ok()?.compile().ok()
}

/// Warnings about a set that no pod will ever match.
pub fn warn(spec: &Node<'_>, exclusion: &Exclusion, warnings: &mut Vec<String>) {
    let namespace = spec.text("namespace");
    if !namespace.is_empty() && exclusion.namespaces.contains(namespace) {
        warnings.push(format!(
            "spec.namespace: {namespace} is excluded from injection, so the set will never be injected into any pod"
        ));
    }
    for field in ["selector", "namespaceSelector"] {
        if let Some(selector) = compiled(&spec.child(field))
            && !selector.overlaps(&selector)
        {
            warnings.push(format!(
                "spec.{field}: the conditions contradict each other, so the set will never match any pod"
            ));
        }
    }
    let Some(selector) = compiled(&spec.child("namespaceSelector")) else { return };
    for requirement in selector.requirements() {
        if let Requirement::In(key, names) = requirement
            && key == NAMESPACE_NAME_LABEL
            && names.iter().all(|name| exclusion.namespaces.contains(name))
        {
            warnings.push(format!(
                "spec.namespaceSelector: selects only namespaces that are excluded from injection ({}), so the set will never be \
                 injected into any pod",
                names.join(", ")
            ));
        }
    }
}
