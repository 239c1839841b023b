//! Everything that needs the API server and is not an answer to it: watches, certificates, the lease, the controllers.

pub mod background;
pub mod break_glass;
mod certificates;
pub mod cleanup;
pub mod client;
pub mod configuration;
pub mod conversion;
pub mod credentials;
pub mod error;
pub mod fail_open;
mod failing_watches;
pub mod failure_policies;
pub mod hook_job;
pub mod lease;
pub mod narrow;
pub mod on_demand;
pub mod options;
pub mod questions;
pub mod registration;
pub mod retire;
pub mod scrapers;
mod turned_off;
pub mod uninstall;
pub mod verify;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::certs::Resolver;
use crate::certs::lifetimes::signed;
use crate::controller::leader_term::LeaderTerm;
use crate::controller::{Context, Own};
use crate::image_policy::ImageBackends;
use crate::kind::{Reader, Watched};
use crate::kinds::Kinds;
use crate::manager::background::Background;
use crate::manager::certificates::Supply;
use crate::manager::cleanup::Leftovers;
use crate::manager::client::Connection;
use crate::manager::fail_open::FailOpen;
use crate::manager::failing_watches::Gated;
use crate::manager::lease::{Elector, KubeStore};
use crate::manager::narrow::Narrowing;
use crate::manager::on_demand::OnDemandEntries;
use crate::manager::options::{Certificates, Election, Options};
use crate::manager::registration::SelfRegistration;
use crate::manifests::webhooks::{Target, WebhookEntry};
use crate::metrics::{Freshness, Metrics};
use crate::readiness::{Gate, Readiness};
use crate::server::{Known, Shutdown};
use crate::watch::in_order::InOrder;
use crate::watch::read_model as world_watch;
use crate::watch::read_model::{Clients, Model, ReadModel, generation_text};
use engine::sidecarset::api::PLURAL;
use engine::snapshot::Snapshot;
use engine::snapshot::builder::SnapshotBuilder;

/// How often the age of the read model is reported.
const HEARTBEAT: Duration = Duration::from_secs(1);

const RESTART_PAUSE: Duration = Duration::from_secs(1);

const READY_POLL: Duration = Duration::from_millis(50);

/// What the manager shares with the server.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Gets the gates `sync:sidecarsets`, `sync:namespaces`, `snapshot`, and with webhooks `certificate`.
    pub readiness: Readiness,
    /// Receives every snapshot, and the time of the API server's last answer.
    pub freshness: Freshness,
    /// Receives reconciles, the lease and certificates.
    pub metrics: Metrics,
    /// Gets the certificate.
    pub resolver: Arc<Resolver>,
}

/// All work with the API server, made but not begun.
pub struct Manager {
    options: Options,
    client: Client,
    background: Background,
    background_client: Client,
    watching: Clients,
    feed: SnapshotBuilder,
    world: ReadModel,
    shared: Shared,
    gates: Gates,
    bundle: watch::Sender<Option<String>>,
}

struct Gates {
    model: ModelGates,
    certificate: Option<Gate>,
}

struct ModelGates {
    /// Each watch that decisions read from, and its gate.
    synced: Vec<Gated>,
    snapshot: Gate,
}

impl Manager {
    /// Makes the manager, and its gates, so that the first probe is right. Sends no request to the API server.
    ///
    /// # Errors
    /// [`client::Error`] for credentials that cannot be used.
    pub fn new(
        connection: &Connection,
        options: Options,
        shared: Shared,
        background: Background,
    ) -> Result<Self, client::Error> {
        let feed =
            SnapshotBuilder::new(options.exclusion(), true).naming_all_resources(options.on_demand_all_resources);
        let world = ReadModel::of(&feed);
        let gate = |name: &str| shared.readiness.gate(name);
        let gates = Gates {
            model: ModelGates {
                synced: read_by_decisions(&options.kinds, &world)
                    .chain([("configuration", &world.configuration), ("controllerrevisions", &world.revisions)])
                    .map(|(watch, model)| Gated { watch, gate: gate(&format!("sync:{watch}")), model: model.clone() })
                    .collect(),
                snapshot: gate("snapshot"),
            },
            certificate: (options.certificates != Certificates::Off).then(|| gate("certificate")),
        };
        // A client's requests run where it was made.
        let background_client = {
            let _entered = background.handle().enter();
            connection.client()?
        };
        Ok(Self {
            client: connection.client()?,
            background,
            background_client,
            watching: connection.watching(&world, &options.namespace, options.plugins)?,
            bundle: watch::Sender::new(None),
            options,
            feed,
            world,
            shared,
            gates,
        })
    }

    /// The snapshot that the server decides from.
    pub fn snapshot(&self) -> Arc<ArcSwap<Snapshot>> {
        Arc::clone(&self.world.snapshot)
    }

    /// The backends that review images.
    pub fn images(&self) -> Arc<ImageBackends> {
        Arc::clone(&self.world.images)
    }

    /// What other replicas may ask: of a set its uid and the generation by which pods are decided on.
    pub fn known(&self) -> Known {
        let world = self.world.clone();
        Known(Arc::new(move |object: &str| {
            let set = world.sets.get(object.strip_prefix(PLURAL)?.strip_prefix('/')?)?;
            world.knows(&set.name, &set.uid, set.compiled_generation).then(|| generation_text(&set))
        }))
    }

    /// Works until the process ends: leader work until it drains, then the lease is given back; the watches and the
    /// certificate for as long as reviews are answered.
    ///
    /// `hooks` is what `--webhook-url` registers.
    pub async fn run(self, hooks: Vec<WebhookEntry>, shutdown: Shutdown) {
        let Self { options, client, background, background_client, watching, feed, world, shared, gates, bundle } =
            self;
        let (draining, stopping) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        tasks.spawn(world_watch::run(feed, world.clone(), watching, stopping.clone()));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(confirm(world.clone(), shared.freshness.clone())));
        let failures =
            failing_watches::report(gates.model.synced.clone(), world.ungated.clone(), shared.metrics.clone());
        tasks.spawn(stopping.clone().run_until_cancelled_owned(failures));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(open_gates(world.clone(), gates.model)));
        let leading = watch::Sender::new(false);
        if let Some(gate) = gates.certificate {
            let supply = Supply { options: &options, client: &client, shared: &shared, leading: leading.subscribe() };
            tasks.spawn(stopping.clone().run_until_cancelled_owned(supply.start(gate, bundle.clone())));
        }
        if let Some(deployment) = &options.fail_open {
            let fail_open = FailOpen::new(&client, &options.namespace, deployment);
            tasks.spawn(fail_open.at_the_end(draining.clone()));
        }
        let leader = Leader {
            options,
            client,
            background,
            background_client,
            world,
            shared,
            hooks,
            bundle,
            leading,
            shutdown: shutdown.clone(),
        };
        let cancel = draining.clone();
        tasks.spawn(async move { leader.run(cancel).await });
        tasks.close();

        shutdown.draining().await;
        draining.cancel();
        shutdown.stopping().await;
        stopping.cancel();
        tasks.wait().await;
    }
}

/// Opens the gates of the read model as it gets complete.
async fn open_gates(world: ReadModel, gates: ModelGates) {
    let synced = join_all(gates.synced.into_iter().map(|gated| async move {
        gated.model.synced().await;
        gated.gate.open();
    }));
    let snapshot = async {
        world.published().await;
        gates.snapshot.open();
    };
    tokio::join!(synced, snapshot);
}

/// The watches of what decisions about these kinds read, each once.
fn read_by_decisions<'w>(kinds: &Kinds, world: &'w ReadModel) -> impl Iterator<Item = (&'static str, &'w Model)> {
    let read: Vec<&Watched> =
        kinds.iter().flat_map(|kind| kind.watches).filter(|watched| watched.reader == Reader::Decisions).collect();
    world.models().into_iter().filter(move |(plural, _)| read.iter().any(|watched| watched.plural == *plural))
}

/// Reports the generation of the snapshot, and when the API server last confirmed it.
async fn confirm(world: ReadModel, freshness: Freshness) {
    loop {
        let generation = world.snapshot.load().generation;
        if let Some(age) = world.age().filter(|_| generation > 0) {
            freshness.confirmed(generation, age);
        }
        sleep(HEARTBEAT).await;
    }
}

/// What one replica does for all.
struct Leader {
    options: Options,
    /// For the lease: a holder that is slow loses it.
    client: Client,
    /// Where all that the leader does runs, and the client for that.
    background: Background,
    background_client: Client,
    world: ReadModel,
    shared: Shared,
    hooks: Vec<WebhookEntry>,
    bundle: watch::Sender<Option<String>>,
    /// True while this replica leads.
    leading: watch::Sender<bool>,
    shutdown: Shutdown,
}

impl Leader {
    async fn run(&self, cancel: CancellationToken) {
        let (metrics, grace_period) = (&self.shared.metrics, self.options.grace_period);
        if let Some(Election { namespace, lease, times }) = &self.options.election {
            let store = KubeStore::new(self.client.clone(), namespace, lease);
            // What is left is for giving the lease back.
            let grace_period = grace_period.saturating_sub(times.retry_period);
            let elector = Elector::new(store, lease::identity(), *times, grace_period, metrics.clone());
            return elector.run(|term| self.work(term), cancel).await;
        }
        metrics.leader.set(1);
        let work = |term: LeaderTerm| async move {
            while !term.is_ending() {
                self.work(term.clone()).await;
            }
        };
        LeaderTerm::serve(work, &cancel, grace_period, std::future::pending()).await;
    }

    /// Works until the term ends. Comes back early, after a pause, if a part of the work ended by itself: then a new leadership
    /// starts it again.
    async fn work(&self, term: LeaderTerm) {
        let mut tasks = JoinSet::new();
        let (background, client) = (self.background.handle(), || self.background_client.clone());
        let stages = self.options.kinds.stages();
        let enabled = self.options.narrow_webhooks;
        let narrowing = Narrowing::new(client(), self.world.clone(), &self.hooks, stages, enabled);
        let in_order = watch::Sender::<InOrder>::default();
        let context = || Context {
            client: client(),
            metrics: self.shared.metrics.clone(),
            tuning: self.options.tuning.clone(),
            term: term.clone(),
            world: self.world.clone(),
            coverage: narrowing.coverage(),
            in_order: in_order.subscribe(),
            own: Own { namespace: self.options.namespace.clone(), health_port: self.options.health_port },
        };
        let kinds = self.options.kinds.iter().filter(|kind| self.options.controllers.run(kind.name));
        for start in kinds.filter_map(|kind| kind.controller) {
            tasks.spawn_on(start(context()), background);
        }
        tasks.spawn_on(until_ending(term.clone(), narrowing.run()), background);
        let (off, on) = (client(), self.options.kinds.clone());
        let work = async move {
            turned_off::release_deleted(&off, &on).await;
            // A part of the work that ends by itself is a defect.
            std::future::pending::<()>().await;
        };
        tasks.spawn_on(until_ending(term.clone(), work), background);
        self.keep_registrations(&term, &in_order, &mut tasks);
        if let Some(deployment) = &self.options.fail_open {
            let fail_open = FailOpen::new(&self.background_client, &self.options.namespace, deployment);
            tasks.spawn_on(until_ending(term.clone(), fail_open.back()), background);
        }
        tasks.spawn(lead(self.leading.clone(), term.clone()));
        tokio::select! {
            // First: with the end of the term every part ends.
            biased;
            () = term.ending() => while tasks.join_next().await.is_some() {},
            Some(ended) = tasks.join_next() => {
                if ended.is_err() {
                    self.shared.metrics.panics.inc();
                }
                tracing::error!("A part of the leader's work ended by itself, starting again");
                tasks.shutdown().await;
                sleep(RESTART_PAUSE).await;
            }
        }
    }

    /// Starts the tasks that keep the webhook configurations, and the place where objects are converted.
    fn keep_registrations(&self, term: &LeaderTerm, in_order: &watch::Sender<InOrder>, tasks: &mut JoinSet<()>) {
        let (background, client) = (self.background.handle(), self.background_client.clone());
        if let Some(registration) = self.registration(in_order.clone()) {
            let (readiness, bundle, term) = (self.shared.readiness.clone(), self.bundle.subscribe(), term.clone());
            let answering = self.shutdown.hold();
            let work = async move {
                if term.until_ending(ready(readiness)).await.is_some() {
                    registration.run(client, bundle, term, answering).await;
                }
            };
            tasks.spawn_on(work, background);
            return;
        }
        let leftovers = Leftovers {
            converted: self.options.kinds.converted(),
            namespace: self.options.namespace.clone(),
            port: self.options.webhook_port,
        };
        let on_demand = OnDemandEntries {
            client: self.background_client.clone(),
            world: self.world.clone(),
            kinds: self.options.kinds.clone(),
            target: Target::Service { namespace: self.options.namespace.clone() },
            exclusion: self.options.exclusion(),
            in_order: in_order.clone(),
        };
        let work = async move {
            // Entries of another process are not ours to write.
            leftovers.put_right(&client).await;
            on_demand.run().await;
        };
        tasks.spawn_on(until_ending(term.clone(), work), background);
    }

    fn registration(&self, in_order: watch::Sender<InOrder>) -> Option<SelfRegistration> {
        let url = self.options.webhook_url.as_ref()?.trim_end_matches('/').to_owned();
        Some(SelfRegistration {
            hooks: self.hooks.clone(),
            converted: self.options.kinds.converted(),
            converted_off: self.options.kinds.off().converted(),
            namespace: self.options.namespace.clone(),
            url,
            exclusion: self.options.exclusion(),
            overlap: signed(self.options.supply_lives().overlap),
            kinds: self.options.kinds.clone(),
            world: self.world.clone(),
            in_order,
        })
    }
}

/// Works until the term ends, and stops in the midst of whatever it is.
async fn until_ending<T>(term: LeaderTerm, work: impl Future<Output = T>) {
    drop(term.until_ending(work).await);
}

/// Says that this replica leads, until it does not.
async fn lead(leading: watch::Sender<bool>, term: LeaderTerm) {
    leading.send_replace(true);
    term.ending().await;
    leading.send_replace(false);
}

/// Waits until reviews can be answered: registering before that would refuse pods.
async fn ready(readiness: Readiness) {
    while !readiness.can_serve() {
        sleep(READY_POLL).await;
    }
}
