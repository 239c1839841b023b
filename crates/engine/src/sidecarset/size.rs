//! How much a `SidecarSet` may hold.
//!
//! A default or a fault is many times as long as the few bytes that cause it, so a body within the limits of the API server
//! could make a reply of a gigabyte. The limit is far above what any set needs, and far below that.

use admission::ObjectLimit;
use serde_json::Value;

/// Most values, nested ones included, in the spec of a set.
pub const MAX_VALUES: usize = 20_000;

/// Most elements of lists in the spec of a set, each with its limit. Every one becomes part of every pod of the set.
pub const LISTS: &[(&str, usize)] =
    &[("containers", 100), ("initContainers", 100), ("volumes", 200), ("imagePullSecrets", 200)];

/// How much of a set is decoded.
pub const LIMIT: ObjectLimit = ObjectLimit { lists: LISTS, ..ObjectLimit::STORABLE };

/// What of a spec is larger than may be written: the list, or none for all values together; its size, and the most that it may have.
pub fn beyond(spec: &Value) -> Option<(Option<&'static str>, usize, usize)> {
    let values = || Some(count_values(spec)).filter(|values| *values > MAX_VALUES);
    let list = too_long(spec).map(|(list, length, most)| (Some(list), length, most));
    list.or_else(|| values().map(|values| (None, values, MAX_VALUES)))
}

/// The list of a spec that is too long, its length, and the most that it may have.
pub fn too_long(spec: &Value) -> Option<(&'static str, usize, usize)> {
    let length = |name: &str| spec.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    LISTS.iter().map(|(name, most)| (*name, length(name), *most)).find(|(_, length, most)| length > most)
}

/// The number of values in `value`, itself and nested ones included.
pub fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count_values).sum(),
        Value::Object(map) => map.values().map(count_values).sum(),
        _ => 0,
    }
}
