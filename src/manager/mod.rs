//! Everything that needs the API server and is not an answer to it: watches, certificates, the lease, the controllers.

pub mod break_glass;
pub mod client;
pub mod conversion;
pub mod lease;
pub mod leftovers;
pub mod narrow;
pub mod operator;
pub mod options;
pub mod queue;
pub mod registration;
pub mod retire;
pub mod schedule;
pub mod scrapers;
pub mod term;
pub mod tuning;
pub mod uninstall;
pub mod verify;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::certs::own::{OwnCertificates, Storage};
use crate::certs::{Resolver, local};
use crate::manager::client::Connection;
use crate::manager::lease::{Elector, KubeStore};
use crate::manager::leftovers::Leftovers;
use crate::manager::narrow::Narrowing;
use crate::manager::operator::Context;
use crate::manager::options::{Certificates, Election, Options};
use crate::manager::registration::SelfRegistration;
use crate::manager::term::Term;
use crate::manifests::webhooks::Hook;
use crate::server::{Freshness, Gate, Metrics, Readiness, Shutdown};
use crate::sidecarset::controller;
use crate::world::feed::Feed;
use crate::world::watch::{Clients, World};
use crate::world::{Snapshot, watch as world_watch};

/// How often the age of the read model is told.
const HEARTBEAT: Duration = Duration::from_secs(1);

const RESTART_PAUSE: Duration = Duration::from_secs(1);

const READY_POLL: Duration = Duration::from_millis(50);

/// What the manager shares with the server.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Gets the gates `sync:sidecarsets`, `sync:namespaces`, `snapshot`, and with own certificates `certificate`.
    pub readiness: Readiness,
    /// Is told of every snapshot, and of the time when the API server was last heard.
    pub freshness: Freshness,
    /// Is told of reconciles and of the lease.
    pub metrics: Metrics,
    /// Gets the leaf of our own authority.
    pub resolver: Arc<Resolver>,
}

/// All work with the API server, made but not begun.
pub struct Manager {
    options: Options,
    client: Client,
    watching: Clients,
    feed: Feed,
    world: World,
    shared: Shared,
    gates: Gates,
    bundle: watch::Sender<Option<String>>,
}

struct Gates {
    model: ModelGates,
    certificate: Option<Gate>,
}

struct ModelGates {
    sidecarsets: Gate,
    namespaces: Gate,
    snapshot: Gate,
}

impl Manager {
    /// Makes the manager, and its gates, so that the first probe tells the truth. Asks nothing of the API server.
    ///
    /// # Errors
    /// [`client::Error`] for credentials that cannot be used.
    pub fn new(connection: &Connection, options: Options, shared: Shared) -> Result<Self, client::Error> {
        let feed = Feed::new(options.exclusion(), true);
        let world = World::of(&feed);
        let gate = |name: &str| shared.readiness.gate(name);
        let gates = Gates {
            model: ModelGates {
                sidecarsets: gate("sync:sidecarsets"),
                namespaces: gate("sync:namespaces"),
                snapshot: gate("snapshot"),
            },
            certificate: (options.certificates == Certificates::Own).then(|| gate("certificate")),
        };
        let known = match &options.certificates {
            Certificates::Elsewhere { ca_bundle } => ca_bundle.clone(),
            Certificates::Own => None,
        };
        Ok(Self {
            client: connection.client()?,
            watching: connection.watching(&world)?,
            bundle: watch::Sender::new(known),
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

    /// Works until the process ends: leader work until it drains, then the lease is given back; the watches and the
    /// certificate for as long as reviews are answered.
    ///
    /// `hooks` is what `--webhook-url` registers.
    pub async fn run(self, hooks: Vec<Hook>, shutdown: Shutdown) {
        let Self { options, client, watching, feed, world, shared, gates, bundle } = self;
        let (draining, stopping) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        tasks.spawn(world_watch::run(feed, world.clone(), watching, stopping.clone()));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(confirm(world.clone(), shared.freshness.clone())));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(open_gates(world.clone(), gates.model)));
        if let Some(gate) = gates.certificate {
            let own = own_certificates(&options, &client, &shared, gate, bundle.clone());
            tasks.spawn(stopping.clone().run_until_cancelled_owned(own.run()));
        }
        let leader = Leader { options, client, world, shared, hooks, bundle };
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

fn own_certificates(
    options: &Options,
    client: &Client,
    shared: &Shared,
    gate: Gate,
    bundle: watch::Sender<Option<String>>,
) -> OwnCertificates {
    let mut names = local::service_names(&options.namespace);
    names.extend(local::loopback_names());
    let host = options.webhook_url.as_deref().and_then(registration::host);
    names.extend(host.filter(|host| !names.contains(host)));
    let storage = if options.webhook_url.is_some() { Storage::SecretOrMemory } else { Storage::Secret };
    OwnCertificates::new(client.clone(), &options.namespace, names, Arc::clone(&shared.resolver), gate, bundle, storage)
}

/// Opens the gates of the read model as it gets complete.
async fn open_gates(world: World, gates: ModelGates) {
    let sidecarsets = async {
        world.sidecarsets.synced().await;
        gates.sidecarsets.open();
    };
    let namespaces = async {
        world.namespaces.synced().await;
        gates.namespaces.open();
    };
    let snapshot = async {
        world.published().await;
        gates.snapshot.open();
    };
    tokio::join!(sidecarsets, namespaces, snapshot);
}

/// Tells the generation of the snapshot, and when the API server last confirmed it.
async fn confirm(world: World, freshness: Freshness) {
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
    client: Client,
    world: World,
    shared: Shared,
    hooks: Vec<Hook>,
    bundle: watch::Sender<Option<String>>,
}

impl Leader {
    async fn run(&self, cancel: CancellationToken) {
        let (metrics, patience) = (&self.shared.metrics, self.options.patience);
        if let Some(Election { namespace, lease, times }) = &self.options.election {
            let store = KubeStore::new(self.client.clone(), namespace, lease);
            // What is left is for giving the lease back.
            let patience = patience.saturating_sub(times.retry_period);
            let elector = Elector::new(store, lease::identity(), *times, patience, metrics.clone());
            return elector.run(|term| self.work(term), cancel).await;
        }
        metrics.leader.set(1);
        let work = |term: Term| async move {
            while !term.is_ending() {
                self.work(term.clone()).await;
            }
        };
        Term::serve(work, &cancel, patience, std::future::pending()).await;
    }

    /// Works until the term ends. Comes back early, after a pause, if a part of the work ended by itself: then a new leadership
    /// starts it again.
    async fn work(&self, term: Term) {
        let mut tasks = JoinSet::new();
        let client = || self.client.clone();
        let narrowing = Narrowing::new(client(), self.world.clone(), &self.hooks, self.options.narrow_webhooks);
        if self.options.controllers.run(controller::NAME) {
            let (metrics, coverage) = (self.shared.metrics.clone(), narrowing.coverage());
            let tuning = self.options.tuning.clone();
            tasks.spawn(controller::run(client(), self.world.clone(), coverage, metrics, tuning, term.clone()));
        }
        tasks.spawn(until_ending(term.clone(), narrowing.run()));
        for kind in self.options.kinds.iter().filter(|kind| self.options.controllers.run(kind.name)) {
            let (metrics, term) = (self.shared.metrics.clone(), term.clone());
            if let Some(start) = kind.controller {
                let tuning = self.options.tuning.clone();
                tasks.spawn(start(Context { client: client(), metrics, tuning, term }));
            }
        }
        self.keep_registrations(&term, &mut tasks);
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

    /// Begins what sees to the webhook configurations, and to where objects are converted.
    fn keep_registrations(&self, term: &Term, tasks: &mut JoinSet<()>) {
        let (client, bundle) = (self.client.clone(), self.bundle.subscribe());
        if let Some(registration) = self.registration() {
            let (readiness, term) = (self.shared.readiness.clone(), term.clone());
            tasks.spawn(async move {
                if term.until_ending(ready(readiness)).await.is_some() {
                    registration.run(client, bundle, term).await;
                }
            });
            return;
        }
        let converted = self.options.kinds.converted();
        let leftovers = Leftovers { converted: converted.clone(), namespace: self.options.namespace.clone() };
        let own_certificates = self.options.certificates == Certificates::Own;
        tasks.spawn(until_ending(term.clone(), async move {
            leftovers.put_right(&client).await;
            if own_certificates {
                registration::keep_ca_bundle(client, converted, bundle).await;
            }
            // A part of the work that ends by itself is a defect.
            std::future::pending::<()>().await;
        }));
    }

    fn registration(&self) -> Option<SelfRegistration> {
        let url = self.options.webhook_url.as_ref()?.trim_end_matches('/').to_owned();
        Some(SelfRegistration {
            hooks: self.hooks.clone(),
            converted: self.options.kinds.converted(),
            namespace: self.options.namespace.clone(),
            url,
            exclusion: self.options.exclusion(),
        })
    }
}

/// Works until the term ends, and stops in the midst of whatever it is.
async fn until_ending<T>(term: Term, work: impl Future<Output = T>) {
    drop(term.until_ending(work).await);
}

/// Waits until reviews can be answered: registering before that would refuse pods.
async fn ready(readiness: Readiness) {
    while !readiness.can_serve() {
        sleep(READY_POLL).await;
    }
}
