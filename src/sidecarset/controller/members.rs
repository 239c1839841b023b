//! The pods that count for one set, as rollouts and the status read them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

use crate::sidecarset::controller::lacking::ReachedNamespace;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;

/// A pod of a set.
pub type Member = (PodKey, Arc<PodRecord>);

/// The pods of a set.
#[derive(Debug, Default)]
pub struct Members {
    /// Active pods that the set selects and that carry it.
    pub carrying: Vec<Member>,
    /// Hashes of the forms of the set that pods carry, whatever else is true of them.
    pub hashes: BTreeSet<String>,
    /// Pods that it selects and that lack it, though they would carry it if they were created now: how many, and the first of them.
    pub uninjected: (usize, Option<PodKey>),
    /// These pods, where new ones are to take their places.
    pub to_repair: Vec<Member>,
}

impl Members {
    /// Of this set of the snapshot.
    pub fn of(set: &Arc<CompiledSet>, pods: &mut PodIndex, snapshot: &Snapshot) -> Self {
        let mut members = Self { uninjected: pods.lacking(set, snapshot), ..Self::default() };
        let mut namespace = ReachedNamespace::default();
        for (key, pod) in pods.carrying(&set.name) {
            let Some(hash) = pod.recorded_hash_of(&set.name) else { continue };
            if !members.hashes.contains(hash) {
                members.hashes.insert(hash.to_owned());
            }
            if pod.active && namespace.is_reached(&key.namespace, set, snapshot) && set.selector.matches(&pod.labels) {
                members.carrying.push((key.clone(), Arc::clone(pod)));
            }
        }
        members
    }

    /// The same, of a set that replaces pods that lack it.
    #[must_use]
    pub fn with_those_to_repair(self, set: &CompiledSet, pods: &PodIndex) -> Self {
        let to_repair = pods.lacking_it(&set.name).map(|(key, pod)| (key.clone(), Arc::clone(pod))).collect();
        Self { to_repair, ..self }
    }

    /// How many pods are in the middle of a hot upgrade of the set, and the first of them.
    pub fn upgrading(&self, set: &str) -> (usize, Option<&PodKey>) {
        let upgrading = || self.carrying.iter().filter(|(_, pod)| pod.is_upgrading(set)).map(|(key, _)| key);
        (upgrading().count(), upgrading().next())
    }

    /// All that a rollout may change or replace.
    pub fn all(&self) -> Cow<'_, [Member]> {
        if self.to_repair.is_empty() {
            return Cow::Borrowed(&self.carrying);
        }
        Cow::Owned(self.carrying.iter().chain(&self.to_repair).cloned().collect())
    }
}
