//! Finished Jobs beyond the history limits.

use jiff::Timestamp;

use super::child::{ChildJob, JobOutcome};
use super::{Cause, ReconcileStep};
use crate::workshop::cronjob::api::CronJobSpec;

/// The oldest finished Jobs of each sort, failed ones first.
pub fn surplus(spec: &CronJobSpec, jobs: &[ChildJob], now: Timestamp) -> Vec<ReconcileStep> {
    let limits = [
        (JobOutcome::Failed, spec.failed_jobs_history_limit),
        (JobOutcome::Complete, spec.successful_jobs_history_limit),
    ];
    limits.into_iter().flat_map(|(outcome, limit)| oldest(jobs, outcome, limit, now)).collect()
}

fn oldest(jobs: &[ChildJob], outcome: JobOutcome, limit: Option<i32>, now: Timestamp) -> Vec<ReconcileStep> {
    let Some(limit) = limit else { return Vec::new() };
    let limit = usize::try_from(limit).unwrap_or(0);
    let mut finished: Vec<&ChildJob> =
        jobs.iter().filter(|job| job.outcome == Some(outcome) && !job.terminating).collect();
    // What started ahead of now did so before the clock was set back: it is the oldest.
    finished.sort_by_key(|job| (job.start_time.filter(|&time| time <= now), &job.name));
    let surplus = finished.len().saturating_sub(limit);
    finished.into_iter().take(surplus).map(|job| job.delete(Cause::History)).collect()
}
