//! The pods that count for one set, as rollouts and the status read them.

use engine::pod::select::{Reach, Skip, reaches};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

use crate::sidecarset::controller::injection_counts::is_due;
use crate::sidecarset::controller::packed::Packed;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;

/// The pods of a set.
#[derive(Debug, Default)]
pub struct Members {
    /// Active pods that the set selects and that carry it.
    pub carrying: Vec<(PodKey, PodRecord)>,
    /// Pods that it selects and that lack it, though they would carry it if they were created now: how many, and the first of them.
    pub uninjected: (usize, Option<PodKey>),
    /// Ready pods with containers that a rollout of another set changed and that do not run that yet: namespace and labels. Of those
    /// that are not ready a budget knows by itself.
    pub unsettled_elsewhere: Vec<(PodKey, Packed)>,
}

impl Members {
    /// Of this set.
    pub fn of(set: &CompiledSet, pods: &PodIndex, snapshot: &Snapshot) -> Self {
        let mut members = Self::default();
        let mut namespace = Namespace::default();
        for (key, pod) in pods.after(None) {
            if !pod.active {
                continue;
            }
            if pod.ready && !pod.unsettled.is_empty() && pod.is_settled(&set.name) {
                members.unsettled_elsewhere.push((key.clone(), pod.labels.clone()));
            }
            if !namespace.is_reached(&key.namespace, set, snapshot) || !set.selector.matches(&pod.labels) {
                continue;
            }
            if pod.hash_of(&set.name).is_some() {
                members.carrying.push((key.clone(), pod.clone()));
            } else if is_due(set, pod, &Skip::read(pod.skip.as_deref())) {
                members.uninjected.0 = members.uninjected.0.saturating_add(1);
                members.uninjected.1.get_or_insert_with(|| key.clone());
            }
        }
        members
    }
}

/// The namespace of the last pod: pods come by namespace.
#[derive(Default)]
struct Namespace {
    name: String,
    is_reached: bool,
}

impl Namespace {
    fn is_reached(&mut self, name: &str, set: &CompiledSet, snapshot: &Snapshot) -> bool {
        if self.name != name {
            let labels = snapshot.namespaces.labels(name);
            name.clone_into(&mut self.name);
            self.is_reached = reaches(set, name, labels) == Reach::Yes && !snapshot.exclusion.covers(name, labels);
        }
        self.is_reached
    }
}
