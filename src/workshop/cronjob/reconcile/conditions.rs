//! The conditions `Available`, `Progressing` and `Degraded`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::child::{ChildJob, JobOutcome};
use super::status::Observed;
use super::{Decision, Event};
use crate::workshop::cronjob::api::CronJobStatus;
use crate::workshop::cronjob::vocabulary::JOBS_PER_SECOND;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";

const JOB_CREATION_FAILED: &str = "JobCreationFailed";

/// Why a run that is due does not start yet.
const RATE_LIMITED: &str = "RateLimited";

/// Why no run can start until the object changes.
pub struct Problem {
    reason: &'static str,
    message: String,
}

impl Problem {
    pub fn of(decision: &Decision) -> Option<Self> {
        let (reason, message) = match decision {
            Decision::InvalidSchedule(message) => ("InvalidSchedule", message.clone()),
            Decision::NeverDue => ("NeverDue", "The schedule matches no time in the next five years".to_owned()),
            Decision::TooManyMissed => (
                "MissedSchedule",
                "too many missed start times (> 100). Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                    .to_owned(),
            ),
            _ => return None,
        };
        Some(Self { reason, message })
    }
}

/// Status, reason and message.
type ConditionState = (bool, &'static str, String);

impl Observed<'_> {
    /// All three conditions. `starts` says whether a run is about to start: a failure to create its Job stays reported until it
    /// was created, else each attempt would write the status twice.
    pub fn conditions(&self, problem: Option<&Problem>, starts: bool) -> Vec<Condition> {
        let failed = self.newest_finished().filter(|job| job.outcome == Some(JobOutcome::Failed));
        let statements = [
            (AVAILABLE, self.available(problem, failed)),
            (PROGRESSING, self.progressing()),
            (DEGRADED, degraded(problem, self.ahead(), failed)),
        ];
        let old = self.cronjob.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        statements
            .into_iter()
            .map(|(type_, statement)| {
                let before = old.iter().find(|condition| condition.type_ == type_);
                match before {
                    Some(before) if starts && matches!(before.reason.as_str(), JOB_CREATION_FAILED | RATE_LIMITED) => {
                        before.clone()
                    }
                    _ => condition(type_, statement, before, self.cronjob.metadata.generation, self.now),
                }
            })
            .collect()
    }

    /// An event about the problem, unless the status has it already.
    pub fn news(&self, problem: &Problem) -> Option<Event> {
        let old = self.cronjob.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let known = old.iter().any(|condition| {
            condition.type_ == DEGRADED && condition.reason == problem.reason && condition.message == problem.message
        });
        (!known).then(|| Event { warning: true, reason: problem.reason, message: problem.message.clone() })
    }

    fn available(&self, problem: Option<&Problem>, failed: Option<&ChildJob>) -> ConditionState {
        match (problem, failed) {
            _ if self.cronjob.spec.is_suspended() => (false, "Suspended", "No further Job starts".to_owned()),
            (Some(problem), _) => (false, problem.reason, problem.message.clone()),
            (None, Some(job)) => (false, "JobsFailed", job_failed(job)),
            (None, None) if self.active().next().is_some() => (true, "JobsActive", self.not_ended()),
            (None, None) => (true, "AllJobsCompleted", "No Job has failed".to_owned()),
        }
    }

    fn progressing(&self) -> ConditionState {
        if self.active().next().is_none() {
            (false, "NoJobsActive", "No Job is running".to_owned())
        } else if self.cronjob.metadata.deletion_timestamp.is_some() {
            let how = "the CronJob goes when they end or are deleted, or when spec.deletionPolicy is set to Delete";
            (true, "WaitingForActiveJobs", format!("{}; {how}", self.not_ended()))
        } else {
            (true, "JobsActive", self.not_ended())
        }
    }

    fn not_ended(&self) -> String {
        match self.active().count() {
            1 => "1 Job has not ended".to_owned(),
            many => format!("{many} Jobs have not ended"),
        }
    }

    /// The newest Job that has ended: an older failure is history once a run went well. Of two that started at once the failed
    /// one counts.
    fn newest_finished(&self) -> Option<&ChildJob> {
        let finished = self.jobs.iter().filter(|job| job.outcome.is_some());
        // One that started ahead of now did so before the clock was set back.
        let started = |job: &ChildJob| job.start_time.filter(|&time| time <= self.now);
        finished.max_by_key(|job| (started(job), job.outcome == Some(JobOutcome::Failed), &job.name))
    }
}

fn degraded(problem: Option<&Problem>, ahead: Option<Timestamp>, failed: Option<&ChildJob>) -> ConditionState {
    match (problem, ahead, failed) {
        (Some(problem), ..) => (true, problem.reason, problem.message.clone()),
        (None, Some(time), _) => (true, "ClockWentBack", clock_went_back(time)),
        (None, None, Some(job)) => (true, "JobsFailed", job_failed(job)),
        (None, None, None) => (false, "AsExpected", "Nothing prevents the next run".to_owned()),
    }
}

/// The time stays while the clock goes on.
fn clock_went_back(time: Timestamp) -> String {
    format!(
        "The time {time} is recorded, by a Job, in the status or as that of the creation, and lies ahead: the clock was set \
         back, or a client wrote it. Runs continue from now"
    )
}

fn job_failed(job: &ChildJob) -> String {
    format!("Job {} failed", job.name)
}

fn condition(
    type_: &str,
    (holds, reason, message): ConditionState,
    before: Option<&Condition>,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    let since = before.filter(|before| before.status == status).map(|before| before.last_transition_time.clone());
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        // Written in whole seconds; with a fraction it would differ from what is read back.
        last_transition_time: since.unwrap_or_else(|| Time(Timestamp::from_second(now.as_second()).unwrap_or(now))),
        observed_generation: generation,
    }
}

/// The status with the news that a Job could not be created. `message` must not change from one attempt to the next.
pub fn creation_failed(status: &CronJobStatus, message: &str, now: Timestamp) -> CronJobStatus {
    degraded_by(status, JOB_CREATION_FAILED, message, now)
}

/// Since when Jobs could not be created, if the status says so.
pub fn creation_failed_since(status: &CronJobStatus) -> Option<Timestamp> {
    let mut conditions = status.conditions.iter().flatten();
    let failed = conditions.find(|condition| condition.type_ == DEGRADED && condition.reason == JOB_CREATION_FAILED)?;
    Some(failed.last_transition_time.0)
}

/// The status with the news that the run that is due has to wait.
pub fn run_waits(status: &CronJobStatus, now: Timestamp) -> CronJobStatus {
    let [each, all] = JOBS_PER_SECOND;
    let message = format!(
        "More Jobs are due than are created: {each} a second for a CronJob, and {all} a second for all; the run waits"
    );
    degraded_by(status, RATE_LIMITED, &message, now)
}

fn degraded_by(status: &CronJobStatus, reason: &'static str, message: &str, now: Timestamp) -> CronJobStatus {
    let mut status = status.clone();
    let conditions = status.conditions.get_or_insert_default();
    let at = conditions.iter().position(|condition| condition.type_ == DEGRADED);
    let before = at.map(|at| conditions.remove(at));
    let statement = (true, reason, message.to_owned());
    conditions.push(condition(DEGRADED, statement, before.as_ref(), status.observed_generation, now));
    status
}
