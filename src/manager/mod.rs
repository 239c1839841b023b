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
mod leader;
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
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::certs::Resolver;
use crate::image_policy::ImageBackends;
use crate::kinds::Kinds;
use crate::manager::background::Background;
use crate::manager::certificates::Supply;
use crate::manager::client::Connection;
use crate::manager::fail_open::FailOpen;
use crate::manager::failing_watches::Gated;
use crate::manager::leader::Leader;
use crate::manager::options::{Certificates, ManagerOptions};
use crate::manifests::webhooks::WebhookEntry;
use crate::metrics::{Freshness, Metrics};
use crate::readiness::{Gate, Readiness};
use crate::server::{Known, Shutdown};
use crate::watch::read_model as model_watch;
use crate::watch::read_model::{CONFIGURATION, Clients, Model, REVISIONS, ReadModel, generation_text};
use engine::sidecarset::api::PLURAL;
use engine::snapshot::Snapshot;
use engine::snapshot::builder::SnapshotBuilder;

/// How often the age of the read model is reported.
const HEARTBEAT: Duration = Duration::from_secs(1);

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
    options: ManagerOptions,
    client: Client,
    background: Background,
    background_client: Client,
    client_without_retries: Client,
    watching: Clients,
    builder: SnapshotBuilder,
    model: ReadModel,
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
        options: ManagerOptions,
        shared: Shared,
        background: Background,
    ) -> Result<Self, client::Error> {
        let builder =
            SnapshotBuilder::new(options.exclusion(), true).naming_all_resources(options.on_demand_all_resources);
        let model = ReadModel::of(&builder);
        let gate = |name: &str| shared.readiness.gate(name);
        let gates = Gates {
            model: ModelGates {
                synced: read_by_decisions(&options.kinds, &model)
                    .map(|(watch, it)| Gated { watch, gate: gate(&format!("sync:{watch}")), model: it.clone() })
                    .collect(),
                snapshot: gate("snapshot"),
            },
            certificate: (options.certificates != Certificates::Off).then(|| gate("certificate")),
        };
        // A client's requests run where it was made.
        let (background_client, client_without_retries) = {
            let _entered = background.handle().enter();
            (connection.client()?, connection.client_without_retries()?)
        };
        Ok(Self {
            client: connection.client()?,
            background,
            background_client,
            client_without_retries,
            watching: connection.watching(&model, &options.namespace, options.plugins)?,
            bundle: watch::Sender::new(None),
            options,
            builder,
            model,
            shared,
            gates,
        })
    }

    /// The snapshot that the server decides from.
    pub fn snapshot(&self) -> Arc<ArcSwap<Snapshot>> {
        Arc::clone(&self.model.snapshot)
    }

    /// The backends that review images.
    pub fn images(&self) -> Arc<ImageBackends> {
        Arc::clone(&self.model.images)
    }

    /// What other replicas may ask: of a set its uid and the generation by which pods are decided on.
    pub fn known(&self) -> Known {
        let model = self.model.clone();
        Known(Arc::new(move |object: &str| {
            let set = model.sets.get(object.strip_prefix(PLURAL)?.strip_prefix('/')?)?;
            model.knows(&set.name, &set.uid, set.compiled_generation).then(|| generation_text(&set))
        }))
    }

    /// Works until the process ends: leader work until it drains, then the lease is given back; the watches and the
    /// certificate for as long as reviews are answered.
    ///
    /// `entries` is what `--webhook-url` registers.
    pub async fn run(self, entries: Vec<WebhookEntry>, shutdown: Shutdown) {
        let Self { options, client, background, background_client, client_without_retries, .. } = self;
        let Self { watching, builder, model, shared, gates, bundle, .. } = self;
        let (draining, stopping) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        tasks.spawn(model_watch::run(builder, model.clone(), watching, stopping.clone()));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(confirm(model.clone(), shared.freshness.clone())));
        let failures =
            failing_watches::report(gates.model.synced.clone(), model.ungated.clone(), shared.metrics.clone());
        tasks.spawn(stopping.clone().run_until_cancelled_owned(failures));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(open_gates(model.clone(), gates.model)));
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
            client_without_retries,
            model,
            shared,
            entries,
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
async fn open_gates(model: ReadModel, gates: ModelGates) {
    let synced = join_all(gates.synced.into_iter().map(|gated| async move {
        gated.model.synced().await;
        gated.gate.open();
    }));
    let snapshot = async {
        model.published().await;
        gates.snapshot.open();
    };
    tokio::join!(synced, snapshot);
}

/// The watches of what decisions about these kinds read, each once.
fn read_by_decisions<'w>(kinds: &Kinds, model: &'w ReadModel) -> impl Iterator<Item = (&'static str, &'w Model)> {
    let of_kinds = kinds.iter().flat_map(|kind| kind.watches).map(|(_, plural)| *plural);
    let read: Vec<&str> = of_kinds.chain([CONFIGURATION, REVISIONS]).collect();
    model.models().into_iter().filter(move |(plural, _)| read.contains(plural))
}

/// Reports the generation of the snapshot, and when the API server last confirmed it.
async fn confirm(model: ReadModel, freshness: Freshness) {
    loop {
        let generation = model.snapshot.load().generation;
        if let Some(age) = model.age().filter(|_| generation > 0) {
            freshness.confirmed(generation, age);
        }
        sleep(HEARTBEAT).await;
    }
}
