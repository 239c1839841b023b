//! Events of the watches into the snapshot that is being built.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::runtime::watcher::{self, Event};

use super::{Change, ReadModel, SlimNamespace, known};
use crate::logging::throttle::LogThrottle;
use crate::watch::follow::{Follower, Step};
use crate::watch::lenient::Lenient;
use crate::watch::model::Model;
use crate::watch::partial::Partial;
use crate::watch::policies;
use crate::watch::revision::RevisionResource;
use crate::watch::{
    AdmissionPluginResource, ClusterLimitRangeResource, PodSecurityProfileResource, SidecarSetResource,
};
use engine::sidecarset::api::SidecarSet;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::Effect;
use engine::snapshot::configuration::{ALLOW_LIST_KEY, ConfigurationMap};

/// Events of all watches into the feed.
pub(super) struct EventHandler<'a> {
    world: &'a ReadModel,
    sets: Follower<String>,
    plugins: Follower<String>,
    limit_ranges: Follower<String>,
    security_profiles: Follower<String>,
    namespaces: Follower<String>,
    maps: Follower<String>,
    revisions: Follower<String>,
    /// Each once, so that it does not grow with the events.
    unsent: BTreeSet<Change>,
    clipping: LogThrottle,
}

impl<'a> EventHandler<'a> {
    pub(super) fn of(world: &'a ReadModel) -> Self {
        Self {
            world,
            sets: Follower::default(),
            plugins: Follower::default(),
            limit_ranges: Follower::default(),
            security_profiles: Follower::default(),
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
    pub(super) fn pass_on(&mut self, feed: &SnapshotBuilder) {
        if feed.is_stale() {
            return;
        }
        for change in std::mem::take(&mut self.unsent) {
            // There is no receiver on a replica that does not lead.
            drop(self.world.changes.send(change));
        }
    }

    pub(super) fn all_listed(&self) -> bool {
        let world = self.world;
        let policies = [&world.plugins, &world.limit_ranges, &world.security_profiles];
        let others = [&world.sidecarsets, &world.namespaces, &world.configuration, &world.revisions];
        policies.into_iter().chain(others).all(Model::is_synced)
    }

    pub(super) fn set(
        &mut self,
        event: Result<Event<Lenient<SidecarSetResource>>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        let (world, unsent) = (self.world, &mut self.unsent);
        let mut tell = |effect, name: String| note(unsent, effect, Change::Set(name.into()));
        world.sidecarsets.note(&event);
        self.sets.follow(event, Lenient::name_any, |step| match step {
            Step::Is(guarded) => {
                let name = guarded.name_any();
                match guarded.object() {
                    Ok(set) => {
                        let effect = feed.collections.sets.apply(&SidecarSet::from(*set));
                        tell(effect, name);
                    }
                    Err(error) => {
                        tracing::warn!(sidecarset = name, %error, "SidecarSet cannot be read; its last good form stays");
                    }
                }
            }
            Step::Gone(name) => tell(feed.collections.sets.remove(&name), name),
            Step::Listed => world.sidecarsets.mark_synced(),
        });
    }

    pub(super) fn plugin(
        &mut self,
        event: Result<Event<Lenient<AdmissionPluginResource>>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        policies::take(event, &self.world.plugins, &mut self.plugins, &mut feed.collections.plugins);
    }

    pub(super) fn limit_range(
        &mut self,
        event: Result<Event<Lenient<ClusterLimitRangeResource>>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        policies::take(event, &self.world.limit_ranges, &mut self.limit_ranges, &mut feed.collections.limit_ranges);
    }

    pub(super) fn security_profile(
        &mut self,
        event: Result<Event<Lenient<PodSecurityProfileResource>>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        let (model, profiles) = (&self.world.security_profiles, &mut feed.collections.security_profiles);
        policies::take(event, model, &mut self.security_profiles, profiles);
    }

    pub(super) fn namespace(
        &mut self,
        event: Result<Event<SlimNamespace>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        let (world, unsent, clipping) = (self.world, &mut self.unsent, &mut self.clipping);
        let mut tell = |effect, name: String| note(unsent, effect, Change::Namespace(name.into()));
        world.namespaces.note(&event);
        self.namespaces.follow(event, Partial::name_any, |step| match step {
            Step::Is(namespace) => {
                let name = namespace.name_any();
                if namespace.lacks_labels && clipping.is_news(&"labels") {
                    tracing::warn!(
                        namespace = name,
                        "A namespace has more labels than there is room for; requests that depend on the others are refused"
                    );
                }
                let effect = feed.collections.namespaces.apply(&known(namespace));
                tell(effect, name);
            }
            Step::Gone(name) => tell(feed.collections.namespaces.remove(&name), name),
            Step::Listed => world.namespaces.mark_synced(),
        });
    }

    pub(super) fn revision(
        &mut self,
        event: Result<Event<Lenient<RevisionResource>>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        let (world, unsent, collection) = (self.world, &mut self.unsent, &mut feed.collections.revisions);
        // Whether new pods can have a set depends on the revision that it pins.
        let mut tell = |effect, set: Box<str>| note(unsent, effect, Change::Set(set.into()));
        world.revisions.note(&event);
        self.revisions.follow(event, Lenient::name_any, |step| match step {
            Step::Is(guarded) => {
                let name = guarded.name_any();
                match guarded.object().map(|object| object.revision) {
                    Ok(Some(revision)) => tell(collection.apply(&revision), revision.set),
                    Ok(None) => drop(collection.remove(&name)),
                    Err(error) => {
                        tracing::warn!(controllerrevision = name, %error, "ControllerRevision cannot be read");
                    }
                }
            }
            Step::Gone(name) => {
                if let Some(set) = collection.collection().set_of(&name) {
                    tell(collection.remove(&name), set);
                }
            }
            Step::Listed => world.revisions.mark_synced(),
        });
    }

    pub(super) fn configuration(
        &mut self,
        event: Result<Event<ConfigMap>, watcher::Error>,
        feed: &mut SnapshotBuilder,
    ) {
        let (world, collection) = (self.world, &mut feed.collections.configuration);
        world.configuration.note(&event);
        self.maps.follow(event, ConfigMap::name_any, |step| match step {
            Step::Is(map) => {
                let allow_list = map.data.and_then(|mut data| data.remove(ALLOW_LIST_KEY));
                // No controller asks: what is in pods already stays.
                collection.apply(&ConfigurationMap { allow_list });
            }
            Step::Gone(name) => drop(collection.remove(&name)),
            Step::Listed => world.configuration.mark_synced(),
        });
    }
}

fn note(unsent: &mut BTreeSet<Change>, effect: Effect, change: Change) {
    if effect != Effect::None {
        unsent.insert(change);
    }
}
