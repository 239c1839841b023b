//! Events of the watches into the snapshot that is being built.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::runtime::watcher::{self, Event};

use super::{Change, PartialNamespace, ReadModel, known};
use crate::logging::throttle::LogThrottle;
use crate::watch::SidecarSetResource;
use crate::watch::follow::{Follower, WatchStep};
use crate::watch::lenient::Lenient;
use crate::watch::partial::Partial;
use crate::watch::revision::RevisionResource;
use engine::sidecarset::api::SidecarSet;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::Effect;
use engine::snapshot::configuration::{ALLOW_LIST_KEY, ConfigurationMap};

/// Events of all watches into the builder of snapshots.
pub(super) struct EventHandler<'a> {
    model: &'a ReadModel,
    sets: Follower<String>,
    namespaces: Follower<String>,
    maps: Follower<String>,
    revisions: Follower<String>,
    /// Each once, so that it does not grow with the events.
    unsent: BTreeSet<Change>,
    clipping: LogThrottle,
}

impl<'a> EventHandler<'a> {
    pub(super) fn of(model: &'a ReadModel) -> Self {
        Self {
            model,
            sets: Follower::default(),
            namespaces: Follower::default(),
            maps: Follower::default(),
            revisions: Follower::default(),
            unsent: BTreeSet::new(),
            clipping: LogThrottle::default(),
        }
    }
}

impl EventHandler<'_> {
    /// Sends the changes, once the snapshot has everything that they are about. Who counts by the snapshot need not count again.
    pub(super) fn pass_on(&mut self, builder: &SnapshotBuilder) {
        if builder.is_stale() {
            return;
        }
        for change in std::mem::take(&mut self.unsent) {
            // There is no receiver on a replica that does not lead.
            drop(self.model.changes.send(change));
        }
    }

    pub(super) fn all_listed(&self) -> bool {
        self.model.models().into_iter().all(|(_, model)| model.is_synced())
    }

    pub(super) fn set(
        &mut self,
        event: Result<Event<Lenient<SidecarSetResource>>, watcher::Error>,
        builder: &mut SnapshotBuilder,
    ) {
        let (model, unsent) = (self.model, &mut self.unsent);
        let mut tell = |effect, name: String| note(unsent, effect, Change::Set(name.into()));
        model.sidecarsets.note(&event);
        self.sets.follow(event, Lenient::name_any, |step| match step {
            WatchStep::Is(lenient) => {
                let name = lenient.name_any();
                match lenient.object() {
                    Ok(set) => {
                        let effect = builder.collections.sets.apply(&SidecarSet::from(*set));
                        tell(effect, name);
                    }
                    Err(error) => {
                        tracing::warn!(sidecarset = name, %error, "SidecarSet cannot be read; its last good form stays");
                    }
                }
            }
            WatchStep::Gone(name) => tell(builder.collections.sets.remove(&name), name),
            WatchStep::Listed => model.sidecarsets.mark_synced(),
        });
    }

    pub(super) fn namespace(
        &mut self,
        event: Result<Event<PartialNamespace>, watcher::Error>,
        builder: &mut SnapshotBuilder,
    ) {
        let (model, unsent, clipping) = (self.model, &mut self.unsent, &mut self.clipping);
        let mut tell = |effect, name: String| note(unsent, effect, Change::Namespace(name.into()));
        model.namespaces.note(&event);
        self.namespaces.follow(event, Partial::name_any, |step| match step {
            WatchStep::Is(namespace) => {
                let name = namespace.name_any();
                if namespace.lacks_labels && clipping.is_news(&"labels") {
                    tracing::warn!(
                        namespace = name,
                        "A namespace has more labels than there is room for; requests that depend on the others are refused"
                    );
                }
                let effect = builder.collections.namespaces.apply(&known(namespace));
                tell(effect, name);
            }
            WatchStep::Gone(name) => tell(builder.collections.namespaces.remove(&name), name),
            WatchStep::Listed => model.namespaces.mark_synced(),
        });
    }

    pub(super) fn revision(
        &mut self,
        event: Result<Event<Lenient<RevisionResource>>, watcher::Error>,
        builder: &mut SnapshotBuilder,
    ) {
        let (model, unsent, collection) = (self.model, &mut self.unsent, &mut builder.collections.revisions);
        // Whether new pods can have a set depends on the revision that it pins.
        let mut tell = |effect, set: Box<str>| note(unsent, effect, Change::Set(set.into()));
        model.revisions.note(&event);
        self.revisions.follow(event, Lenient::name_any, |step| match step {
            WatchStep::Is(lenient) => {
                let name = lenient.name_any();
                match lenient.object().map(|object| object.revision) {
                    Ok(Some(revision)) => tell(collection.apply(&revision), revision.set),
                    Ok(None) => drop(collection.remove(&name)),
                    Err(error) => {
                        tracing::warn!(controllerrevision = name, %error, "ControllerRevision cannot be read");
                    }
                }
            }
            WatchStep::Gone(name) => {
                if let Some(set) = collection.collection().set_of(&name) {
                    tell(collection.remove(&name), set);
                }
            }
            WatchStep::Listed => model.revisions.mark_synced(),
        });
    }

    pub(super) fn configuration(
        &mut self,
        event: Result<Event<ConfigMap>, watcher::Error>,
        builder: &mut SnapshotBuilder,
    ) {
        let (model, collection) = (self.model, &mut builder.collections.configuration);
        model.configuration.note(&event);
        self.maps.follow(event, ConfigMap::name_any, |step| match step {
            WatchStep::Is(map) => {
                let allow_list = map.data.and_then(|mut data| data.remove(ALLOW_LIST_KEY));
                // No controller asks: what is in pods already stays.
                collection.apply(&ConfigurationMap { allow_list });
            }
            WatchStep::Gone(name) => drop(collection.remove(&name)),
            WatchStep::Listed => model.configuration.mark_synced(),
        });
    }
}

fn note(unsent: &mut BTreeSet<Change>, effect: Effect, change: Change) {
    if effect != Effect::None {
        unsent.insert(change);
    }
}
