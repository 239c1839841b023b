//! The version that was sent. The API server converts every object to v1 first, and the author of v2 knows its fields alone.

use admission::Request;
use admission::field::{Error, ErrorList, Path};
use serde_json::{Map, Value};

use crate::workshop::cronjob::conversion::schedule_in_v2;
use crate::workshop::cronjob::schedule::{FIELD_COUNT, Schedule, ScheduleError, is_too_often};
use crate::workshop::cronjob::v2;

/// A version of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The schedule is a string.
    V1,
    /// The schedule is five fields.
    V2,
}

impl Version {
    /// That of the object that was sent: `requestKind`, which is not the kind that a webhook is asked in.
    pub fn of(request: &Request<'_, Value>) -> Self {
        match &request.request_kind {
            Some(kind) if kind.version.as_str() == v2::VERSION => Self::V2,
            _ => Self::V1,
        }
    }

    /// Adds errors for a schedule that is none.
    pub fn check_schedule(self, object: &Value, path: &Path, text: &str, errors: &mut ErrorList) {
        match (Schedule::parse(text), self.fields(object)) {
            (Ok(_), _) if is_too_often(text) => {
                errors.push(Error::invalid(path, text, "must be at least 1s: a run starts at most once a second"));
            }
            (Ok(_), _) => {}
            (Err(error), Some(fields)) => check_fields(&fields, path, &error, errors),
            (Err(error), None) => errors.push(Error::invalid(path, text, error.to_string())),
        }
    }

    /// The schedule for a message.
    pub fn quoted_schedule(self, object: &Value, text: &str) -> String {
        self.fields(object).map_or_else(|| admission::field::quote(text), |fields| Value::from(fields).to_string())
    }

    /// The fields of the schedule, where it was sent in fields.
    fn fields(self, object: &Value) -> Option<Map<String, Value>> {
        match schedule_in_v2(object) {
            Some(Value::Object(fields)) if self == Self::V2 => Some(fields),
            _ => None,
        }
    }
}

/// Names every field that is wrong; the schedule as a whole where each is right for itself.
fn check_fields(fields: &Map<String, Value>, path: &Path, whole: &ScheduleError, errors: &mut ErrorList) {
    let before = errors.len();
    for (index, name) in v2::FIELDS.into_iter().enumerate() {
        if let Some(part) = fields.get(name).and_then(Value::as_str)
            && let Some(fault) = fault(index, part)
        {
            errors.push(Error::invalid(&path.child(name), part, fault));
        }
    }
    if errors.len() == before {
        errors.push(Error::invalid(path, Value::from(fields.clone()), whole.to_string()));
    }
}

/// What is wrong with one field.
fn fault(index: usize, part: &str) -> Option<String> {
    if part.is_empty() || part.contains(char::is_whitespace) {
        return Some("must be one field of a schedule, without spaces; leave it out for every value".to_owned());
    }
    if part.starts_with('@') {
        return Some("a descriptor is a whole schedule of v1; write the fields that it is short for".to_owned());
    }
    let mut parts = ["*"; FIELD_COUNT];
    if let Some(place) = parts.get_mut(index) {
        *place = part;
    }
    Schedule::parse(&parts.join(" ")).err().map(|error| error.to_string())
}
