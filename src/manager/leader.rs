//! What one replica does for all, while it holds the lease.

use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{lease, turned_off};
use crate::certs::lifetimes::signed;
use crate::controller::leader_term::LeaderTerm;
use crate::controller::{Context, Own};
use crate::manager::Shared;
use crate::manager::background::Background;
use crate::manager::cleanup::Cleanup;
use crate::manager::fail_open::FailOpen;
use crate::manager::lease::{Elector, KubeStore};
use crate::manager::narrow::Narrowing;
use crate::manager::on_demand::OnDemandEntries;
use crate::manager::options::{Election, ManagerOptions};
use crate::manager::registration::SelfRegistration;
use crate::manifests::webhooks::{WebhookEntry, WebhookTarget};
use crate::readiness::Readiness;
use crate::server::Shutdown;
use crate::watch::in_order::InOrder;
use crate::watch::read_model::ReadModel;

const RESTART_PAUSE: Duration = Duration::from_secs(1);

const READY_POLL: Duration = Duration::from_millis(50);

/// What one replica does for all.
pub(super) struct Leader {
    pub(super) options: ManagerOptions,
    /// For the lease: a holder that is slow loses it.
    pub(super) client: Client,
    /// Where all that the leader does runs, and the client for that.
    pub(super) background: Background,
    pub(super) background_client: Client,
    pub(super) client_without_retries: Client,
    pub(super) model: ReadModel,
    pub(super) shared: Shared,
    pub(super) entries: Vec<WebhookEntry>,
    pub(super) bundle: watch::Sender<Option<String>>,
    /// True while this replica leads.
    pub(super) leading: watch::Sender<bool>,
    pub(super) shutdown: Shutdown,
}

impl Leader {
    /// Leads whenever it holds the lease, until cancelled.
    pub(super) async fn run(&self, cancel: CancellationToken) {
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
        let narrowing = Narrowing::new(client(), self.model.clone(), &self.entries, stages, enabled);
        let in_order = watch::Sender::<InOrder>::default();
        let context = || Context {
            client: client(),
            client_without_retries: self.client_without_retries.clone(),
            metrics: self.shared.metrics.clone(),
            options: self.options.controller_options.clone(),
            term: term.clone(),
            model: self.model.clone(),
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
        let cleanup = Cleanup {
            converted: self.options.kinds.converted(),
            namespace: self.options.namespace.clone(),
            port: self.options.webhook_port,
        };
        let on_demand = OnDemandEntries {
            client: self.background_client.clone(),
            model: self.model.clone(),
            kinds: self.options.kinds.clone(),
            target: WebhookTarget::Service { namespace: self.options.namespace.clone() },
            exclusion: self.options.exclusion(),
            in_order: in_order.clone(),
        };
        let work = async move {
            // Entries of another process are not ours to write.
            cleanup.put_right(&client).await;
            on_demand.run().await;
        };
        tasks.spawn_on(until_ending(term.clone(), work), background);
    }

    fn registration(&self, in_order: watch::Sender<InOrder>) -> Option<SelfRegistration> {
        let url = self.options.webhook_url.as_ref()?.trim_end_matches('/').to_owned();
        Some(SelfRegistration {
            entries: self.entries.clone(),
            converted: self.options.kinds.converted(),
            converted_off: self.options.kinds.off().converted(),
            namespace: self.options.namespace.clone(),
            url,
            exclusion: self.options.exclusion(),
            overlap: signed(self.options.supply_lifetimes().overlap),
            kinds: self.options.kinds.clone(),
            model: self.model.clone(),
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
