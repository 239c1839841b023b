//! One form for volumes that mean the same, as written in a set or as the API server gives them back.
//!
//! Between two passes over a pod the API server fills in defaults (`SetDefaults_*` in `pkg/apis/core/v1/defaults.go`), leaves
//! out what Go's `omitempty` leaves out, and prints quantities anew. None of that makes it another volume.

use admission::format::Quantity;
use serde_json::{Map, Value};

use super::{drop_api_version, drop_default, for_each, is_empty, without_empty};
use crate::sidecarset::api::RawObject;
use crate::sidecarset::defaults::image::pull_policy;

/// Words that the API server fills in, by source and field.
const DEFAULT_WORDS: [(&str, &str, &str); 9] = [
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "kind", "Shared"),
    ("azureDisk", "fsType", "ext4"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

/// Sources whose files have a mode.
const SOURCES_OF_FILES: [&str; 4] = ["secret", "configMap", "downwardAPI", "projected"];

/// Maps with keys of the user's own, in which an empty value says something.
const FREE_MAPS: [&str; 2] = ["volumeAttributes", "options"];

/// A volume without nulls, empty parts and default values, quantities in canonical form.
pub fn canonical_volume(volume: &RawObject) -> RawObject {
    let members = volume_without_defaults(volume.clone()).into_iter();
    members.filter_map(|(key, value)| canonical_member(&key, value).map(|value| (key, value))).collect()
}

pub(super) fn volume_without_defaults(mut volume: RawObject) -> RawObject {
    for (source, field, default) in DEFAULT_WORDS {
        if let Some(Value::Object(source)) = volume.get_mut(source) {
            drop_default(source, field, default);
        }
    }
    for source in SOURCES_OF_FILES {
        if let Some(Value::Object(source)) = volume.get_mut(source) {
            drop_default(source, "defaultMode", &420);
            strip_downward_items(source);
            for_each(source, "sources", strip_projection);
        }
    }
    // Numbers without `omitempty`, or with it and not a pointer.
    for (source, field) in [("iscsi", "lun"), ("gcePersistentDisk", "partition"), ("awsElasticBlockStore", "partition")]
    {
        if let Some(Value::Object(source)) = volume.get_mut(source) {
            drop_default(source, field, &0);
        }
    }
    if let Some(Value::Object(image)) = volume.get_mut("image") {
        let policy = pull_policy(image.get("reference").and_then(Value::as_str).unwrap_or_default());
        drop_default(image, "pullPolicy", policy);
    }
    if let Some(limit) = volume.get_mut("emptyDir").and_then(|source| source.get_mut("sizeLimit")) {
        print_anew(limit);
    }
    if let Some(Value::Object(claim)) =
        volume.get_mut("ephemeral").and_then(|it| it.pointer_mut("/volumeClaimTemplate/spec"))
    {
        strip_claim(claim);
    }
    volume
}

/// A volume without a source is an `emptyDir`; any other source says something even with nothing in it.
fn canonical_member(key: &str, mut value: Value) -> Option<Value> {
    // An empty `storageClassName` in a claim is not the same as none.
    if key != "ephemeral" {
        drop_unset(&mut value, &FREE_MAPS);
    }
    match without_empty(value) {
        Value::Null => None,
        value if key == "emptyDir" && is_empty(&value) => None,
        value => Some(value),
    }
}

/// Leaves out empty strings and `false`, as `omitempty` does; where the field is a pointer, absent means the same. What is in
/// `free` maps stays.
pub(super) fn drop_unset(value: &mut Value, free: &[&str]) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !matches!(member, Value::Bool(false)) && member.as_str() != Some(""));
            let fixed = map.iter_mut().filter(|(key, _)| !free.contains(&key.as_str()));
            fixed.for_each(|(_, member)| drop_unset(member, free));
        }
        Value::Array(list) => list.iter_mut().for_each(|member| drop_unset(member, free)),
        _ => {}
    }
}

fn strip_projection(projection: &mut Map<String, Value>) {
    for (source, field, default) in
        [("serviceAccountToken", "expirationSeconds", 3600), ("podCertificate", "maxExpirationSeconds", 86400)]
    {
        if let Some(Value::Object(source)) = projection.get_mut(source) {
            drop_default(source, field, &default);
        }
    }
    if let Some(Value::Object(downward)) = projection.get_mut("downwardAPI") {
        strip_downward_items(downward);
    }
}

fn strip_downward_items(source: &mut RawObject) {
    for_each(source, "items", |item| {
        if let Some(field_ref) = item.get_mut("fieldRef") {
            drop_api_version(field_ref);
        }
        strip_divisor(item);
    });
}

/// The divisor of a `resourceFieldRef`, which the API server gives back as `"0"` where it is absent.
pub(super) fn strip_divisor(parent: &mut RawObject) {
    if let Some(Value::Object(resource)) = parent.get_mut("resourceFieldRef") {
        if let Some(divisor) = resource.get_mut("divisor") {
            print_anew(divisor);
        }
        drop_default(resource, "divisor", "0");
    }
}

fn strip_claim(claim: &mut RawObject) {
    drop_default(claim, "volumeMode", "Filesystem");
    for list in ["requests", "limits"] {
        if let Some(Value::Object(amounts)) = claim.get_mut("resources").and_then(|it| it.get_mut(list)) {
            amounts.values_mut().for_each(print_anew);
        }
    }
}

/// Writes a quantity as Kubernetes prints it. What is none stays as it is.
fn print_anew(amount: &mut Value) {
    print_settled(amount, |_| {});
}

/// The same, once `settle` has changed the quantity.
pub fn print_settled(amount: &mut Value, settle: impl FnOnce(&mut Quantity)) {
    let text = match &*amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Ok(mut quantity) = text.parse::<Quantity>() {
        settle(&mut quantity);
        *amount = Value::String(quantity.to_string());
    }
}
