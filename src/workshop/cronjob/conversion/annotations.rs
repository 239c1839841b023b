//! The annotations that remember a schedule, and the room for them.

use std::borrow::Cow;

use admission::patch::quoted;
use admission::raw::{self, ObjectWriter};
use serde_json::Value;
use serde_json::value::RawValue;

use super::five_fields_of;
use crate::workshop::cronjob::vocabulary::{V1_SCHEDULE, V2_SCHEDULE};

/// Bytes of all keys and values of annotations (k8s.io/apimachinery/pkg/api/validation, `TotalAnnotationSizeLimitB`). The API server
/// refuses a converted object with more, and with it the whole list.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// What the annotations of an object are.
#[derive(Default)]
pub struct ScheduleAnnotations<'a> {
    /// Their text, where there are any.
    json: Option<&'a RawValue>,
    /// What was remembered under the key that was asked for.
    pub remembered: Option<Cow<'a, str>>,
    /// Whether some are ours.
    has_ours: bool,
    /// Of the others.
    bytes: usize,
    others: usize,
}

impl<'a> ScheduleAnnotations<'a> {
    /// Those in `metadata`, and what `key` remembers.
    pub fn of(metadata: Option<&'a RawValue>, key: &str) -> Self {
        let Some(json) = metadata.and_then(|metadata| raw::member(metadata, "annotations")) else {
            return Self::default();
        };
        let mut found = Self { json: Some(json), ..Self::default() };
        let mut remembered = None;
        raw::members(json, |name, value| {
            if is_ours(name.name()) {
                found.has_ours = true;
                if name.name() == key {
                    remembered = Some(value);
                }
            } else {
                found.others += 1;
                found.bytes += name.name().len() + raw::string(value).map_or(0, |text| text.len());
            }
        });
        found.remembered = remembered.and_then(raw::string);
        found
    }

    /// Whether there is a place, and room in it, for one more.
    pub fn take(&self, key: &str, value: &str) -> bool {
        let is_place = self.json.is_none_or(|json| raw::is_object(json) || json.get() == "null");
        is_place && key.len() + value.len() <= room(self.bytes)
    }

    /// Writes the part of `metadata` that a conversion may change: labels and annotations, ours replaced by `memory`.
    pub fn write(&self, metadata: &RawValue, memory: Option<(&str, &str)>, out: &mut String) {
        let mut writer = ObjectWriter::begin(out);
        if let Some(labels) = raw::member(metadata, "labels") {
            writer.put("labels", labels.get());
        }
        match self.json {
            Some(json) if !self.has_ours && memory.is_none() => writer.put("annotations", json.get()),
            _ if self.others == 0 && memory.is_none() => {}
            _ => self.write_changed(memory, writer.value_of("annotations")),
        }
        writer.end();
    }

    fn write_changed(&self, memory: Option<(&str, &str)>, out: &mut String) {
        let mut writer = ObjectWriter::begin(out);
        if let Some(json) = self.json {
            raw::members(json, |key, value| {
                if !is_ours(key.name()) {
                    writer.copy(&key, value);
                }
            });
        }
        if let Some((key, memory)) = memory {
            writer.put(key, &quoted(memory));
        }
        writer.end();
    }
}

/// Why the schedule cannot be remembered beside the object's annotations, if it would have to be; what it takes and what there is.
pub fn lacks_room(object: &Value) -> Option<(usize, usize)> {
    let schedule = object.pointer("/spec/schedule")?;
    let wanted = V1_SCHEDULE.len() + five_fields_of(schedule).memory?.len();
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let others = annotations.into_iter().flatten().filter(|(key, _)| !is_ours(key));
    let room = room(others.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum());
    (wanted > room).then_some((wanted, room))
}

/// What is left beside annotations of so many bytes.
const fn room(taken: usize) -> usize {
    ANNOTATIONS_MAX_BYTES.saturating_sub(taken)
}

fn is_ours(key: &str) -> bool {
    key == V1_SCHEDULE || key == V2_SCHEDULE
}
