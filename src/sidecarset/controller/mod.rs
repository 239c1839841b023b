//! Counts the pods of each SidecarSet into its status, and those of all into a metric. Only the leader does.

pub mod carried;
pub mod count;
pub mod injection_counts;
pub mod packed;
pub mod pod_state_metric;
pub mod pods;
pub mod programmed;
pub mod record;
pub mod records;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Api;
use kube::api::Patch;
use serde_json::json;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::answers::{NoAnswer, code, in_time, said};
use crate::controller::Context;
use crate::controller::queue::{Queue, add_all};
use crate::field_managers::{SIDECARSET, patching};
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::controller::pod_state_metric::PodStateMetric;
use crate::sidecarset::controller::pods::PodIndex;
use crate::watch::SidecarSetResource;
use crate::watch::coverage::Coverage;
use crate::watch::read_model::ReadModel;
use engine::sidecarset::api::{GROUP, KIND};
use engine::sidecarset::compiled::CompiledSet;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "sidecarset";

/// A rollout of a thousand pods is a thousand events a set and ten writes a second, no more.
const PACE: Duration = Duration::from_millis(100);

/// A status that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("the status cannot be written: {}", said(.0))]
    Write(#[source] kube::Error),
    /// No answer in time.
    #[error(transparent)]
    Timeout(#[from] NoAnswer),
}

/// Runs the controller until the term of its context ends. It ends by itself when the watches have not listed every object in time.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    run(context).boxed()
}

async fn run(context: Context) {
    let Context { client, metrics, tuning, term, world, coverage } = context;
    let queue = Queue::new(NAME, KIND.into(), PACE, &metrics);
    let pods = Arc::new(Mutex::new(PodIndex::default()));
    let listed = CancellationToken::new();
    let census = PodStateMetric::new(metrics.clone());
    let api = tuning.api(client.clone());
    let events = watch::run(api, &world, &pods, coverage.clone(), &queue, census, listed.clone());
    let resync = tuning.resync(|| add_all(&queue, watch::all_sets(&world)));
    let reconciles = async {
        // Counting half of the pods, or by half of the namespaces, would write numbers that are wrong.
        let told = async {
            listed.cancelled().await;
            world.published().await;
        };
        if term.until_ending(tuning.listed_in_time(NAME, told)).await != Some(true) {
            return;
        }
        let (sets, world, pods) = (Api::all(client), world.clone(), Arc::clone(&pods));
        let controller = Controller { sets, world, pods, coverage };
        let reconcile = move |name: Arc<str>| {
            let controller = controller.clone();
            async move { controller.reconcile(&name).await.map(|()| None) }
        };
        queue.run(tuning.workers(KIND, GROUP), reconcile, term).await;
    };
    tokio::select! {
        () = events => {}
        () = resync => {}
        () = reconciles => {}
    }
}

#[derive(Clone)]
struct Controller {
    sets: Api<SidecarSetResource>,
    world: ReadModel,
    pods: Arc<Mutex<PodIndex>>,
    coverage: Receiver<Coverage>,
}

impl Controller {
    async fn reconcile(&self, name: &str) -> Result<(), Error> {
        let Some(set) = self.world.sets.get(name) else { return Ok(()) };
        // The log has an error for a set that never compiled.
        let Some(compiled) = set.compiled.as_ref() else { return Ok(()) };
        let (generation, stored) = (set.compiled_generation, set.status.as_ref());
        let counts = self.count(compiled, generation);
        let conditions =
            programmed::conditions(compiled, generation, &self.coverage.borrow(), stored, Timestamp::now());
        if set.terminating || (conditions.is_none() && !counts.differ_from(stored)) {
            return Ok(());
        }
        tracing::debug!(?counts, "Writing status");
        let mut status = json!(counts);
        if let Some(conditions) = conditions {
            status["conditions"] = json!(conditions);
        }
        // The uid keeps the numbers of a deleted set from a new one of the same name.
        let patch = json!({"metadata": {"uid": set.uid}, "status": status});
        let (params, patch) = (patching(SIDECARSET), Patch::Merge(&patch));
        let write = self.sets.patch_status(name, &params, &patch);
        in_time(async {
            match write.await {
                // Deleted meanwhile.
                Err(error) if code(&error) != Some(404) => Err(Error::Write(error)),
                _ => Ok(()),
            }
        })
        .await
    }

    fn count(&self, set: &CompiledSet, generation: i64) -> Counts {
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        Counts::of(set, generation, &pods, &self.world.snapshot.load())
    }
}
