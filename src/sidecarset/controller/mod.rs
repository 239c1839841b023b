//! Follows the pods of each SidecarSet: the status, the revisions, rollouts, and a metric over all. Only the leader does.

pub mod backoff;
pub mod bar;
mod brakes;
pub mod budgets;
pub mod carried;
mod carry_out;
mod change;
pub mod conditions;
pub mod count;
pub mod evicted;
mod eviction;
pub mod evictions;
pub mod expectations;
pub mod facts;
mod hand_over;
pub mod history;
pub mod in_place_state;
pub mod injection_counts;
pub mod lacking;
mod limits_watch;
mod locks;
pub mod members;
pub mod memory;
pub mod packed;
mod pod_patch;
pub mod pod_state_metric;
pub mod pods;
pub mod programmed;
mod progress;
pub mod record;
pub mod records;
mod refusals;
pub mod replicas;
pub mod requested;
mod resize;
pub mod revisions;
mod rollout;
pub mod rollout_metric;
mod signs;
mod states;
mod status;
pub mod texts;
pub mod upgradable;
mod watch;
pub mod watched_pod;
pub mod workload;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::answers::is_refusal;
use crate::controller::Context;
use crate::controller::queue::{Queue, ReconcileError, add_all};
use crate::sidecarset::controller::backoff::{Backoff, Lately};
use crate::sidecarset::controller::conditions::Found;
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::Members;
use crate::sidecarset::controller::pod_state_metric::PodStateMetric;
use crate::sidecarset::controller::pods::PodIndex;
use crate::sidecarset::controller::refusals::Refusals;
use crate::sidecarset::controller::replicas::{Knowledge, Replicas};
use crate::sidecarset::controller::revisions::Revisions;
use crate::sidecarset::controller::rollout::{Rollout, Rollouts};
use crate::sidecarset::controller::rollout_metric::{Phases, RolloutMetric};
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
    /// Its status could not be written.
    #[error(transparent)]
    Status(#[from] status::Error),
    /// Its revisions could not be kept: no pod gets a form that is not among them.
    #[error(transparent)]
    Revisions(#[from] revisions::Error),
}

impl ReconcileError for Error {
    fn is_refusal(&self) -> bool {
        match self {
            Self::Status(status::Error::Write(error)) | Self::Revisions(revisions::Error::Request(error)) => {
                is_refusal(error)
            }
            Self::Status(_) | Self::Revisions(_) => false,
        }
    }
}

/// Runs the controller until the term of its context ends. It ends by itself when the watches have not listed every object in time.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    run(context).boxed()
}

async fn run(context: Context) {
    let Context { client, client_without_retries, metrics, options, term, model, coverage, own, .. } = context;
    let queue = Queue::new(NAME, KIND.into(), PACE, &metrics);
    let pods = Arc::new(Mutex::new(PodIndex::default()));
    let listed = CancellationToken::new();
    let metric = PodStateMetric::new(metrics.clone());
    let (refusals, refusals_known) = (Arc::new(Refusals::default()), CancellationToken::new());
    let searches = refusals.follow(client.clone(), (&model, &options), &queue, refusals_known.clone());
    let api = options.api(client.clone());
    let events = watch::run(api, &model, &pods, coverage.clone(), &queue, metric, listed.clone());
    let resync = options.resync(|| add_all(&queue, watch::all_sets(&model)));
    let reconciles = async {
        // Counting half of the pods, or by half of the namespaces, would write numbers that are wrong.
        let told = async {
            listed.cancelled().await;
            model.published().await;
            // Else a condition would be another for a moment whenever the leader changes.
            refusals_known.cancelled().await;
        };
        if term.until_ending(options.listed_in_time(NAME, told)).await != Some(true) {
            return;
        }
        let controller = Arc::new(Controller {
            model: model.clone(),
            pods: Arc::clone(&pods),
            coverage,
            queue: queue.clone(),
            rollouts: Rollouts::new(client.clone(), client_without_retries, Arc::clone(&pods), Arc::clone(&refusals)),
            revisions: Revisions::new(client.clone(), &own.namespace),
            replicas: Replicas::new(client.clone(), own),
            backoff: Backoff::default(),
            lately: Lately::default(),
            status: StatusWriter::new(client),
            conflicts: Mutex::default(),
            refusals: Arc::clone(&refusals),
            phases: RolloutMetric::new(metrics),
        });
        let reconcile = move |name: Arc<str>| {
            let controller = Arc::clone(&controller);
            async move { controller.reconcile(&name).await }
        };
        queue.run(options.workers(KIND, GROUP), reconcile, term).await;
    };
    tokio::select! {
        () = events => {}
        () = resync => {}
        () = searches => {}
        () = reconciles => {}
    }
}

struct Controller {
    model: ReadModel,
    pods: Arc<Mutex<PodIndex>>,
    coverage: Receiver<Coverage>,
    queue: Queue<Arc<str>>,
    rollouts: Rollouts,
    revisions: Revisions,
    replicas: Replicas,
    backoff: Backoff,
    lately: Lately,
    status: StatusWriter,
    conflicts: Mutex<HashMap<String, Conflicts>>,
    refusals: Arc<Refusals>,
    phases: RolloutMetric,
}

/// What was found, and in which sets.
type Conflicts = (Weak<SetIndex>, Arc<[(String, String)]>);

impl Controller {
    async fn reconcile(&self, name: &str) -> Result<Option<Duration>, Error> {
        let Some(set) = self.model.sets.get(name) else {
            self.forget(name);
            return Ok(None);
        };
        // The log has an error for a set that never compiled.
        let Some(compiled) = set.compiled.as_ref().filter(|_| !set.terminating) else { return Ok(None) };
        let snapshot = self.model.snapshot.load_full();
        // Planned and carried out by the same form: the snapshot follows the table by a moment, and the index of pods both.
        let is_in_snapshot = snapshot.sets.get(name).is_some_and(|current| Arc::ptr_eq(current, compiled));
        let Some(members) = self.members(compiled, &snapshot).filter(|_| is_in_snapshot) else {
            return Ok(Some(SNAPSHOT_PAUSE));
        };
        let counts = Counts::of(compiled, set.compiled_generation, &members);
        let (knowledge, ask_again) = self.knowledge(&set).await;
        let coverage = self.coverage.borrow().clone();
        let covered = programmed::covered(compiled, &coverage);
        let revision = self.revisions.keep(&set, compiled, &members.hashes).await;
        let rolled = match &revision {
            Ok(_) => {
                let doubt = self.doubt(&set, compiled, counts, (&knowledge, covered)).await;
                let new_pods_lack_it = doubt.as_deref();
                let rollout = Rollout { set: compiled, members: &members, snapshot: &snapshot, new_pods_lack_it };
                self.rollouts.run(rollout, || self.is_current(compiled)).await
            }
            // No pod gets a form that is not among the revisions.
            Err(_) => rollout::Result { waits: counts.waits_without_rollout(), ..rollout::Result::default() },
        };
        let conflicts = self.conflicts(compiled, &snapshot);
        self.tell_rivals(&conflicts);
        let refused = self.refusals.of(compiled, &snapshot);
        let memory = self.rollouts.memory(name);
        let status = {
            let memory = locked(&memory);
            let found = Found {
                counts,
                waits: rolled.waits,
                barred: &rolled.barred,
                memory: &memory,
                upgrading: members.upgrading(name),
                // Those that no rollout replaces are named as what only a new pod can follow.
                uninjected: members.uninjected.1.as_ref().filter(|_| !self.rollouts.strategy(compiled).repairs_now()),
                paused: compiled.paused,
                no_revision: snapshot.pinned.form(name).and_then(|form| form.as_ref().err()).map(String::as_str),
                knowledge: &knowledge,
                covered,
                conflicts: &conflicts,
                refused: &refused,
            };
            self.phases.note(name, Phases::of(counts, &memory));
            let newest = revision.as_ref().ok().map(|(newest, _)| newest.as_str());
            status::of(&set, compiled, &found, newest, &coverage)
        };
        self.status.write(&set, &status).await?;
        // Pods and numbers do not wait for revisions.
        let (_, verify_again) = revision?;
        Ok([rolled.again, ask_again, Some(verify_again)].into_iter().flatten().min())
    }

    /// Drops what is kept of a set that is gone.
    fn forget(&self, name: &str) {
        self.rollouts.forget(name);
        self.revisions.forget(name);
        self.status.forget(name);
        self.backoff.forget(name);
        self.lately.forget(name);
        locked(&self.conflicts).remove(name);
        self.refusals.forget(name);
        self.phases.forget(name);
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

    /// The pods of the set; nothing while it is not known which these are.
    fn members(&self, set: &Arc<CompiledSet>, snapshot: &Snapshot) -> Option<Members> {
        let mut pods = locked(&self.pods);
        let members = pods.knows(&set.name).then(|| Members::of(set, &mut pods, snapshot))?;
        let repairs = members.uninjected.0 > 0 && self.rollouts.strategy(set).repair;
        Some(if repairs { members.with_those_to_repair(set, &pods) } else { members })
    }

    /// Whether the set is still of this form.
    fn is_current(&self, compiled: &Arc<CompiledSet>) -> bool {
        let is_same = |set: &SetRecord| set.compiled.as_ref().is_some_and(|now| Arc::ptr_eq(now, compiled));
        self.model.sets.get(&compiled.name).is_some_and(|set| !set.terminating && is_same(&set))
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
        let found = self.replicas.knowledge(set, &self.model).await;
        let again = self.backoff.note(set, &found, Instant::now());
        (found, again)
    }

    /// Why not every replica may give new pods the form of the set. Of a set that has said once that they do, replicas are asked again
    /// while pods are to be evicted for it: nothing else shows that the webhook configuration has been deleted since.
    async fn doubt(
        &self,
        set: &SetRecord,
        compiled: &Arc<CompiledSet>,
        counts: Counts,
        (knowledge, covered): (&Knowledge, Option<bool>),
    ) -> Option<String> {
        if !knowledge.is_of_all() || covered == Some(false) || compiled.paused {
            return Some("see the condition Ready".to_owned());
        }
        let strategy = self.rollouts.strategy(compiled);
        let are_evicted = (strategy.recreate && counts.updated_pods < counts.matched_pods)
            || (strategy.repair && counts.uninjected_pods > 0);
        if *knowledge != Knowledge::AsTold || !are_evicted {
            return None;
        }
        if let Some(found) = self.lately.found(set, Instant::now()) {
            return found;
        }
        let found = self.replicas.knowledge(set, &self.model).await.doubt();
        self.lately.note(set, found.clone(), Instant::now());
        found
    }

    /// A conflict has two sides, and only one of them has changed.
    fn tell_rivals(&self, conflicts: &[(String, String)]) {
        for (rival, _) in conflicts {
            let set = self.model.sets.get(rival);
            if !set.is_some_and(|set| conditions::has_conflict(set.status.as_ref())) {
                self.queue.add(rival.as_str().into());
            }
        }
    }
}
