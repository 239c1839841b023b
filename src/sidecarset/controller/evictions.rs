//! Pods that were evicted so that new ones carry the current form, until others of their workloads are there. It is lost with the
//! leader: the next one counts the pods that end (`Evictions::update`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::memory::OVERDUE_AFTER;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;

/// A pod that is still there after so long was not evicted, whatever became of the request.
const NOT_EVICTED_AFTER: Duration = Duration::from_secs(60);

/// The evicted pods of one set.
#[derive(Debug, Default)]
pub struct Evictions {
    workloads: HashMap<u64, Workload>,
    // Evicted pods that the index still has, by uid.
    leaving: HashMap<PodKey, u64>,
    // Pods that end and that an earlier leader may have evicted: their workloads.
    of_others: Vec<u64>,
    // Workloads whose new pods do not carry this form either.
    barred: HashSet<u64>,
    hash: Box<str>,
}

/// Evictions of pods of one workload.
#[derive(Debug)]
struct Workload {
    namespace: Arc<str>,
    // The form that new pods are to have.
    hash: Box<str>,
    // By uid, the pods that the workload had before the first of them.
    before: HashSet<u64>,
    evicted: Vec<Evicted>,
    // How many pods are newer.
    successors: usize,
}

#[derive(Debug)]
struct Evicted {
    key: PodKey,
    uid: u64,
    at: Instant,
}

impl Evictions {
    /// Whether nothing is evicted.
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty() && self.of_others.is_empty()
    }

    /// A pod is evicted now. `members` are all pods of the set.
    pub fn begin(&mut self, (key, pod): &Member, members: &[Member], hash: &str, now: Instant) {
        let owner = pod.facts.owner;
        let of_owner = || members.iter().filter(|(_, other)| other.facts.owner == owner);
        let workload = self.workloads.entry(owner).or_insert_with(|| Workload {
            namespace: Arc::clone(&key.namespace),
            hash: hash.into(),
            before: of_owner().map(|(_, other)| other.facts.uid).collect(),
            evicted: Vec::new(),
            successors: 0,
        });
        workload.evicted.push(Evicted { key: key.clone(), uid: pod.facts.uid, at: now });
        self.leaving.insert(key.clone(), pod.facts.uid);
    }

    /// The pod was not evicted.
    pub fn undo(&mut self, (key, pod): &Member) {
        self.leaving.remove(key);
        if let Some(workload) = self.workloads.get_mut(&pod.facts.owner) {
            workload.evicted.retain(|evicted| evicted.uid != pod.facts.uid);
        }
        self.workloads.retain(|_, workload| !workload.evicted.is_empty());
    }

    /// Whether the pod is on its way out because of an eviction.
    pub fn is_leaving(&self, (key, pod): &Member) -> bool {
        self.leaving.get(key) == Some(&pod.facts.uid)
    }

    /// Whether new pods of the workload lack the form as well: further evictions would change nothing.
    pub fn is_barred(&self, owner: u64) -> bool {
        self.barred.contains(&owner)
    }

    /// For each evicted pod that no other has replaced yet, its workload.
    pub fn vacancies(&self) -> Vec<u64> {
        let vacant = |(owner, workload): (&u64, &Workload)| {
            std::iter::repeat_n(*owner, workload.evicted.len().saturating_sub(workload.successors))
        };
        self.workloads.iter().flat_map(vacant).chain(self.of_others.iter().copied()).collect()
    }

    /// Takes in which pods are there by now. A pod that was evicted and that no other replaces, as its workload was scaled down, counts
    /// for ten minutes. Of pods that end and whose condition says that they cannot have the set's form, each counts while it ends:
    /// an earlier leader may have evicted it.
    pub fn update(&mut self, set: &CompiledSet, pods: &PodIndex, now: Instant) {
        if *self.hash != *set.hash {
            self.hash = (*set.hash).into();
            self.barred.clear();
        }
        let is_left = |evicted: &Evicted| {
            let age = now.saturating_duration_since(evicted.at);
            let is_there = || pods.get(&evicted.key).is_some_and(|pod| pod.active && pod.facts.uid == evicted.uid);
            age < NOT_EVICTED_AFTER || (age < OVERDUE_AFTER && !is_there())
        };
        for workload in self.workloads.values_mut() {
            workload.evicted.retain(is_left);
            workload.successors = 0;
        }
        self.count_successors(set, pods);
        self.workloads.retain(|_, workload| workload.evicted.len() > workload.successors);
        let workloads = &self.workloads;
        let is_evicted = |owner: u64, uid: u64| {
            workloads.get(&owner).is_some_and(|workload| workload.evicted.iter().any(|evicted| evicted.uid == uid))
        };
        self.leaving.retain(|key, uid| {
            let is_here = |pod: &PodRecord| pod.facts.uid == *uid && (!pod.active || is_evicted(pod.facts.owner, *uid));
            pods.get(key).is_some_and(|pod| is_here(pod))
        });
        let leaving = &self.leaving;
        let of_others = pods.carrying(&set.name).filter(|(key, pod)| {
            let ends = !pod.active && pod.facts.owner != 0 && pod.is_refused(&set.name);
            ends && !leaving.contains_key(*key) && (pod.ready || !pod.facts.is_unready_for(OVERDUE_AFTER))
        });
        self.of_others = of_others.map(|(_, pod)| pod.facts.owner).collect();
    }

    fn count_successors(&mut self, set: &CompiledSet, pods: &PodIndex) {
        let namespaces: HashSet<Arc<str>> =
            self.workloads.values().map(|workload| Arc::clone(&workload.namespace)).collect();
        for pod in namespaces.iter().flat_map(|namespace| pods.of_namespace(namespace)) {
            let Some(workload) = self.workloads.get_mut(&pod.facts.owner) else { continue };
            if !pod.active || workload.before.contains(&pod.facts.uid) || !set.selector.matches(&pod.labels) {
                continue;
            }
            workload.successors = workload.successors.saturating_add(1);
            if *workload.hash == *set.hash && pod.hash_of(&set.name) != Some(&*set.hash) {
                self.barred.insert(pod.facts.owner);
            }
        }
    }
}

#[cfg(test)]
#[path = "evictions_tests.rs"]
mod tests;
