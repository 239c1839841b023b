//! Writes into the status of every `AdmissionPlugin` whether it can be used, whether the API server calls for it, and whether another
//! contradicts it. Only the leader does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::plugins::compiled::Settings;
use engine::plugins::endpoints::entries;
use engine::plugins::image_policy::ImagePolicy;
use engine::snapshot::plugins::PluginRecord;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use super::conditions::{Contradictions, Facts, PENDING, accepted, contradicted, programmed, status_of};
use super::entries::EntryReader;
use crate::answers::{self, NoAnswer, said};
use crate::controller::Context;
use crate::field_managers::{ADMISSION_PLUGIN, patching};
use crate::image_policy::BackendState;
use crate::logging::throttle::LogThrottle;
use crate::metrics::ReconcileResult;
use crate::watch::AdmissionPluginResource;
use crate::watch::coverage::Coverage;
use crate::watch::in_order::InOrder;
use crate::watch::read_model::ReadModel;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "admissionplugin";

/// When to check an object again that waits for its entries, and one that does not: another object, or a person who edits the webhook
/// configurations, may have changed the result.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(15);

/// Objects are often applied many at a time, and namespaces change all the time.
const GATHER: Duration = Duration::from_millis(200);

/// Runs the controller until its term ends.
///
/// It reads what decisions read, and has no watch of its own: a cluster without the definition has no objects, and no fault.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    run(context).boxed()
}

async fn run(context: Context) {
    let Context { client, metrics, term, world, coverage, mut in_order, .. } = context;
    let mut controller = Controller {
        entries: EntryReader::new(client.clone()),
        client,
        world,
        coverage,
        in_order: in_order.clone(),
        contradictions: Contradictions::default(),
    };
    let work = async {
        controller.world.published().await;
        let (mut publications, counted) = (controller.world.publications(), metrics.controller(NAME));
        let mut backends = controller.world.images.changes();
        let mut trouble = LogThrottle::default();
        loop {
            let begun = Instant::now();
            let pause = match controller.pass().await {
                Ok(pause) => {
                    trouble.over();
                    if !controller.world.plugin_table.all().is_empty() {
                        counted.reconciled(ReconcileResult::success, begun.elapsed());
                    }
                    pause
                }
                Err(error) => {
                    if trouble.is_news(&error) {
                        tracing::warn!(%error, "The status of AdmissionPlugins cannot be written, trying again");
                    }
                    counted.reconciled(ReconcileResult::error, begun.elapsed());
                    SOON
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                changed = publications.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                    sleep(GATHER).await;
                }
                Ok(()) = in_order.changed() => {}
                Ok(()) = backends.changed() => {}
            }
        }
    };
    let _ended = term.until_ending(work).await;
}

/// A pass that did not succeed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{}", said(.0))]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Timeout(#[from] NoAnswer),
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
    answers::in_time(async { request.await.map_err(Error::from) }).await
}

struct Controller {
    client: Client,
    entries: EntryReader,
    world: ReadModel,
    coverage: Receiver<Coverage>,
    in_order: Receiver<InOrder>,
    contradictions: Contradictions,
}

impl Controller {
    /// Reconciles every object, and returns when to do so again.
    async fn pass(&mut self) -> Result<Duration, Error> {
        let records = self.world.plugin_table.all();
        if records.is_empty() {
            return Ok(LATER);
        }
        let of_pods = in_time(self.entries.read()).await?;
        let (snapshot, coverage) = (self.world.snapshot.load_full(), self.coverage.borrow().clone());
        let in_order = self.in_order.borrow().clone();
        let needed = entries::all(&snapshot);
        self.contradictions.update(&snapshot.plugins);
        let facts = Facts {
            snapshot: &snapshot,
            needed: &needed,
            in_order: &in_order,
            of_pods: &of_pods,
            coverage: &coverage,
            backends: &self.backends(&records).await,
        };
        let mut pause = LATER;
        for record in records.iter().filter(|record| !record.terminating) {
            let statements = [
                accepted(record),
                programmed(record, &facts),
                contradicted(self.contradictions.found.get(&record.name)),
            ];
            if statements.iter().any(|statement| statement.reason == PENDING) {
                pause = SOON;
            }
            self.write(record, &status_of(record, statements, Timestamp::now())).await?;
        }
        Ok(pause)
    }

    /// The backends that the objects name.
    async fn backends(&self, records: &[Arc<PluginRecord>]) -> BTreeMap<String, BackendState> {
        let mut found = BTreeMap::new();
        for settings in records.iter().filter_map(|record| Some(&record.compiled.as_ref()?.settings)) {
            if let Settings::ImagePolicy(ImagePolicy { backend, .. }) = settings {
                found.insert(backend.name.clone(), self.world.images.state(&backend.name).await);
            }
        }
        found
    }

    async fn write(&self, record: &PluginRecord, status: &Value) -> Result<(), Error> {
        if record.status.as_ref().map(|stored| json!(stored)).as_ref() == Some(status) {
            return Ok(());
        }
        // The uid keeps the status of a deleted object from a new one of the same name.
        let patch = json!({"metadata": {"uid": record.uid}, "status": status});
        let (api, params) = (Api::<AdmissionPluginResource>::all(self.client.clone()), patching(ADMISSION_PLUGIN));
        match in_time(api.patch_status(&record.name, &params, &Patch::Merge(&patch))).await {
            // Deleted meanwhile, or deleted and made again.
            Err(Error::Api(error)) if matches!(answers::code(&error), Some(404 | 409)) => Ok(()),
            written => written.map(drop),
        }
    }
}
