//! `transferEnv`: which variables of which container; and what sharing means for a set that no pod may evade.

use admission::field::{Error, ErrorList};
use admission::format::names::{dns1123_label, env_var_name};

use super::node::Node;
use super::pod::check_field_ref;
use crate::sidecarset::vocabulary::{OPT_OUT_DENIED, SHARE_ENABLED};

/// Where the name of a container may come from.
const SOURCES: [&str; 2] = ["metadata.labels['<key>']", "metadata.annotations['<key>']"];

/// Checks every entry of every container.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            container.child("transferEnv").items().for_each(|entry| check_entry(&entry, errors));
        }
    }
}

/// Warns of a name that has no effect, as in `OpenKruise`, and of mounts by which a pod may evade the set.
pub fn warn(spec: &Node<'_>, warnings: &mut Vec<String>) {
    let is_denied = spec.text("optOut") == OPT_OUT_DENIED;
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            let sharing = container.child("shareVolumePolicy");
            if is_denied && sharing.text("type") == SHARE_ENABLED {
                warnings.push(format!(
                    "{}: the author of a pod decides what the container mounts, also over its own programs; no pod \
                     may opt out of the set, and this lets one evade it",
                    sharing.path
                ));
            }
            let entries = container.child("transferEnv");
            let both = |entry: &Node<'_>| {
                !entry.text("sourceContainerName").is_empty() && entry.get("sourceContainerNameFrom").is_some()
            };
            if let Some(entry) = entries.items().find(both) {
                warnings.push(format!(
                    "{}: has no effect beside sourceContainerNameFrom",
                    entry.path.child("sourceContainerName")
                ));
            }
        }
    }
}

fn check_entry(entry: &Node<'_>, errors: &mut ErrorList) {
    if !entry.value.is_object() {
        return;
    }
    if let Some(from) = entry.get("sourceContainerNameFrom") {
        check_source(&from, errors);
    } else {
        entry.require_text("sourceContainerName", errors);
        entry.check_text("sourceContainerName", dns1123_label, errors);
    }
    entry.check_text("envName", env_var_name, errors);
    let names = entry.child("envNames");
    for name in names.items() {
        let Some(text) = name.value.as_str() else { continue };
        let wrong = if text.is_empty() { vec!["must not be empty".to_owned()] } else { env_var_name(text) };
        errors.extend(wrong.into_iter().map(|message| Error::invalid(&name.path, text, message)));
    }
    if entry.text("envName").is_empty() && names.items().next().is_none() {
        errors.push(Error::required(&entry.path.child("envName"), "envName or envNames is required"));
    }
}

fn check_source(from: &Node<'_>, errors: &mut ErrorList) {
    match from.get("fieldRef") {
        Some(field) => check_field_ref(&field, &SOURCES, errors),
        None => errors.push(Error::required(&from.path.child("fieldRef"), "")),
    }
}
