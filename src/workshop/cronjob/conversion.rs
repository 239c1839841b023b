//! v1 ⇄ v2. Never fails and never loses.
//!
//! A schedule that the other version cannot say, such as `@every 5m` or an explicit `*`, is said as well as it can be, and an
//! annotation remembers what it was. The way back takes the annotation's word as long as the schedule is still what it became,
//! and drops the annotation. So an edit in either version wins over what was remembered.
//!
//! Everything else is the same in both versions and is not looked at. The two annotations are ours alone: where one means
//! nothing, conversion drops it. Anybody may write them, so that only what a schedule of the version can be is taken from them,
//! and where an object's annotations leave no room for one, it is left out: an object that cannot be read in one version would
//! keep its whole cluster from being listed, and namespaces from being deleted.

use std::collections::BTreeMap;

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

/// Bytes of all keys and values of annotations (k8s.io/apimachinery/pkg/api/validation, `TotalAnnotationSizeLimitB`). The API server
/// refuses a converted object with more, and with it the whole list.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

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
        convert_schedule(&mut self.0, remembered, &TO_V2, &TO_V1, V2_SCHEDULE);
        Ok(V1(self.0))
    }

    fn from_hub(mut hub: V1) -> Result<Self, String> {
        let remembered = take_annotation(&mut hub.0, V2_SCHEDULE);
        take_annotation(&mut hub.0, V1_SCHEDULE);
        convert_schedule(&mut hub.0, remembered, &TO_V1, &TO_V2, V1_SCHEDULE);
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

/// One of the two ways.
struct Way {
    /// The schedule in the other version.
    says: fn(&Value) -> Said,
    /// What a memory that was written on this way says.
    recalls: fn(&str) -> Option<Value>,
}

const TO_V1: Way = Way { says: one_string_of, recalls: remembered_fields };
const TO_V2: Way = Way { says: five_fields_of, recalls: remembered_string };

/// `back` is the way on which `remembered` was written, `forth` the way to go now.
fn convert_schedule(object: &mut Map<String, Value>, remembered: Option<String>, back: &Way, forth: &Way, key: &str) {
    let Some(schedule) = object.get_mut("spec").and_then(|spec| spec.get_mut("schedule")) else { return };
    if let Some(original) = remembered.and_then(|memory| recall(memory, schedule, back)) {
        *schedule = original;
        return;
    }
    let said = (forth.says)(schedule);
    *schedule = said.schedule;
    if let Some(memory) = said.memory.filter(|memory| memory.len() <= MEMORY_MAX_BYTES) {
        put_annotation(object, key, memory);
    }
}

/// What became `schedule`, if the memory is of that.
fn recall(memory: String, schedule: &Value, back: &Way) -> Option<Value> {
    let original = (back.recalls)(&memory)?;
    let said = (back.says)(&original);
    (said.schedule == *schedule && said.memory == Some(memory)).then_some(original)
}

/// The v1 schedule for a v2 one. Fields that the version does not have, or that are no strings, are not stored and say nothing.
fn one_string_of(schedule: &Value) -> Said {
    match schedule {
        Value::Object(fields) => {
            let fields = v2::known(fields);
            let text = v2::joined(&fields);
            let says_all = plain_parts(&text).is_some_and(|parts| v2::split(parts) == fields);
            let memory = (!says_all).then(|| Value::from(fields).to_string());
            Said { schedule: text.into(), memory }
        }
        _ => Said { schedule: schedule.clone(), memory: None },
    }
}

/// The v2 schedule for a v1 one.
fn five_fields_of(schedule: &Value) -> Said {
    match schedule {
        Value::String(text) => plain_parts(text).map_or_else(
            || {
                let fields = expansion(text).map(v2::split).unwrap_or_default();
                Said { schedule: fields.into(), memory: Some(memory_of(text)) }
            },
            |parts| Said { schedule: v2::split(parts).into(), memory: None },
        ),
        _ => Said { schedule: schedule.clone(), memory: None },
    }
}

/// Why the schedule cannot be remembered beside the object's annotations, if it would have to be; what it takes and what there is.
pub fn lacks_room(object: &Value) -> Option<(usize, usize)> {
    let schedule = object.pointer("/spec/schedule")?;
    let wanted = V1_SCHEDULE.len() + five_fields_of(schedule).memory?.len();
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let taken = annotations.map_or(0, |annotations| bytes(annotations.iter().filter(|(key, _)| !is_ours(key))));
    let room = ANNOTATIONS_MAX_BYTES.saturating_sub(taken);
    (wanted > room).then_some((wanted, room))
}

fn is_ours(key: &str) -> bool {
    key == V1_SCHEDULE || key == V2_SCHEDULE
}

fn bytes<'a>(annotations: impl Iterator<Item = (&'a String, &'a Value)>) -> usize {
    annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Five parts with one space between them, and nothing else.
fn plain_parts(text: &str) -> Option<[&str; super::schedule::FIELD_COUNT]> {
    expansion(text).filter(|parts| parts.join(" ") == text)
}

/// A string as it is, for people to read, unless it could be taken for JSON.
fn memory_of(schedule: &str) -> String {
    if looks_like_json(schedule) { Value::from(schedule).to_string() } else { schedule.to_owned() }
}

fn remembered_string(memory: &str) -> Option<Value> {
    if looks_like_json(memory) {
        serde_json::from_str::<String>(memory).ok().map(Value::from)
    } else {
        Some(memory.into())
    }
}

fn remembered_fields(memory: &str) -> Option<Value> {
    let fields: BTreeMap<String, String> = serde_json::from_str(memory).ok()?;
    let fields = fields.into_iter().map(|(name, part)| (name, part.into())).collect();
    Some(v2::known(&fields).into())
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
    if let Value::Object(annotations) = annotations
        && bytes(annotations.iter()) + key.len() + value.len() <= ANNOTATIONS_MAX_BYTES
    {
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
