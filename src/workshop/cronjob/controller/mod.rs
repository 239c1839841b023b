//! Carries out for every `CronJob` what [`reconcile`] decides.

mod limits;
mod plan_executor;
#[cfg(test)]
mod tests;
pub mod watched_job;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

use self::limits::Limit;
use self::plan_executor::PlanExecutor;
use self::watched_job::WatchedJob;
use super::NAME;
use super::api::CronJob;
use super::reconcile::{ChildJob, Decision, ReconcilePlan, is_child, reconcile};
use crate::answers::next_page;
use crate::controller::apply::{Error, request};
use crate::controller::{Again, Context, Key, Operator, Store};
use crate::events::{BackgroundEvents, Events};
use crate::metrics::Metrics;

/// Returns the time: the wall clock's, or that of a test.
type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// `CronJob`s that are reconciled at one time. Many are due on the same minute, and a run is some requests that wait for the API
/// server, one after another; the built-in controller has five (`--concurrent-cron-job-syncs`) and takes fewer.
const WORKERS: usize = 10;

/// Jobs in one page of a list: users may make each as large as an object can be.
const PAGE: u32 = 20;

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    let controller = Controller::new(context.client.clone(), context.metrics.clone(), Arc::new(Timestamp::now));
    let mut operator = Operator::<CronJob>::new(NAME, context);
    operator.reconciling_at_once(WORKERS);
    let jobs: Store<WatchedJob> = operator.owning(None);
    operator.run((controller, jobs), |with, cronjob: Arc<CronJob>| async move {
        let (controller, jobs) = &*with;
        let owned = jobs.controlled_by(cronjob.metadata.uid.as_deref().unwrap_or_default());
        let children = children(owned.iter().map(AsRef::as_ref), &cronjob);
        controller.reconcile(&cronjob, &children).await
    })
}

fn children<'a>(jobs: impl Iterator<Item = &'a WatchedJob>, cronjob: &CronJob) -> Vec<ChildJob> {
    jobs.filter(|job| is_child(&job.metadata, cronjob)).map(WatchedJob::child).collect()
}

#[derive(Clone)]
struct Controller {
    client: Client,
    metrics: Metrics,
    events: BackgroundEvents,
    clock: Clock,
    limits: Arc<Mutex<WriteLimits>>,
    written: Arc<Mutex<LastWrites>>,
}

/// The version of each `CronJob`, by uid, that the last write of this controller made.
#[derive(Default)]
struct LastWrites(HashMap<String, String>);

/// So many are remembered; of the others the API server is asked.
const WRITTEN_MAX: usize = 100_000;

impl LastWrites {
    fn note(&mut self, cronjob: &CronJob) {
        let (Some(uid), Some(version)) = (cronjob.uid(), cronjob.resource_version()) else { return };
        if self.0.len() >= WRITTEN_MAX {
            self.0.clear();
        }
        self.0.insert(uid, version);
    }

    /// Whether the watch has reported everything that this controller wrote, and nothing since.
    fn is_last(&self, known: &CronJob) -> bool {
        let last = known.metadata.uid.as_ref().and_then(|uid| self.0.get(uid));
        last.is_some() && last == known.metadata.resource_version.as_ref()
    }
}

/// For every `CronJob` that this controller reconciles.
struct WriteLimits {
    creates: Limit,
    status: Limit,
    events: Limit,
}

impl Controller {
    fn new(client: Client, metrics: Metrics, clock: Clock) -> Self {
        let limits =
            WriteLimits { creates: Limit::of_creates(), status: Limit::of_status(), events: Limit::of_events() };
        Self {
            events: BackgroundEvents::new(Events::new(client.clone(), NAME)),
            client,
            metrics,
            clock,
            limits: Arc::new(Mutex::new(limits)),
            written: Arc::default(),
        }
    }

    fn written(&self) -> MutexGuard<'_, LastWrites> {
        // As for the limits.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> MutexGuard<'_, WriteLimits> {
        // Nothing in there is left half changed by a panic.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `known` and `jobs` are what the watches reported.
    async fn reconcile(&self, known: &CronJob, jobs: &[ChildJob]) -> Result<Again, Error> {
        let Some((cronjob, plan)) = self.decide(known, jobs).await? else { return Ok(None) };
        let key = Key::of(cronjob.as_ref());
        tracing::debug!(decision = ?plan.decision, again = plan.requeue_after.map(|pause| pause.as_secs_f64()), "Decided");
        PlanExecutor::of(self, &cronjob, key).take(&plan).await
    }

    /// What to do about the `CronJob`, as the plan sees it; `None` when it is gone.
    ///
    /// The watches may be behind the cluster. The next reconcile corrects most effects of that, but not a run that starts twice and
    /// not a finalizer that is gone: those are decided on what the API server says now.
    async fn decide<'a>(
        &self,
        known: &'a CronJob,
        jobs: &[ChildJob],
    ) -> Result<Option<(Cow<'a, CronJob>, ReconcilePlan)>, Error> {
        let now = (self.clock)();
        let mut cronjob = Cow::Borrowed(known);
        let mut plan = reconcile(&cronjob, jobs, now);
        if matches!(plan.decision, Decision::Start(_)) {
            let taken = self.limits().creates.take(known.metadata.uid.as_deref().unwrap_or_default(), now);
            if let Err(wait) = taken {
                self.metrics.write_limited(NAME, "jobs");
                return Ok(Some((cronjob, plan.later(known, wait, now))));
            }
            // The Job of the last run may be gone already, and only the status remembers it. What this controller wrote last is what
            // is known, in most cases: then there is no newer status.
            if self.written().is_last(known) {
                return Ok(Some((cronjob, plan)));
            }
            let key = Key::of(known);
            let api = Api::<CronJob>::namespaced(self.client.clone(), &key.namespace);
            let live = request::<CronJob, _>(&key, api.get_opt(&key.name)).await?;
            let Some(live) = live.filter(|live| live.uid() == known.uid()) else { return Ok(None) };
            plan = reconcile(&live, jobs, now);
            cronjob = Cow::Owned(live);
        }
        if plan.decision == Decision::Deleting && cronjob.spec.waits_for_active_jobs() && !plan.steps.is_empty() {
            plan = reconcile(&cronjob, &self.live_jobs(&cronjob).await?, now);
        }
        Ok(Some((cronjob, plan)))
    }

    async fn live_jobs(&self, cronjob: &CronJob) -> Result<Vec<ChildJob>, Error> {
        let key = Key::of(cronjob);
        let api = Api::<WatchedJob>::namespaced(self.client.clone(), &key.namespace);
        let (mut all, mut next) = (Vec::new(), Some(ListParams::default().limit(PAGE)));
        while let Some(params) = next {
            let page = request::<WatchedJob, _>(&key, api.list(&params)).await?;
            next = next_page(params, &page.metadata);
            all.extend(children(page.items.iter(), cronjob));
        }
        Ok(all)
    }
}
