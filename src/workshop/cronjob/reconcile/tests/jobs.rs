use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{Cluster, created, cronjob, deleted, job_of, run};
use crate::workshop::cronjob::reconcile::{ChildJob, JobOutcome, ReconcileStep, is_child, reconcile};

fn created_job(cluster: &Cluster) -> Value {
    let steps = cluster.plan().steps;
    let created = steps.into_iter().find_map(|step| match step {
        ReconcileStep::CreateJob { job, .. } => Some(job),
        _ => None,
    });
    json!(created.unwrap())
}

#[test]
fn job_is_the_template_with_a_name_a_time_and_an_owner() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.now = run("12:01:00");
    assert_eq!(
        created_job(&cluster),
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": "nightly-1704110460", "namespace": "a", "labels": {"team": "a"},
                "annotations": {"note": "b", "batch.outrider.dev/scheduled-at": "2024-01-01T12:01:00Z"},
                "ownerReferences": [{
                    "apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "name": "nightly", "uid": "cronjob-uid",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"template": {"spec": {"restartPolicy": "Never"}}, "fieldOfTomorrow": 1},
        })
    );
}

#[test]
fn template_of_any_shape_makes_a_job_for_the_api_server_to_judge() {
    for template in
        [json!({}), json!({"metadata": null, "spec": {}}), json!({"metadata": {"labels": 1, "annotations": []}})]
    {
        let mut cluster = Cluster::new(&json!({"jobTemplate": template}));
        cluster.now = run("12:01:00");
        let job = created_job(&cluster);
        assert_eq!(job["metadata"].get("labels"), None);
        assert_eq!(job["metadata"]["annotations"], json!({"batch.outrider.dev/scheduled-at": "2024-01-01T12:01:00Z"}));
    }
}

#[test]
fn only_jobs_that_the_cronjob_controls_are_its_children() {
    let owner = |changes: &Value| -> Job {
        let mut owner = json!({
            "apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "name": "nightly", "uid": "cronjob-uid", "controller": true,
        });
        owner.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"ownerReferences": [owner]}})).unwrap()
    };
    let cases = [
        (json!({}), true),
        (json!({"apiVersion": "batch.outrider.dev/v2"}), true),
        (json!({"apiVersion": "batch/v1"}), false),
        (json!({"kind": "Other"}), false),
        (json!({"uid": "of-an-earlier-one"}), false),
        (json!({"controller": false}), false),
    ];
    for (changes, expected) in cases {
        assert_eq!(is_child(&owner(&changes).metadata, &cronjob(&json!({}))), expected, "{changes}");
    }
    assert!(!is_child(&Job::default().metadata, &cronjob(&json!({}))));
}

#[test]
fn job_has_ended_by_its_true_conditions_alone() {
    let ended = |conditions: Value| {
        ChildJob::of(&ObjectMeta::default(), Some(&serde_json::from_value(json!({"conditions": conditions})).unwrap()))
            .outcome
    };
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status});
    assert_eq!(ended(json!([])), None);
    assert_eq!(ended(json!([condition("Complete", "False"), condition("Suspended", "True")])), None);
    assert_eq!(ended(json!([condition("FailureTarget", "True")])), None);
    assert_eq!(
        ended(json!([condition("FailureTarget", "True"), condition("Failed", "True")])),
        Some(JobOutcome::Failed)
    );
    assert_eq!(
        ended(json!([condition("SuccessCriteriaMet", "True"), condition("Complete", "True")])),
        Some(JobOutcome::Complete)
    );
}

#[test]
fn time_that_cannot_be_read_is_left_out() {
    let job = |text: &str| -> Job {
        serde_json::from_value(json!({"metadata": {"annotations": {"batch.outrider.dev/scheduled-at": text}}})).unwrap()
    };
    assert_eq!(ChildJob::of(&job("yesterday").metadata, None).scheduled_at, None);
    assert_eq!(ChildJob::of(&job("2024-01-01T12:01:00Z").metadata, None).scheduled_at, Some(run("12:01:00")));
}

/// Finished Jobs, started at these times.
fn finished(jobs: &[(&str, JobOutcome, Option<&str>)]) -> Vec<ChildJob> {
    let jobs = jobs.iter().map(|(name, outcome, started)| ChildJob {
        name: (*name).to_owned(),
        outcome: Some(*outcome),
        start_time: started.map(run),
        ..ChildJob::default()
    });
    jobs.collect()
}

/// Acceptance check 22: a limit of 0, and none, as when no webhook defaults.
#[test]
fn oldest_finished_jobs_beyond_the_limits_are_deleted() {
    use JobOutcome::{Complete, Failed};
    let jobs = finished(&[
        ("new-failed", Failed, Some("12:00:01")),
        ("old-failed", Failed, Some("11:59:00")),
        ("old-complete", Complete, Some("11:59:00")),
        ("new-complete", Complete, Some("12:00:01")),
        ("never-started", Complete, None),
    ]);
    let cases: [(Option<i32>, Option<i32>, &[&str]); 6] = [
        (Some(1), Some(1), &["old-failed", "never-started", "old-complete"]),
        (Some(2), Some(3), &[]),
        (Some(5), Some(2), &["never-started"]),
        (Some(0), Some(0), &["old-failed", "new-failed", "never-started", "old-complete", "new-complete"]),
        (None, None, &[]),
        (None, Some(-1), &["never-started", "old-complete", "new-complete"]),
    ];
    for (failed, successful, expected) in cases {
        let mut cronjob = cronjob(&json!({"suspend": true}));
        cronjob.spec.failed_jobs_history_limit = failed;
        cronjob.spec.successful_jobs_history_limit = successful;
        let plan = reconcile(&cronjob, &jobs, run("12:00:30"));
        assert_eq!(deleted(&plan), expected, "{failed:?} {successful:?}");
        let deletions = plan.steps.iter().filter(|step| matches!(step, ReconcileStep::DeleteJob { .. }));
        assert!(deletions.clone().all(ReconcileStep::is_best_effort));
        let first =
            plan.steps.iter().position(|step| matches!(step, ReconcileStep::DeleteJob { .. })).unwrap_or(usize::MAX);
        let status = plan.steps.iter().position(|step| matches!(step, ReconcileStep::WriteStatus(_))).unwrap();
        assert!(status < first, "the status remembers the run before its Job goes");
    }
}

#[test]
fn jobs_that_are_being_deleted_are_not_deleted_again() {
    let mut jobs = finished(&[("a", JobOutcome::Complete, Some("12:00:00"))]);
    jobs[0].terminating = true;
    let mut cronjob = cronjob(&json!({"successfulJobsHistoryLimit": 0, "concurrencyPolicy": "Replace"}));
    assert_eq!(deleted(&reconcile(&cronjob, &jobs, run("12:00:30"))), [""; 0]);
    jobs[0].outcome = None;
    cronjob.spec.successful_jobs_history_limit = None;
    let plan = reconcile(&cronjob, &jobs, run("12:01:00"));
    assert_eq!((deleted(&plan).len(), created(&plan)), (0, vec![job_of("12:01:00")]));
}
