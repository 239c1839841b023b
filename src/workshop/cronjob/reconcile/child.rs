//! A Job of a `CronJob`, reduced to what decisions read.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Cause, ReconcileStep};
use crate::workshop::cronjob::api::{CronJob, GROUP, KIND};
use crate::workshop::cronjob::vocabulary::SCHEDULED_AT;

/// A Job of a `CronJob`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildJob {
    /// `metadata.name`.
    pub name: String,
    /// Keeps a Job apart from a deleted one of its name.
    pub uid: Option<String>,
    /// Version, for the reference in the status.
    pub resource_version: Option<String>,
    /// How it ended; `None` while it has not.
    pub outcome: Option<JobOutcome>,
    /// When it was started.
    pub start_time: Option<Timestamp>,
    /// When its run was due.
    pub scheduled_at: Option<Timestamp>,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// How a Job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOutcome {
    /// Condition `Complete`.
    Complete,
    /// Condition `Failed`.
    Failed,
}

impl ChildJob {
    /// What decisions read of a Job's metadata and status.
    pub fn of(metadata: &ObjectMeta, status: Option<&JobStatus>) -> Self {
        let annotation = metadata.annotations.as_ref().and_then(|annotations| annotations.get(SCHEDULED_AT));
        let scheduled_at = annotation.and_then(|text| {
            let time = text.parse();
            if let Err(error) = &time {
                let (name, namespace) = (metadata.name.as_deref(), metadata.namespace.as_deref());
                // A user may write it, in as many Jobs as there may be, and each is read again and again.
                tracing::debug!(job = name, namespace, annotation = SCHEDULED_AT, %error, "The time of a Job cannot be read");
            }
            time.ok()
        });
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            outcome: outcome(status),
            start_time: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
            scheduled_at,
            terminating: metadata.deletion_timestamp.is_some(),
        }
    }

    /// The step that deletes it.
    pub(super) fn delete(&self, cause: Cause) -> ReconcileStep {
        ReconcileStep::DeleteJob { name: self.name.clone(), uid: self.uid.clone(), cause }
    }
}

fn outcome(status: Option<&JobStatus>) -> Option<JobOutcome> {
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().filter(|condition| condition.status == "True").find_map(|condition| {
        match condition.type_.as_str() {
            "Complete" => Some(JobOutcome::Complete),
            "Failed" => Some(JobOutcome::Failed),
            _ => None,
        }
    })
}

/// Whether the `CronJob` controls the Job: by group, kind and uid, as names come back.
pub fn is_child(job: &ObjectMeta, cronjob: &CronJob) -> bool {
    let owners = job.owner_references.as_deref().unwrap_or_default();
    owners.iter().any(|owner| {
        owner.controller == Some(true)
            && owner.kind == KIND
            && owner.api_version.split_once('/').is_some_and(|(group, _)| group == GROUP)
            && Some(&owner.uid) == cronjob.metadata.uid.as_ref()
    })
}
