//! Follows the pods of each SidecarSet: the status, the revisions, rollouts, and a metric over all. Only the leader does.

pub mod backoff;
pub mod carried;
mod change;
pub mod conditions;
pub mod count;
pub mod facts;
pub mod in_place_state;
pub mod injection_counts;
mod locks;
pub mod members;
pub mod memory;
pub mod packed;
pub mod pod_state_metric;
pub mod pods;
pub mod programmed;
pub mod record;
pub mod records;
pub mod replicas;
pub mod revisions;
mod rollout;
mod status;
mod watch;
pub mod watched_pod;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::controller::Context;
use crate::controller::queue::{Queue, add_all};
use crate::sidecarset::controller::backoff::Backoff;
use crate::sidecarset::controller::conditions::Found;
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::Members;
use crate::sidecarset::controller::pod_state_metric::PodStateMetric;
use crate::sidecarset::controller::pods::PodIndex;
use crate::sidecarset::controller::replicas::{Knowledge, Replicas};
use crate::sidecarset::controller::revisions::Revisions;
use crate::sidecarset::controller::rollout::Rollouts;
use crate::sidecarset::controller::status::StatusWriter;
use crate::watch::coverage::Coverage;
use crate::watch::read_model::ReadModel;
use engine::sidecarset::api::{GROUP, KIND};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use engine::sidecarset::validation::conflicts;
use engine::snapshot::Snapshot;
use engine::snapshot::sets::SetRecord;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "sidecarset";

/// A rollout of a thousand pods is a thousand events a set and ten writes a second, no more.
const PACE: Duration = Duration::from_millis(100);

/// When a set is reconciled again that the snapshot has in another form yet.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(50);

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its status.
    #[error(transparent)]
    Status(#[from] status::Error),
    /// Its revisions.
    #[error(transparent)]
    Revisions(#[from] revisions::Error),
}

/// Runs the controller until the term of its context ends. It ends by itself when the watches have not listed every object in time.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    run(context).boxed()
}

async fn run(context: Context) {
    let Context { client, metrics, tuning, term, world, coverage, own, .. } = context;
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
        let controller = Arc::new(Controller {
            world: world.clone(),
            pods: Arc::clone(&pods),
            coverage,
            queue: queue.clone(),
            rollouts: Rollouts::new(client.clone()),
            revisions: Revisions::new(client.clone(), &own.namespace),
            replicas: Replicas::new(client.clone(), own),
            backoff: Backoff::default(),
            status: StatusWriter::new(client),
            conflicts: Mutex::default(),
        });
        let reconcile = move |name: Arc<str>| {
            let controller = Arc::clone(&controller);
            async move { controller.reconcile(&name).await }
        };
        queue.run(tuning.workers(KIND, GROUP), reconcile, term).await;
    };
    tokio::select! {
        () = events => {}
        () = resync => {}
        () = reconciles => {}
    }
}

struct Controller {
    world: ReadModel,
    pods: Arc<Mutex<PodIndex>>,
    coverage: Receiver<Coverage>,
    queue: Queue<Arc<str>>,
    rollouts: Rollouts,
    revisions: Revisions,
    replicas: Replicas,
    backoff: Backoff,
    status: StatusWriter,
    conflicts: Mutex<HashMap<String, Conflicts>>,
}

/// What was found, and in which sets.
type Conflicts = (Weak<SetIndex>, Arc<[(String, String)]>);

impl Controller {
    async fn reconcile(&self, name: &str) -> Result<Option<Duration>, Error> {
        let Some(set) = self.world.sets.get(name) else {
            self.rollouts.forget(name);
            self.revisions.forget(name);
            self.status.forget(name);
            self.backoff.forget(name);
            locked(&self.conflicts).remove(name);
            return Ok(None);
        };
        // The log has an error for a set that never compiled.
        let Some(compiled) = set.compiled.as_ref().filter(|_| !set.terminating) else { return Ok(None) };
        let snapshot = self.world.snapshot.load_full();
        // Planned and carried out by the same form: the snapshot follows the table by a moment.
        if snapshot.sets.get(name).is_none_or(|current| current.hash != compiled.hash) {
            return Ok(Some(SNAPSHOT_PAUSE));
        }
        let members = self.members(compiled, &snapshot);
        // Before the rollout: what pods carry from then on is among the revisions.
        let hashes: BTreeSet<&str> = members.carrying.iter().filter_map(|(_, pod)| pod.hash_of(name)).collect();
        let revision = self.revisions.keep(&set, compiled, &hashes).await;
        let rolled = self.rollouts.run(compiled, &members, &snapshot).await;
        let (knowledge, ask_again) = self.knowledge(&set).await;
        let conflicts = self.conflicts(compiled, &snapshot);
        self.tell_rivals(&conflicts);
        let (counts, coverage) =
            (Counts::of(compiled, set.compiled_generation, &members), self.coverage.borrow().clone());
        let memory = self.rollouts.memory(name);
        let status = {
            let memory = locked(&memory);
            let found = Found {
                counts,
                waits: rolled.waits,
                memory: &memory,
                uninjected: members.uninjected.1.as_ref(),
                paused: compiled.paused,
                knowledge: &knowledge,
                covered: programmed::covered(compiled, &coverage),
                conflicts: &conflicts,
            };
            status::of(&set, compiled, &found, revision.as_deref().ok(), &coverage)
        };
        self.status.write(&set, &status).await?;
        // Pods and numbers do not wait for revisions.
        revision?;
        Ok([rolled.again, ask_again].into_iter().flatten().min())
    }

    /// Other sets that bring something of what this one brings. Looked for once for each version of all sets.
    fn conflicts(&self, set: &CompiledSet, snapshot: &Snapshot) -> Arc<[(String, String)]> {
        let current = Arc::downgrade(&snapshot.sets);
        if let Some((_, found)) = locked(&self.conflicts).get(&set.name).filter(|(sets, _)| sets.ptr_eq(&current)) {
            return Arc::clone(found);
        }
        // Other workers do not wait for the search.
        let found: Arc<[(String, String)]> = conflicts::of_compiled(set, &snapshot.sets).into();
        locked(&self.conflicts).insert(set.name.clone(), (current, Arc::clone(&found)));
        found
    }

    fn members(&self, set: &CompiledSet, snapshot: &Snapshot) -> Members {
        let pods = locked(&self.pods);
        Members::of(set, &pods, snapshot)
    }

    /// What replicas know of the set, and when to ask again. What was true of this generation once stays so: who becomes ready later has read it.
    async fn knowledge(&self, set: &SetRecord) -> (Knowledge, Option<Duration>) {
        let conditions = set.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let is_told = conditions.iter().any(|condition| {
            condition.type_ == conditions::READY
                && condition.status == "True"
                && condition.observed_generation == Some(set.compiled_generation)
        });
        if is_told {
            return (Knowledge::AsTold, None);
        }
        if let Some((found, again)) = self.backoff.last(set, Instant::now()) {
            return (found, Some(again));
        }
        let found = self.replicas.knowledge(set, &self.world).await;
        let again = self.backoff.note(set, &found, Instant::now());
        (found, again)
    }

    /// A conflict has two sides, and only one of them has changed.
    fn tell_rivals(&self, conflicts: &[(String, String)]) {
        for (rival, _) in conflicts {
            let set = self.world.sets.get(rival);
            if !set.is_some_and(|set| conditions::has_conflict(set.status.as_ref())) {
                self.queue.add(rival.as_str().into());
            }
        }
    }
}
