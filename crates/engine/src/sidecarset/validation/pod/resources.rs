//! Requests and limits.

use std::collections::BTreeMap;

use admission::field::{Error, ErrorList};
use admission::format::Quantity;
use admission::format::names::{dns1123_label, qualified_name};
use serde::Deserialize as _;
use serde_json::Value;

use super::Node;

const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const HUGE_PAGES: &str = "hugepages-";

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
        errors.extend(wrong_name(name).into_iter().map(|message| Error::invalid(&amount.path, name, message)));
        if !(amount.value.is_string() || amount.value.is_number()) {
            continue;
        }
        match Quantity::deserialize(amount.value) {
            Ok(quantity) => {
                if quantity.is_negative() {
                    errors.push(Error::invalid(&amount.path, &quantity, "must be greater than or equal to 0"));
                }
                if is_extended(name) && quantity.milli_value() % 1000 != 0 {
                    errors.push(Error::invalid(&amount.path, &quantity, "must be an integer"));
                }
                if name.starts_with(HUGE_PAGES) && !is_in_pages(name, &quantity) {
                    let detail = format!("{quantity} is not positive integer multiple of {name}");
                    errors.push(Error::invalid(&amount.path, &quantity, detail));
                }
                amounts.insert(name, quantity);
            }
            Err(error) => errors.push(Error::invalid(&amount.path, amount.value, error.to_string())),
        }
    }
    amounts
}

fn wrong_name(name: &str) -> Vec<String> {
    let wrong = qualified_name(name);
    if !wrong.is_empty() || STANDARD.contains(&name) || name.starts_with(HUGE_PAGES) {
        return wrong;
    }
    if !name.contains('/') {
        return vec!["must be a standard resource for containers".to_owned()];
    }
    if is_native(name) || is_extended(name) {
        return Vec::new();
    }
    vec!["doesn't follow extended resource name standard".to_owned()]
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// The name must also be good for a quota, with `requests.` in front (`IsExtendedResourceName` of
/// `k8s.io/kubernetes/pkg/apis/core/helper`).
fn is_extended(name: &str) -> bool {
    let for_quota = format!("requests.{name}");
    !is_native(name) && !name.starts_with("requests.") && qualified_name(&for_quota).is_empty()
}

/// Whether the amount is a number of pages of the size in the name (`IsHugePageResourceValueDivisible` of the same package).
fn is_in_pages(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix(HUGE_PAGES).and_then(|size| size.parse::<Quantity>().ok());
    size.is_some_and(|size| {
        size.value() > 0 && size.milli_value() % 1000 == 0 && amount.value().checked_rem(size.value()) == Some(0)
    })
}

fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}
