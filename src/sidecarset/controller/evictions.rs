//! Pods that were evicted so that new ones carry the current form of a set, until these serve: of all sets, in one place. It is lost
//! with the leader: the next one waits for what the last one may have evicted (`Evictions::is_whole`).

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::memory::OVERDUE_AFTER;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::workload::{Answer, Evicted, Tried, Workload};
use crate::sidecarset::rollout::{EvictionsWait, Vacancy};

/// How long a new leader waits before its first eviction: requests of the last one have come to an end by then, and what it evicted has
/// been replaced, or is shown to terminate.
const LEADER_PAUSE: Duration = Duration::from_secs(30);
/// For so long a workload that has not replaced a pod counts against the set.
const LOST_FOR: Duration = Duration::from_secs(3600);
/// At so many of them in one namespace no more of its pods are evicted, and at so many such namespaces none at all: the author of the
/// pods of one namespace does not hold up a set in others.
const LOST_MOST: usize = 3;
/// How long no pod is evicted after the API server has said that the account may evict none.
const FORBIDDEN_FOR: Duration = Duration::from_secs(30);

/// Whether pods of a workload are evicted for a form of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// As far as budgets allow.
    Free,
    /// One alone: it is not known whether new pods have the form.
    First,
    /// That one is on its way.
    Awaiting,
    /// No more of them; why.
    Barred(Bar),
}

/// Why no more pods of a workload are evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bar {
    /// A new pod of it lacks the form.
    Outdated,
    /// It has not replaced a pod that was evicted at this time, in seconds since 1970.
    NotReplaced(u32),
}

/// Workloads of which no more pods are evicted: of each kind how many, and one of the pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Barred {
    /// [`Bar::Outdated`], with the new pod.
    pub outdated: (usize, Option<PodKey>),
    /// [`Bar::NotReplaced`], with the pod that was evicted.
    pub not_replaced: (usize, Option<PodKey>),
}

/// The evicted pods of all sets.
#[derive(Debug)]
pub struct Evictions {
    // The beginning of the leader's term.
    since: Instant,
    // Sets of which nothing of an earlier leader is waited for.
    whole: HashSet<Box<str>>,
    // By the owner that pods name.
    workloads: HashMap<u64, Workload>,
    // The form that a set had last.
    forms: HashMap<Box<str>, Box<str>>,
    forbidden: Option<(Instant, String)>,
}

impl Evictions {
    /// None, by a leader whose term began then.
    pub fn new(since: Instant) -> Self {
        let (whole, workloads, forms) = (HashSet::new(), HashMap::new(), HashMap::new());
        Self { since, whole, workloads, forms, forbidden: None }
    }

    /// Forgets a set that is gone. Its evictions are followed on, for the other sets of these workloads.
    pub fn forget(&mut self, set: &str) {
        self.forms.remove(set);
        self.whole.remove(set);
        self.workloads.values_mut().for_each(|workload| workload.forget(set));
        self.workloads.retain(|_, workload| !workload.is_empty());
    }

    /// The pod, which `served` or not, is about to be evicted for the set. Returns whether it still may be: it is in the index.
    pub fn begin(
        &mut self,
        set: &CompiledSet,
        (key, pod): &Member,
        served: bool,
        pods: &PodIndex,
        now: Instant,
    ) -> bool {
        let owner = pod.facts.owner;
        if !pods.get(key).is_some_and(|here| here.active && here.facts.uid == pod.facts.uid) {
            return false;
        }
        let all = pods.of_workload(&key.namespace, owner).map(|(_, pod)| pod);
        let workload = self.workloads.entry(owner).or_insert_with(|| Workload::new(Arc::clone(&key.namespace)));
        workload.begin(set, (key.clone(), pod.facts.uid), served, all, now);
        true
    }

    /// The pod was not evicted.
    pub fn undo(&mut self, (_, pod): &Member) {
        if let Some(workload) = self.workloads.get_mut(&pod.facts.owner) {
            workload.undo(pod.facts.uid);
        }
        self.workloads.retain(|_, workload| !workload.is_empty());
    }

    /// What the API server answered.
    pub fn answered(&mut self, (_, pod): &Member, answer: Answer) {
        let workload = self.workloads.get_mut(&pod.facts.owner);
        let evicted = workload.into_iter().flat_map(|workload| &mut workload.evicted);
        evicted.filter(|evicted| evicted.uid == pod.facts.uid).for_each(|evicted| evicted.answer = answer);
    }

    /// Pods that count as evicted for the set without an answer, for longer than any request takes, and that the index has as they were.
    pub fn doubtful(&self, set: &str, pods: &PodIndex, now: Instant) -> Vec<Member> {
        let evicted = self.workloads.values().flat_map(|workload| &workload.evicted);
        let doubtful = evicted.filter(|evicted| *evicted.set == *set && evicted.is_doubtful(now));
        let member = |evicted: &Evicted| {
            let pod = pods.get(&evicted.key).filter(|pod| pod.active && pod.facts.uid == evicted.uid)?;
            Some((evicted.key.clone(), Arc::clone(pod)))
        };
        doubtful.filter_map(member).collect()
    }

    /// The account may evict no pod.
    pub fn forbid(&mut self, why: String, now: Instant) {
        self.forbidden = Some((now, why));
    }

    /// Pods by uid that are evicted, or may be, for whichever set.
    pub fn leaving(&self) -> HashSet<u64> {
        self.workloads.values().flat_map(|workload| &workload.evicted).map(|evicted| evicted.uid).collect()
    }

    /// Whether pods of the workload are evicted for this form of the set.
    pub fn allowance(&self, set: &CompiledSet, owner: u64) -> Allowance {
        let Some(workload) = self.workloads.get(&owner) else { return Allowance::First };
        if let Some(lost) = &workload.lost {
            return Allowance::Barred(Bar::NotReplaced(lost.since));
        }
        match workload.tried(set) {
            Some(Tried { lacking: None, .. }) => Allowance::Free,
            Some(_) => Allowance::Barred(Bar::Outdated),
            None if workload.is_awaiting => Allowance::Awaiting,
            None => Allowance::First,
        }
    }

    /// Takes in that an earlier leader barred the pod's workload, as the pod's condition says. Where a pod was created since, that is over.
    pub fn resume(&mut self, set: &CompiledSet, (key, pod): &Member, bar: Bar, pods: &PodIndex, now: Instant) {
        let owner = pod.facts.owner;
        let workload = self.workloads.entry(owner).or_insert_with(|| Workload::new(Arc::clone(&key.namespace)));
        match bar {
            Bar::Outdated => workload.note_tried(set, Some(key.clone())),
            Bar::NotReplaced(since) => {
                let all = pods.of_workload(&key.namespace, owner);
                let newer: Vec<_> = all.filter(|(_, pod)| pod.active && pod.facts.created > since).collect();
                let lacks =
                    |pod: &PodRecord| set.selector.matches(&pod.labels) && pod.hash_of(&set.name) != Some(&*set.hash);
                if newer.is_empty() {
                    workload.lose(set, key.clone(), since, pods, owner, now);
                } else {
                    let lacking = newer.iter().find(|(_, pod)| lacks(pod));
                    workload.note_tried(set, lacking.map(|(key, _)| (*key).clone()));
                }
            }
        }
    }

    /// Takes in which pods there are by now: which evictions are over, and which workloads are barred.
    pub fn update(&mut self, set: &CompiledSet, pods: &PodIndex, now: Instant) {
        let before = self.forms.insert(set.name.as_str().into(), set.hash.as_str().into());
        if before.is_some_and(|before| *before != *set.hash) {
            // What new pods lack of another form says nothing of this one.
            self.workloads.values_mut().for_each(|workload| workload.is_of_another_form(&set.name));
        }
        for (owner, workload) in self.workloads.iter_mut().filter(|(_, workload)| workload.concerns(&set.name)) {
            workload.update(*owner, set, pods, now);
        }
        self.workloads.retain(|_, workload| !workload.is_empty());
        if self.forbidden.as_ref().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= FORBIDDEN_FOR) {
            self.forbidden = None;
        }
    }

    /// The places that evictions for the set take. A pod that ends and whose condition says that it cannot have the set's form takes one
    /// too: an earlier leader may have evicted it, or a user has deleted it to have it created anew.
    pub fn vacancies(&self, set: &CompiledSet, pods: &PodIndex, now: Instant) -> Vec<Vacancy> {
        // An application that fails by itself holds up its own; a form that serves nowhere may be at fault.
        let has_form = |pod: &PodRecord| pod.hash_of(&set.name) == Some(&*set.hash) && serves(pod);
        let form_serves = LazyCell::new(|| pods.carrying(&set.name).any(|(_, pod)| has_form(pod)));
        let mut vacancies = Vec::new();
        for (owner, workload) in &self.workloads {
            for evicted in workload.evicted.iter().filter(|evicted| *evicted.set == set.name) {
                let is_ending =
                    pods.get(&evicted.key).is_some_and(|pod| pod.is_terminating && pod.facts.uid == evicted.uid);
                let is_old = evicted.age(now) >= OVERDUE_AFTER;
                let is_late = evicted.is_gone() && evicted.successor.is_some();
                let is_overdue = match &evicted.successor {
                    None if evicted.is_gone() => workload.lost.is_some(),
                    _ if is_ending => is_old,
                    _ => is_old && is_late && *form_serves,
                };
                vacancies.push(Vacancy {
                    namespace: Arc::clone(&workload.namespace),
                    owner: *owner,
                    served: evicted.served,
                    is_overdue,
                    is_counted: evicted.is_counted(&set.name, pods),
                });
            }
        }
        let leaving = self.leaving();
        let ending =
            pods.carrying(&set.name).filter(|(_, pod)| is_ending(set, pod) && !leaving.contains(&pod.facts.uid));
        vacancies.extend(ending.map(|(key, pod)| Vacancy {
            namespace: Arc::clone(&key.namespace),
            owner: pod.facts.owner,
            served: true,
            is_overdue: !pod.ready && pod.facts.is_unready_for(OVERDUE_AFTER),
            is_counted: false,
        }));
        vacancies
    }

    /// Why no pod is evicted for the set at all.
    pub fn hold(
        &mut self,
        set: &CompiledSet,
        members: &[Member],
        pods: &PodIndex,
        now: Instant,
    ) -> Option<EvictionsWait> {
        if let Some((_, why)) = &self.forbidden {
            return Some(EvictionsWait::Forbidden(why.clone()));
        }
        if !self.is_whole(set, members, pods, now) {
            return Some(EvictionsWait::EarlierLeader);
        }
        let namespaces: HashSet<&str> = self.lost(set, now).collect();
        (namespaces.len() >= LOST_MOST).then_some(EvictionsWait::Lost(namespaces.len()))
    }

    /// The namespace of each workload that has not replaced a pod of the set lately.
    fn lost(&self, set: &CompiledSet, now: Instant) -> impl Iterator<Item = &str> {
        let is_lately = move |workload: &&Workload| {
            let lost = workload.lost.as_ref().filter(|lost| *lost.set == set.name);
            lost.is_some_and(|lost| now.saturating_duration_since(lost.at) < LOST_FOR)
        };
        self.workloads.values().filter(is_lately).map(|workload| &*workload.namespace)
    }

    /// Namespaces of which no more pods are evicted for the set.
    pub fn halted(&self, set: &CompiledSet, now: Instant) -> HashSet<&str> {
        let mut counted: HashMap<&str, usize> = HashMap::new();
        for namespace in self.lost(set, now) {
            let count = counted.entry(namespace).or_default();
            *count = count.saturating_add(1);
        }
        counted.into_iter().filter(|(_, count)| *count >= LOST_MOST).map(|(namespace, _)| namespace).collect()
    }

    /// Whether what an earlier leader may have evicted for the set is back, or has had its time.
    fn is_whole(&mut self, set: &CompiledSet, members: &[Member], pods: &PodIndex, now: Instant) -> bool {
        if self.whole.contains(set.name.as_str()) {
            return true;
        }
        let term = now.saturating_duration_since(self.since);
        // A new pod that does not serve yet may be in the place of an evicted one.
        let is_new = |pod: &PodRecord| {
            let is_current = pod.facts.owner != 0 && pod.hash_of(&set.name) == Some(&*set.hash);
            is_current && !serves(pod) && !pod.facts.is_older_than(OVERDUE_AFTER)
        };
        let is_awaited = || {
            pods.carrying(&set.name).any(|(_, pod)| is_ending(set, pod)) || members.iter().any(|(_, pod)| is_new(pod))
        };
        let is_whole = term >= LEADER_PAUSE && (term >= OVERDUE_AFTER || !is_awaited());
        if is_whole {
            self.whole.insert(set.name.as_str().into());
        }
        is_whole
    }

    /// Workloads of which no more pods are evicted for the set.
    pub fn barred(&self, set: &CompiledSet) -> Barred {
        let mut barred = Barred::default();
        for workload in self.workloads.values() {
            let (found, key) = match (&workload.lost, workload.tried(set)) {
                (Some(lost), _) if *lost.set == set.name => (&mut barred.not_replaced, &lost.key),
                (_, Some(Tried { lacking: Some(key), .. })) => (&mut barred.outdated, key),
                _ => continue,
            };
            found.0 = found.0.saturating_add(1);
            if found.1.as_ref().is_none_or(|first| key < first) {
                found.1 = Some(key.clone());
            }
        }
        barred
    }

    /// Whether pods are evicted for the set, and that is not over.
    pub fn are_of(&self, set: &str) -> bool {
        self.workloads.values().flat_map(|workload| &workload.evicted).any(|evicted| *evicted.set == *set)
    }

    /// Whether the condition of the pod says why it is not evicted.
    pub fn is_told(&self, pod: &PodRecord) -> bool {
        self.workloads.get(&pod.facts.owner).is_some_and(|workload| workload.told.contains(&pod.facts.uid))
    }

    /// It does.
    pub fn note_told(&mut self, pod: &PodRecord) {
        if let Some(workload) = self.workloads.get_mut(&pod.facts.owner) {
            workload.told.insert(pod.facts.uid);
        }
    }
}

/// Whether the pod serves, with the containers that it asks for.
pub fn serves(pod: &PodRecord) -> bool {
    pod.active && pod.ready && pod.unsettled.is_empty()
}

/// Whether the pod of a workload ends that cannot have the set's form.
fn is_ending(set: &CompiledSet, pod: &PodRecord) -> bool {
    pod.is_terminating && pod.facts.owner != 0 && pod.is_refused(&set.name)
}

#[cfg(test)]
#[path = "evictions_hold_tests.rs"]
mod hold_tests;
#[cfg(test)]
#[path = "evictions_tests.rs"]
mod tests;
