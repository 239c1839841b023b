//! Watches sets, plugins, namespaces and our configuration in the cluster into snapshots. Every replica does.

mod event_handler;

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use event_handler::EventHandler;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde::de::IgnoredAny;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::image_policy::ImageBackends;
use crate::watch::annotations::SomeAnnotations;
use crate::watch::follow::events;
use crate::watch::image_policy::BackendWatch;
use crate::watch::lenient::{decoded_events, lenient_events};
pub use crate::watch::model::Model;
use crate::watch::model::wait_for;
use crate::watch::nodes::Nodes;
use crate::watch::partial::Partial;
use crate::watch::policies::PolicyWatch;
use crate::watch::quotas::Quotas;
use crate::watch::revision::RevisionResource;
use crate::watch::service_accounts::ServiceAccounts;
use crate::watch::storage_classes::StorageClasses;
use crate::watch::ungated::UngatedWatches;
use crate::watch::version::versions;
use crate::watch::while_read::WatchWhileRead;
use crate::watch::{
    AdmissionPluginResource, ClusterLimitRangeResource, PodSecurityProfileResource, SidecarSetResource,
};
use engine::limitrange::api as limits;
use engine::plugins::api as plugins;
use engine::podsecurityprofile::api as profiles;
use engine::sidecarset::api::PLURAL;
use engine::snapshot::Snapshot;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::configuration::CONFIG_MAP;
use engine::snapshot::limit_ranges::RangeTable;
use engine::snapshot::namespace;
use engine::snapshot::plugins::PluginTable;
use engine::snapshot::revisions::SET_LABEL;
use engine::snapshot::security_profiles::ProfileTable;
use engine::snapshot::sets::{SetRecord, SetTable};

/// A burst of changes makes one snapshot in this time. The first change after a pause is published at once: pods that wait
/// for their new namespace are answered 503 until then.
const PACE: Duration = Duration::from_millis(25);

/// Asked of the API server as the length of a watch. The watcher takes a watch for dead when it is silent for longer, so
/// this bounds how long a half-open connection goes unnoticed.
const WATCH_SECONDS: u32 = 60;

/// Objects in one page of a list. The client reads a page three times over before anything of it is skipped, and an object may
/// have 1.5 MB: with its default of 500, a handful of users could make a page that no memory limit of ours has room for.
const PAGE: u32 = 50;

/// A reader with more pending changes than that gets [`broadcast::error::RecvError::Lagged`].
const CHANGES: usize = 1024;

/// The watch of our configuration, in the names of gates.
pub const CONFIGURATION: &str = "configuration";
/// The watch of revisions of sets, in the names of gates.
pub const REVISIONS: &str = "controllerrevisions";

/// A change that a controller may want to act on. What decisions read of it is in the snapshot by the time that this is sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The SidecarSet of this name appeared, changed or went.
    Set(Arc<str>),
    /// The labels of the namespace of this name changed, or it appeared or went.
    Namespace(Arc<str>),
}

/// A namespace: its labels, and the annotations that plugins read.
pub type PartialNamespace = Partial<Namespace, IgnoredAny, IgnoredAny, SomeAnnotations>;

/// What decisions read of it.
pub fn known(namespace: PartialNamespace) -> namespace::Namespace {
    namespace::Namespace {
        name: namespace.name_any(),
        labels: namespace.labels().to_map(),
        lacks_labels: namespace.lacks_labels,
        annotations: namespace.annotations.map(|SomeAnnotations(kept)| kept).unwrap_or_default(),
    }
}

/// What the watches maintain. Clones share their content.
#[derive(Debug, Clone)]
pub struct ReadModel {
    /// The snapshot that decisions are taken from.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// The sets, for controllers.
    pub sets: SetTable,
    /// The plugins, for controllers.
    pub plugin_table: PluginTable,
    /// The ranges, for controllers.
    pub range_table: RangeTable,
    /// The profiles, for controllers.
    pub profile_table: ProfileTable,
    /// The watch of sets.
    pub sidecarsets: Model,
    /// The watch of plugins.
    pub plugins: Model,
    /// The watch of ranges.
    pub limit_ranges: Model,
    /// The watch of profiles.
    pub security_profiles: Model,
    /// The watch of namespaces.
    pub namespaces: Model,
    /// The watch of our configuration.
    pub configuration: Model,
    /// The watch of revisions.
    pub revisions: Model,
    /// The backends that review images, while the Secret that names them is watched.
    pub images: Arc<ImageBackends>,
    /// The other watches of the process.
    pub ungated: UngatedWatches,
    changes: broadcast::Sender<Change>,
    generation: watch::Sender<u64>,
}

impl ReadModel {
    /// A read model that the builder's snapshots are published to.
    pub fn of(builder: &SnapshotBuilder) -> Self {
        Self {
            snapshot: Arc::default(),
            sets: builder.collections.sets.collection().table(),
            plugin_table: builder.collections.plugins.collection().table(),
            range_table: builder.collections.limit_ranges.collection().table(),
            profile_table: builder.collections.security_profiles.collection().table(),
            sidecarsets: Model::default(),
            plugins: Model::default(),
            limit_ranges: Model::default(),
            security_profiles: Model::default(),
            namespaces: Model::default(),
            configuration: Model::default(),
            revisions: Model::default(),
            images: Arc::default(),
            ungated: UngatedWatches::default(),
            changes: broadcast::channel(CHANGES).0,
            generation: watch::Sender::new(0),
        }
    }

    /// The watches that snapshots wait for, by the plural of what is watched: of kinds whose rows name it, and the two last of all.
    pub const fn models(&self) -> [(&'static str, &Model); 7] {
        [
            (PLURAL, &self.sidecarsets),
            (plugins::PLURAL, &self.plugins),
            (limits::PLURAL, &self.limit_ranges),
            (profiles::PLURAL, &self.security_profiles),
            ("namespaces", &self.namespaces),
            (CONFIGURATION, &self.configuration),
            (REVISIONS, &self.revisions),
        ]
    }

    /// Every change from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Whether every collection has been read once and is in the snapshot.
    pub fn is_published(&self) -> bool {
        *self.generation.borrow() > 0
    }

    /// Whether pods are decided on by this generation of the set of this uid, or a later one.
    pub fn knows(&self, name: &str, uid: &str, generation: i64) -> bool {
        let is_current = |set: &SetRecord| set.uid == uid && set.compiled_generation >= generation;
        let in_snapshot = || self.snapshot.load().sets.get(name).is_some_and(|set| set.generation >= generation);
        self.sets.get(name).is_some_and(|set| is_current(&set)) && in_snapshot()
    }

    /// Waits until every collection has been read once and is in the snapshot.
    pub async fn published(&self) {
        wait_for(&self.generation, |generation| *generation > 0).await;
    }

    /// The generation of the snapshot, and every later one.
    pub fn publications(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Replaces the snapshot by what the builder has.
    pub(crate) fn publish(&self, builder: &mut SnapshotBuilder) {
        builder.publish(&self.snapshot);
        self.generation.send_replace(self.snapshot.load().generation);
    }

    /// How long ago the quieter of the watches got an answer; `None` while one of them never did.
    pub fn age(&self) -> Option<Duration> {
        self.models().into_iter().try_fold(Duration::ZERO, |oldest, (_, model)| Some(oldest.max(model.age()?)))
    }
}

/// The uid of a set and the generation by which pods are decided on, as replicas tell each other.
pub fn generation_text(set: &SetRecord) -> String {
    format!("{} {}", set.uid, set.compiled_generation)
}

/// The clients of the watches, each with the [`LastSeen`](crate::watch::last_seen::LastSeen) of its [`Model`] listening
/// in, and of what is asked beside them.
pub struct Clients {
    /// For sets.
    pub sidecarsets: Client,
    /// For plugins; none where they are off: then there are no objects.
    pub plugins: Option<Client>,
    /// For ranges; none where plugins are off.
    pub limit_ranges: Option<Client>,
    /// For profiles; none where plugins are off.
    pub security_profiles: Option<Client>,
    /// For namespaces.
    pub namespaces: Client,
    /// For our configuration.
    pub configuration: Client,
    /// For revisions.
    pub revisions: Client,
    /// For all that is watched only while an object reads it.
    pub while_read: Client,
    /// Our own namespace, in which the Secret of reviewers of images is.
    pub namespace: String,
    /// For its version. No one reads the age of this answer: it says nothing about a watch.
    pub version: Client,
}

/// How this process watches: with bookmarks, in rounds of a minute, and lists in pages that are not large.
pub fn watch_config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE)
}

/// Watches until cancelled, and asks for the version of the API server. Failures are logged and tried again, for ever.
pub async fn run(mut builder: SnapshotBuilder, model: ReadModel, clients: Clients, cancel: CancellationToken) {
    let mut sets = pin!(lenient_events::<SidecarSetResource>(clients.sidecarsets, None, watch_config()));
    let mut plugins = PolicyWatch::<AdmissionPluginResource>::new(clients.plugins, &model.plugins);
    let mut limit_ranges = PolicyWatch::<ClusterLimitRangeResource>::new(clients.limit_ranges, &model.limit_ranges);
    let mut profiles =
        PolicyWatch::<PodSecurityProfileResource>::new(clients.security_profiles, &model.security_profiles);
    let mut namespaces = pin!(events(Api::<PartialNamespace>::all(clients.namespaces), watch_config()));
    let of_one = watch_config().fields(&format!("metadata.name={CONFIG_MAP}"));
    let mut maps = pin!(decoded_events::<ConfigMap>(clients.configuration, Some(&clients.namespace), of_one));
    let of_sets = watch_config().labels(SET_LABEL);
    let revisions = lenient_events::<RevisionResource>(clients.revisions, Some(&clients.namespace), of_sets);
    let mut revisions = pin!(revisions);

    let mut quotas = WatchWhileRead::<Quotas>::new(clients.while_read.clone(), &model.ungated);
    let mut nodes = WatchWhileRead::<Nodes>::new(clients.while_read.clone(), &model.ungated);
    let mut accounts = WatchWhileRead::<ServiceAccounts>::new(clients.while_read.clone(), &model.ungated);
    let mut storage_classes = WatchWhileRead::<StorageClasses>::new(clients.while_read.clone(), &model.ungated);
    let mut images =
        BackendWatch::new(clients.while_read, &clients.namespace, Arc::clone(&model.images), &model.ungated);
    let mut versions = pin!(versions(clients.version));

    let mut handler = EventHandler::of(&model);
    let mut pace = Pace::default();
    loop {
        let publication = pace.next_publication(builder.is_stale() && handler.all_listed());
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = until(publication) => {
                model.publish(&mut builder);
                pace.published(Instant::now());
            }
            Some(event) = namespaces.next() => handler.namespace(event, &mut builder),
            Some(event) = sets.next() => handler.set(event, &mut builder),
            event = plugins.next() => {
                plugins.take(event, &mut builder.collections.plugins);
                quotas.follow_need(&mut builder);
                storage_classes.follow_need(&mut builder);
                nodes.follow_need(&mut builder);
                accounts.follow_need(&mut builder);
                images.follow_need(&builder);
            }
            event = limit_ranges.next() => limit_ranges.take(event, &mut builder.collections.limit_ranges),
            event = profiles.next() => profiles.take(event, &mut builder.collections.security_profiles),
            event = quotas.next() => quotas.take(event, &mut builder),
            event = storage_classes.next() => storage_classes.take(event, &mut builder),
            event = nodes.next() => nodes.take(event, &mut builder),
            event = accounts.next() => accounts.take(event, &mut builder),
            Some(event) = revisions.next() => handler.revision(event, &mut builder),
            event = images.next() => images.take(event),
            Some(event) = maps.next() => handler.configuration(event, &mut builder),
            Some((minor, resizes_pods)) = versions.next() => builder.apply_version(minor, resizes_pods),
        }
        handler.pass_on(&builder);
    }
}

/// Waits until then; for ever where there is no such time.
pub async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// When the next snapshot is due.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
}

impl Pace {
    fn next_publication(&self, wanted: bool) -> Option<Instant> {
        wanted.then(|| self.last.map_or_else(Instant::now, |last| last + PACE))
    }

    const fn published(&mut self, now: Instant) {
        self.last = Some(now);
    }
}

#[cfg(test)]
#[path = "read_model_tests.rs"]
mod tests;
