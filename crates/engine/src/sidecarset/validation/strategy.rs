//! How running pods follow a change of the set.

use std::collections::HashSet;

use admission::field::{Error, ErrorList};
use admission::format::IntOrString;
use serde::Deserialize as _;

use super::node::Node;
use super::selectors;
use crate::sidecarset::vocabulary::{REPAIR_EVICT, REVISION_PARTIAL};

/// Checks `spec.updateStrategy` and `spec.revisionHistoryLimit`.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    spec.check_not_negative("revisionHistoryLimit", errors);
    let strategy = spec.child("updateStrategy");
    check_amounts(&strategy, errors);
    let selector = strategy.child("selector");
    if selector.value.is_object() && !selectors::has_terms(&selector) {
        let detail = "empty selector is not valid. Leave it out to update every pod";
        errors.push(Error::invalid(&selector.path, selector.value, detail));
    }
    selectors::check_terms(&selector, errors);
    check_priority(&strategy.child("priorityStrategy"), errors);
    check_scatter(&strategy.child("scatterStrategy"), errors);
}

fn check_amounts(strategy: &Node<'_>, errors: &mut ErrorList) {
    for field in ["partition", "maxUnavailable", "maxUnavailablePerOwner"] {
        let node = strategy.child(field);
        if !(node.value.is_string() || node.value.is_number()) {
            continue;
        }
        match IntOrString::deserialize(node.value) {
            Ok(amount) => {
                amount.validate_not_negative(&node.path, errors);
                amount.validate_at_most_100_percent(&node.path, errors);
            }
            Err(error) => errors.push(Error::invalid(&node.path, node.value, error.to_string())),
        }
    }
    for field in ["maxUnavailable", "maxUnavailablePerOwner"] {
        let max_unavailable = strategy.child(field);
        if is_nothing(&max_unavailable) {
            let detail = "may not be 0, as then no pod could ever be updated; set paused to stop a rollout";
            errors.push(Error::invalid(&max_unavailable.path, max_unavailable.value, detail));
        }
    }
    let partition = strategy.child("partition");
    if partition.is_there() && !is_nothing(&partition) && strategy.child("selector").is_there() {
        errors.push(Error::forbidden(&partition.path, "may not be set together with selector; choose one"));
    }
}

/// `0`, `0%`, `00%`.
fn is_nothing(node: &Node<'_>) -> bool {
    match IntOrString::deserialize(node.value) {
        Ok(IntOrString::Int(number)) => number == 0,
        Ok(IntOrString::String(text)) => {
            text.strip_suffix('%').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit == b'0'))
        }
        Err(_) => false,
    }
}

fn check_priority(priority: &Node<'_>, errors: &mut ErrorList) {
    let (orders, weights) = (priority.child("orderPriority"), priority.child("weightPriority"));
    if orders.items().next().is_some() && weights.items().next().is_some() {
        errors.push(Error::forbidden(&weights.path, "may not be set together with orderPriority; choose one"));
    }
    for order in orders.items().filter(|order| order.value.is_object()) {
        order.require_text("orderedKey", errors);
    }
    for weight in weights.items().filter(|weight| weight.value.is_object()) {
        let number = weight.child("weight");
        match number.value.as_i64() {
            Some(1..=100) => {}
            None if number.is_there() => {}
            None => errors.push(Error::required(&number.path, "")),
            Some(value) => errors.push(Error::invalid(&number.path, value, "must be between 1 and 100, inclusive")),
        }
        let selector = weight.child("matchSelector");
        if !selectors::has_terms(&selector) {
            errors.push(Error::required(&selector.path, "must select some pods by label"));
        }
        selectors::check_terms(&selector, errors);
    }
}

fn check_scatter(scatter: &Node<'_>, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for term in scatter.items().filter(|term| term.value.is_object()) {
        term.require_text("key", errors);
        let (key, value) = (term.text("key"), term.text("value"));
        if !seen.insert((key, value)) {
            errors.push(Error::duplicate(&term.path, format!("{key}={value}")));
        }
    }
}

/// Warnings about pods that are never evicted.
pub fn warn(spec: &Node<'_>, warnings: &mut Vec<String>) {
    let revision = spec.child("injectionStrategy").child("revision");
    let strategy = spec.child("updateStrategy");
    let recreates = strategy.child("recreate").value.as_bool() == Some(true);
    let evicting = [("recreate", recreates), ("repair", strategy.text("repair") == REPAIR_EVICT)];
    if revision.is_there() && revision.text("policy") != REVISION_PARTIAL {
        warnings.extend(evicting.into_iter().filter(|(_, evicts)| *evicts).map(|(field, _)| {
            let path = strategy.child(field).path;
            format!("{path}: no pod is evicted while {} gives new pods an older form", revision.path)
        }));
    }
}
