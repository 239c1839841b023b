use serde_json::{Value, json};

use super::{Cluster, job_of, run};
use crate::workshop::cronjob::reconcile::{ChildJob, creation_failed, merge_patch};

fn three(cluster: &Cluster) -> [String; 3] {
    ["Available", "Progressing", "Degraded"].map(|type_| cluster.condition(type_))
}

#[test]
fn conditions_follow_the_jobs_and_failures_are_forgotten_after_a_success() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    assert_eq!(three(&cluster), ["True AllJobsCompleted", "False NoJobsActive", "False AsExpected"]);
    cluster.now = run("12:01:00");
    cluster.settle();
    assert_eq!(three(&cluster), ["True JobsActive", "True JobsActive", "False AsExpected"]);
    cluster.end(&job_of("12:01:00"), "Failed");
    cluster.settle();
    assert_eq!(three(&cluster), ["False JobsFailed", "False NoJobsActive", "True JobsFailed"]);
    cluster.now = run("12:02:00");
    cluster.settle();
    assert_eq!(three(&cluster), ["False JobsFailed", "True JobsActive", "True JobsFailed"]);
    cluster.end(&job_of("12:02:00"), "Complete");
    cluster.settle();
    assert_eq!(three(&cluster), ["True AllJobsCompleted", "False NoJobsActive", "False AsExpected"]);
    assert_eq!(cluster.names().len(), 2, "the failed Job is still there");
}

#[test]
fn time_of_a_condition_moves_with_its_status_alone() {
    let mut cluster = Cluster::new(&json!({"schedule": "0 * * * *"}));
    cluster.now = run("12:00:07.25");
    cluster.settle();
    let times = |cluster: &Cluster| -> Vec<Value> {
        let status = cluster.status();
        let conditions = status["conditions"].as_array().unwrap();
        conditions.iter().map(|condition| condition["lastTransitionTime"].clone()).collect()
    };
    assert_eq!(times(&cluster), ["2024-01-01T12:00:07Z"; 3]);
    cluster.now = run("13:00:00");
    cluster.settle();
    assert_eq!(times(&cluster), ["2024-01-01T12:00:07Z", "2024-01-01T13:00:00Z", "2024-01-01T12:00:07Z"]);
}

#[test]
fn job_of_somebody_else_that_names_the_cronjob_as_its_controller_counts_as_active() {
    let mut cluster = Cluster::new(&json!({"schedule": "1 0 1 1 *"}));
    cluster.settle();
    let job = json!({"metadata": {"name": "test-job", "namespace": "a", "uid": "j", "resourceVersion": "7", "ownerReferences": [{
        "apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "name": "nightly", "uid": "cronjob-uid", "controller": true,
    }]}, "status": {"active": 2}});
    cluster.jobs.push(serde_json::from_value(job).unwrap());
    cluster.settle();
    assert_eq!(
        cluster.status()["active"],
        json!([{"apiVersion": "batch/v1", "kind": "Job", "namespace": "a", "name": "test-job", "uid": "j", "resourceVersion": "7"}])
    );
    assert_eq!(cluster.condition("Available"), "True JobsActive");
}

#[test]
fn failure_to_create_a_job_stays_told_until_the_job_is_there() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.now = run("12:01:00");
    let status = cluster.cronjob.status.clone().unwrap();
    let failed = creation_failed(&status, "forbidden: quota", cluster.now);
    cluster.cronjob.status = Some(failed.clone());
    assert_eq!(cluster.condition("Degraded"), "True JobCreationFailed");
    // The next attempt reports only the next time of the schedule, and nothing if it fails in the same way.
    cluster.settle();
    let again = creation_failed(&failed, "forbidden: quota", run("12:01:20"));
    assert_eq!(again, failed);
    assert_eq!(cluster.condition("Degraded"), "False AsExpected");
    assert_eq!(cluster.names(), [job_of("12:01:00")]);
}

#[test]
fn attempts_that_fail_alike_write_the_status_once() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.now = run("12:01:00");
    let mut writes = 0;
    for _ in 0..5 {
        let children: Vec<ChildJob> = Vec::new();
        let plan = crate::workshop::cronjob::reconcile::reconcile(&cluster.cronjob, &children, cluster.now);
        for step in plan.steps.iter().filter(|step| step.event().is_none()) {
            cluster.take(step);
            writes += 1;
        }
        let status = cluster.cronjob.status.clone().unwrap();
        let failed = creation_failed(&status, "forbidden: quota", cluster.now);
        if failed != status {
            cluster.cronjob.status = Some(failed);
            writes += 1;
        }
        cluster.pass(5);
    }
    // That of the failure: the next time of the schedule is written once the Job is there.
    assert_eq!(writes, 1);
}

#[test]
fn patch_of_the_status_removes_what_is_not_there_any_more() {
    let cluster = {
        let mut cluster = Cluster::new(&json!({"suspend": true}));
        cluster.settle();
        cluster
    };
    let patch = merge_patch(cluster.cronjob.status.as_ref().unwrap());
    let status = patch["status"].as_object().unwrap();
    let cleared: Vec<&str> = status.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.as_str()).collect();
    assert_eq!(cleared, ["active", "lastScheduleTime", "nextScheduleTime"]);
}

#[test]
fn status_lists_the_first_hundred_active_jobs_and_the_conditions_count_all() {
    let mut cluster = Cluster::new(&json!({}));
    let start = run("12:00:00");
    for minute in 1..=120 {
        cluster.now = start.checked_add(jiff::SignedDuration::from_mins(minute)).unwrap();
        cluster.settle();
    }
    let status = cluster.cronjob.status.clone().unwrap();
    assert_eq!(status.active.unwrap().len(), 100);
    assert!(json!(status.conditions).to_string().contains("120 Jobs have not ended"));
    let writes = cluster.writes;
    cluster.settle();
    assert_eq!(cluster.writes, writes, "nothing is new");
}
