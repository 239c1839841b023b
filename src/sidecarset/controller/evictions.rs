//! Pods that were evicted so that new ones carry the current form of a set, until these serve: of all sets, in one place. It is lost
//! with the leader: the next one waits for what the last one may have evicted (`Evictions::is_whole`).

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::bar::{Allowance, Bar, Barred};
use crate::sidecarset::controller::brakes::{Brakes, EvictionFailure};
use crate::sidecarset::controller::evicted::{Answer, Evicted};
use crate::sidecarset::controller::facts::seconds_now;
use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::memory::OVERDUE_AFTER;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::signs::{is_awaited, is_ending, is_replaced, serves};
use crate::sidecarset::controller::workload::{News, Tried, Workload};
use crate::sidecarset::rollout::{EvictionsWait, Vacancy};

/// How long a new leader waits before its first eviction: requests of the last one have come to an end by then, and what it evicted has
/// been replaced, or is shown to terminate.
const LEADER_PAUSE: Duration = Duration::from_secs(60);

/// The evicted pods of all sets.
#[derive(Debug)]
pub struct Evictions {
    // The beginning of the leader's term.
    since: Instant,
    sets: HashMap<Box<str>, SetEvictions>,
    // By the owner that pods name.
    workloads: HashMap<u64, Workload>,
    brakes: Brakes,
}

/// What is kept of a set.
#[derive(Debug)]
struct SetEvictions {
    // The form that it had last.
    hash: Box<str>,
    // When this leader saw the set first.
    first: Instant,
    // Nothing of an earlier leader is waited for.
    is_whole: bool,
    // Pods by uid that end and cannot have the set's form: since when, and whether they served then.
    ending: HashMap<u64, (Instant, bool)>,
}

impl Evictions {
    /// None, by a leader whose term began then.
    pub fn new(since: Instant) -> Self {
        Self { since, sets: HashMap::new(), workloads: HashMap::new(), brakes: Brakes::default() }
    }

    /// Forgets a set that is gone. Its evictions are followed until they are over.
    pub fn forget(&mut self, set: &str) {
        self.sets.remove(set);
        self.brakes.forget(set);
        self.workloads.values_mut().for_each(|workload| workload.forget(set));
        self.workloads.retain(|_, workload| !workload.is_empty());
    }

    /// The pod, which `served` or not, is about to be evicted for the set. Returns whether it still may be: it is in the index. Which pods
    /// its workload has is taken note of, but for workloads of which that is `noted` at this moment.
    pub fn begin(
        &mut self,
        set: &CompiledSet,
        (key, pod): &Member,
        served: bool,
        (pods, noted): (&PodIndex, &mut HashSet<u64>),
        now: Instant,
    ) -> bool {
        let owner = pod.facts.owner;
        if !pods.get(key).is_some_and(|here| here.active && here.facts.uid == pod.facts.uid) {
            return false;
        }
        let workload = self.workload(owner, key);
        if noted.insert(owner) {
            workload.see(pods.of_workload(owner));
        }
        workload.begin(set, (key.clone(), pod.facts.uid), served, now);
        true
    }

    fn workload(&mut self, owner: u64, key: &PodKey) -> &mut Workload {
        self.workloads.entry(owner).or_insert_with(|| Workload::new(Arc::clone(&key.namespace)))
    }

    /// The pod was not evicted.
    pub fn undo(&mut self, (_, pod): &Member) {
        if let Some(workload) = self.workloads.get_mut(&pod.facts.owner) {
            workload.undo(pod.facts.uid);
        }
        self.workloads.retain(|_, workload| !workload.is_empty());
    }

    /// What the API server answered to its eviction for the set.
    pub fn answered(&mut self, set: &str, (key, pod): &Member, answer: Answer) {
        let number = self.brakes.count(set, &key.namespace);
        if matches!(answer, Answer::Evicted(_)) {
            self.brakes.allow(&key.namespace);
        }
        if let Some(workload) = self.workloads.get_mut(&pod.facts.owner) {
            workload.is_answered(pod.facts.uid, answer, number);
        }
    }

    /// Pods that count as evicted for the set without an answer, for longer than any request takes, and that the index has as they were.
    pub fn doubtful(&self, set: &str, pods: &PodIndex, now: Instant) -> Vec<Member> {
        let evicted = self.workloads.values().flat_map(|workload| &workload.evicted);
        let is_ours = |evicted: &&Evicted| *evicted.set == *set || evicted.is_orphan;
        let doubtful = evicted.filter(|evicted| is_ours(evicted) && evicted.is_doubtful(now));
        let member = |evicted: &Evicted| {
            let pod = pods.get(&evicted.key).filter(|pod| pod.active && pod.facts.uid == evicted.uid)?;
            Some((evicted.key.clone(), Arc::clone(pod)))
        };
        doubtful.filter_map(member).collect()
    }

    /// The account may evict no pod of this namespace.
    pub fn forbid(&mut self, namespace: &Arc<str>, why: String, now: Instant) {
        self.brakes.forbid(namespace, why, now);
    }

    /// What stops the evictions of single namespaces.
    pub const fn brakes(&self) -> &Brakes {
        &self.brakes
    }

    /// Pods by uid that are evicted, or may be, for whichever set.
    pub fn leaving(&self) -> HashSet<u64> {
        self.workloads.values().flat_map(|workload| &workload.evicted).map(|evicted| evicted.uid).collect()
    }

    /// Pods by uid that stay until the set for which another was evicted in their place has seen what they have.
    pub fn unjudged(&self) -> HashSet<u64> {
        let evicted = self.workloads.values().flat_map(|workload| &workload.evicted);
        let unjudged = evicted.filter(|evicted| !evicted.is_judged).filter_map(|evicted| evicted.successor.as_ref());
        unjudged.map(|(_, uid)| *uid).collect()
    }

    /// Whether a pod of the workload is evicted, for whichever set, and that is not over.
    pub fn has_places(&self, owner: u64) -> bool {
        self.workloads.get(&owner).is_some_and(|workload| !workload.evicted.is_empty())
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
    /// It says nothing of others: when that was, and among how many evictions, is not known any more.
    pub fn resume(&mut self, set: &CompiledSet, (key, pod): &Member, bar: Bar, pods: &PodIndex, now: Instant) {
        let owner = pod.facts.owner;
        let workload = self.workload(owner, key);
        let since = match bar {
            Bar::Outdated => return workload.note_tried(set, Some(key.clone())),
            Bar::NotReplaced(since) => since,
        };
        let all = pods.of_workload(owner);
        let newer: Vec<_> = all.filter(|(_, pod)| pod.active && pod.facts.created >= since).collect();
        let lacks = |pod: &PodRecord| set.selector.matches(&pod.labels) && pod.hash_of(&set.name) != Some(&*set.hash);
        if !newer.is_empty() {
            let lacking = newer.iter().find(|(_, pod)| lacks(pod));
            workload.note_tried(set, lacking.map(|(key, _)| (*key).clone()));
        } else if workload.lost.is_none() {
            // What this leader has found itself would be newer.
            workload.lose(set, key.clone(), since, pods, owner, now);
        }
    }

    /// Takes in which pods there are by now: which evictions are over, and which workloads are barred. A set that `evicts` no pods
    /// waits for none that others delete.
    pub fn update(&mut self, set: &CompiledSet, evicts: bool, pods: &PodIndex, now: Instant) {
        let new =
            || SetEvictions { hash: set.hash.as_str().into(), first: now, is_whole: false, ending: HashMap::new() };
        let of_set = self.sets.entry(set.name.as_str().into()).or_insert_with(new);
        let before = std::mem::take(&mut of_set.ending);
        // Later on others delete them, one after the other if they like.
        let is_early = now.saturating_duration_since(self.since) < OVERDUE_AFTER;
        let ending = pods
            .carrying_or_ending(&set.name)
            .filter(|(_, pod)| evicts && is_ending(set, pod) && (is_early || before.contains_key(&pod.facts.uid)));
        let since = |uid: u64, ready: bool| (uid, before.get(&uid).copied().unwrap_or((now, ready)));
        of_set.ending = ending.map(|(_, pod)| since(pod.facts.uid, pod.ready)).collect();
        if *of_set.hash != *set.hash {
            of_set.hash = set.hash.as_str().into();
            // What new pods lack of another form says nothing of this one.
            self.workloads.values_mut().for_each(|workload| workload.is_of_another_form(&set.name));
            self.brakes.is_of_another_form(&set.name);
        }
        for (owner, workload) in self.workloads.iter_mut().filter(|(_, workload)| workload.concerns(&set.name)) {
            let News { lost, is_replaced, outdated } = workload.update(*owner, set, pods, now);
            let of = (*owner, &workload.namespace);
            if is_replaced {
                self.brakes.is_replaced(*owner);
            }
            for (what, number) in [(EvictionFailure::NotReplaced, lost), (EvictionFailure::Outdated, outdated)] {
                if let Some(number) = number {
                    self.brakes.note(&set.name, of, what, number, now);
                }
            }
        }
        let has_pods = |owner: u64| pods.of_workload(owner).next().is_some();
        self.workloads.retain(|owner, workload| workload.is_waited_for() || (!workload.is_empty() && has_pods(*owner)));
        self.brakes.prune(now);
    }

    /// The places that evictions for the set take. A pod that ended early in this leader's term, and whose condition says that it cannot have
    /// the set's form, takes one too: an earlier leader may have evicted it.
    pub fn vacancies(&self, set: &CompiledSet, pods: &PodIndex, now: Instant) -> Vec<Vacancy> {
        // An application that fails by itself holds up its own; a form that serves nowhere may be at fault.
        let has_form = |pod: &PodRecord| pod.hash_of(&set.name) == Some(&*set.hash) && serves(pod);
        let form_serves = LazyCell::new(|| pods.carrying(&set.name).any(|(_, pod)| has_form(pod)));
        let mut vacancies = Vec::new();
        for (owner, workload) in &self.workloads {
            for evicted in workload.evicted.iter().filter(|evicted| evicted.is_of(&set.name)) {
                let ends = pods.get(&evicted.key).is_some_and(|pod| pod.is_terminating && pod.facts.uid == evicted.uid);
                let is_overdue = match &evicted.successor {
                    None if evicted.is_gone() && workload.lost.is_some() => true,
                    _ if ends => evicted.age(now) >= OVERDUE_AFTER,
                    _ => evicted.has_ended_for(OVERDUE_AFTER, now) && *form_serves,
                };
                vacancies.push(Vacancy {
                    namespace: Arc::clone(&workload.namespace),
                    owner: *owner,
                    served: evicted.served,
                    ends,
                    is_overdue,
                    is_guess: evicted.is_of_earlier_leader(),
                    is_counted: evicted.is_counted(&set.name, pods),
                });
            }
        }
        let leaving = self.leaving();
        let ending = self.sets.get(set.name.as_str()).map(|of_set| &of_set.ending);
        let others = pods.carrying_or_ending(&set.name).filter(|(_, pod)| !leaving.contains(&pod.facts.uid));
        vacancies.extend(others.filter_map(|(key, pod)| {
            let (since, served) = *ending?.get(&pod.facts.uid)?;
            Some(Vacancy {
                namespace: Arc::clone(&key.namespace),
                owner: pod.facts.owner,
                served,
                ends: true,
                is_overdue: now.saturating_duration_since(since) >= OVERDUE_AFTER,
                is_guess: false,
                is_counted: false,
            })
        }));
        vacancies
    }

    /// Why no pod is evicted for the set at all.
    pub fn hold(&mut self, set: &CompiledSet, pods: &PodIndex, now: Instant) -> Option<EvictionsWait> {
        if !self.is_whole(set, pods, now) {
            return Some(EvictionsWait::EarlierLeader);
        }
        self.brakes.hold(&set.name, now)
    }

    /// Whether what an earlier leader may have evicted for the set is back, or has had its time. What is not back by then takes its places.
    fn is_whole(&mut self, set: &CompiledSet, pods: &PodIndex, now: Instant) -> bool {
        let Some(of_set) = self.sets.get_mut(set.name.as_str()) else { return false };
        if of_set.is_whole {
            return true;
        }
        let term = now.saturating_duration_since(self.since);
        of_set.is_whole = term >= LEADER_PAUSE && (term >= OVERDUE_AFTER || !is_awaited(set, pods));
        // Not where the set evicts pods only since later.
        let was_there = of_set.first.saturating_duration_since(self.since) < OVERDUE_AFTER && term < OVERDUE_AFTER * 2;
        let is_whole = of_set.is_whole;
        if is_whole && was_there {
            self.take_in(set, pods, now);
        }
        is_whole
    }

    /// Counts the pods with the set's form that do not serve, in namespaces where no other pod with it does, as being in the places of pods
    /// that an earlier leader evicted: else each leader would evict as many for a form that serves nowhere. Whether it did is a guess.
    fn take_in(&mut self, set: &CompiledSet, pods: &PodIndex, now: Instant) {
        let has_it = |pod: &PodRecord| pod.active && pod.hash_of(&set.name) == Some(&*set.hash);
        let all = || pods.carrying(&set.name).filter(|(_, pod)| has_it(pod));
        let serving: HashSet<&str> = all().filter(|(_, pod)| serves(pod)).map(|(key, _)| &*key.namespace).collect();
        // One that was changed in place keeps a place of its own.
        let is_left = |key: &PodKey, pod: &PodRecord| {
            !serves(pod) && !pod.is_touched(&set.name) && !serving.contains(&*key.namespace)
        };
        for (key, pod) in all().filter(|(key, pod)| is_replaced(pod) && is_left(key, pod)) {
            let age = Duration::from_secs(seconds_now().saturating_sub(pod.facts.created).into());
            let gone = now.checked_sub(age.min(OVERDUE_AFTER)).unwrap_or(now);
            let owner = pod.facts.owner;
            self.workload(owner, key).take_in(set, (key.clone(), pod.facts.uid), pods.of_workload(owner), gone);
        }
        self.workloads.retain(|_, workload| !workload.is_empty());
    }

    /// Workloads of which no more pods are evicted for the set, which has pods of these.
    pub fn barred(&self, set: &CompiledSet, owners: &HashSet<u64>) -> Barred {
        let mut barred = Barred::default();
        for (owner, workload) in &self.workloads {
            let is_ours = |of: &str| *of == *set.name || owners.contains(owner);
            let lost = workload.lost.as_ref().filter(|lost| is_ours(&lost.set));
            let lacking = workload.tried(set).and_then(|tried| tried.lacking.as_ref());
            let (found, key) = match (lost, lacking) {
                (Some(lost), _) => (&mut barred.not_replaced, &lost.key),
                (None, Some(lacking)) => (&mut barred.outdated, lacking),
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
        self.workloads.values().flat_map(|workload| &workload.evicted).any(|evicted| evicted.is_of(set))
    }

    /// Whether the condition of the pod says why it is not evicted for the set.
    pub fn is_told(&self, set: &str, pod: &PodRecord) -> bool {
        self.workloads.get(&pod.facts.owner).is_some_and(|workload| workload.is_told(set, pod.facts.uid))
    }

    /// It does.
    pub fn note_told(&mut self, set: &str, pod: &PodRecord) {
        if let Some(workload) = self.workloads.get_mut(&pod.facts.owner) {
            workload.note_told(set, pod.facts.uid);
        }
    }
}

#[cfg(test)]
#[path = "evictions_hold_tests.rs"]
mod hold_tests;
#[cfg(test)]
#[path = "evictions_place_tests.rs"]
mod place_tests;
#[cfg(test)]
#[path = "evictions_tests.rs"]
mod tests;
