//! Names: of the set, of its containers, and of the things that it refers to.

use std::collections::HashSet;

use admission::field::{Error, ErrorList};
use admission::format::names::{LABEL_MAX_BYTES, dns1123_label, dns1123_subdomain, label_value};
use serde_json::Value;

use super::node::Node;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::hot_upgrade::{self, is_hot};

/// The set's own name. It becomes part of revision names, and the key of the set in annotations.
pub fn check_set_name(metadata: &Node<'_>, errors: &mut ErrorList) {
    let name = metadata.text("name");
    // The API server makes the name from `generateName` after admission.
    if name.is_empty() && !metadata.text("generateName").is_empty() {
        return;
    }
    if name.is_empty() {
        return errors.push(Error::required(&metadata.path.child("name"), "name or generateName is required"));
    }
    if !dns1123_label(name).is_empty() {
        let detail = format!(
            "a SidecarSet's name must consist of lower case alphanumeric characters or '-', start and end with an alphanumeric \
             character, and be no more than {LABEL_MAX_BYTES} characters (e.g. 'log-agent')"
        );
        errors.push(Error::invalid(&metadata.path.child("name"), name, detail));
    }
}

/// Names of containers are unique in a pod, init containers and those that a hot upgrade derives included.
pub fn check_unique(spec: &Node<'_>, errors: &mut ErrorList) {
    let mut taken = HashSet::new();
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            let path = container.path.child("name");
            for (name, derived) in container.value.as_object().map(names_in_pod).unwrap_or_default() {
                if name.len() > LABEL_MAX_BYTES && derived {
                    let detail = format!(
                        "the hot upgrade's container {name:?} would have more than {LABEL_MAX_BYTES} characters"
                    );
                    errors.push(Error::invalid(&path, container.text("name"), detail));
                }
                if !taken.insert(name.clone()) {
                    errors.push(Error::duplicate(&path, name));
                }
            }
        }
    }
}

/// The names that a container of the set has in a pod, and whether they are derived: a container with a hot upgrade is there
/// twice, as `<name>-1` and `<name>-2`.
pub fn names_in_pod(container: &RawObject) -> Vec<(String, bool)> {
    match container.get("name").and_then(Value::as_str) {
        None | Some("") => Vec::new(),
        Some(name) if is_hot(container) => {
            let derived = hot_upgrade::names(name).map(|derived| (derived, true));
            std::iter::once((name.to_owned(), false)).chain(derived).collect()
        }
        Some(name) => vec![(name.to_owned(), false)],
    }
}

/// The names that the spec refers to.
pub fn check_references(spec: &Node<'_>, errors: &mut ErrorList) {
    spec.check_text("namespace", dns1123_label, errors);
    // The version becomes a label of the revision.
    spec.check_text("customVersion", label_value, errors);
    let mut seen = HashSet::new();
    for secret in spec.child("imagePullSecrets").items().filter(|secret| secret.value.is_object()) {
        secret.check_text("name", dns1123_subdomain, errors);
        if let Some(name) = secret.require_text("name", errors)
            && !seen.insert(name)
        {
            errors.push(Error::duplicate(&secret.path.child("name"), name));
        }
    }
}
