//! v1 ⇄ v2. Never fails and never loses.
//!
//! A schedule that the other version cannot say, such as `@every 5m` or an explicit `*`, is said as well as it can be, and an
//! annotation remembers what it was. The way back takes the annotation's word as long as the schedule is still what it became,
//! and drops the annotation. So an edit in either version wins over what was remembered.
//!
//! Everything else is the same in both versions and is not looked at. The two annotations are ours alone: where one means
//! nothing, conversion drops it.

use admission::conversion::{Conversion, Hub, Spoke};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::api::{GROUP, KIND, VERSION};
use super::schedule::expansion;
use super::v2;
use super::vocabulary::{V1_SCHEDULE, V2_SCHEDULE};

#[cfg(test)]
mod tests;

/// Longest that is remembered. The API server refuses a converted object with more than 256 KiB of annotations, and a
/// schedule of this length is refused by validation.
const MEMORY_MAX_BYTES: usize = 64 * 1024;

/// The conversions of the kind.
pub fn cronjob() -> Conversion {
    Conversion::new::<V1>(GROUP, KIND).spoke::<V1, V2>()
}

/// A v1 object, with whatever is in it.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct V1(Map<String, Value>);

/// A v2 object, with whatever is in it.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct V2(Map<String, Value>);

impl Hub for V1 {
    const VERSION: &'static str = VERSION;
}

impl Spoke<V1> for V2 {
    const VERSION: &'static str = v2::VERSION;

    fn into_hub(mut self) -> Result<V1, String> {
        let remembered = take_annotation(&mut self.0, V1_SCHEDULE);
        take_annotation(&mut self.0, V2_SCHEDULE);
        convert_schedule(&mut self.0, remembered, five_fields_of, one_string_of, V2_SCHEDULE);
        Ok(V1(self.0))
    }

    fn from_hub(mut hub: V1) -> Result<Self, String> {
        let remembered = take_annotation(&mut hub.0, V2_SCHEDULE);
        take_annotation(&mut hub.0, V1_SCHEDULE);
        convert_schedule(&mut hub.0, remembered, one_string_of, five_fields_of, V1_SCHEDULE);
        Ok(Self(hub.0))
    }
}

/// The schedule of a v1 object as v2 has it, with what the object remembers of it.
pub fn schedule_in_v2(object: &Value) -> Option<Value> {
    // Nothing else of the object decides, and it may be large.
    let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    let schedule = object.pointer("/spec/schedule")?;
    let slim = json!({"metadata": {"annotations": annotations}, "spec": {"schedule": schedule}});
    let Value::Object(hub) = slim else { return None };
    V2::from_hub(V1(hub)).ok()?.0.get("spec")?.get("schedule").cloned()
}

/// A schedule in the other version, and what to remember if that says less.
struct Said {
    schedule: Value,
    memory: Option<String>,
}

/// `back` is the way on which `remembered` was written, `forth` the way to go now.
fn convert_schedule(
    object: &mut Map<String, Value>,
    remembered: Option<String>,
    back: fn(&Value) -> Said,
    forth: fn(&Value) -> Said,
    key: &str,
) {
    let Some(schedule) = object.get_mut("spec").and_then(|spec| spec.get_mut("schedule")) else { return };
    if let Some(original) = remembered.and_then(|memory| recall(memory, schedule, back)) {
        *schedule = original;
        return;
    }
    let said = forth(schedule);
    *schedule = said.schedule;
    if let Some(memory) = said.memory.filter(|memory| memory.len() <= MEMORY_MAX_BYTES) {
        put_annotation(object, key, memory);
    }
}

/// What became `schedule`, if the memory is of that.
fn recall(memory: String, schedule: &Value, back: fn(&Value) -> Said) -> Option<Value> {
    let original = remembered_value(&memory)?;
    let said = back(&original);
    (said.schedule == *schedule && said.memory == Some(memory)).then_some(original)
}

/// The v1 schedule for a v2 one.
fn one_string_of(schedule: &Value) -> Said {
    match schedule {
        Value::Object(fields) => {
            let text = v2::joined(fields);
            let says_all = plain_parts(&text).is_some_and(|parts| v2::split(parts) == *fields);
            Said { schedule: text.into(), memory: (!says_all).then(|| memory_of(schedule)) }
        }
        Value::String(_) => Said { schedule: schedule.clone(), memory: Some(memory_of(schedule)) },
        _ => Said { schedule: schedule.clone(), memory: None },
    }
}

/// The v2 schedule for a v1 one.
fn five_fields_of(schedule: &Value) -> Said {
    match schedule {
        Value::String(text) => plain_parts(text).map_or_else(
            || {
                let fields = expansion(text).map(v2::split).unwrap_or_default();
                Said { schedule: fields.into(), memory: Some(memory_of(schedule)) }
            },
            |parts| Said { schedule: v2::split(parts).into(), memory: None },
        ),
        Value::Object(_) => Said { schedule: Map::new().into(), memory: Some(memory_of(schedule)) },
        _ => Said { schedule: schedule.clone(), memory: None },
    }
}

/// Five parts with one space between them, and nothing else.
fn plain_parts(text: &str) -> Option<[&str; super::schedule::FIELD_COUNT]> {
    expansion(text).filter(|parts| parts.join(" ") == text)
}

/// A string as it is, for people to read, unless it could be taken for JSON.
fn memory_of(schedule: &Value) -> String {
    match schedule {
        Value::String(text) if !looks_like_json(text) => text.clone(),
        other => other.to_string(),
    }
}

fn remembered_value(memory: &str) -> Option<Value> {
    if looks_like_json(memory) { serde_json::from_str(memory).ok() } else { Some(memory.into()) }
}

fn looks_like_json(text: &str) -> bool {
    text.starts_with(['{', '"'])
}

fn put_annotation(object: &mut Map<String, Value>, key: &str, value: String) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Map::new().into();
    }
    if let Value::Object(annotations) = annotations {
        annotations.insert(key.to_owned(), value.into());
    }
}

fn take_annotation(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let taken = annotations.remove(key)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    match taken {
        Value::String(text) => Some(text),
        _ => None,
    }
}
