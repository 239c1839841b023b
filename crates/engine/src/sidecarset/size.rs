//! How much a `SidecarSet` may hold.
//!
//! A default or a fault is many times as long as the few bytes that cause it, so a body within the limits of the API server
//! could make a reply of a gigabyte. The limit is far above what any set needs, and far below that.

use serde_json::Value;

/// Most values, nested ones included, in the spec of a set.
pub const MAX_VALUES: usize = 20_000;

/// The number of values in `value`, itself and nested ones included.
pub fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count_values).sum(),
        Value::Object(map) => map.values().map(count_values).sum(),
        _ => 0,
    }
}
