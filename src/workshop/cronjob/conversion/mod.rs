//! v1 ⇄ v2. Never fails and never loses.
//!
//! A schedule that the other version cannot say, such as `@every 5m` or an explicit `*`, is said as well as it can be, and an
//! annotation remembers what it was. The way back takes the annotation's word as long as the schedule is still what it became,
//! and drops the annotation. So an edit in either version wins over what was remembered.
//!
//! Everything else is the same in both versions and stays the text that it was, however deep and whatever its types. The two annotations are ours alone: where one means
//! nothing, conversion drops it. Anybody may write them, so that only what a schedule of the version can be is taken from them,
//! and where an object's annotations leave no room for one, it is left out: an object that cannot be read in one version would
//! keep its whole cluster from being listed, and namespaces from being deleted.

use std::collections::BTreeMap;

use admission::conversion::{Conversion, TextSpoke};
use admission::patch::quoted;
use admission::raw::{self, ObjectWriter};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::api::{GROUP, KIND, VERSION};
use super::schedule::expansion;
use super::v2;
use super::vocabulary::{V1_SCHEDULE, V2_SCHEDULE};

mod annotations;
#[cfg(test)]
mod tests;

use self::annotations::ScheduleAnnotations;
pub use self::annotations::lacks_room;

/// Longest that is remembered. The API server refuses a converted object with more than 256 KiB of annotations, and a
/// schedule of this length is refused by validation.
const MEMORY_MAX_BYTES: usize = 64 * 1024;

/// The conversions of the kind.
pub fn cronjob() -> Conversion {
    Conversion::of_text(GROUP, KIND, VERSION).text_spoke::<V2>()
}

struct V2;

impl TextSpoke for V2 {
    const VERSION: &'static str = v2::VERSION;

    fn to_hub(object: &RawValue) -> Result<String, String> {
        Ok(convert(object, &TO_V2, &TO_V1))
    }

    fn from_hub(object: &RawValue) -> Result<String, String> {
        Ok(convert(object, &TO_V1, &TO_V2))
    }
}

/// The schedule of a v1 object as v2 has it, with what the object remembers of it.
pub fn schedule_in_v2(object: &Value) -> Option<Value> {
    // Nothing else of the object decides, and it may be large.
    let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    let schedule = object.pointer("/spec/schedule")?;
    let partial = json!({"metadata": {"annotations": annotations}, "spec": {"schedule": schedule}});
    let partial = to_raw_value(&partial).ok()?;
    let converted: Value = serde_json::from_str(&V2::from_hub(&partial).ok()?).ok()?;
    converted.pointer("/spec/schedule").cloned()
}

/// A schedule in the other version, and what to remember if that says less.
struct Said {
    schedule: Value,
    memory: Option<String>,
}

/// One of the two ways.
struct Way {
    /// The annotation that remembers what was said before this way.
    key: &'static str,
    /// A schedule as it is said before this way; `None` for what is none, and stays as it is.
    reads: fn(&RawValue) -> Option<Value>,
    /// The schedule in the other version.
    says: fn(&Value) -> Said,
    /// What a memory that was written on this way says.
    recalls: fn(&str) -> Option<Value>,
}

const TO_V1: Way = Way { key: V2_SCHEDULE, reads: read_fields, says: one_string_of, recalls: remembered_fields };
const TO_V2: Way = Way { key: V1_SCHEDULE, reads: read_string, says: five_fields_of, recalls: remembered_string };

/// `back` is the way on which a memory was written, `forth` the way to go now.
fn convert(object: &RawValue, back: &Way, forth: &Way) -> String {
    let metadata = raw::member(object, "metadata");
    let spec = raw::member(object, "spec");
    let annotations = ScheduleAnnotations::of(metadata, back.key);
    let said = spec.and_then(|spec| raw::member(spec, "schedule")).and_then(|schedule| {
        let schedule = (forth.reads)(schedule)?;
        Some(recall(annotations.remembered.as_deref(), &schedule, back).unwrap_or_else(|| (forth.says)(&schedule)))
    });
    let (schedule, memory) = said.map_or((None, None), |said| (Some(said.schedule), said.memory));
    let memory = memory.filter(|memory| memory.len() <= MEMORY_MAX_BYTES && annotations.take(forth.key, memory));

    let mut out = String::with_capacity(object.get().len());
    let mut writer = ObjectWriter::begin(&mut out);
    raw::members(object, |key, value| match key.name() {
        // Where there are two of a name the last one counts.
        "spec" if is_same(spec, value) => write_spec(value, schedule.as_ref(), writer.value_of("spec")),
        "metadata" | "spec" => {}
        _ => writer.copy(&key, value),
    });
    // The framework carries over the rest of the metadata.
    if let Some(metadata) = metadata.filter(|metadata| raw::is_object(metadata)) {
        annotations.write(metadata, memory.as_deref().map(|memory| (forth.key, memory)), writer.value_of("metadata"));
    }
    writer.end();
    out
}

fn write_spec(spec: &RawValue, schedule: Option<&Value>, out: &mut String) {
    let Some(schedule) = schedule else { return out.push_str(spec.get()) };
    let mut writer = ObjectWriter::begin(out);
    raw::members(spec, |key, value| {
        if key.name() != "schedule" {
            writer.copy(&key, value);
        }
    });
    let schedule = schedule.as_str().map_or_else(|| schedule.to_string(), quoted);
    writer.put("schedule", &schedule);
    writer.end();
}

fn is_same(found: Option<&RawValue>, value: &RawValue) -> bool {
    found.is_some_and(|found| std::ptr::eq(found, value))
}

/// The original that became `schedule`, if the annotation is about that.
fn recall(memory: Option<&str>, schedule: &Value, back: &Way) -> Option<Said> {
    let memory = memory.filter(|memory| memory.len() <= MEMORY_MAX_BYTES)?;
    let original = (back.recalls)(memory)?;
    let said = (back.says)(&original);
    let is_of_that = said.schedule == *schedule && said.memory.as_deref() == Some(memory);
    is_of_that.then_some(Said { schedule: original, memory: None })
}

fn read_string(schedule: &RawValue) -> Option<Value> {
    raw::string(schedule).map(|text| Value::String(text.into_owned()))
}

/// The known fields of a v2 schedule that are strings: others are never stored.
fn read_fields(schedule: &RawValue) -> Option<Value> {
    let mut fields = Map::new();
    let is_object = raw::members(schedule, |key, part| {
        if v2::FIELDS.contains(&key.name()) {
            match raw::string(part) {
                Some(part) => fields.insert(key.name().to_owned(), part.into()),
                None => fields.remove(key.name()),
            };
        }
    });
    is_object.then_some(Value::Object(fields))
}

/// The v1 schedule for a v2 one. Fields that the version does not have, or that are no strings, are not stored and say nothing.
fn one_string_of(schedule: &Value) -> Said {
    match schedule {
        Value::Object(fields) => {
            let text = v2::joined(fields);
            let memory = if text.len() > MEMORY_MAX_BYTES {
                None
            } else {
                let fields = v2::known(fields);
                let says_all = plain_parts(&text).is_some_and(|parts| v2::split(parts) == fields);
                (!says_all).then(|| Value::from(fields).to_string())
            };
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
                let memory = (text.len() <= MEMORY_MAX_BYTES).then(|| memory_of(text));
                Said { schedule: fields.into(), memory }
            },
            |parts| Said { schedule: v2::split(parts).into(), memory: None },
        ),
        _ => Said { schedule: schedule.clone(), memory: None },
    }
}

/// Five parts with one space between them, and nothing else.
fn plain_parts(text: &str) -> Option<[&str; super::schedule::FIELD_COUNT]> {
    expansion(text).filter(|parts| text.split(' ').eq(parts.iter().copied()))
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
