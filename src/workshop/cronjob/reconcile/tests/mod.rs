//! The acceptance checks of the reconciler, with a clock that is set by hand and a cluster that is a list.

mod conditions;
mod deletion;
mod jobs;
mod runs;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{ChildJob, Decision, ReconcilePlan, ReconcileStep, is_child, reconcile};
use crate::workshop::cronjob::api::CronJob;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A `CronJob` of every minute, made at noon, with these fields of `spec` beside its own.
fn cronjob(fields: &Value) -> CronJob {
    let mut spec = json!({
        "schedule": "* * * * *", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "spec": {"template": {"spec": {"restartPolicy": "Never"}}, "fieldOfTomorrow": 1},
        },
    });
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "metadata": {
            "name": "nightly", "namespace": "a", "uid": "cronjob-uid", "generation": 1,
            "creationTimestamp": "2024-01-01T12:00:00Z", "finalizers": ["batch.outrider.dev/finalizer"],
        },
        "spec": spec,
    }))
    .unwrap()
}

/// The API server and the Job controller, as far as a `CronJob` sees them.
struct Cluster {
    cronjob: CronJob,
    jobs: Vec<Job>,
    now: Timestamp,
    writes: usize,
}

impl Cluster {
    fn new(fields: &Value) -> Self {
        Self { cronjob: cronjob(fields), jobs: Vec::new(), now: time("2024-01-01T12:00:00Z"), writes: 0 }
    }

    fn plan(&self) -> ReconcilePlan {
        let children: Vec<ChildJob> = self
            .jobs
            .iter()
            .filter(|job| is_child(&job.metadata, &self.cronjob))
            .map(|job| ChildJob::of(&job.metadata, job.status.as_ref()))
            .collect();
        reconcile(&self.cronjob, &children, self.now)
    }

    /// Decides and carries the steps out.
    fn reconcile(&mut self) -> ReconcilePlan {
        let plan = self.plan();
        for step in &plan.steps {
            self.take(step);
        }
        plan
    }

    fn take(&mut self, step: &ReconcileStep) {
        match step {
            ReconcileStep::SetFinalizers(finalizers) => self.cronjob.metadata.finalizers = Some(finalizers.clone()),
            ReconcileStep::WriteStatus(status) => {
                let written = serde_json::to_value(status).unwrap();
                self.cronjob.status = Some(serde_json::from_value(written).unwrap());
            }
            ReconcileStep::DeleteJob { name, uid, .. } => {
                self.jobs.retain(|job| job.metadata.name.as_ref() != Some(name) || job.metadata.uid != *uid);
            }
            ReconcileStep::CreateJob { job, .. } => {
                let mut job: Job = serde_json::from_value(json!(job)).unwrap();
                assert!(self.jobs.iter().all(|other| other.metadata.name != job.metadata.name), "exists already");
                job.metadata.uid = Some(format!("uid-of-{}", job.metadata.name.as_deref().unwrap()));
                self.jobs.push(job);
            }
            ReconcileStep::Publish(_) => return,
        }
        self.writes += 1;
    }

    /// Reconciles until nothing changes any more, as events about the `CronJob` and its Jobs would have it.
    fn settle(&mut self) -> ReconcilePlan {
        loop {
            let before = self.writes;
            let plan = self.reconcile();
            if self.writes == before {
                return plan;
            }
        }
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Ends the Job with this condition, started when it was made.
    fn end(&mut self, name: &str, outcome: &str) {
        assert!(["Complete", "Failed"].contains(&outcome));
        let start_time = Some(Time(self.now));
        let job = self.jobs.iter_mut().find(|job| job.metadata.name.as_deref() == Some(name)).unwrap();
        let condition = |type_: &str, status: &str| JobCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            ..JobCondition::default()
        };
        job.status = Some(JobStatus {
            start_time,
            conditions: Some(vec![condition("Suspended", "True"), condition(outcome, "True")]),
            ..JobStatus::default()
        });
    }

    fn names(&self) -> Vec<&str> {
        self.jobs.iter().map(|job| job.metadata.name.as_deref().unwrap()).collect()
    }

    fn status(&self) -> Value {
        serde_json::to_value(self.cronjob.status.as_ref().unwrap()).unwrap()
    }

    fn active(&self) -> Vec<String> {
        let active = self.status()["active"].as_array().cloned().unwrap_or_default();
        active.iter().map(|reference| reference["name"].as_str().unwrap().to_owned()).collect()
    }

    /// `True JobsActive`, for example.
    fn condition(&self, type_: &str) -> String {
        let status = self.status();
        let conditions = status["conditions"].as_array().unwrap();
        let found: Vec<&Value> = conditions.iter().filter(|condition| condition["type"] == type_).collect();
        assert_eq!(found.len(), 1, "{type_} is there {} times", found.len());
        format!("{} {}", found[0]["status"].as_str().unwrap(), found[0]["reason"].as_str().unwrap())
    }
}

fn seconds(plan: &ReconcilePlan) -> Option<u64> {
    plan.requeue_after.as_ref().map(Duration::as_secs)
}

fn created(plan: &ReconcilePlan) -> Vec<String> {
    let jobs = plan.steps.iter().filter_map(|step| match step {
        ReconcileStep::CreateJob { job, .. } => Some(job.name().to_owned()),
        _ => None,
    });
    jobs.collect()
}

fn deleted(plan: &ReconcilePlan) -> Vec<String> {
    let jobs = plan.steps.iter().filter_map(|step| match step {
        ReconcileStep::DeleteJob { name, .. } => Some(name.clone()),
        _ => None,
    });
    jobs.collect()
}

/// A run of the `CronJob` at this time on the day it was made.
fn run(clock: &str) -> Timestamp {
    time(&format!("2024-01-01T{clock}Z"))
}

fn job_of(clock: &str) -> String {
    super::job_name("nightly", run(clock))
}

#[test]
fn first_reconcile_sets_the_finalizer_and_the_status_and_starts_nothing_early() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.cronjob.metadata.finalizers = Some(vec!["example.com/own".to_owned()]);
    cluster.now = run("12:00:10");
    let plan = cluster.reconcile();
    assert_eq!(plan.decision, Decision::NotDue);
    assert_eq!(seconds(&plan), Some(50));
    let finalizers = cluster.cronjob.metadata.finalizers.clone().unwrap();
    assert_eq!(finalizers, ["example.com/own", "batch.outrider.dev/finalizer"]);
    assert_eq!(cluster.status()["nextScheduleTime"], "2024-01-01T12:01:00Z");
    assert_eq!(cluster.status()["observedGeneration"], 1);
    assert_eq!(cluster.status().get("active"), None);
}

#[test]
fn idle_reconciles_write_nothing() {
    for schedule in ["0 * * * *", "@every 1h", "0 0 30 2 *", "nonsense"] {
        let mut cluster = Cluster::new(&json!({"schedule": schedule}));
        cluster.now = run("12:00:00.5");
        cluster.settle();
        let before = cluster.writes;
        for _ in 0..10 {
            cluster.pass(60);
            let plan = cluster.reconcile();
            assert_eq!(plan.steps, [], "{schedule}");
        }
        assert_eq!(cluster.writes, before, "{schedule}");
    }
}
