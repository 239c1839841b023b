//! `spec.podOverrides`: what a pod may change for itself.

use std::collections::{BTreeMap, HashSet};

use admission::field::{Error, ErrorList};
use admission::format::names::env_var_name;
use serde_json::Value;

use super::node::Node;
use super::{app_containers, names, pod};
use crate::sidecarset::mark;
use crate::sidecarset::resources::WITH_DEFAULTS;

/// Checks the field.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    let overrides = spec.child("podOverrides");
    check_names(spec, &overrides.child("containerNames"), errors);
    for name in overrides.child("env").items() {
        match name.value {
            Value::String(text) if text.is_empty() => errors.push(Error::required(&name.path, "")),
            Value::String(text) if text == mark::NAME => {
                let detail = "is the variable by which injected containers are recognised, and no pod may change it";
                errors.push(Error::invalid(&name.path, text.as_str(), detail));
            }
            Value::String(text) => {
                let wrong = env_var_name(text).into_iter();
                errors.extend(wrong.map(|message| Error::invalid(&name.path, text.as_str(), message)));
            }
            _ => {}
        }
    }
    check_bounds(&overrides.child("resources"), errors);
}

fn check_names(spec: &Node<'_>, list: &Node<'_>, errors: &mut ErrorList) {
    app_containers::check_names(list, errors);
    let mut known = HashSet::new();
    let mut pairs = BTreeMap::new();
    for containers in ["initContainers", "containers"] {
        for container in spec.child(containers).items() {
            known.insert(container.text("name"));
            let in_pod = container.value.as_object().map(names::names_in_pod).unwrap_or_default().into_iter();
            pairs.extend(in_pod.filter(|(_, derived)| *derived).map(|(name, _)| (name, container.text("name"))));
        }
    }
    for name in list.items() {
        let Some(text) = name.value.as_str().filter(|text| !text.is_empty() && !known.contains(*text)) else {
            continue;
        };
        errors.push(match pairs.get(text) {
            Some(pair) => {
                let detail =
                    format!("is one of the two of {pair:?} (HotUpgrade), which change together; name {pair:?}");
                Error::invalid(&name.path, text, detail)
            }
            None => Error::not_found(&name.path, text),
        });
    }
}

fn check_bounds(bounds: &Node<'_>, errors: &mut ErrorList) {
    let mut max = BTreeMap::new();
    for (list, is_max) in [("max", true), ("min", false)] {
        for (name, amount) in bounds.child(list).entries() {
            if !WITH_DEFAULTS.contains(&name) {
                errors.push(Error::not_supported(&amount.path, name, &WITH_DEFAULTS));
                continue;
            }
            let Some(quantity) = pod::check_amount(&amount, errors) else { continue };
            match max.get(name) {
                _ if is_max => drop(max.insert(name, quantity)),
                Some(max) if quantity > *max => {
                    errors.push(Error::invalid(
                        &amount.path,
                        &quantity,
                        format!("must be less than or equal to max {max}"),
                    ));
                }
                None if bounds.child("max").value.get(name).is_none_or(Value::is_null) => {
                    let detail = "without a max the resource may not be changed at all";
                    errors.push(Error::required(&bounds.child("max").path.key(name), detail));
                }
                _ => {}
            }
        }
    }
}
