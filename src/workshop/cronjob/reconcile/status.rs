//! The world as one reconcile sees it, and the status that tells of it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::Step;
use super::child::ChildJob;
use crate::workshop::cronjob::api::{ACTIVE_MAX, CronJob, CronJobStatus};

/// A `CronJob`, its Jobs and the time.
pub struct World<'a> {
    pub cronjob: &'a CronJob,
    pub jobs: &'a [ChildJob],
    pub now: Timestamp,
}

impl<'a> World<'a> {
    pub const fn of(cronjob: &'a CronJob, jobs: &'a [ChildJob], now: Timestamp) -> Self {
        Self { cronjob, jobs, now }
    }

    /// Jobs that have not ended.
    pub fn active(&self) -> impl Iterator<Item = &'a ChildJob> {
        self.jobs.iter().filter(|job| job.outcome.is_none())
    }

    /// When the newest run was due: by its Job, or by the status where that Job is gone. Without the status a run whose Job was
    /// deleted, by a history limit of 0 or by hand, would start again.
    pub fn last_schedule_time(&self) -> Option<Timestamp> {
        let remembered = self.cronjob.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
        let remembered = remembered.map(|time| time.0).filter(|&time| time <= self.now);
        self.jobs.iter().filter_map(|job| job.scheduled_at).chain(remembered).max()
    }

    /// The time after which runs are looked for.
    pub fn anchor(&self) -> Timestamp {
        let created = || self.cronjob.metadata.creation_timestamp.as_ref().map(|time| time.0);
        self.last_schedule_time().or_else(created).unwrap_or(self.now)
    }

    pub fn status(&self, next: Option<Timestamp>, conditions: Vec<Condition>) -> CronJobStatus {
        let mut active: Vec<ObjectReference> = self.active().map(|job| self.reference(job)).collect();
        active.sort_by(|a, b| a.name.cmp(&b.name));
        active.truncate(ACTIVE_MAX);
        CronJobStatus {
            observed_generation: self.cronjob.metadata.generation,
            active: (!active.is_empty()).then_some(active),
            last_schedule_time: self.last_schedule_time().map(Time),
            next_schedule_time: next.map(Time),
            conditions: Some(conditions),
        }
    }

    /// The step that writes the status, if it says anything new.
    pub fn write(&self, status: CronJobStatus) -> Option<Step> {
        (self.cronjob.status.as_ref() != Some(&status)).then(|| Step::WriteStatus(Box::new(status)))
    }

    fn reference(&self, job: &ChildJob) -> ObjectReference {
        ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            namespace: self.cronjob.metadata.namespace.clone(),
            name: Some(job.name.clone()),
            uid: job.uid.clone(),
            resource_version: job.resource_version.clone(),
            field_path: None,
        }
    }
}

/// A JSON merge patch for the sub-resource `status`. What is absent is written as `null`, which a merge patch removes.
pub fn merge_patch(status: &CronJobStatus) -> Value {
    json!({"status": {
        "observedGeneration": status.observed_generation,
        "active": status.active,
        "lastScheduleTime": status.last_schedule_time,
        "nextScheduleTime": status.next_schedule_time,
        "conditions": status.conditions,
    }})
}
