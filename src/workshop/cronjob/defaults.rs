//! What is filled into a `CronJob` when it is written.

use admission::patch::{PatchBuilder, PatchError};
use admission::{Defaulting, Request};
use serde_json::Value;

use super::vocabulary as words;
use engine::snapshot::Snapshot;

/// Fills in what a `CronJob` leaves out: only the missing fields, one by one. To send the whole spec back, as a typed round trip
/// does, would put zero values into the Job template, and the user would read errors about fields that were never written.
#[derive(Debug, Clone, Copy, Default)]
pub struct CronJobDefaults;

impl Defaulting<Snapshot> for CronJobDefaults {
    fn default(&self, request: &Request<'_, Value>, patch: &mut PatchBuilder, _: &Snapshot) -> Result<(), PatchError> {
        // An object that is being deleted is left alone, so that nothing blocks the removal of its finalizers.
        if request.is_of_leaving(patch.document()) { Ok(()) } else { fill(patch) }
    }
}

/// Fields of `spec` that are filled in.
pub const FIELDS: [&str; 4] = ["concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];

/// Fills in what the document of `patch` leaves out.
///
/// # Errors
/// Never in practice: where the shape is wrong nothing is filled, and validation says what is wrong.
pub fn fill(patch: &mut PatchBuilder) -> Result<(), PatchError> {
    let document = patch.document();
    if !document.get("spec").is_some_and(Value::is_object) {
        return Ok(());
    }
    let policy = "/spec/concurrencyPolicy";
    // A plain string in the API's Go types, where empty means absent; the others are pointers.
    if document.pointer(policy).and_then(Value::as_str) == Some("") {
        patch.set(policy, words::ALLOW.into())?;
    }
    patch.default(policy, words::ALLOW.into())?;
    patch.default("/spec/suspend", false.into())?;
    patch.default("/spec/successfulJobsHistoryLimit", words::SUCCESSFUL_JOBS_HISTORY_LIMIT.into())?;
    patch.default("/spec/failedJobsHistoryLimit", words::FAILED_JOBS_HISTORY_LIMIT.into())
}

#[cfg(test)]
mod tests {
    use admission::patch::PatchBuilder;
    use serde_json::{Value, json};

    use super::{FIELDS, fill};

    #[test]
    fn fields_that_are_filled_in_are_listed() {
        let operations = operations(&json!({"spec": {}}));
        let filled: Vec<&str> =
            operations.as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
        assert_eq!(filled, FIELDS.map(|name| format!("/spec/{name}")));
    }

    fn operations(object: &Value) -> Value {
        let mut patch = PatchBuilder::new(object);
        fill(&mut patch).unwrap();
        let writer = patch.finish();
        if writer.is_empty() { json!([]) } else { serde_json::from_slice(writer.document()).unwrap() }
    }

    fn filled(spec: &Value) -> Value {
        let mut patch = PatchBuilder::new(&json!({"spec": spec}));
        fill(&mut patch).unwrap();
        let filled = patch.document()["spec"].clone();
        assert_eq!(operations(&json!({"spec": filled})), json!([]), "not a fixed point");
        filled
    }

    /// Acceptance check 5.
    #[test]
    fn four_missing_fields_take_four_operations() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}});
        assert_eq!(
            operations(&object),
            json!([
                {"op": "add", "path": "/spec/concurrencyPolicy", "value": "Allow"},
                {"op": "add", "path": "/spec/suspend", "value": false},
                {"op": "add", "path": "/spec/successfulJobsHistoryLimit", "value": 3},
                {"op": "add", "path": "/spec/failedJobsHistoryLimit", "value": 1},
            ])
        );
    }

    /// The upstream tests T1 and T2.
    #[test]
    fn absent_null_and_empty_are_filled_and_anything_else_stays() {
        let defaults = json!({
            "concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        });
        let none = json!({
            "concurrencyPolicy": null, "suspend": null, "successfulJobsHistoryLimit": null, "failedJobsHistoryLimit": null,
        });
        let zeros = json!({"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0});
        let chosen = json!({"concurrencyPolicy": "Forbid", "suspend": true, "successfulJobsHistoryLimit": 5, "failedJobsHistoryLimit": 2});
        let wrong = json!({"concurrencyPolicy": 1, "suspend": "x", "successfulJobsHistoryLimit": [], "failedJobsHistoryLimit": {}});
        assert_eq!(filled(&json!({})), defaults);
        assert_eq!(filled(&json!({"concurrencyPolicy": ""})), defaults);
        assert_eq!(filled(&none), defaults);
        for spec in [zeros, chosen, wrong] {
            assert_eq!(filled(&spec), spec);
        }
    }

    #[test]
    fn objects_without_a_place_for_defaults_are_left_alone() {
        for object in [json!({}), json!({"spec": null}), json!({"spec": 1}), json!([]), json!(null)] {
            assert_eq!(operations(&object), json!([]), "{object}");
        }
    }
}
