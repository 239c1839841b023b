//! What the controller keeps of a pod: only what is counted, and no more than fits.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use kube::Resource as _;

use crate::sidecarset::controller::carried::{self, BY_OPENKRUISE, Rank, carried};
use crate::sidecarset::controller::facts::PodFacts;
use crate::sidecarset::controller::packed::Packed;
use crate::sidecarset::controller::records::Records;
use crate::sidecarset::controller::texts::Texts;
use crate::sidecarset::controller::watched_pod::{SomeSets, WatchedPod};
use crate::sidecarset::rollout::strategy::Strategy;
use engine::sidecarset::index::SetIndex;
use engine::sidecarset::platform::Platform;
use engine::sidecarset::workload::TEMPLATE_HASH_LABEL;
use engine::snapshot::Snapshot;
use engine::snapshot::sets::SetTable;

/// The bytes of labels and of carried sets that are kept of one pod, at most. With the pod's name, its places in indexes and the
/// list of sets to go without, a pod costs no more than 2 KiB, and a usual one less than half of that.
const MAX_BYTES: usize = 960;

/// What is asked of pods: the sets that exist, and the labels by which they select.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Names of sets.
    pub sets: BTreeSet<Arc<str>>,
    /// Of these, the ones that no pod may evade.
    pub musts: BTreeSet<Arc<str>>,
    /// Keys of labels.
    pub labels: HashSet<String>,
}

impl Wanted {
    /// By these sets, and by how the snapshot has them.
    pub fn of(sets: &SetTable, snapshot: &Snapshot) -> Self {
        let requirements = snapshot.sets.iter().flat_map(|set| set.selector.requirements());
        let of_selectors = requirements.map(|term| term.key().to_owned());
        let of_rollouts = snapshot.sets.iter().flat_map(|set| Strategy::of(set).label_keys());
        // By it pods are seen whose Deployment is replacing them.
        let of_deployments = [TEMPLATE_HASH_LABEL.to_owned()];
        let musts = snapshot.sets.iter().filter(|set| set.is_must()).map(|set| set.name.as_str().into()).collect();
        let labels = of_selectors.chain(of_rollouts).chain(of_deployments).collect();
        Self { sets: sets.names(), musts, labels }
    }

    fn rank(&self, set: &str) -> Rank {
        match set {
            _ if self.musts.contains(set) => Rank::Mandatory,
            _ if self.sets.contains(set) => Rank::Existing,
            _ => Rank::Unknown,
        }
    }
}

/// What is kept of a pod.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRecord {
    /// Labels.
    pub labels: Packed,
    /// Neither finished nor on its way out.
    pub active: bool,
    /// On its way out, and not gone.
    pub is_terminating: bool,
    /// Running, with the condition Ready.
    pub ready: bool,
    /// The sets in the pod, each with the hash that was recorded.
    pub carried: Packed,
    /// For each of these, the part of all workloads that the pod's falls into.
    buckets: Box<[u16]>,
    /// Of these, the ones with containers whose image a rollout changed and that do not run it yet.
    pub unsettled: SomeSets,
    /// Of these, the ones in the middle of a hot upgrade.
    pub upgrading: SomeSets,
    /// Of these, the ones whose new containers serve and can take over.
    pub due: SomeSets,
    /// Of the sets in the pod, the ones with containers that a rollout resized, and that the kubelet does not give what they ask for.
    pub unresized: SomeSets,
    /// Of these, the ones for which a rollout took the pod down.
    pub touched: SomeSets,
    /// Of these, the ones that the pod's condition says cannot be updated in it.
    pub refused: SomeSets,
    /// The condition says it of a set that the pod does not carry.
    pub is_refused_others: bool,
    /// What rollouts read.
    pub facts: PodFacts,
    /// The operating system that it is bound to.
    pub platform: Option<Platform>,
    /// Its annotation about sets that it goes without.
    pub skip: Option<Box<str>>,
    /// Whether the pod has more labels, or says more about sets, than is kept.
    pub some_left_out: bool,
}

impl PodRecord {
    /// The record of a pod. Nothing for one that carries no set and never will, as it has finished, or is on its way out and has not been
    /// evicted for a set that it lacks, as far as its condition says; and for the kubelet's mirror of a static pod, whatever its annotations
    /// say. Where not everything fits, what is wanted comes first.
    pub fn of(pod: &WatchedPod, wanted: &Wanted) -> Option<Self> {
        let names: BTreeSet<&str> = pod.containers().map(|container| container.name.as_str()).collect();
        let nothing = Records::default();
        let records = pod.annotations.as_ref().unwrap_or(&nothing);
        let carried = carried(records, &names, |set| wanted.rank(set));
        let is_terminating = pod.meta().deletion_timestamp.is_some();
        let active = !is_terminating && !pod.is_in_phase(&["Succeeded", "Failed"]);
        let is_refused_others = pod.is_refused_others(&carried.sets);
        let may_be_evicted = is_terminating && is_refused_others;
        if records.is_mirror || (carried.sets.is_empty() && !active && !may_be_evicted) {
            return None;
        }
        let (upgrading, due) = pod.upgrading(&carried.sets);
        let (labels, some_labels_left_out) = labels(pod, wanted, MAX_BYTES.saturating_sub(carried.sets.bytes()));
        Some(Self {
            labels,
            active,
            is_terminating,
            ready: pod.is_in_phase(&["Running"]) && pod.has_condition_ready(),
            platform: pod.platform(),
            skip: records.skip.clone(),
            unsettled: pod.unsettled(&carried.sets),
            upgrading,
            due,
            unresized: pod.unresized(&carried.sets),
            touched: pod.touched(&carried.sets),
            refused: pod.refused(&carried.sets),
            is_refused_others,
            buckets: pod.buckets(&carried.sets),
            facts: PodFacts::of(pod),
            some_left_out: some_labels_left_out || carried.some_left_out || records.some_left_out,
            carried: carried.sets,
        })
    }

    /// Without the hashes of mandatory sets whose images the pod does not have: its annotations may say what they like. Of other sets
    /// images may be another's to rewrite, and of sets with `podOverrides` the pod's own to choose.
    #[must_use]
    pub fn verified(mut self, pod: &WatchedPod, sets: &SetIndex) -> Self {
        let is_forged = |(name, hash): (&str, &str)| {
            let set = sets.get(name).filter(|set| !set.may_opt_out);
            set.is_some_and(|set| {
                // Admission does not believe OpenKruise's list either.
                hash == BY_OPENKRUISE || (set.pod_overrides.is_none() && set.hash == hash && !pod.has_images_of(set))
            })
        };
        if self.carried.iter().any(is_forged) {
            let hashes = self.carried.iter().map(|it| if is_forged(it) { (it.0, "") } else { it });
            self.carried = Packed::of(hashes);
        }
        self
    }

    /// Whether every container of the set runs the image that the pod asks for.
    pub fn is_settled(&self, set: &str) -> bool {
        !self.unsettled.has(&self.carried, set)
    }

    /// Whether a container of the set was started in a hot upgrade and has not taken over yet.
    pub fn is_upgrading(&self, set: &str) -> bool {
        self.upgrading.has(&self.carried, set)
    }

    /// Whether it serves by now, so that it can take over.
    pub fn is_due(&self, set: &str) -> bool {
        self.due.has(&self.carried, set)
    }

    /// Whether a rollout took the pod down for the set: it was ready then.
    pub fn is_touched(&self, set: &str) -> bool {
        self.touched.has(&self.carried, set)
    }

    /// Whether the pod's condition says that the set cannot be updated in it.
    pub fn is_refused(&self, set: &str) -> bool {
        self.refused.has(&self.carried, set)
    }

    /// Whether a rollout has touched it, of whatever set, and it is not back.
    pub const fn is_in_flight(&self) -> bool {
        self.active && (!self.unsettled.is_empty() || (!self.touched.is_empty() && !self.ready))
    }

    /// Whether it has not been ready for so long that every controller knows it.
    pub fn is_known_down(&self) -> bool {
        !self.ready && self.facts.is_long_unready()
    }

    /// Takes the texts of other pods in place of the same ones.
    pub fn share(&mut self, texts: &mut Texts) {
        self.labels.share(texts);
        self.carried.share(texts);
    }

    /// The hash of what the pod carries of the set; empty where it was not recorded, and where containers lack requests and limits of it;
    /// nothing where it carries none.
    pub fn hash_of(&self, set: &str) -> Option<&str> {
        self.recorded_hash_of(set).map(|hash| if self.unresized.has(&self.carried, set) { "" } else { hash })
    }

    /// The same, whatever the containers lack.
    pub fn recorded_hash_of(&self, set: &str) -> Option<&str> {
        self.carried.iter().find_map(|(name, hash)| (name == set).then_some(hash))
    }

    /// The part of all workloads that the pod's falls into for a set that it carries.
    pub fn bucket_of(&self, set: &str) -> Option<u16> {
        let at = self.carried.iter().position(|(name, _)| name == set)?;
        self.buckets.get(at).copied()
    }

    /// What a pod may count for, in words.
    pub fn limits() -> String {
        format!(
            "a pod counts for at most {} sets, by at most {MAX_BYTES} bytes of labels and names of sets, and of an annotation \
             longer than {} bytes nothing is read",
            carried::MAX_SETS,
            crate::sidecarset::controller::records::MAX_BYTES
        )
    }
}

/// The labels that fit into so many bytes, and whether that is not all of them.
fn labels(pod: &WatchedPod, wanted: &Wanted, mut room: usize) -> (Packed, bool) {
    let all = || pod.labels().iter();
    let cost = |(key, value): (&str, &str)| Packed::cost(key, value);
    if all().map(cost).sum::<usize>() <= room {
        return (Packed::of(all()), pod.lacks_labels);
    }
    let (selected, others): (Vec<_>, Vec<_>) = all().partition(|(key, _)| wanted.labels.contains(*key));
    let fitting = selected.into_iter().chain(others).filter(|label| {
        let left = room.checked_sub(cost(*label));
        room = left.unwrap_or(room);
        left.is_some()
    });
    (Packed::of(fitting), true)
}

#[cfg(test)]
#[path = "record_tests.rs"]
pub(super) mod tests;
