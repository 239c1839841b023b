//! `null` in a list or a map of a container or a volume.
//!
//! The API server keeps containers and volumes of a set as they are written, and its decoder makes an empty value of such a `null`
//! once it is in a pod: `args: [null]` is `args: [""]`. Written out, what the set holds is what its pods have.

use std::sync::LazyLock;

use admission::patch::{PatchError, escape};
use serde_json::Value;

use super::filler::Filler;
use crate::schema::SchemaType;

static CONTAINER: LazyLock<SchemaType> = LazyLock::new(|| SchemaType::of_kind("Container"));
static VOLUME: LazyLock<SchemaType> = LazyLock::new(|| SchemaType::of_kind("Volume"));

/// Writes out what the container at `at` has `null` for.
pub fn fill_container(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    fill(filler, at, &CONTAINER)
}

/// Writes out what the volume at `at` has `null` for.
pub fn fill_volume(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    fill(filler, at, &VOLUME)
}

fn fill(filler: &mut Filler<'_>, at: &str, shape: &SchemaType) -> Result<(), PatchError> {
    let mut found = Vec::new();
    if let Some(value) = filler.get(at) {
        find(value, shape, at, &mut found);
    }
    for (pointer, empty) in found {
        filler.0.set(&pointer, empty)?;
    }
    Ok(())
}

/// Every `null` that is no field of an object, and the empty value that belongs there.
fn find(value: &Value, shape: &SchemaType, at: &str, found: &mut Vec<(String, Value)>) {
    match (value, shape) {
        (Value::Array(items), SchemaType::List(item)) => {
            for (index, value) in items.iter().enumerate() {
                find_there(value, item, || format!("{at}/{index}"), found);
            }
        }
        (Value::Object(entries), SchemaType::Map(item)) => {
            for (key, value) in entries {
                find_there(value, item, || format!("{at}/{}", escape(key)), found);
            }
        }
        (Value::Object(entries), SchemaType::Object { fields, .. }) => {
            for (key, value) in entries.iter().filter(|(_, value)| value.is_array() || value.is_object()) {
                if let Some(field) = fields.get(key) {
                    find(value, field, &format!("{at}/{}", escape(key)), found);
                }
            }
        }
        _ => {}
    }
}

fn find_there(value: &Value, item: &SchemaType, at: impl Fn() -> String, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Null if *item != SchemaType::Anything => found.push((at(), item.empty())),
        Value::Array(_) | Value::Object(_) => find(value, item, &at(), found),
        _ => {}
    }
}
