//! The controller against an API server that is a list, with a clock that is set by hand.

mod api;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::api::Api;
use super::{Controller, Error};
use crate::controller::Again;
use crate::metrics::{Freshness, Metrics};
use crate::workshop::cronjob::api::CronJob;
use crate::workshop::cronjob::reconcile::{ChildJob, job_name};

const FINALIZER: &str = "batch.outrider.dev/finalizer";

struct Observed {
    api: Api,
    controller: Controller,
    now: Arc<Mutex<Timestamp>>,
}

fn clock(text: &str) -> Timestamp {
    format!("2024-01-01T{text}Z").parse().unwrap()
}

fn job_of(text: &str) -> String {
    job_name("nightly", clock(text))
}

impl Observed {
    /// A `CronJob` of every minute, made at noon, with these fields of `spec` beside its own; ten seconds later.
    fn new(fields: &Value) -> Self {
        let mut spec = json!({
            "schedule": "* * * * *", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"fieldOfTomorrow": 1, "template": {"spec": {"restartPolicy": "Never"}}}},
        });
        json_patch::merge(&mut spec, fields);
        let metadata = json!({"name": "nightly", "namespace": "a", "uid": "cronjob-uid", "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2024-01-01T12:00:00Z"});
        let api = Api::with(json!({"metadata": metadata, "spec": spec}));
        let now = Arc::new(Mutex::new(clock("12:00:10")));
        let hand = Arc::clone(&now);
        let metrics = Metrics::new(Freshness::default());
        let controller = Controller::new(api.client(), metrics, Arc::new(move || *hand.lock().unwrap()));
        Self { api, controller, now }
    }

    fn set_clock(&self, text: &str) {
        *self.now.lock().unwrap() = clock(text);
    }

    fn watched(&self) -> (CronJob, Vec<ChildJob>) {
        self.api.content().watched()
    }

    /// A reconcile with watches that are not behind.
    async fn look(&self) -> Result<Again, Error> {
        let (cronjob, jobs) = self.watched();
        let again = self.controller.reconcile(&cronjob, &jobs).await;
        self.controller.events.written().await;
        again
    }

    /// As [`Observed::look`] until nothing is written any more.
    async fn settle(&self) -> Again {
        loop {
            self.api.asked();
            let again = self.look().await.unwrap();
            if self.api.asked().iter().all(|request| request.starts_with("GET")) {
                return again;
            }
        }
    }

    fn jobs(&self) -> Vec<String> {
        self.api.content().jobs.keys().cloned().collect()
    }

    fn stored(&self, pointer: &str) -> Option<Value> {
        self.api.content().cronjob.as_ref().unwrap().pointer(pointer).cloned()
    }

    fn degraded(&self) -> String {
        let conditions = self.stored("/status/conditions").unwrap();
        let degraded = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "Degraded").unwrap();
        format!("{}: {}", degraded["reason"].as_str().unwrap(), degraded["message"].as_str().unwrap())
    }

    fn end_job(&self, name: &str, outcome: &str) {
        let status =
            json!({"startTime": *self.now.lock().unwrap(), "conditions": [{"type": outcome, "status": "True"}]});
        self.api.content().jobs.get_mut(name).unwrap()["status"] = status;
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_run_that_is_due_becomes_a_job_a_status_and_an_event() {
    let observed = Observed::new(&json!({}));
    assert_eq!(observed.look().await.unwrap(), Some(seconds(50)));
    assert_eq!(observed.api.asked(), ["PATCH cronjobs/nightly", "PATCH cronjobs/nightly/status"]);
    assert_eq!(observed.stored("/metadata/finalizers"), Some(json!([FINALIZER])));
    assert_eq!(observed.stored("/status/nextScheduleTime"), Some(json!("2024-01-01T12:01:00Z")));

    observed.set_clock("12:01:00");
    assert_eq!(observed.look().await.unwrap(), Some(seconds(60)));
    // What this controller wrote last is what it knows, and the status is written with what the Job says.
    assert_eq!(observed.api.asked(), ["POST jobs", "POST events"]);
    let job = job_of("12:01:00");
    assert_eq!(observed.api.content().events, [format!("SuccessfulCreate: Created Job {job}")]);
    assert_eq!(observed.api.content().jobs[&job]["spec"]["fieldOfTomorrow"], 1);

    assert_eq!(observed.settle().await, Some(seconds(60)));
    assert_eq!(observed.stored("/status/lastScheduleTime"), Some(json!("2024-01-01T12:01:00Z")));
    assert_eq!(observed.stored("/status/active/0/name"), Some(json!(job)));
    observed.look().await.unwrap();
    assert_eq!(observed.api.asked(), [""; 0], "an idle look asks nothing");
}

/// What another client changed since is not what this controller wrote: the API server is asked before a Job is created.
#[tokio::test]
async fn a_cronjob_that_others_changed_is_read_again_before_it_starts() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    observed.api.content().cronjob.as_mut().unwrap()["metadata"]["resourceVersion"] = json!("1000");
    observed.api.asked();
    observed.set_clock("12:01:00");
    observed.look().await.unwrap();
    assert_eq!(observed.api.asked(), ["GET cronjobs/nightly", "POST jobs", "POST events"]);
}

#[tokio::test]
async fn a_process_that_ended_before_it_wrote_the_status_starts_no_second_job() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    let (before, _) = observed.watched();
    observed.set_clock("12:01:30");
    observed.look().await.unwrap();
    let told = observed.api.content().events.len();
    // The next process knows neither the Job nor the status yet.
    observed.controller.reconcile(&before, &[]).await.unwrap();
    assert_eq!(observed.jobs(), [job_of("12:01:00")]);
    assert_eq!(observed.api.content().events.len(), told, "what was done before is not told again");
}

#[tokio::test]
async fn a_run_whose_job_is_gone_does_not_start_again_while_the_watch_is_behind() {
    let observed = Observed::new(&json!({"successfulJobsHistoryLimit": 0}));
    observed.settle().await;
    let (before, _) = observed.watched();
    observed.set_clock("12:01:00");
    observed.look().await.unwrap();
    observed.end_job(&job_of("12:01:00"), "Complete");
    observed.settle().await;
    assert_eq!(observed.jobs(), [""; 0]);
    observed.controller.reconcile(&before, &[]).await.unwrap();
    assert_eq!(observed.jobs(), [""; 0]);
}

#[tokio::test]
async fn a_job_of_somebody_else_is_left_alone_and_told_once() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    let job = job_of("12:01:00");
    observed.api.content().jobs.insert(job.clone(), json!({"metadata": {"name": job, "namespace": "a"}}));
    observed.set_clock("12:01:00");
    assert_eq!(observed.look().await.unwrap(), Some(seconds(15)));
    let told = format!(
        "JobCreationFailed: Job {job:?} exists and is not controlled by this CronJob; delete it, or give this CronJob \
         another name"
    );
    assert_eq!(observed.degraded(), told);
    assert_eq!(observed.api.content().events, [told]);
    observed.api.asked();
    assert_eq!(observed.look().await.unwrap(), Some(seconds(15)));
    let asked = observed.api.asked();
    assert_eq!(asked, ["POST jobs".to_owned(), format!("GET jobs/{job}")]);

    observed.api.content().jobs.clear();
    observed.settle().await;
    assert_eq!(observed.jobs(), [job]);
    assert_eq!(observed.degraded(), "AsExpected: Nothing prevents the next run");
}

#[tokio::test]
async fn a_refused_job_is_told_once_and_tried_again_and_an_outage_is_only_tried_again() {
    for code in [400, 403, 404, 422] {
        let observed = Observed::new(&json!({}));
        observed.settle().await;
        observed.set_clock("12:01:00");
        observed.api.content().refusal = Some(("POST jobs", code, "no more than two"));
        for _ in 0..3 {
            assert_eq!(observed.look().await.unwrap(), Some(seconds(15)), "{code}");
        }
        let message = "The next Job is refused by the API server: no more than two";
        assert_eq!(observed.api.content().events, [format!("JobCreationFailed: {message}")], "{code}");
        assert_eq!(observed.degraded(), format!("JobCreationFailed: {message}"));
    }
    for code in [401, 429, 500, 503] {
        let observed = Observed::new(&json!({}));
        observed.settle().await;
        observed.set_clock("12:01:00");
        observed.api.content().refusal = Some(("POST jobs", code, "a moment, please"));
        observed.look().await.unwrap_err();
        assert_eq!(observed.degraded(), "AsExpected: Nothing prevents the next run", "{code}");
        assert_eq!(observed.api.content().events, [""; 0], "{code}");
    }
}

#[tokio::test]
async fn jobs_that_are_refused_run_after_run_are_one_event_one_status_and_growing_pauses() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    let mut pauses = Vec::new();
    let mut writes = 0;
    for minute in 1..=30 {
        let now = format!("12:{minute:02}:00");
        observed.set_clock(&now);
        let message = format!("jobs.batch {:?} is forbidden: exceeded quota", job_of(&now)).leak();
        observed.api.content().refusal = Some(("POST jobs", 403, message));
        observed.api.asked();
        pauses.push(observed.look().await.unwrap().unwrap().as_secs());
        writes += observed.api.asked().iter().filter(|request| request.starts_with("PATCH")).count();
    }
    let told = "JobCreationFailed: The next Job is refused by the API server: jobs.batch \"of this run\" is forbidden: \
                exceeded quota";
    assert_eq!(observed.api.content().events, [told]);
    assert_eq!(observed.degraded(), told);
    // That the run cannot start.
    assert_eq!(writes, 1);
    assert_eq!(pauses[..4], [15, 60, 120, 180]);
    assert_eq!(pauses[29], 300);
    assert_eq!(observed.stored("/status/nextScheduleTime"), Some(json!("2024-01-01T12:01:00Z")));
    observed.api.content().refusal = None;
    observed.settle().await;
    assert_eq!(observed.jobs(), [job_of("12:30:00")]);
    assert_eq!(observed.degraded(), "AsExpected: Nothing prevents the next run");
}

#[tokio::test]
async fn a_cronjob_that_changes_again_and_again_writes_no_more_than_its_share() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    observed.set_clock("12:00:20");
    let mut waits = Vec::new();
    for change in 0..100 {
        observed.api.content().cronjob.as_mut().unwrap()["spec"]["schedule"] = json!(format!("nonsense {change}"));
        waits.extend(observed.look().await.unwrap());
    }
    let asked = observed.api.asked();
    let count = |what: &str| asked.iter().filter(|request| request.contains(what)).count();
    assert!((15..=25).contains(&count("cronjobs/nightly/status")), "{asked:?}");
    assert!((5..=15).contains(&count(" events")), "{asked:?}");
    assert_eq!(waits.last(), Some(&Duration::from_millis(500)));
    let metrics = observed.controller.metrics.encode().unwrap();
    for write in ["status", "events"] {
        let series = format!("outrider_writes_limited_total{{controller=\"cronjob\",write=\"{write}\"}} ");
        let limited: Option<u32> = metrics.lines().find_map(|line| line.strip_prefix(series.as_str())?.parse().ok());
        assert!(limited.is_some_and(|limited| limited > 10), "{metrics}");
    }
    observed.set_clock("12:00:21");
    observed.settle().await;
    assert!(observed.degraded().contains("nonsense 99"), "what it is in the end is told");
}

#[tokio::test]
async fn of_many_runs_at_once_those_that_have_to_wait_long_are_told_so() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    observed.set_clock("12:01:00");
    for owner in 0..2900 {
        let _ = observed.controller.limits().creates.take(&owner.to_string(), clock("12:01:00"));
    }
    let wait = observed.look().await.unwrap().unwrap();
    assert!(wait > seconds(10) && wait < seconds(15), "{wait:?}");
    assert_eq!(observed.jobs(), [""; 0]);
    assert!(observed.degraded().starts_with("RateLimited: More Jobs are due"), "{}", observed.degraded());
    observed.api.asked();
    observed.look().await.unwrap();
    assert_eq!(observed.api.asked(), [""; 0], "it is told once");
    observed.set_clock("12:01:15");
    observed.settle().await;
    assert_eq!(observed.jobs(), [job_of("12:01:00")]);
    assert_eq!(observed.degraded(), "AsExpected: Nothing prevents the next run");
}

#[tokio::test]
async fn a_long_refusal_is_told_on_in_part() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    observed.set_clock("12:01:00");
    let long: &'static str = "é".repeat(2000).leak();
    observed.api.content().refusal = Some(("POST jobs", 422, long));
    observed.look().await.unwrap();
    let note = observed.api.content().events.remove(0);
    assert!((880..=1024).contains(&note.len()), "{}", note.len());
}

#[tokio::test]
async fn a_change_that_was_not_decided_on_is_never_written_over() {
    for known in ["first look", "run is due"] {
        let observed = Observed::new(&json!({}));
        if known == "run is due" {
            observed.settle().await;
            observed.set_clock("12:01:00");
        }
        let (mut before, jobs) = observed.watched();
        before.metadata.resource_version = Some("0".to_owned());
        if known == "first look" {
            assert_eq!(observed.controller.reconcile(&before, &jobs).await.unwrap(), Some(seconds(1)));
            assert_eq!(observed.api.asked(), ["PATCH cronjobs/nightly"]);
            assert_eq!(observed.stored("/metadata/finalizers"), None);
        } else {
            // A run is decided on what is there now.
            observed.controller.reconcile(&before, &jobs).await.unwrap();
            assert_eq!(observed.jobs(), [job_of("12:01:00")]);
        }
    }
}

#[tokio::test]
async fn the_finalizer_goes_only_when_no_job_runs_in_truth() {
    let observed = Observed::new(&json!({"deletionPolicy": "WaitForActiveJobs"}));
    observed.settle().await;
    observed.set_clock("12:01:00");
    observed.settle().await;
    observed.api.content().cronjob.as_mut().unwrap()["metadata"]["deletionTimestamp"] = json!("2024-01-01T12:01:30Z");
    let (deleted, _) = observed.watched();
    observed.api.asked();
    observed.controller.reconcile(&deleted, &[]).await.unwrap();
    assert_eq!(observed.api.asked()[0], "GET jobs");
    assert_eq!(observed.stored("/metadata/finalizers"), Some(json!([FINALIZER])));
    observed.set_clock("12:05:00");
    observed.settle().await;
    assert_eq!(observed.jobs(), [job_of("12:01:00")], "no run starts meanwhile");

    observed.end_job(&job_of("12:01:00"), "Complete");
    observed.look().await.unwrap();
    assert_eq!(observed.stored("/metadata/finalizers"), Some(json!([])));
}

#[tokio::test]
async fn no_finalizer_is_put_where_uninstall_has_taken_it_away_and_runs_start_all_the_same() {
    let observed = Observed::new(&json!({}));
    observed.api.content().retired = true;
    observed.look().await.unwrap();
    observed.set_clock("12:01:00");
    observed.look().await.unwrap();
    assert_eq!((observed.stored("/metadata/finalizers"), observed.jobs()), (None, vec![job_of("12:01:00")]));
}

/// Acceptance check 23: what has to be tidied up fails.
#[tokio::test]
async fn a_finalizer_that_cannot_be_removed_is_tried_again() {
    let observed = Observed::new(&json!({}));
    observed.settle().await;
    observed.api.content().cronjob.as_mut().unwrap()["metadata"]["deletionTimestamp"] = json!("2024-01-01T12:01:30Z");
    observed.api.content().refusal = Some(("PATCH cronjobs", 500, "not now"));
    for _ in 0..2 {
        observed.look().await.unwrap_err();
        assert_eq!(observed.stored("/metadata/finalizers"), Some(json!([FINALIZER])));
    }
    observed.api.content().refusal = None;
    observed.set_clock("12:10:00");
    observed.look().await.unwrap();
    assert_eq!((observed.stored("/metadata/finalizers"), observed.jobs()), (Some(json!([])), vec![]));
    observed.api.content().cronjob = None;
}

#[tokio::test]
async fn old_jobs_that_stay_hold_nothing_up_and_are_tried_again() {
    let observed = Observed::new(&json!({"successfulJobsHistoryLimit": 0}));
    observed.settle().await;
    observed.set_clock("12:01:00");
    observed.settle().await;
    observed.end_job(&job_of("12:01:00"), "Complete");
    observed.api.content().refusal = Some(("DELETE", 500, "not now"));
    observed.set_clock("12:02:00");
    assert_eq!(observed.look().await.unwrap(), Some(seconds(15)));
    assert_eq!(observed.jobs(), [job_of("12:01:00"), job_of("12:02:00")]);
    observed.api.content().refusal = None;
    observed.settle().await;
    assert_eq!(observed.jobs(), [job_of("12:02:00")]);
}

#[tokio::test]
async fn a_replaced_job_goes_in_the_background_and_no_other_of_its_name() {
    let observed = Observed::new(&json!({"concurrencyPolicy": "Replace"}));
    observed.settle().await;
    for minute in ["12:01:00", "12:02:00"] {
        observed.set_clock(minute);
        observed.settle().await;
    }
    let old = job_of("12:01:00");
    assert_eq!(observed.jobs(), [job_of("12:02:00")]);
    let content = observed.api.content();
    assert_eq!(content.deletions.len(), 1);
    assert_eq!(content.deletions[0]["propagationPolicy"], "Background");
    assert_eq!(content.deletions[0]["preconditions"]["uid"], format!("uid-of-{old}"));
    let told = format!("SuccessfulDelete: Deleted Job {old}, as a newer run takes its place");
    assert!(content.events.contains(&told), "{:?}", content.events);
}

#[tokio::test]
async fn waits_end_in_time_to_notice_a_clock_that_was_set_and_are_none_where_nothing_comes() {
    for (fields, again) in [
        (json!({"schedule": "0 0 1 1 *"}), Some(seconds(300))),
        (json!({"schedule": "0 13 * * *"}), Some(seconds(300))),
        (json!({"schedule": "3 * * * *"}), Some(seconds(170))),
        (json!({"schedule": "0 0 30 2 *"}), None),
        (json!({"schedule": "nonsense"}), None),
        (json!({"timeZone": "Nowhere/Land"}), None),
        (json!({"suspend": true}), None),
    ] {
        assert_eq!(Observed::new(&fields).settle().await, again, "{fields}");
    }
}

/// The upstream test T16: a schedule that was stored while the controller did not run leaves no trace.
#[tokio::test]
async fn a_cronjob_with_an_empty_spec_is_told_what_it_lacks_without_an_error() {
    let observed = Observed::new(&json!({
        "schedule": null, "jobTemplate": null, "successfulJobsHistoryLimit": null, "failedJobsHistoryLimit": null,
    }));
    assert_eq!(observed.settle().await, None);
    assert_eq!(observed.degraded(), "InvalidSchedule: spec.schedule: Empty spec string");
}

/// Acceptance check 22: without limits, as where no webhook defaults them, every ended Job is kept.
#[tokio::test]
async fn without_limits_ended_jobs_are_kept() {
    let observed = Observed::new(&json!({"successfulJobsHistoryLimit": null, "failedJobsHistoryLimit": null}));
    observed.settle().await;
    for minute in 1..10 {
        let now = format!("12:0{minute}:00");
        observed.set_clock(&now);
        observed.settle().await;
        observed.end_job(&job_of(&now), if minute % 2 == 0 { "Complete" } else { "Failed" });
    }
    observed.settle().await;
    assert_eq!(observed.jobs().len(), 9);
}

/// Acceptance check 18: the log has it, and there is no retry.
#[tokio::test]
async fn too_many_missed_runs_are_told_once_and_looked_at_again_now_and_then() {
    let observed = Observed::new(&json!({}));
    observed.set_clock("13:41:00");
    // The clock may be set right.
    assert_eq!(observed.settle().await, Some(Duration::from_secs(300)));
    assert_eq!(observed.jobs(), [""; 0]);
    assert_eq!(
        observed.api.content().events,
        [
            "MissedSchedule: too many missed start times (> 100). Set or decrease .spec.startingDeadlineSeconds or check \
          clock skew"
        ]
    );
}
