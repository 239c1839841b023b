//! Requests and limits.

use std::collections::BTreeMap;

use admission::field::{Error, ErrorList};
use admission::format::Quantity;
use admission::format::names::dns1123_label;
use serde::Deserialize as _;
use serde_json::Value;

use super::Node;
use crate::resource_name::{self, HUGE_PAGES, may_overcommit};

/// Checks `resources` of a container.
pub fn check(resources: &Node<'_>, errors: &mut ErrorList) {
    check_claims(&resources.child("claims"), errors);
    let limits = amounts(&resources.child("limits"), errors);
    let requests = amounts(&resources.child("requests"), errors);
    let limits_path = resources.path.child("limits");
    for (name, request) in &requests {
        let path = resources.path.child("requests").key(*name);
        match limits.get(name) {
            Some(limit) if request != limit && !may_overcommit(name) => {
                errors.push(Error::invalid(&path, request, format!("must be equal to {name} limit of {limit}")));
            }
            Some(limit) if request > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(Error::invalid(&path, request, detail));
            }
            None if !may_overcommit(name) && resources.child("limits").value.get(name).is_none_or(Value::is_null) => {
                errors.push(Error::required(&limits_path, "Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
    let named = |test: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|name| test(name));
    if named(|name| name.starts_with(HUGE_PAGES)) && !named(|name| matches!(name, "cpu" | "memory")) {
        errors.push(Error::forbidden(&resources.path, "HugePages require cpu or memory"));
    }
}

/// A claim is named once, as a whole or by its requests. Whether it exists depends on the pod.
fn check_claims(list: &Node<'_>, errors: &mut ErrorList) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for claim in list.items().filter(|claim| claim.value.is_object()) {
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            errors.push(Error::required(&claim.path, ""));
            continue;
        }
        claim.check_text("request", dns1123_label, errors);
        let overlaps = |(other, part): &(&str, &str)| {
            *other == name && (part.is_empty() || request.is_empty() || *part == request)
        };
        if seen.iter().any(overlaps) {
            errors.push(Error::duplicate(&claim.path, name));
        }
        seen.push((name, request));
    }
}

/// The amount, where it can be read and is not below 0.
pub fn check_amount(amount: &Node<'_>, errors: &mut ErrorList) -> Option<Quantity> {
    if !(amount.value.is_string() || amount.value.is_number()) {
        return None;
    }
    match Quantity::deserialize(amount.value) {
        Ok(quantity) if quantity.is_negative() => {
            errors.push(Error::invalid(&amount.path, &quantity, "must be greater than or equal to 0"));
            None
        }
        Ok(quantity) => Some(quantity),
        Err(error) => {
            errors.push(Error::invalid(&amount.path, amount.value, error.to_string()));
            None
        }
    }
}

/// The amounts that can be read; the others are faults.
fn amounts<'a>(list: &Node<'a>, errors: &mut ErrorList) -> BTreeMap<&'a str, Quantity> {
    let mut amounts = BTreeMap::new();
    for (name, amount) in list.entries() {
        errors
            .extend(resource_name::faults(name).into_iter().map(|message| Error::invalid(&amount.path, name, message)));
        if !(amount.value.is_string() || amount.value.is_number()) {
            continue;
        }
        match Quantity::deserialize(amount.value) {
            Ok(quantity) => {
                for fault in resource_name::amount_faults(name, &quantity) {
                    errors.push(Error::invalid(&amount.path, &quantity, fault));
                }
                amounts.insert(name, quantity);
            }
            Err(error) => errors.push(Error::invalid(&amount.path, amount.value, error.to_string())),
        }
    }
    amounts
}
