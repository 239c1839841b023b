//! The forms for comparing a pod with a set, in which an empty map is another thing than none.
//!
//! Most maps of the API are pointers in its Go types: `labelSelector: {}` of a `clusterTrustBundle` selects everything and an
//! absent one nothing. The forms behind the hash know no difference and may not change.

use serde_json::Value;

use super::volume::{drop_unset, volume_without_defaults};
use super::{container_without_defaults, is_empty};
use crate::sidecarset::api::RawObject;

/// Maps of a container that Go always writes (`resources`) or leaves out when they are empty.
const OF_CONTAINER: [&str; 3] = ["resources", "limits", "requests"];

/// The same of a volume: `metadata`, `spec` and `resources` of a claim are no pointers, the others maps with `omitempty`.
const OF_VOLUME: [&str; 11] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "options",
    "requests",
    "resources",
    "spec",
    "userAnnotations",
    "volumeAttributes",
];

/// Maps with keys of the user's own, in which an empty value says something.
const FREE_MAPS: [&str; 6] = ["annotations", "labels", "matchLabels", "options", "userAnnotations", "volumeAttributes"];

/// A container without nulls, empty lists and default values.
pub fn strict_container(container: RawObject) -> RawObject {
    without_unset(container_without_defaults(container, ""))
}

/// A container without nulls, empty lists, and the maps that say nothing when they are empty.
pub fn without_unset(mut container: RawObject) -> RawObject {
    drop_nothing(&mut container, &OF_CONTAINER);
    container
}

/// A volume without nulls, empty lists and default values, quantities in canonical form.
pub fn strict_volume(volume: RawObject) -> RawObject {
    let members = volume_without_defaults(volume).into_iter();
    members.filter_map(|(key, value)| member(&key, value).map(|value| (key, value))).collect()
}

/// A volume without a source is an `emptyDir`.
fn member(key: &str, mut value: Value) -> Option<Value> {
    // An empty `storageClassName` in a claim is not the same as none.
    if key != "ephemeral" {
        drop_unset(&mut value, &FREE_MAPS);
    }
    drop_nothing_in(&mut value, &OF_VOLUME);
    let says_nothing =
        value.is_null() || value.as_array().is_some_and(Vec::is_empty) || (key == "emptyDir" && is_empty(&value));
    (!says_nothing).then_some(value)
}

/// Takes away nulls and empty lists, and these maps where nothing is in them once nulls are gone.
fn drop_nothing(map: &mut RawObject, maps: &[&str]) {
    map.retain(|key, value| {
        drop_nothing_in(value, maps);
        !is_empty(value) || (value.is_object() && !maps.contains(&key.as_str()))
    });
}

fn drop_nothing_in(value: &mut Value, maps: &[&str]) {
    match value {
        Value::Object(map) => drop_nothing(map, maps),
        Value::Array(list) => list.iter_mut().for_each(|value| drop_nothing_in(value, maps)),
        _ => {}
    }
}
