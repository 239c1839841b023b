use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{Cluster, Decision, job_of, run};
use crate::workshop::cronjob::reconcile::ReconcileStep;

/// A `CronJob` with one Job that runs, deleted by the user while another run is due.
fn deleted_while_a_job_runs(policy: Option<&str>) -> Cluster {
    let fields = policy.map_or_else(|| json!({}), |policy| json!({"deletionPolicy": policy}));
    let mut cluster = Cluster::new(&fields);
    cluster.now = run("12:01:00");
    cluster.settle();
    cluster.now = run("12:02:00");
    cluster.cronjob.metadata.deletion_timestamp = Some(Time(cluster.now));
    cluster
}

/// Acceptance check 23.
#[test]
fn cronjob_goes_at_once_by_default() {
    for policy in [None, Some("Delete")] {
        let mut cluster = deleted_while_a_job_runs(policy);
        let plan = cluster.reconcile();
        assert_eq!(plan.steps, [ReconcileStep::SetFinalizers(vec![])]);
        assert_eq!((plan.decision, plan.requeue_after), (Decision::Deleting, None));
        assert_eq!(cluster.reconcile().steps, []);
    }
}

#[test]
fn foreign_finalizers_stay() {
    let mut cluster = deleted_while_a_job_runs(None);
    cluster.cronjob.metadata.finalizers.as_mut().unwrap().push("example.com/own".to_owned());
    cluster.reconcile();
    assert_eq!(cluster.cronjob.metadata.finalizers, Some(vec!["example.com/own".to_owned()]));
    assert_eq!(cluster.reconcile().steps, []);
}

#[test]
fn cronjob_that_waits_stays_until_no_job_runs_and_starts_none_meanwhile() {
    let mut cluster = deleted_while_a_job_runs(Some("WaitForActiveJobs"));
    for _ in 0..3 {
        let plan = cluster.settle();
        assert_eq!(plan.decision, Decision::WaitingForActiveJobs);
        cluster.pass(60);
    }
    assert_eq!(cluster.names(), [job_of("12:01:00")]);
    assert_eq!(cluster.condition("Progressing"), "True WaitingForActiveJobs");
    assert_eq!(cluster.cronjob.metadata.finalizers.as_ref().map(Vec::len), Some(1));
    cluster.end(&job_of("12:01:00"), "Failed");
    assert_eq!(cluster.reconcile().steps, [ReconcileStep::SetFinalizers(vec![])]);
}

#[test]
fn waiting_ends_when_the_jobs_are_deleted_or_the_policy_changes() {
    let mut cluster = deleted_while_a_job_runs(Some("WaitForActiveJobs"));
    cluster.settle();
    let mut other = deleted_while_a_job_runs(Some("WaitForActiveJobs"));
    other.settle();
    cluster.jobs.clear();
    other.cronjob.spec.deletion_policy = Some("Delete".to_owned());
    for mut cluster in [cluster, other] {
        assert_eq!(cluster.reconcile().steps, [ReconcileStep::SetFinalizers(vec![])]);
    }
}
