//! What to do about a `CronJob`: its Jobs and the time in, steps out. Pure; who talks to the API server carries the steps out.
//!
//! Everything is decided anew from the observed state each time. A run is found by its time, and its Job is named after it, so the same
//! run never starts twice, whenever the process was stopped.

mod child;
mod conditions;
mod event;
mod history;
mod job;
mod runs;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

pub use self::child::{ChildJob, JobOutcome, is_child};
pub use self::conditions::{creation_failed, creation_failed_since};
pub use self::event::Event;
pub use self::job::{NewJob, job_name};
pub use self::status::merge_patch;

use self::conditions::{Problem, run_waits};
use self::runs::Runs;
use self::status::Observed;
use super::api::{CronJob, CronJobStatus};
use super::schedule::{Schedule, zone};
use super::vocabulary::{FINALIZER, FORBID, REPLACE};

/// What to do now, and when to look again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReconcilePlan {
    /// In this order. After a step that failed the rest is not taken, but for [`ReconcileStep::is_best_effort`].
    pub steps: Vec<ReconcileStep>,
    /// When to look again if nothing happens before.
    pub requeue_after: Option<Duration>,
    /// What was found about the schedule, for the log.
    pub decision: Decision,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ReconcileStep {
    /// Give the `CronJob` exactly these finalizers, provided that it has not changed since.
    SetFinalizers(Vec<String>),
    /// Write the status; [`merge_patch`] is the patch for it. It comes before old Jobs are deleted, as it remembers what is
    /// otherwise known from them alone.
    WriteStatus(Box<CronJobStatus>),
    /// Delete a Job in the background; that it is gone already is fine.
    DeleteJob {
        /// Name of the Job.
        name: String,
        /// Uid of the Job, so that no other of the same name is hit.
        uid: Option<String>,
        /// Why.
        cause: Cause,
    },
    /// Create a Job; that it exists already is fine if it is a child of the `CronJob`.
    CreateJob {
        /// When the run was due.
        run: Timestamp,
        /// The Job, `batch/v1`.
        job: Box<NewJob>,
    },
    /// Write an event.
    Publish(Event),
}

/// Why a Job is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// More finished Jobs than the history limit.
    History,
    /// A newer run takes its place.
    Replaced,
}

/// What was found about the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The `CronJob` is being deleted, and nothing of it is ours to do any more.
    Deleting,
    /// The `CronJob` is being deleted once no Job runs.
    WaitingForActiveJobs,
    /// No further run may start.
    Suspended,
    /// The schedule or the time zone cannot be read. Reconciled again when the object changes.
    InvalidSchedule(String),
    /// The schedule has no time in the next years.
    NeverDue,
    /// More than a hundred runs were missed. Reconciled again when the object changes, and from time to time: the clock may be
    /// set right.
    TooManyMissed,
    /// The next run lies ahead.
    NotDue,
    /// A run is due, but `Forbid` and a Job that has not ended hold it back.
    HeldBack(Timestamp),
    /// A run is due and starts.
    Start(Timestamp),
}

/// When to look again whether too many runs were missed.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// A wait that is long enough for the status. To report a shorter one would add writes where there were too many already.
const LONG_WAIT: Duration = Duration::from_secs(10);

impl ReconcilePlan {
    /// The plan without the run that is due: so many Jobs are created that it has to wait.
    #[must_use]
    pub fn later(mut self, cronjob: &CronJob, wait: Duration, now: Timestamp) -> Self {
        self.steps.retain(|step| {
            !matches!(step, ReconcileStep::CreateJob { .. } | ReconcileStep::DeleteJob { cause: Cause::Replaced, .. })
        });
        self.requeue_after = Some(self.requeue_after.map_or(wait, |next| next.min(wait)));
        if wait >= LONG_WAIT {
            let written = self.steps.iter().position(|step| matches!(step, ReconcileStep::WriteStatus(_)));
            let status = match written.map(|at| self.steps.remove(at)) {
                Some(ReconcileStep::WriteStatus(status)) => *status,
                _ => cronjob.status.clone().unwrap_or_default(),
            };
            let status = run_waits(&status, now);
            if cronjob.status.as_ref() != Some(&status) {
                self.steps.push(ReconcileStep::WriteStatus(Box::new(status)));
            }
        }
        self
    }
}

impl ReconcileStep {
    /// Whether the steps after this one are taken even when it fails.
    pub const fn is_best_effort(&self) -> bool {
        matches!(self, Self::DeleteJob { cause: Cause::History, .. } | Self::Publish(_))
    }
}

/// Decides about a `CronJob`. `jobs` are its children, see [`is_child`].
pub fn reconcile(cronjob: &CronJob, jobs: &[ChildJob], now: Timestamp) -> ReconcilePlan {
    let observed = Observed::of(cronjob, jobs, now);
    if cronjob.metadata.deletion_timestamp.is_some() {
        return delete(&observed);
    }
    let (decision, next) = decide(&observed);
    let problem = Problem::of(&decision);
    let requeue_after = match decision {
        Decision::TooManyMissed => Some(LOOK_AGAIN),
        _ => next.and_then(|next| wait(now, next)),
    };
    let mut plan = ReconcilePlan { steps: Vec::new(), requeue_after, decision };
    if !finalizers(cronjob).iter().any(|finalizer| finalizer == FINALIZER) {
        let mut finalizers = finalizers(cronjob).to_vec();
        finalizers.push(FINALIZER.to_owned());
        plan.steps.push(ReconcileStep::SetFinalizers(finalizers));
    }
    let starts = matches!(plan.decision, Decision::Start(_));
    // The Job brings the CronJob back here, and then the next time is written with what the Job says, in one. While a Job cannot be
    // created the time of its run stays in the status: each further one would be a write of its own.
    let remembered = cronjob.status.as_ref().filter(|status| starts && status.next_schedule_time.is_some());
    let next = remembered.map_or(next, |status| status.next_schedule_time.as_ref().map(|time| time.0));
    let status = observed.status(next, observed.conditions(problem.as_ref(), starts));
    if let Some(event) = problem.as_ref().and_then(|problem| observed.news(problem)) {
        plan.steps.push(ReconcileStep::Publish(event));
    }
    plan.steps.extend(observed.write(status));
    plan.steps.extend(history::surplus(&cronjob.spec, jobs, now));
    if let Decision::Start(run) = plan.decision {
        start(&observed, run, &mut plan.steps);
    }
    plan
}

fn decide(observed: &Observed<'_>) -> (Decision, Option<Timestamp>) {
    let spec = &observed.cronjob.spec;
    if spec.is_suspended() {
        return (Decision::Suspended, None);
    }
    let schedule = match Schedule::parse(&spec.schedule) {
        Ok(schedule) => schedule,
        Err(error) => return (Decision::InvalidSchedule(format!("spec.schedule: {error}")), None),
    };
    let zone = match zone(spec.time_zone.as_deref()) {
        Ok(zone) => zone,
        Err(error) => return (Decision::InvalidSchedule(format!("spec.timeZone: {error}")), None),
    };
    match runs::find(&schedule, &zone, observed.anchor(&schedule), spec.starting_deadline_seconds, observed.now) {
        None => (Decision::TooManyMissed, None),
        Some(Runs { due: None, next: None }) => (Decision::NeverDue, None),
        Some(Runs { due: None, next }) => (Decision::NotDue, next),
        Some(Runs { due: Some(run), next }) => {
            let forbidden = spec.concurrency_policy.as_deref() == Some(FORBID) && observed.active().next().is_some();
            (if forbidden { Decision::HeldBack(run) } else { Decision::Start(run) }, next)
        }
    }
}

fn start(observed: &Observed<'_>, run: Timestamp, steps: &mut Vec<ReconcileStep>) {
    if observed.cronjob.spec.concurrency_policy.as_deref() == Some(REPLACE) {
        let replaced = observed.active().filter(|job| !job.terminating);
        steps.extend(replaced.map(|job| job.delete(Cause::Replaced)));
    }
    steps.push(ReconcileStep::CreateJob { run, job: Box::new(NewJob::of(observed.cronjob, run)) });
}

/// The finalizer holds the object for as long as the policy asks, and is always removed in the end: when the last Job has ended
/// or was deleted, or when a user sets the policy to `Delete`. The Jobs themselves follow by their owner reference.
fn delete(observed: &Observed<'_>) -> ReconcilePlan {
    let mut plan = ReconcilePlan { steps: Vec::new(), requeue_after: None, decision: Decision::Deleting };
    let mut finalizers = finalizers(observed.cronjob).to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        return plan;
    }
    if observed.cronjob.spec.waits_for_active_jobs() && observed.active().next().is_some() {
        plan.decision = Decision::WaitingForActiveJobs;
        plan.steps.extend(observed.write(observed.status(None, observed.conditions(None, false))));
    } else {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        plan.steps.push(ReconcileStep::SetFinalizers(finalizers));
    }
    plan
}

fn finalizers(cronjob: &CronJob) -> &[String] {
    cronjob.metadata.finalizers.as_deref().unwrap_or_default()
}

fn wait(now: Timestamp, until: Timestamp) -> Option<Duration> {
    Duration::try_from(until.duration_since(now)).ok()
}
