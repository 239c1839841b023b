//! The steps of a plan, one after the other.

use std::time::Duration;

use admission::bounded::beginning;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, Patch, Preconditions, Request};
use kube::{Api, Resource as _, ResourceExt as _};
use serde::de::IgnoredAny;
use serde_json::json;

use super::Controller;
use super::watched_job::WatchedJob;
use crate::controller::apply::{Error, request};
use crate::controller::is_retired;
use crate::controller::{Again, Key};
use crate::field_managers::{patching, posting};
use crate::workshop::cronjob::NAME;
use crate::workshop::cronjob::api::{CronJob, CronJobStatus, GROUP, PLURAL};
use crate::workshop::cronjob::reconcile::{
    Event, NewJob, ReconcilePlan, ReconcileStep, creation_failed, creation_failed_since, is_child, merge_patch,
};
use crate::workshop::cronjob::vocabulary::FINALIZER;

/// Field manager of all that this controller writes.
const MANAGER: &str = "outrider-cronjob";

/// When to check again for what the watch has not reported yet.
const SOON: Duration = Duration::from_secs(1);

/// When to retry what the API server refused: the obstacle is not watched.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// The longest wait. Waits are counted by a monotonic clock, schedules by one that can be set: this is how late
/// that is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The longest text of the API server that is repeated, in bytes: an event's note may have 1024
/// (k8s.io/kubernetes/pkg/apis/core/validation, `NoteLengthLimit`).
const TEXT_MAX_BYTES: usize = 900;

enum StepOutcome {
    /// It was done.
    Done,
    /// It was done before: there is nothing to report.
    Moot,
    /// The `CronJob` is not what was decided on any more.
    Overtaken,
    /// The API server does not want the Job; when to try again.
    Refused(Duration),
    /// So much was written that this has to wait.
    Later(Duration),
}

/// A plan on its way.
pub struct PlanExecutor<'a> {
    controller: &'a Controller,
    cronjob: &'a CronJob,
    key: Key,
    /// Version of the `CronJob` after the steps so far.
    version: Option<String>,
    /// Its status after them.
    status: CronJobStatus,
}

impl<'a> PlanExecutor<'a> {
    pub fn of(controller: &'a Controller, cronjob: &'a CronJob, key: Key) -> Self {
        let (version, status) = (cronjob.resource_version(), cronjob.status.clone().unwrap_or_default());
        Self { controller, cronjob, key, version, status }
    }

    /// Takes the steps of a plan that was made for this very `CronJob`.
    pub async fn take(mut self, plan: &ReconcilePlan) -> Result<Again, Error> {
        let mut again = plan.requeue_after.map(|wait| wait.min(LONGEST_WAIT));
        for step in &plan.steps {
            match self.step(step).await {
                Ok(StepOutcome::Done) => self.report(step),
                Ok(StepOutcome::Moot) => {}
                Ok(StepOutcome::Overtaken) => return Ok(Some(SOON)),
                // Not by the next time of the schedule, which may come every second.
                Ok(StepOutcome::Refused(pause)) => return Ok(Some(pause)),
                Ok(StepOutcome::Later(wait)) => return Ok(Some(earlier(again, wait))),
                Err(error) if step.is_best_effort() => {
                    tracing::warn!(%error, "A step failed, trying again");
                    again = Some(earlier(again, LOOK_AGAIN));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(again)
    }

    async fn step(&mut self, step: &ReconcileStep) -> Result<StepOutcome, Error> {
        match step {
            ReconcileStep::SetFinalizers(finalizers) => self.set_finalizers(finalizers).await,
            ReconcileStep::WriteStatus(status) => self.write_status(status).await,
            ReconcileStep::DeleteJob { name, uid, .. } => self.delete_job(name, uid.clone()).await,
            ReconcileStep::CreateJob { job, .. } => self.create_job(job).await,
            ReconcileStep::Publish(_) => Ok(StepOutcome::Done),
        }
    }

    /// Adds none where `outrider uninstall` has removed them: they would never be removed again.
    async fn set_finalizers(&mut self, finalizers: &[String]) -> Result<StepOutcome, Error> {
        let holds = finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        if holds && is_retired(&self.controller.client, &format!("{PLURAL}.{GROUP}")).await? {
            return Ok(StepOutcome::Moot);
        }
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": self.version}});
        let (api, params, patch) = (self.cronjobs(), patching(MANAGER), Patch::Merge(&patch));
        let patched = request::<CronJob, _>(&self.key, api.patch(&self.key.name, &params, &patch)).await;
        self.patched(patched)
    }

    async fn write_status(&mut self, status: &CronJobStatus) -> Result<StepOutcome, Error> {
        let taken = self.controller.limits().status.take(self.owner(), (self.controller.clock)());
        if let Err(wait) = taken {
            self.controller.metrics.write_limited(NAME, "status");
            return Ok(StepOutcome::Later(wait));
        }
        let mut patch = merge_patch(status);
        patch["metadata"] = json!({"resourceVersion": self.version});
        let (api, params, patch) = (self.cronjobs(), patching(MANAGER), Patch::Merge(&patch));
        let patched = request::<CronJob, _>(&self.key, api.patch_status(&self.key.name, &params, &patch)).await;
        let taken = self.patched(patched)?;
        if matches!(taken, StepOutcome::Done) {
            self.status = status.clone();
        }
        Ok(taken)
    }

    /// A change of the `CronJob` that was not decided on is never written over: its event brings the `CronJob` back here.
    fn patched(&mut self, patched: Result<CronJob, Error>) -> Result<StepOutcome, Error> {
        match patched {
            Ok(cronjob) => {
                self.version = cronjob.resource_version();
                self.controller.written().note(&cronjob);
                Ok(StepOutcome::Done)
            }
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(StepOutcome::Overtaken),
            Err(error) => Err(error),
        }
    }

    async fn delete_job(&self, name: &str, uid: Option<String>) -> Result<StepOutcome, Error> {
        let preconditions = Preconditions { uid, ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let api = Api::<WatchedJob>::namespaced(self.controller.client.clone(), &self.key.namespace);
        match request::<WatchedJob, _>(&self.job_key(name), api.delete(name, &params)).await {
            Ok(_) => Ok(StepOutcome::Done),
            // Gone, or another one by now.
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(StepOutcome::Moot),
            Err(error) => Err(error),
        }
    }

    async fn create_job(&mut self, job: &NewJob) -> Result<StepOutcome, Error> {
        let name = job.name().to_owned();
        let params = posting(MANAGER);
        // Not by a type of ours: it would lose what the template has and this build does not know, or take much memory.
        let create = Request::new(WatchedJob::url_path(&(), Some(&self.key.namespace)));
        let create = create.create(&params, serde_json::to_vec(job)?).map_err(kube::Error::BuildRequest);
        let create = async { self.controller.client.request::<IgnoredAny>(create?).await };
        let created = request::<WatchedJob, _>(&self.job_key(&name), create).await;
        let Err(error) = created else { return Ok(StepOutcome::Done) };
        match error.answer() {
            Some(answer) if answer.code == 409 => self.inspect_existing(&name, error).await,
            // What will be otherwise in a moment is no refusal.
            Some(answer) if (400..500).contains(&answer.code) && !matches!(answer.code, 401 | 408 | 429) => {
                // Each run has a Job of another name, and is refused for the same reason.
                let message = answer.message.replace(&name, "of this run");
                self.refused(&format!("The next Job is refused by the API server: {message}")).await
            }
            _ => Err(error),
        }
    }

    /// A Job of the name exists already: of this run, started before the process was stopped, or of another owner.
    async fn inspect_existing(&mut self, name: &str, error: Error) -> Result<StepOutcome, Error> {
        let api = Api::<WatchedJob>::namespaced(self.controller.client.clone(), &self.key.namespace);
        match request::<WatchedJob, _>(&self.job_key(name), api.get_opt(name)).await? {
            Some(other) if is_child(&other.metadata, self.cronjob) => Ok(StepOutcome::Moot),
            Some(_) => {
                let (kind, owner) = (WatchedJob::kind(&()), CronJob::kind(&()).into_owned());
                self.refused(&Error::Foreign { kind, name: name.to_owned(), owner }.to_string()).await
            }
            None => Err(error),
        }
    }

    /// Reports once why the Job cannot be created: the next attempt for the same reason writes nothing.
    async fn refused(&mut self, why: &str) -> Result<StepOutcome, Error> {
        let message = beginning(why, TEXT_MAX_BYTES);
        let now = (self.controller.clock)();
        let since = creation_failed_since(&self.status);
        let status = creation_failed(&self.status, message, now);
        if status == self.status {
            return Ok(StepOutcome::Refused(pause(since, now)));
        }
        tracing::warn!(why = message, "A Job cannot be created, trying again");
        let taken = self.write_status(&status).await?;
        if !matches!(taken, StepOutcome::Done) {
            return Ok(taken);
        }
        let event = Event { warning: true, reason: "JobCreationFailed", message: message.to_owned() };
        self.write_event(&event, None);
        Ok(StepOutcome::Refused(LOOK_AGAIN))
    }

    fn report(&self, step: &ReconcileStep) {
        let Some(event) = step.event() else { return };
        let job = match step {
            ReconcileStep::CreateJob { job, .. } => Some(job.name()),
            ReconcileStep::DeleteJob { name, .. } => Some(name.as_str()),
            _ => None,
        };
        self.write_event(&event, job);
    }

    /// `job` is the Job that the event is about, too: without it kube's recorder would count the events of two Jobs as one.
    fn write_event(&self, event: &Event, job: Option<&str>) {
        if event.warning {
            tracing::warn!(reason = event.reason, "{}", event.message);
        }
        if !self.controller.limits().events.try_take(self.owner(), (self.controller.clock)()) {
            self.controller.metrics.write_limited(NAME, "events");
            tracing::debug!(reason = event.reason, "An event is left out: there were too many");
            return;
        }
        let related = job.map(|name| ObjectReference {
            api_version: Some(<Job as k8s_openapi::Resource>::API_VERSION.to_owned()),
            kind: Some(<Job as k8s_openapi::Resource>::KIND.to_owned()),
            namespace: Some(self.key.namespace.clone()),
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        });
        self.controller.events.reconciled(self.cronjob, event.warning, event.reason, &event.message, related);
    }

    fn owner(&self) -> &str {
        self.cronjob.metadata.uid.as_deref().unwrap_or_default()
    }

    fn cronjobs(&self) -> Api<CronJob> {
        Api::namespaced(self.controller.client.clone(), &self.key.namespace)
    }

    fn job_key(&self, name: &str) -> Key {
        Key { namespace: self.key.namespace.clone(), name: name.to_owned() }
    }
}

/// As long as Jobs were refused until now.
fn pause(since: Option<Timestamp>, now: Timestamp) -> Duration {
    let refused = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok());
    refused.unwrap_or(LOOK_AGAIN).clamp(LOOK_AGAIN, LONGEST_WAIT)
}

fn earlier(again: Again, wait: Duration) -> Duration {
    again.map_or(wait, |again| again.min(wait))
}
