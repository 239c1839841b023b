//! The state that one reconcile reads, and the status that reports it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::ReconcileStep;
use super::child::ChildJob;
use crate::workshop::cronjob::api::{ACTIVE_MAX, CronJob, CronJobStatus};
use crate::workshop::cronjob::schedule::Schedule;

/// How far the clocks of two machines may differ without a word.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// How late a run is at most that is caught up with after the clock went back.
const TOLD_LONG_AGO: SignedDuration = SignedDuration::from_mins(10);

/// A `CronJob`, its Jobs and the time.
pub struct Observed<'a> {
    pub cronjob: &'a CronJob,
    pub jobs: &'a [ChildJob],
    pub now: Timestamp,
}

impl<'a> Observed<'a> {
    pub const fn of(cronjob: &'a CronJob, jobs: &'a [ChildJob], now: Timestamp) -> Self {
        Self { cronjob, jobs, now }
    }

    /// Jobs that have not ended.
    pub fn active(&self) -> impl Iterator<Item = &'a ChildJob> {
        self.jobs.iter().filter(|job| job.outcome.is_none())
    }

    /// When the newest run was due: by its Job, or by the status where that Job is gone. Without the status a run whose Job was
    /// deleted, by a history limit of 0 or by hand, would start again. What lies ahead is no run that was.
    pub fn last_schedule_time(&self) -> Option<Timestamp> {
        self.recorded().filter(|&time| time <= self.now).max()
    }

    /// Every run that is recorded.
    fn recorded(&self) -> impl Iterator<Item = Timestamp> {
        self.jobs.iter().filter_map(|job| job.scheduled_at).chain(self.remembered())
    }

    fn remembered(&self) -> Option<Timestamp> {
        self.cronjob.status.as_ref()?.last_schedule_time.as_ref().map(|time| time.0)
    }

    fn created(&self) -> Option<Timestamp> {
        self.cronjob.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    /// The latest recorded time that lies ahead by more than clocks differ: the clock went back, or a user wrote it.
    pub fn ahead(&self) -> Option<Timestamp> {
        let latest = self.recorded().chain(self.created()).max()?;
        (latest.duration_since(self.now) > CLOCK_SKEW).then_some(latest)
    }

    /// The time after which runs of the schedule are looked for.
    ///
    /// Where the clock went back, nothing that is recorded says which runs there were by this clock. Then the run counts that
    /// was reported to be the next.
    pub fn anchor(&self, schedule: &Schedule) -> Timestamp {
        let last = self.last_schedule_time();
        if self.ahead().is_none() {
            return last.or_else(|| self.created()).unwrap_or(self.now);
        }
        let distance = schedule.delay().unwrap_or(SignedDuration::from_secs(1));
        let next = self.cronjob.status.as_ref().and_then(|status| status.next_schedule_time.as_ref());
        let before_next = next.and_then(|next| next.0.checked_sub(distance).ok()).filter(|time| *time <= self.now);
        match before_next {
            // Not long ago, or no controller ran when the clock went back.
            Some(told) if self.now.duration_since(told) <= distance.max(TOLD_LONG_AGO) => {
                last.map_or(told, |last| last.max(told))
            }
            _ => self.now,
        }
    }

    pub fn status(&self, next: Option<Timestamp>, conditions: Vec<Condition>) -> CronJobStatus {
        let mut active: Vec<ObjectReference> = self.active().map(|job| self.reference(job)).collect();
        active.sort_by(|a, b| a.name.cmp(&b.name));
        active.truncate(ACTIVE_MAX);
        CronJobStatus {
            observed_generation: self.cronjob.metadata.generation,
            active: (!active.is_empty()).then_some(active),
            // One that lies ahead is kept, or it would be forgotten that the clock went back before there is another.
            last_schedule_time: self.last_schedule_time().or_else(|| self.remembered()).map(Time),
            next_schedule_time: next.map(Time),
            conditions: Some(conditions),
        }
    }

    /// The step that writes the status, if it says anything new.
    pub fn write(&self, status: CronJobStatus) -> Option<ReconcileStep> {
        (self.cronjob.status.as_ref() != Some(&status)).then(|| ReconcileStep::WriteStatus(Box::new(status)))
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
