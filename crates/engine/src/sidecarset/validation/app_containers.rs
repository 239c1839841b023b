//! `spec.appContainers`: additions to the pod's own containers.

use std::collections::HashSet;

use admission::field::{Error, ErrorList};
use admission::format::names::dns1123_label;
use serde_json::Value;

use super::node::Node;
use super::pod;
use crate::sidecarset::canonical::is_empty;

/// Checks the entries.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    for entry in spec.child("appContainers").items().filter(|entry| entry.value.is_object()) {
        if is_empty(entry.child("env").value) && is_empty(entry.child("volumeMounts").value) {
            errors.push(Error::required(&entry.path, "an entry has env or volumeMounts"));
        }
        check_names(&entry.child("containerNames"), errors);
        let mut names = HashSet::new();
        for variable in entry.child("env").items() {
            let name = variable.text("name");
            if !name.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(&variable.path.child("name"), name));
            }
        }
        pod::check_additions(&entry, spec, errors);
    }
}

/// Names of containers. An empty list would mean none.
pub fn check_names(list: &Node<'_>, errors: &mut ErrorList) {
    if list.value.as_array().is_some_and(Vec::is_empty) {
        errors.push(Error::required(&list.path, "at least one name; leave it out for all containers"));
    }
    for name in list.items() {
        if let Value::String(text) = name.value {
            errors.extend(dns1123_label(text).into_iter().map(|message| Error::invalid(&name.path, text, message)));
        }
    }
}
