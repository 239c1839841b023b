//! One form for containers that run alike, as written in a set or as the API server gives them back.
//!
//! [`strict_container`] shares its defaults with the hash, which may never change. What else the API server fills in, leaves out or
//! prints anew (`SetDefaults_*` in `k8s.io/kubernetes/pkg/apis/core/v1`, and Go's `omitempty`) is settled here.

use admission::format::Quantity;
use serde_json::{Value, json};

use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::{print_settled, strict_container, without_unset};

/// Texts in these are pointers in the API's Go types: an empty one overrides what the pod says.
const POINTERS: [&str; 1] = ["windowsOptions"];

/// The form of a container.
pub(super) fn container(container: RawObject) -> RawObject {
    let mut container = strict_container(container);
    container.values_mut().for_each(drop_empty_texts);
    if let Some(Value::Object(resources)) = container.get_mut("resources") {
        settle_resources(resources);
    }
    if let Some(Value::Array(policies)) = container.get_mut("resizePolicy") {
        let defaults = ["cpu", "memory"].map(|name| json!({"resourceName": name, "restartPolicy": "NotRequired"}));
        policies.retain(|policy| !defaults.contains(policy));
    }
    if let Some(Value::Object(context)) = container.get_mut("securityContext") {
        drop_value(context, "procMount", "Default");
    }
    if let Some(Value::Array(ports)) = container.get_mut("ports") {
        ports.iter_mut().filter_map(Value::as_object_mut).for_each(|port| drop_value(port, "hostPort", &0));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(Value::Object(probe)) = container.get_mut(probe) {
            for field in
                ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
            {
                drop_value(probe, field, &0);
            }
        }
    }
    without_unset(container)
}

/// The container as it reads in a pod that the API server has stored: without what says nothing, but for the resources, which
/// are always there and printed anew.
pub(super) fn as_stored(container: &RawObject) -> RawObject {
    let mut container = without_unset(container.clone());
    if let Value::Object(resources) = container.entry("resources").or_insert_with(|| json!({})) {
        settle_resources(resources);
    }
    container
}

/// The requests and limits of a container as they read in a pod that the API server has stored.
pub fn amounts_as_stored(container: &RawObject) -> RawObject {
    let Some(Value::Object(resources)) = container.get("resources") else { return RawObject::new() };
    let mut resources = resources.clone();
    settle_resources(&mut resources);
    resources
}

fn drop_value<T: ?Sized>(map: &mut RawObject, field: &str, value: &T)
where
    Value: PartialEq<T>,
{
    if map.get(field).is_some_and(|other| other == value) {
        map.remove(field);
    }
}

fn drop_empty_texts(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| member.as_str() != Some(""));
            let plain = map.iter_mut().filter(|(key, _)| !POINTERS.contains(&key.as_str()));
            plain.for_each(|(_, member)| drop_empty_texts(member));
        }
        Value::Array(list) => list.iter_mut().for_each(drop_empty_texts),
        _ => {}
    }
}

/// Amounts as the API server prints them, and requests that it takes from the limits (`SetDefaults_Pod`).
fn settle_resources(resources: &mut RawObject) {
    for list in ["limits", "requests"] {
        if let Some(Value::Object(amounts)) = resources.get_mut(list) {
            amounts.values_mut().for_each(|amount| print_settled(amount, Quantity::round_up_to_milli));
        }
    }
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    if let Value::Object(requests) = requests {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}
