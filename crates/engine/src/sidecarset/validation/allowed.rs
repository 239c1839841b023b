//! `spec.allowedChanges`: what may be another in the pods.

use std::collections::HashSet;

use admission::field::{Error, ErrorList};
use serde_json::Value;

use super::node::Node;
use crate::sidecarset::sameness::clean_path;

/// Entries of a list: each is compared with what the author of a pod writes.
const MAX_ENTRIES: usize = 64;

/// Checks the field. Words of `fields` are checked with the schema.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    let allowed = spec.child("allowedChanges");
    for list in ["env", "mountPaths", "volumes", "fields"] {
        let list = allowed.child(list);
        let entries = list.items().count();
        if entries > MAX_ENTRIES {
            errors.push(Error::too_many(&list.path, entries, MAX_ENTRIES));
        }
    }
    each_text(&allowed.child("env"), errors, |name| {
        name.contains('=').then_some("must be the name of a variable, which has no '='; * matches any characters")
    });
    each_text(&allowed.child("mountPaths"), errors, |path| {
        if !path.starts_with(['/', '*']) {
            return Some("must be an absolute path; * matches any characters");
        }
        // No path of a mount that is compared with it reads so.
        (clean_path(path) != Some(path)).then_some("must have no '.', '..' or empty part and no '/' at its end")
    });
    let volumes = spec.child("volumes");
    let known: HashSet<&str> = volumes.items().map(|volume| volume.text("name")).collect();
    each_text(&allowed.child("volumes"), errors, |name| {
        (!known.contains(name)).then_some("must be the name of a volume of the set (spec.volumes)")
    });
}

/// Warns where nearly everything is allowed.
pub fn warn(spec: &Node<'_>, warnings: &mut Vec<String>) {
    let allowed = spec.child("allowedChanges");
    for (list, what) in [
        ("env", "every variable, also those that decide what a program loads, such as LD_PRELOAD"),
        ("mountPaths", "mounts at every path, also over the container's programs"),
    ] {
        let entries = allowed.child(list);
        let is_everything = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte == b'*');
        if let Some(entry) = entries.items().find(|entry| entry.value.as_str().is_some_and(is_everything)) {
            warnings.push(format!("{}: allows {what}; name what you need", entry.path));
        }
    }
}

fn each_text(list: &Node<'_>, errors: &mut ErrorList, fault: impl Fn(&str) -> Option<&'static str>) {
    for entry in list.items() {
        match entry.value {
            Value::String(text) if text.is_empty() => errors.push(Error::required(&entry.path, "")),
            Value::String(text) => {
                errors.extend(fault(text).map(|detail| Error::invalid(&entry.path, text.as_str(), detail)));
            }
            // The schema walk names what is no text.
            _ => {}
        }
    }
}
