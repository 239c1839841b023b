//! Objects in, snapshots out: keeps what is derived from objects and replaces the snapshot when a decision could change.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{Collections, Exclusion, Snapshot};

/// The source of snapshots.
#[derive(Debug)]
pub struct SnapshotBuilder {
    /// The objects, by kind.
    pub collections: Collections,
    version_changed: bool,
    next: Snapshot,
}

impl SnapshotBuilder {
    /// A builder that has seen nothing. Namespaces may appear where a cluster is watched, and not where files are all there is.
    pub fn new(exclusion: Exclusion, namespaces_may_appear: bool) -> Self {
        let next = Snapshot { exclusion: Arc::new(exclusion), namespaces_may_appear, ..Snapshot::default() };
        Self { collections: Collections::default(), version_changed: false, next }
    }

    /// The same in an installation that lets on-demand entries be for all resources, or not.
    #[must_use]
    pub const fn naming_all_resources(mut self, may: bool) -> Self {
        self.next.may_name_all_resources = may;
        self
    }

    /// Takes in the minor version of the API server, and whether it resizes pods.
    pub fn apply_version(&mut self, minor: Option<u32>, resizes_pods: bool) {
        self.version_changed |= (self.next.minor_version, self.next.resizes_pods) != (minor, resizes_pods);
        (self.next.minor_version, self.next.resizes_pods) = (minor, resizes_pods);
    }

    /// Whether a decision could come out differently than with the snapshot published last.
    pub const fn is_stale(&self) -> bool {
        self.collections.is_stale() || self.version_changed
    }

    /// Replaces the snapshot, if it is stale.
    pub fn publish(&mut self, target: &ArcSwap<Snapshot>) {
        if !self.is_stale() {
            return;
        }
        let pins_may_differ = self.collections.sets.is_stale() || self.collections.revisions.is_stale();
        self.collections.publish(&mut self.next);
        if pins_may_differ {
            let records = self.collections.sets.collection().table().all();
            let sets = records.iter().filter_map(|record| Some((record.compiled.as_ref()?, record.uid.as_str())));
            self.next.pinned = Arc::new(self.next.pinned.next(sets, &self.next.revisions));
        }
        self.version_changed = false;
        self.next.generation += 1;
        target.store(Arc::new(self.next.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::sets::tests::set;

    fn builder() -> (SnapshotBuilder, ArcSwap<Snapshot>) {
        (SnapshotBuilder::new(Exclusion::default(), true), ArcSwap::default())
    }

    #[test]
    fn each_publication_raises_the_generation_and_none_happens_without_a_change() {
        let (mut builder, target) = builder();
        builder.publish(&target);
        assert_eq!(target.load().generation, 1);
        builder.publish(&target);
        assert_eq!(target.load().generation, 1);
        builder.collections.sets.apply(&set("a", 1, "proxy:1"));
        builder.publish(&target);
        assert_eq!(target.load().generation, 2);
    }

    #[test]
    fn a_version_of_the_api_server_is_published_when_it_is_another() {
        let (mut builder, target) = builder();
        builder.publish(&target);
        for (minor, resizes, generation) in
            [(None, false, 1), (Some(30), false, 2), (Some(30), false, 2), (Some(33), false, 3), (Some(33), true, 4)]
        {
            builder.apply_version(minor, resizes);
            builder.publish(&target);
            let found = target.load();
            assert_eq!((found.minor_version, found.resizes_pods, found.generation), (minor, resizes, generation));
        }
    }
}
