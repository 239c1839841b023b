//! Two settled forms, field by field.

use serde_json::Value;

use super::identities::{Identities, Room};
use super::taken::Expected;
use super::{Around, CompiledAllowedChanges, lists};
use crate::sidecarset::api::RawObject;
use crate::sidecarset::defaults::image::{pull_policy, without_digest};

/// Compared first: a message names the first field that differs, and these say most.
const FIRST: [&str; 3] = ["image", "command", "args"];

/// The first field in which `found` is not `ours`.
pub(super) fn difference(
    ours: &RawObject,
    found: &RawObject,
    allowed: &CompiledAllowedChanges,
    (room, pod): (Room, &Around<'_>),
    taken: &mut Expected<'_>,
) -> Option<String> {
    let others = ours.keys().chain(found.keys().filter(|field| !ours.contains_key(*field))).map(String::as_str);
    let fields = FIRST.into_iter().chain(others.filter(|field| !FIRST.contains(field)));
    let mut identities = None;
    for field in fields {
        let (our, their) = (ours.get(field), found.get(field));
        // Not compared by itself: which policy an absent one means depends on the image.
        let is_same = our == their && !taken.has(field);
        if field == "imagePullPolicy" || is_same || allowed.field(field) {
            continue;
        }
        let mut identities = || *identities.get_or_insert_with(|| Identities::of(room, found, pod));
        let differing = match field {
            "image" => (!is_same_image(our, their, allowed)).then(|| field.to_owned()),
            "env" => lists::env(our, their, allowed, identities(), taken),
            "volumeMounts" => lists::mounts(our, their, allowed, identities(), taken),
            "volumeDevices" => lists::devices(our, their, taken),
            "resources" => resources(our, their),
            "ports" if pod.host_network => lists::host_network_ports(our, their),
            _ => Some(field.to_owned()),
        };
        if differing.is_some() {
            return differing;
        }
    }
    // The admission plugin AlwaysPullImages turns every policy into `Always`.
    let policy = policy(found);
    let is_allowed = policy == self::policy(ours) || policy == "Always" || allowed.field("imagePullPolicy");
    (!is_allowed).then(|| "imagePullPolicy".to_owned())
}

fn policy(container: &RawObject) -> &str {
    let text = |field| container.get(field).and_then(Value::as_str);
    match container.get("imagePullPolicy") {
        Some(Value::String(policy)) => policy,
        // Not a policy at all, and equal to none.
        Some(_) => "",
        None => pull_policy(text("image").unwrap_or_default()),
    }
}

/// A resolver of tags puts the digest behind the image, with or without the tag in front of it.
fn is_same_image(ours: Option<&Value>, found: Option<&Value>, allowed: &CompiledAllowedChanges) -> bool {
    let (Some(ours), Some(found)) = (ours.and_then(Value::as_str), found.and_then(Value::as_str)) else {
        return false;
    };
    allowed.image_digest()
        && !ours.contains('@')
        && without_digest(found).is_some_and(|tagged| tagged == ours || tagged == repository(ours))
}

/// Whether a running container has the image that the set names, maybe with the digest that a resolver put behind it. Where the
/// resolver has taken the tag away, nothing says of which tag the digest was.
pub fn is_image_of(ours: &str, found: &str, allowed: &CompiledAllowedChanges) -> bool {
    found == ours || (allowed.image_digest() && !ours.contains('@') && without_digest(found) == Some(ours))
}

fn repository(image: &str) -> &str {
    match image.rsplit_once(':') {
        // A colon before a slash is that of the registry's port.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// Requests and limits that the set leaves open may be filled in: a `LimitRange` does that after injection.
fn resources(ours: Option<&Value>, found: Option<&Value>) -> Option<String> {
    let empty = RawObject::new();
    let (Some(ours), Some(found)) = (map(ours, &empty), map(found, &empty)) else {
        return Some("resources".to_owned());
    };
    for part in ["limits", "requests"] {
        let ours = ours.get(part).and_then(Value::as_object).unwrap_or(&empty);
        let found = match found.get(part) {
            None => &empty,
            Some(Value::Object(found)) => found,
            Some(_) => return Some(format!("resources.{part}")),
        };
        if let Some((name, _)) = ours.iter().find(|(name, amount)| found.get(*name) != Some(*amount)) {
            return Some(format!("resources.{part}[{name}]"));
        }
    }
    let is_other = |field: &&String| !matches!(field.as_str(), "limits" | "requests");
    let mut others = ours.keys().chain(found.keys()).filter(is_other);
    others.find(|field| ours.get(*field) != found.get(*field)).map(|field| format!("resources.{field}"))
}

fn map<'v>(value: Option<&'v Value>, absent: &'v RawObject) -> Option<&'v RawObject> {
    value.map_or(Some(absent), Value::as_object)
}
