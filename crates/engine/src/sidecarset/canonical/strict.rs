//! The forms for comparing a pod with a set, in which an empty map is another thing than none.
//!
//! Most maps of the API are pointers in its Go types: `labelSelector: {}` of a `clusterTrustBundle` selects everything and an
//! absent one nothing. The forms behind the hash know no difference and may not change.

use serde_json::Value;

use super::volume::{drop_unset, volume_without_defaults};
use super::{container_without_defaults, into_map, is_empty};
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
pub fn strict_container(container: &RawObject) -> RawObject {
    without_unset(container_without_defaults(container, ""))
}

/// A container without nulls, empty lists, and the maps that say nothing when they are empty.
pub fn without_unset(container: RawObject) -> RawObject {
    into_map(without(Value::Object(container), &OF_CONTAINER))
}

/// A volume without nulls, empty lists and default values, quantities in canonical form.
pub fn strict_volume(volume: &RawObject) -> RawObject {
    let members = volume_without_defaults(volume).into_iter();
    members.filter_map(|(key, value)| member(&key, value).map(|value| (key, value))).collect()
}

/// A volume without a source is an `emptyDir`.
fn member(key: &str, mut value: Value) -> Option<Value> {
    // An empty `storageClassName` in a claim is not the same as none.
    if key != "ephemeral" {
        drop_unset(&mut value, &FREE_MAPS);
    }
    let value = without(value, &OF_VOLUME);
    let says_nothing = value.is_null() || (key == "emptyDir" && is_empty(&value));
    (!says_nothing).then_some(value)
}

/// Without nulls and empty lists, and without these maps where nothing is in them once nulls are gone.
fn without(value: Value, maps: &[&str]) -> Value {
    let says_something = |key: &str, value: &Value| !is_empty(value) || (value.is_object() && !maps.contains(&key));
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| (key, without(value, maps)))
                .filter(|(key, value)| says_something(key, value))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(|value| without(value, maps)).collect()),
        other => other,
    }
}
