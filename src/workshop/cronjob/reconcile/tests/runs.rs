use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{Cluster, Decision, created, deleted, job_of, run, seconds, time};
use crate::workshop::cronjob::reconcile::{Event, ReconcileStep};

#[test]
fn run_that_is_due_starts_once_and_the_next_one_is_waited_for() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.now = run("12:01:05");
    let plan = cluster.reconcile();
    assert_eq!(plan.decision, Decision::Start(run("12:01:00")));
    assert_eq!(seconds(&plan), Some(55));
    assert_eq!(cluster.names(), [job_of("12:01:00")]);
    let plan = cluster.settle();
    assert_eq!(plan.decision, Decision::NotDue);
    assert_eq!(cluster.active(), [job_of("12:01:00")]);
    assert_eq!(cluster.status()["lastScheduleTime"], "2024-01-01T12:01:00Z");
    assert_eq!(cluster.status()["nextScheduleTime"], "2024-01-01T12:02:00Z");
    cluster.end(&job_of("12:01:00"), "Complete");
    cluster.settle();
    assert_eq!(cluster.active(), [""; 0]);
    assert_eq!(cluster.names().len(), 1);
}

/// Acceptance check 18: many runs were missed.
#[test]
fn only_the_newest_of_the_missed_runs_starts() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.now = run("12:30:00");
    let plan = cluster.reconcile();
    assert_eq!(created(&plan), [job_of("12:30:00")]);
    assert_eq!(seconds(&plan), Some(60));
    cluster.settle();
    assert_eq!(cluster.names().len(), 1);
}

/// Acceptance check 18: too many were.
#[test]
fn hundred_missed_runs_are_caught_up_with_and_one_more_is_too_many() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.now = run("13:40:00");
    assert_eq!(created(&cluster.plan()), [job_of("13:40:00")]);
    cluster.now = run("13:41:00");
    let plan = cluster.reconcile();
    assert_eq!((created(&plan).len(), seconds(&plan)), (0, Some(300)), "the clock may be set right");
    assert_eq!(plan.decision, Decision::TooManyMissed);
    assert_eq!(cluster.condition("Degraded"), "True MissedSchedule");
    let told: Vec<Event> = plan.steps.iter().filter_map(ReconcileStep::event).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].message,
        "too many missed start times (> 100). Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    );
    assert_eq!(cluster.reconcile().steps, [], "told once");
}

/// Acceptance check 18: with a deadline.
#[test]
fn deadline_leaves_out_runs_that_are_too_late() {
    let mut cluster = Cluster::new(&json!({"startingDeadlineSeconds": 60}));
    cluster.now = run("18:00:30");
    assert_eq!(created(&cluster.reconcile()), [job_of("18:00:00")]);
    cluster.settle();
    assert_eq!(cluster.names().len(), 1);

    let mut hourly = Cluster::new(&json!({"schedule": "0 * * * *", "startingDeadlineSeconds": 60}));
    hourly.now = run("13:01:00");
    assert_eq!(hourly.plan().decision, Decision::NotDue);
    hourly.now = run("13:00:59");
    assert_eq!(hourly.plan().decision, Decision::Start(run("13:00:00")));
}

#[test]
fn deadline_of_any_length_is_no_fault() {
    let mut cluster = Cluster::new(&json!({"startingDeadlineSeconds": i64::MAX}));
    cluster.now = run("12:05:00");
    assert_eq!(created(&cluster.plan()), [job_of("12:05:00")]);
}

#[test]
fn schedule_without_a_date_waits_for_nothing() {
    let mut cluster = Cluster::new(&json!({"schedule": "0 0 30 2 *"}));
    cluster.pass(86_400 * 400);
    let plan = cluster.settle();
    assert_eq!((plan.decision, plan.requeue_after), (Decision::NeverDue, None));
    assert_eq!(cluster.condition("Degraded"), "True NeverDue");
    assert_eq!(cluster.status().get("nextScheduleTime"), None);
}

#[test]
fn schedule_and_zone_that_cannot_be_read_wait_for_a_change() {
    for (fields, expected) in [
        (json!({"schedule": "x"}), "spec.schedule: Expected exactly 5 fields, found 1: x"),
        (json!({"timeZone": "Mars/Olympus"}), "spec.timeZone: unknown time zone Mars/Olympus"),
    ] {
        let mut cluster = Cluster::new(&fields);
        let plan = cluster.settle();
        assert_eq!((plan.decision, plan.requeue_after), (Decision::InvalidSchedule(expected.to_owned()), None));
        assert_eq!(cluster.condition("Degraded"), "True InvalidSchedule");
        cluster.cronjob.spec.schedule = "0 * * * *".to_owned();
        cluster.cronjob.spec.time_zone = None;
        cluster.settle();
        assert_eq!(cluster.condition("Degraded"), "False AsExpected");
    }
}

#[test]
fn schedule_is_read_in_its_time_zone() {
    let mut cluster = Cluster::new(&json!({"schedule": "30 13 * * *", "timeZone": "Europe/Berlin"}));
    cluster.settle();
    assert_eq!(cluster.status()["nextScheduleTime"], "2024-01-01T12:30:00Z");
    cluster.now = run("12:30:00");
    assert_eq!(created(&cluster.plan()), [job_of("12:30:00")]);
}

#[test]
fn runs_of_every_keep_their_distance_however_often_one_looks() {
    let mut cluster = Cluster::new(&json!({"schedule": "@every 5m"}));
    let mut started = Vec::new();
    for _ in 0..16 {
        cluster.pass(70);
        started.extend(created(&cluster.settle_and_last_start()));
    }
    assert_eq!(started, ["12:05:00", "12:10:00", "12:15:00"].map(job_of));
}

impl Cluster {
    fn settle_and_last_start(&mut self) -> crate::workshop::cronjob::reconcile::ReconcilePlan {
        let first = self.reconcile();
        self.settle();
        first
    }
}

#[test]
fn clock_that_was_set_back_starts_nothing_and_waits_for_the_next_run() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.now = run("11:30:30");
    let plan = cluster.settle();
    assert_eq!((plan.decision.clone(), seconds(&plan)), (Decision::NotDue, Some(30)));
    assert_eq!(cluster.condition("Degraded"), "True ClockWentBack");
    cluster.now = run("11:31:00.2");
    assert_eq!(created(&cluster.reconcile()), [job_of("11:31:00")]);
    // By its own Job, there is nothing ahead but the creation.
    cluster.now = run("11:32:00");
    assert_eq!(created(&cluster.reconcile()), [job_of("11:32:00")]);
    cluster.now = run("12:00:00");
    cluster.settle();
    assert_eq!(cluster.condition("Degraded"), "False AsExpected");
}

/// Jobs of the hour that the clock went back by, or none of them where they are not kept.
#[test]
fn runs_go_on_where_the_clock_was_set_back_behind_those_that_were() {
    for (schedule, history, first, second) in [
        ("* * * * *", 3, "12:01:00", "12:02:00"),
        ("* * * * *", 0, "12:01:00", "12:02:00"),
        ("@every 1m", 3, "12:01:30", "12:02:30"),
        ("@every 1m", 0, "12:01:30", "12:02:30"),
    ] {
        let mut cluster = Cluster::new(&json!({"schedule": schedule, "successfulJobsHistoryLimit": history}));
        cluster.cronjob.metadata.creation_timestamp = Some(Time(time("2023-01-01T00:00:00Z")));
        cluster.cronjob.status =
            Some(serde_json::from_value(json!({"lastScheduleTime": "2024-01-01T12:59:00Z"})).unwrap());
        for clock in ["13:00:00", "13:01:00"] {
            cluster.now = run(clock);
            let names = created(&cluster.reconcile());
            cluster.settle();
            cluster.end(&names[0], "Complete");
            cluster.settle();
        }
        assert_eq!(cluster.names().len(), history.min(2), "{schedule}");

        cluster.now = run("12:00:30");
        let plan = cluster.settle();
        assert_eq!(plan.decision, Decision::NotDue, "{schedule}");
        assert!(seconds(&plan).is_some_and(|wait| wait <= 60), "{schedule}: {plan:?}");
        assert_eq!(cluster.condition("Degraded"), "True ClockWentBack", "{schedule}");
        let before = cluster.writes;
        for _ in 0..3 {
            cluster.settle();
        }
        assert_eq!(cluster.writes, before, "{schedule}: told once");
        for clock in [first, second] {
            cluster.now = run(clock) - SignedDuration::from_secs(2);
            assert_eq!(created(&cluster.settle_and_last_start()).len(), 0, "{schedule} {clock}");
            cluster.now = run(clock);
            assert_eq!(created(&cluster.settle_and_last_start()).len(), 1, "{schedule} {clock}");
        }
    }
}

/// A user who may write Jobs or the status cannot suppress a run.
#[test]
fn runs_that_somebody_recorded_ahead_silence_nothing() {
    let status = json!({"lastScheduleTime": "2999-01-01T00:00:00Z", "nextScheduleTime": "2999-01-01T00:01:00Z"});
    for schedule in ["* * * * *", "@every 1m"] {
        let mut cluster = Cluster::new(&json!({"schedule": schedule}));
        cluster.cronjob.status = Some(serde_json::from_value(status.clone()).unwrap());
        cluster.settle();
        cluster.now = run("12:01:00");
        assert_eq!(created(&cluster.settle_and_last_start()), [job_of("12:01:00")], "{schedule}");
        cluster.now = run("12:02:00");
        assert_eq!(created(&cluster.settle_and_last_start()), [job_of("12:02:00")], "{schedule}");
    }
}

/// Acceptance check 20, over two minutes: `Forbid`.
#[test]
fn forbid_holds_a_run_back_until_the_one_before_has_ended() {
    let mut cluster = Cluster::new(&json!({"concurrencyPolicy": "Forbid"}));
    cluster.now = run("12:01:00");
    cluster.settle();
    cluster.now = run("12:03:10");
    let plan = cluster.settle();
    assert_eq!((plan.decision.clone(), seconds(&plan)), (Decision::HeldBack(run("12:03:00")), Some(50)));
    assert_eq!(cluster.names().len(), 1);
    cluster.end(&job_of("12:01:00"), "Complete");
    cluster.settle();
    assert_eq!(cluster.active(), [job_of("12:03:00")]);
}

#[test]
fn forbid_with_a_deadline_lets_a_run_go_that_was_held_back_too_long() {
    let mut cluster =
        Cluster::new(&json!({"schedule": "0 * * * *", "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 300}));
    cluster.now = run("13:00:00");
    cluster.settle();
    cluster.now = run("14:10:00");
    cluster.end(&job_of("13:00:00"), "Complete");
    assert_eq!(cluster.settle().decision, Decision::NotDue);
    assert_eq!(cluster.names().len(), 1);
}

/// Acceptance check 20, over two minutes: `Replace`.
#[test]
fn replace_deletes_what_runs_before_it_starts_the_new_run() {
    let mut cluster = Cluster::new(&json!({"concurrencyPolicy": "Replace"}));
    cluster.now = run("12:01:00");
    cluster.settle();
    cluster.now = run("12:02:00");
    let plan = cluster.reconcile();
    assert_eq!((deleted(&plan), created(&plan)), (vec![job_of("12:01:00")], vec![job_of("12:02:00")]));
    assert!(matches!(plan.steps.last(), Some(ReconcileStep::CreateJob { .. })), "a failed deletion must stop the run");
    assert!(plan.steps.iter().all(|step| !step.is_best_effort()));
    cluster.settle();
    assert_eq!(cluster.active(), [job_of("12:02:00")]);
}

/// Acceptance check 20, over two minutes: `Allow`.
#[test]
fn allow_and_no_word_start_runs_beside_each_other() {
    for fields in [json!({"concurrencyPolicy": "Allow"}), json!({})] {
        let mut cluster = Cluster::new(&fields);
        for clock in ["12:01:00", "12:02:00"] {
            cluster.now = run(clock);
            cluster.settle();
        }
        assert_eq!(cluster.active(), ["12:01:00", "12:02:00"].map(job_of));
    }
}

/// Acceptance check 21, over two minutes.
#[test]
fn suspended_cronjob_starts_nothing_prunes_and_resumes_with_the_newest_run() {
    let mut cluster = Cluster::new(&json!({"successfulJobsHistoryLimit": 0}));
    cluster.now = run("12:01:00");
    cluster.settle();
    cluster.cronjob.spec.suspend = Some(true);
    cluster.end(&job_of("12:01:00"), "Complete");
    cluster.now = run("12:03:00");
    let plan = cluster.reconcile();
    assert_eq!((deleted(&plan), created(&plan).len()), (vec![job_of("12:01:00")], 0));
    let plan = cluster.settle();
    assert_eq!((plan.decision, plan.requeue_after), (Decision::Suspended, None));
    assert_eq!(cluster.condition("Available"), "False Suspended");
    assert_eq!(cluster.status().get("nextScheduleTime"), None);
    cluster.cronjob.spec.suspend = Some(false);
    assert_eq!(created(&cluster.reconcile()), [job_of("12:03:00")]);
}

#[test]
fn run_whose_job_is_gone_does_not_start_again() {
    let mut cluster = Cluster::new(&json!({"schedule": "0 * * * *", "successfulJobsHistoryLimit": 0}));
    cluster.now = run("13:00:00");
    cluster.settle();
    cluster.end(&job_of("13:00:00"), "Complete");
    cluster.settle();
    assert_eq!(cluster.names(), [""; 0]);
    for minutes in 1..59 {
        cluster.now = run("13:00:00") + SignedDuration::from_mins(minutes);
        assert_eq!(cluster.settle().decision, Decision::NotDue);
    }
    assert_eq!(cluster.status()["lastScheduleTime"], "2024-01-01T13:00:00Z");
}

/// Acceptance check 24.
#[test]
fn process_killed_between_the_job_and_the_status_starts_no_second_job() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.now = run("12:01:00");
    let before = cluster.cronjob.status.clone();
    cluster.reconcile();
    cluster.cronjob.status = before;
    cluster.now = run("12:01:30");
    assert_eq!(cluster.settle().decision, Decision::NotDue);
    assert_eq!(cluster.names(), [job_of("12:01:00")]);
}

#[test]
fn same_run_has_the_same_job_whoever_looks_and_when() {
    let cluster = |now: &str| {
        let mut cluster = Cluster::new(&json!({}));
        cluster.now = time(now);
        cluster.plan()
    };
    let (early, late) = (cluster("2024-01-01T12:07:00Z"), cluster("2024-01-01T12:07:59.999Z"));
    let job = |plan: &crate::workshop::cronjob::reconcile::ReconcilePlan| {
        plan.steps.iter().find(|step| matches!(step, ReconcileStep::CreateJob { .. })).cloned().unwrap()
    };
    assert_eq!(job(&early), job(&late));
}
