//! `batch.outrider.dev/v2`: the schedule as five fields, all else as in v1.
//!
//! Only conversion reads this version, and it works on the JSON itself; there is no other type for it.

use serde_json::{Map, Value};

use super::schedule::FIELD_COUNT;

/// API version.
pub const VERSION: &str = "v2";

/// Fields of `spec.schedule`, in the order of the v1 string. An absent one means `*`.
pub const FIELDS: [&str; FIELD_COUNT] = ["minute", "hour", "dayOfMonth", "month", "dayOfWeek"];

/// The v1 string that five fields say, whatever is in them. What is no string counts as absent.
pub fn joined(fields: &Map<String, Value>) -> String {
    FIELDS.map(|name| fields.get(name).and_then(Value::as_str).unwrap_or("*")).join(" ")
}

/// The v2 fields for five parts of a v1 string: a `*` is left out.
pub fn split(parts: [&str; FIELD_COUNT]) -> Map<String, Value> {
    let named = FIELDS.into_iter().zip(parts).filter(|(_, part)| *part != "*");
    named.map(|(name, part)| (name.to_owned(), part.into())).collect()
}

/// The fields that the version has and that are strings: others are never stored, and who writes them into an annotation is not
/// believed.
pub fn known(fields: &Map<String, Value>) -> Map<String, Value> {
    let strings = FIELDS.iter().filter_map(|name| Some((*name, fields.get(*name)?.as_str()?)));
    strings.map(|(name, part)| (name.to_owned(), part.into())).collect()
}
