//! The evicted pods of one workload, each until one new pod has taken its place.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::evictions::serves;
use crate::sidecarset::controller::facts::seconds_now;
use crate::sidecarset::controller::memory::OVERDUE_AFTER;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;

/// An eviction that got no answer has come after so long, or does not come: the API server gives up a request after a minute.
pub const ANSWERED_AFTER: Duration = Duration::from_secs(90);
/// A workload that has no new pod so long after an evicted one is gone does not replace it.
pub const NOT_REPLACED_AFTER: Duration = Duration::from_secs(60);
/// By so many seconds the clocks of two API servers may differ.
const CLOCKS_DIFFER_BY: u32 = 2;

/// What is known of an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is being asked for.
    Asked,
    /// It came, at this time of the API server in seconds since 1970; 0 where it is not known.
    Evicted(u32),
    /// It may have come.
    Unknown,
}

/// An evicted pod.
#[derive(Debug)]
pub struct Evicted {
    /// Its key.
    pub key: PodKey,
    /// Its uid.
    pub uid: u64,
    /// The set that it was evicted for.
    pub set: Box<str>,
    // The form that its successor is to have; nothing once the set has changed since.
    hash: Option<Box<str>>,
    /// Whether it served.
    pub served: bool,
    /// What the API server answered.
    pub answer: Answer,
    at: Instant,
    // The same by the clock of this machine, in seconds since 1970.
    asked: u32,
    // Pods of the workload that were seen up to this count were there before.
    seen: u32,
    gone: Option<Instant>,
    /// The new pod in its place, by key and uid. No other eviction has the same.
    pub successor: Option<(PodKey, u64)>,
}

impl Evicted {
    fn new(set: &CompiledSet, (key, uid): (PodKey, u64), seen: u32, served: bool, at: Instant) -> Self {
        let hash = Some(set.hash.as_str().into());
        let (answer, gone, successor, asked) = (Answer::Asked, None, None, seconds_now());
        Self { key, uid, set: set.name.as_str().into(), hash, served, answer, at, asked, seen, gone, successor }
    }

    /// How long ago it was evicted.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }

    /// Whether there is no answer, and none will come.
    pub fn is_doubtful(&self, now: Instant) -> bool {
        !matches!(self.answer, Answer::Evicted(_)) && self.age(now) >= ANSWERED_AFTER
    }

    /// Whether it has come to its end.
    pub const fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// Whether the pod or its successor counts for the set.
    pub fn is_counted(&self, set: &str, pods: &PodIndex) -> bool {
        let counts = |key: &PodKey, uid: u64| {
            pods.get(key).is_some_and(|pod| pod.facts.uid == uid && pod.active && pod.hash_of(set).is_some())
        };
        counts(&self.key, self.uid) || self.successor.as_ref().is_some_and(|(key, uid)| counts(key, *uid))
    }

    fn is_known(&self) -> bool {
        matches!(self.answer, Answer::Evicted(_)) || self.gone.is_some()
    }

    /// When it was evicted, by the clock of the API server; 0 where that is not known.
    const fn since(&self) -> u32 {
        if let Answer::Evicted(since) = self.answer { since } else { 0 }
    }

    /// For people.
    const fn about(&self) -> u32 {
        if self.since() == 0 { self.asked } else { self.since() }
    }
}

/// That a workload has not replaced an evicted pod.
#[derive(Debug)]
pub struct Lost {
    /// The set that it was evicted for.
    pub set: Box<str>,
    /// The pod.
    pub key: PodKey,
    /// When it was evicted, in seconds since 1970.
    pub since: u32,
    /// When that was found.
    pub at: Instant,
    // By uid, the pods that the workload had then.
    before: HashSet<u64>,
}

/// What a new pod of the workload had of a form of a set.
#[derive(Debug)]
pub struct Tried {
    hash: Box<str>,
    /// The new pod, if it lacked the form.
    pub lacking: Option<PodKey>,
}

/// A workload with evicted pods.
#[derive(Debug)]
pub struct Workload {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its evicted pods.
    pub evicted: Vec<Evicted>,
    /// That one of them was not replaced, until a new pod comes.
    pub lost: Option<Lost>,
    /// Pods by uid whose condition says why they are not evicted.
    pub told: HashSet<u64>,
    /// Whether an evicted pod has no successor yet.
    pub is_awaiting: bool,
    // By set.
    tried: HashMap<Box<str>, Tried>,
    // By uid, pods that have taken the place of others.
    used: HashSet<u64>,
    // By uid, at which eviction each pod was there first; and their number so far.
    seen: HashMap<u64, u32>,
    count: u32,
}

impl Workload {
    /// One of this namespace.
    pub fn new(namespace: Arc<str>) -> Self {
        let (evicted, told, tried, used) = (Vec::new(), HashSet::new(), HashMap::new(), HashSet::new());
        let (is_awaiting, seen, count) = (false, HashMap::new(), 0);
        Self { namespace, evicted, lost: None, told, is_awaiting, tried, used, seen, count }
    }

    /// The pod of this key and uid, which `served` or not, is about to be evicted for the set. `pods` are all of the workload.
    pub fn begin<'p>(
        &mut self,
        set: &CompiledSet,
        pod: (PodKey, u64),
        served: bool,
        pods: impl Iterator<Item = &'p Arc<PodRecord>>,
        now: Instant,
    ) {
        self.count = self.count.saturating_add(1);
        for pod in pods {
            self.seen.entry(pod.facts.uid).or_insert(self.count);
        }
        self.evicted.push(Evicted::new(set, pod, self.count, served, now));
        self.is_awaiting = true;
    }

    /// The pod of this uid was not evicted.
    pub fn undo(&mut self, uid: u64) {
        self.evicted.retain(|evicted| evicted.uid != uid);
        self.is_awaiting = self.evicted.iter().any(|evicted| evicted.successor.is_none());
    }

    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.evicted.is_empty() && self.lost.is_none() && self.tried.is_empty()
    }

    /// Whether anything here is about the set.
    pub fn concerns(&self, set: &str) -> bool {
        self.evicted.iter().any(|evicted| *evicted.set == *set)
            || self.lost.as_ref().is_some_and(|lost| *lost.set == *set)
    }

    /// What a new pod had of the current form of the set, if one was seen.
    pub fn tried(&self, set: &CompiledSet) -> Option<&Tried> {
        self.tried.get(set.name.as_str()).filter(|tried| *tried.hash == *set.hash)
    }

    /// A new pod was seen, which lacked the form or not. One that lacked it counts, whatever others have.
    pub fn note_tried(&mut self, set: &CompiledSet, lacking: Option<PodKey>) {
        if self.tried(set).is_none_or(|tried| tried.lacking.is_none()) {
            self.tried.insert(set.name.as_str().into(), Tried { hash: set.hash.as_str().into(), lacking });
        }
    }

    /// The set has another form than before.
    pub fn is_of_another_form(&mut self, set: &str) {
        self.tried.remove(set);
        self.evicted.iter_mut().filter(|evicted| *evicted.set == *set).for_each(|evicted| evicted.hash = None);
        if self.lost.is_none() {
            self.told.clear();
        }
    }

    /// The set is gone.
    pub fn forget(&mut self, set: &str) {
        self.is_of_another_form(set);
        if self.lost.as_ref().is_some_and(|lost| *lost.set == *set) {
            self.lost = None;
        }
        // Nothing updates it any more.
        self.evicted.retain(|evicted| *evicted.set != *set);
    }

    /// The pod of this key, evicted at this time in seconds since 1970, was not replaced.
    pub fn lose(&mut self, set: &CompiledSet, key: PodKey, since: u32, pods: &PodIndex, owner: u64, at: Instant) {
        let before = pods.of_workload(&self.namespace, owner).map(|(_, pod)| pod.facts.uid).collect();
        self.told.clear();
        self.lost = Some(Lost { set: set.name.as_str().into(), key, since, at, before });
    }

    /// Takes in which pods the workload has by now.
    pub fn update(&mut self, owner: u64, set: &CompiledSet, pods: &PodIndex, now: Instant) {
        let namespace = Arc::clone(&self.namespace);
        let is_left = |(_, pod): &(&PodKey, &Arc<PodRecord>)| pod.active || pod.is_terminating;
        let mut here: Vec<(&PodKey, &Arc<PodRecord>)> = pods.of_workload(&namespace, owner).filter(is_left).collect();
        here.sort_by_key(|(key, pod)| (pod.facts.created, *key));
        let by_uid: HashMap<u64, &PodRecord> = here.iter().map(|(_, pod)| (pod.facts.uid, &***pod)).collect();
        for evicted in &mut self.evicted {
            match by_uid.get(&evicted.uid) {
                Some(_) => evicted.gone = None,
                None => _ = evicted.gone.get_or_insert(now),
            }
            let stays = |(_, uid): &(PodKey, u64)| by_uid.get(uid).is_some_and(|pod| pod.active);
            evicted.successor = evicted.successor.take().filter(stays);
        }
        self.pair(set, &here, &by_uid);
        self.find_lost(owner, set, pods, now);
        self.end(&by_uid, here.is_empty(), now);
    }

    /// Gives each evicted pod one new pod that was created since, and no two the same.
    fn pair(&mut self, set: &CompiledSet, here: &[(&PodKey, &Arc<PodRecord>)], by_uid: &HashMap<u64, &PodRecord>) {
        let mut taken: HashSet<u64> = self.used.clone();
        taken.extend(
            self.evicted.iter().flat_map(|it| [Some(it.uid), it.successor.as_ref().map(|(_, uid)| *uid)]).flatten(),
        );
        let is_free = |(_, pod): &&(&PodKey, &Arc<PodRecord>)| pod.active && !taken.contains(&pod.facts.uid);
        let mut new = here.iter().filter(is_free).peekable();
        let ends = |uid: u64| by_uid.get(&uid).is_none_or(|pod| !pod.active);
        let is_open = |evicted: &&mut Evicted| evicted.successor.is_none() && (evicted.is_known() || ends(evicted.uid));
        let mut open: Vec<&mut Evicted> = self.evicted.iter_mut().filter(is_open).collect();
        // Both in the order of time: each new pod is compared once.
        open.sort_by_key(|evicted| (evicted.since(), evicted.seen));
        let mut found = Vec::new();
        for evicted in open {
            let is_before = |pod: &PodRecord| {
                let seen = self.seen.get(&pod.facts.uid).is_some_and(|seen| *seen <= evicted.seen);
                seen || pod.facts.created.saturating_add(CLOCKS_DIFFER_BY) < evicted.since()
            };
            while new.next_if(|(_, pod)| is_before(pod)).is_some() {}
            let Some((key, pod)) = new.next() else { break };
            evicted.successor = Some(((*key).clone(), pod.facts.uid));
            if *evicted.set == set.name && evicted.hash.as_deref() == Some(&*set.hash) {
                found.push((*key, *pod));
            }
        }
        for (key, pod) in found {
            // One that the set does not select would be as little help the next time.
            let has_it = set.selector.matches(&pod.labels) && pod.hash_of(&set.name) == Some(&*set.hash);
            self.note_tried(set, (!has_it).then(|| key.clone()));
        }
    }

    fn find_lost(&mut self, owner: u64, set: &CompiledSet, pods: &PodIndex, now: Instant) {
        if let Some(lost) = &self.lost {
            let is_new = |pod: &PodRecord| pod.active && !lost.before.contains(&pod.facts.uid);
            if pods.of_workload(&self.namespace, owner).any(|(_, pod)| is_new(pod)) {
                (self.lost, self.told) = (None, HashSet::new());
            }
            return;
        }
        let is_lost = |evicted: &&Evicted| {
            let is_late = evicted.gone.is_some_and(|at| now.saturating_duration_since(at) >= NOT_REPLACED_AFTER);
            *evicted.set == set.name && evicted.successor.is_none() && is_late
        };
        let lost = self.evicted.iter().find(is_lost).map(|evicted| (evicted.key.clone(), evicted.about()));
        if let Some((key, since)) = lost {
            self.lose(set, key, since, pods, owner, now);
        }
    }

    /// Ends the evictions whose pod is gone and whose successor serves, where the pod did. One that no other replaces ends when its workload
    /// has no pod any more, or after ten minutes: the workload stays barred.
    fn end(&mut self, by_uid: &HashMap<u64, &PodRecord>, is_deserted: bool, now: Instant) {
        let used = &mut self.used;
        self.evicted.retain(|evicted| {
            let Some(gone) = evicted.gone else { return true };
            let Some((_, successor)) = &evicted.successor else {
                let age = now.saturating_duration_since(gone);
                return age < OVERDUE_AFTER && !(is_deserted && age >= NOT_REPLACED_AFTER);
            };
            let is_over = !evicted.served || by_uid.get(successor).is_some_and(|pod| serves(pod));
            if is_over {
                used.insert(*successor);
            }
            !is_over
        });
        if is_deserted && self.evicted.is_empty() {
            self.lost = None;
        }
        // A later eviction finds these among the pods that there were before.
        if self.evicted.is_empty() {
            self.used.clear();
            self.seen.clear();
        }
        self.is_awaiting = self.evicted.iter().any(|evicted| evicted.successor.is_none());
        self.told.retain(|uid| by_uid.contains_key(uid));
    }
}
