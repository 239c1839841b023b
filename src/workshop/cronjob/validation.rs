//! What makes a `CronJob` wrong, and what its author would want to know.
//!
//! A validating webhook runs after defaulting and after the API server's own schema check. Offline there is no API server, so the
//! schema is checked here as well, in the API server's words. The object is read as it was sent and every fault is reported at once.

mod fields;
mod job_template;
mod sent;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use admission::field::{Error, ErrorList, Path};
use admission::patch::PatchBuilder;
use admission::{Findings, Reason, Request, Validating};
use serde_json::{Map, Value, json};

use self::fields::Fields;
pub use self::sent::Version;
use super::conversion::lacks_room;
use super::defaults;
use super::schedule::{Schedule, zone};
use super::v2;
use super::vocabulary as words;
use engine::snapshot::Snapshot;

/// Validates a `CronJob` when it is created and when it changes. Its deletion is not checked: an object that is wrong
/// must be deletable.
#[derive(Debug, Clone, Copy, Default)]
pub struct CronJobValidation;

impl Validating<Snapshot> for CronJobValidation {
    type Object<'a> = Value;

    fn create(&self, object: &Value, request: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) {
        // An old object that cannot be decoded: see `Validating`.
        if request.is_of_leaving(object) {
            findings.reason = Reason::TERMINATING;
        } else {
            create(object, Version::of(request), findings);
        }
    }

    fn update(&self, new: &Value, old: &Value, request: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) {
        update(new, old, Version::of(request), findings);
    }
}

/// Faults that are listed one by one: a reply must not be many times as long as the request.
const FAULTS_TOLD: usize = 100;

/// Validates a new object, which was sent in `version`. Whatever its author wrote into `deletionTimestamp`, it is not being deleted.
pub fn create(object: &Value, version: Version, findings: &mut Findings) {
    let metadata = Fields::new(object.get("metadata"), Path::new("metadata"));
    let mut errors = ErrorList::new();
    check_name(&metadata, &mut errors);
    check_room(object, &mut errors);
    check_spec(object, version, &mut errors);
    if let Some(left_out @ 1..) = errors.len().checked_sub(FAULTS_TOLD) {
        findings.warnings.push(format!("{left_out} more errors are not listed"));
    }
    findings.errors.extend(errors.into_iter().take(FAULTS_TOLD));
    warn(object, version, &mut findings.warnings);
}

/// Validates a change. Where `spec` stays as it is nothing is checked: else the controller could not put a finalizer on an object
/// that was stored while the webhook was off. Such an object gets its defaults with its first change; they are no change.
pub fn update(new: &Value, old: &Value, version: Version, findings: &mut Findings) {
    if is_terminating(old) {
        findings.reason = Reason::TERMINATING;
    } else if new.get("spec") != old.get("spec") && !is_filled_in(new.get("spec"), old.get("spec")) {
        create(new, version, findings);
    } else if lacks_room(old).is_none() {
        check_room(new, &mut findings.errors);
    }
}

/// What the other version cannot say is remembered in an annotation, which the API server counts with the others.
fn check_room(object: &Value, errors: &mut ErrorList) {
    if let Some((wanted, room)) = lacks_room(object) {
        let detail = format!(
            "spec.schedule is remembered in an annotation of {wanted} bytes for those who read version {}, and the other \
             annotations leave room for {room}",
            v2::VERSION
        );
        errors.push(Error::forbidden(&Path::new("metadata").child("annotations"), detail));
    }
}

/// Whether the new spec is the old one with its defaults. Only what a default may replace is copied: the rest may be large.
fn is_filled_in(new: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(Value::Object(new)), Some(Value::Object(old))) = (new, old) else { return false };
    let is_replaced = |name: &str, value: &Value| {
        defaults::FIELDS.contains(&name) && !matches!(value, Value::Array(_) | Value::Object(_))
    };
    let (replaced, kept): (Vec<_>, Vec<_>) = old.iter().partition(|(name, value)| is_replaced(name, value));
    let replaced: Map<String, Value> =
        replaced.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut patch = PatchBuilder::new(&json!({"spec": replaced}));
    if defaults::fill(&mut patch).is_err() {
        return false;
    }
    let Some(Value::Object(filled)) = patch.document().get("spec") else { return false };
    // A list or a map in a default's place is kept, and is what the new spec has to have there.
    let kept: BTreeMap<&String, &Value> = kept.into_iter().collect();
    let filled = filled.iter().filter(|(name, _)| !kept.contains_key(name));
    let wanted: BTreeMap<&String, &Value> = filled.chain(kept.iter().map(|(name, value)| (*name, *value))).collect();
    new.iter().eq(wanted)
}

/// Validation must not keep an object from being deleted, and finalizers are removed by an update.
fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

fn check_name(metadata: &Fields<'_>, errors: &mut ErrorList) {
    let name = metadata.text("name");
    if name.len() > words::NAME_MAX_BYTES {
        let detail = format!("must be no more than {} characters", words::NAME_MAX_BYTES);
        errors.push(Error::invalid(&metadata.path.child("name"), name, detail));
    }
}

fn check_spec(object: &Value, version: Version, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let Some(spec) = fields::required_map(object.get("spec"), &path, errors) else { return };
    check_schedule(object, &spec, version, errors);
    check_zone(&spec, errors);
    spec.check_number("startingDeadlineSeconds", i64::MAX, errors);
    spec.check_word("concurrencyPolicy", &words::CONCURRENCY_POLICIES, errors);
    spec.check_flag("suspend", errors);
    spec.check_word("deletionPolicy", &words::DELETION_POLICIES, errors);
    spec.check_number("successfulJobsHistoryLimit", i32::MAX.into(), errors);
    spec.check_number("failedJobsHistoryLimit", i32::MAX.into(), errors);
    job_template::check(spec.get("jobTemplate"), &path.child("jobTemplate"), errors);
}

fn check_schedule(object: &Value, spec: &Fields<'_>, version: Version, errors: &mut ErrorList) {
    let path = spec.path.child("schedule");
    match spec.get("schedule") {
        None => errors.push(Error::required(&path, "")),
        Some(Value::String(text)) if text.len() > words::SCHEDULE_MAX_BYTES => {
            errors.push(Error::too_long(&path, words::SCHEDULE_MAX_BYTES));
        }
        Some(Value::String(text)) => version.check_schedule(object, &path, text, errors),
        Some(other) => errors.push(fields::wrong_type(&path, other, "string")),
    }
}

fn check_zone(spec: &Fields<'_>, errors: &mut ErrorList) {
    let path = spec.path.child("timeZone");
    match spec.get("timeZone") {
        None => {}
        Some(Value::String(name)) => {
            if let Err(error) = zone(Some(name)) {
                errors.push(Error::invalid(&path, name, error.to_string()));
            }
        }
        Some(other) => errors.push(fields::wrong_type(&path, other, "string")),
    }
}

fn warn(object: &Value, version: Version, warnings: &mut Vec<String>) {
    if object.pointer("/spec/startingDeadlineSeconds").and_then(Value::as_i64) == Some(0) {
        warnings.push(
            "spec.startingDeadlineSeconds: 0 leaves no run any time to start, so no Job will ever start".to_owned(),
        );
    }
    let Some(text) = object.pointer("/spec/schedule").and_then(Value::as_str) else { return };
    if text.len() > words::SCHEDULE_MAX_BYTES {
        return;
    }
    let Ok(schedule) = Schedule::parse(text) else { return };
    let text = version.quoted_schedule(object, text);
    if schedule.delay().is_some() {
        warnings.push(format!(
            "spec.schedule: {text} has no form in version {}; who reads that version finds it in the annotation {}",
            v2::VERSION,
            words::V1_SCHEDULE
        ));
    }
    if schedule.never_fires() {
        warnings.push(format!("spec.schedule: {text} matches no date, so no Job will ever start"));
    }
}
