//! The claim that is made for an ephemeral volume (`ValidatePersistentVolumeClaimTemplate` in
//! `k8s.io/kubernetes/pkg/apis/core/validation`).

use admission::field::{Error, ErrorList};
use admission::format::Quantity;
use admission::format::metadata::{validate_annotations, validate_labels};
use admission::format::names::{dns1123_label, dns1123_subdomain};
use serde::Deserialize as _;
use serde_json::Value;

use super::Node;
use crate::sidecarset::validation::selectors::check_terms;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
/// Fields of `ObjectMeta` that a template has no use for, and whose empty value is no value.
const UNUSED_TEXTS: [&str; 6] = ["generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"];
/// The others: whatever they hold is a value.
const UNUSED: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "managedFields",
    "ownerReferences",
];

/// Checks `volumeClaimTemplate`.
pub fn check(template: &Node<'_>, errors: &mut ErrorList) {
    check_metadata(&template.child("metadata"), errors);
    let spec = template.child("spec");
    check_access_modes(&spec.child("accessModes"), errors);
    check_terms(&spec.child("selector"), errors);
    check_resources(&spec.child("resources"), errors);
    for class in ["storageClassName", "volumeAttributesClassName"] {
        spec.check_text(class, dns1123_subdomain, errors);
    }
    spec.check_word("volumeMode", &VOLUME_MODES, errors);
    check_sources(&spec, errors);
}

fn texts<'a>(map: &Node<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    map.entries().filter_map(|(key, value)| Some((key, value.value.as_str()?)))
}

fn check_metadata(metadata: &Node<'_>, errors: &mut ErrorList) {
    let (annotations, labels) = (metadata.child("annotations"), metadata.child("labels"));
    validate_annotations(texts(&annotations), &annotations.path, errors);
    validate_labels(texts(&labels), &labels.path, errors);
    let set_texts = UNUSED_TEXTS.into_iter().filter(|field| !metadata.text(field).is_empty());
    let set = UNUSED.into_iter().filter(|field| metadata.get(field).is_some());
    let generation = metadata.number("generation").filter(|&number| number != 0).map(|_| "generation");
    for field in set_texts.chain(set).chain(generation) {
        errors.push(Error::forbidden(&metadata.path.child(field), "cannot be set"));
    }
}

fn check_access_modes(modes: &Node<'_>, errors: &mut ErrorList) {
    if !matches!(modes.value, Value::Null | Value::Array(_)) {
        return;
    }
    if modes.items().next().is_none() {
        errors.push(Error::required(&modes.path, "at least 1 access mode is required"));
    }
    let (mut of_one_pod, mut others) = (false, false);
    for mode in modes.items() {
        let Some(text) = mode.value.as_str() else { continue };
        if !ACCESS_MODES.contains(&text) {
            errors.push(Error::not_supported(&mode.path, text, &ACCESS_MODES));
        }
        of_one_pod |= text == "ReadWriteOncePod";
        others |= text != "ReadWriteOncePod" && ACCESS_MODES.contains(&text);
    }
    if of_one_pod && others {
        errors.push(Error::forbidden(&modes.path, "may not use ReadWriteOncePod with other access modes"));
    }
}

/// The API server reads every amount, and has a rule for the requested storage alone.
fn check_resources(resources: &Node<'_>, errors: &mut ErrorList) {
    for list in ["limits", "requests"] {
        for (name, amount) in resources.child(list).entries() {
            let is_storage = list == "requests" && name == "storage";
            if !is_storage && (amount.value.is_string() || amount.value.is_number()) {
                check_amount(&amount, errors);
            }
        }
    }
    let requests = resources.child("requests");
    let path = requests.path.key("storage");
    match requests.get("storage") {
        None if matches!(requests.value, Value::Null | Value::Object(_)) => errors.push(Error::required(&path, "")),
        Some(storage) if storage.value.is_string() || storage.value.is_number() => {
            let storage = Node { value: storage.value, path: path.clone() };
            if let Some(amount) = check_amount(&storage, errors)
                && (amount.is_zero() || amount.is_negative())
            {
                errors.push(Error::invalid(&path, &amount, "must be greater than zero"));
            }
        }
        _ => {}
    }
}

fn check_amount(amount: &Node<'_>, errors: &mut ErrorList) -> Option<Quantity> {
    match Quantity::deserialize(amount.value) {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            errors.push(Error::invalid(&amount.path, amount.value, error.to_string()));
            None
        }
    }
}

/// What the volume is filled from.
fn check_sources(spec: &Node<'_>, errors: &mut ErrorList) {
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for source in source.iter().chain(&reference).filter(|source| source.value.is_object()) {
        check_source(source, errors);
    }
    if let Some(reference) = &reference {
        reference.check_text("namespace", dns1123_label, errors);
    }
    let (Some(source), Some(reference)) = (source, reference) else { return };
    let wrong = if !reference.text("namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if ["apiGroup", "kind", "name"].iter().any(|&field| differ(&source, &reference, field)) {
        "must match dataSourceRef"
    } else {
        return;
    };
    errors.push(Error::invalid(&source.path, source.value, wrong));
}

/// An absent group is another than an empty one; of the other fields absent and empty are the same.
fn differ(source: &Node<'_>, reference: &Node<'_>, field: &'static str) -> bool {
    source.text(field) != reference.text(field)
        || (field == "apiGroup" && source.get(field).is_some() != reference.get(field).is_some())
}

fn check_source(source: &Node<'_>, errors: &mut ErrorList) {
    source.require_text("name", errors);
    let kind = source.require_text("kind", errors);
    source.check_text("apiGroup", dns1123_subdomain, errors);
    if source.text("apiGroup").is_empty() && kind.is_some_and(|kind| kind != "PersistentVolumeClaim") {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(Error::invalid(&source.path, source.text("kind"), detail));
    }
}
