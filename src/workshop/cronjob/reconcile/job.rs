//! The Job for a run.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::workshop::cronjob::api::{API_VERSION, CronJob, KIND};
use crate::workshop::cronjob::vocabulary::SCHEDULED_AT;

/// The name of the Job for a run: the same for the same run, so that it cannot start twice.
pub fn job_name(cronjob: &str, run: Timestamp) -> String {
    format!("{cronjob}-{}", run.as_second())
}

/// The Job as the template has it, whatever fields that has.
pub fn manifest(cronjob: &CronJob, run: Timestamp) -> Value {
    let name = cronjob.metadata.name.as_deref().unwrap_or_default();
    let template = &cronjob.spec.job_template;
    let mut annotations = copied(template, "annotations");
    annotations.insert(SCHEDULED_AT.to_owned(), run.to_string().into());
    let mut metadata = json!({
        "name": job_name(name, run),
        "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": API_VERSION, "kind": KIND, "name": name, "uid": cronjob.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    if let Some(namespace) = &cronjob.metadata.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    let labels = copied(template, "labels");
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata});
    if let Some(spec) = template.get("spec") {
        job["spec"] = spec.clone();
    }
    job
}

fn copied(template: &Map<String, Value>, field: &str) -> Map<String, Value> {
    let map = template.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
    map.cloned().unwrap_or_default()
}
