//! The evicted pods of one workload, each until one new pod has taken its place.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::brakes::{FAILED_FOR, Number};
use crate::sidecarset::controller::evicted::{Answer, ByUid, Evicted};
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;

/// That a workload has not replaced an evicted pod.
#[derive(Debug)]
pub struct Lost {
    /// The set that it was evicted for.
    pub set: Box<str>,
    /// The pod.
    pub key: PodKey,
    /// When it was evicted, in seconds since 1970.
    pub since: u32,
    // When that was found.
    at: Instant,
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

/// What is new of a workload.
#[derive(Debug, Default)]
pub struct News {
    /// A pod was not replaced: by this eviction.
    pub lost: Option<Number>,
    /// It has a new pod after all.
    pub is_replaced: bool,
    /// A new pod lacks the form: by this eviction.
    pub outdated: Option<Number>,
}

/// A pod of a workload.
type Here<'p> = (&'p PodKey, &'p Arc<PodRecord>);

/// A workload with evicted pods.
#[derive(Debug)]
pub struct Workload {
    /// That of all its pods.
    pub namespace: Arc<str>,
    /// Its evicted pods.
    pub evicted: Vec<Evicted>,
    /// That one of them was not replaced, until a new pod comes.
    pub lost: Option<Lost>,
    /// Whether an evicted pod has no successor yet.
    pub is_awaiting: bool,
    // By set, pods by uid whose condition says why they are not evicted.
    told: HashMap<Box<str>, HashSet<u64>>,
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
        let (evicted, told, tried, used) = (Vec::new(), HashMap::new(), HashMap::new(), HashSet::new());
        let (is_awaiting, seen, count) = (false, HashMap::new(), 0);
        Self { namespace, evicted, lost: None, is_awaiting, told, tried, used, seen, count }
    }

    /// The pod of this key and uid, which `served` or not, is about to be evicted for the set. The pods of the workload have just been
    /// seen. Where it is in the place of another one, it keeps that place.
    pub fn begin(&mut self, set: &CompiledSet, pod: (PodKey, u64), served: bool, now: Instant) {
        let uid = pod.1;
        let new = Evicted::new(set, pod, self.count, served, now);
        match self.evicted.iter_mut().find(|before| has_successor(before, uid)) {
            Some(place) => {
                let before = std::mem::replace(place, new);
                place.take_over(before);
            }
            None => self.evicted.push(new),
        }
        self.is_awaiting = true;
    }

    /// An earlier leader may have evicted a pod whose place this one has by now, and which was gone then. `pods` are all of the workload.
    pub fn take_in<'p>(
        &mut self,
        set: &CompiledSet,
        successor: (PodKey, u64),
        pods: impl Iterator<Item = Here<'p>>,
        gone: Instant,
    ) {
        if !self.used.contains(&successor.1) && !self.is_successor(successor.1) {
            // Once for all of them.
            if !self.seen.contains_key(&successor.1) {
                self.see(pods);
            }
            self.evicted.push(Evicted::of_earlier_leader(set, successor, self.count, gone));
        }
    }

    /// Takes note of which pods there are. `pods` are all of the workload.
    pub fn see<'p>(&mut self, pods: impl Iterator<Item = Here<'p>>) {
        self.count = self.count.saturating_add(1);
        for (_, pod) in pods {
            self.seen.entry(pod.facts.uid).or_insert(self.count);
        }
    }

    /// The pod of this uid was not evicted.
    pub fn undo(&mut self, uid: u64) {
        if let Some(at) = self.evicted.iter().position(|evicted| evicted.uid == uid) {
            let before = self.evicted.swap_remove(at).undone();
            self.evicted.extend(before);
        }
        self.is_awaiting = self.evicted.iter().any(|evicted| evicted.successor.is_none());
    }

    /// What the API server answered to the eviction of the pod of this uid, which is one of this number.
    pub fn is_answered(&mut self, uid: u64, answer: Answer, number: Number) {
        let evicted = self.evicted.iter_mut().filter(|evicted| evicted.uid == uid);
        evicted.for_each(|evicted| evicted.is_answered(answer, number));
    }

    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.evicted.is_empty() && self.lost.is_none() && self.tried.is_empty()
    }

    /// Whether there is something to keep whether or not the workload has a pod.
    pub const fn is_waited_for(&self) -> bool {
        !self.evicted.is_empty() || self.lost.is_some()
    }

    /// Whether the set is to take in what becomes of the workload.
    pub fn concerns(&self, set: &str) -> bool {
        self.evicted.iter().any(|evicted| evicted.is_of(set) || evicted.is_orphan)
            || self.lost.as_ref().is_some_and(|lost| *lost.set == *set)
            || self.tried.get(set).is_some_and(|tried| tried.lacking.is_some())
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

    /// Whether the pod of this uid is in the place of an evicted one.
    pub fn is_successor(&self, uid: u64) -> bool {
        self.evicted.iter().any(|evicted| has_successor(evicted, uid))
    }

    /// Whether the condition of the pod of this uid says why it is not evicted for the set.
    pub fn is_told(&self, set: &str, uid: u64) -> bool {
        self.told.get(set).is_some_and(|told| told.contains(&uid))
    }

    /// It does.
    pub fn note_told(&mut self, set: &str, uid: u64) {
        self.told.entry(set.into()).or_default().insert(uid);
    }

    /// The set has another form than before.
    pub fn is_of_another_form(&mut self, set: &str) {
        self.tried.remove(set);
        self.told.remove(set);
        self.evicted.iter_mut().filter(|evicted| *evicted.set == *set).for_each(Evicted::needs_no_judgement);
    }

    /// The set is gone. The places of its evictions stay, for a set of the same name and for the other sets of this workload.
    pub fn forget(&mut self, set: &str) {
        self.is_of_another_form(set);
        if self.lost.as_ref().is_some_and(|lost| *lost.set == *set) {
            self.lost = None;
        }
        self.evicted.iter_mut().filter(|evicted| *evicted.set == *set).for_each(|evicted| evicted.is_orphan = true);
    }

    /// The pod of this key, evicted at this time in seconds since 1970, was not replaced.
    pub fn lose(&mut self, set: &CompiledSet, key: PodKey, since: u32, pods: &PodIndex, owner: u64, at: Instant) {
        let before = pods.of_workload(owner).map(|(_, pod)| pod.facts.uid).collect();
        self.told.clear();
        self.lost = Some(Lost { set: set.name.as_str().into(), key, since, at, before });
    }

    /// Takes in which pods the workload has by now.
    pub fn update(&mut self, owner: u64, set: &CompiledSet, pods: &PodIndex, now: Instant) -> News {
        let is_left = |(_, pod): &Here<'_>| pod.active || pod.is_terminating;
        let mut here: Vec<Here<'_>> = pods.of_workload(owner).filter(is_left).collect();
        here.sort_by_key(|(key, pod)| (pod.facts.created, *key));
        let by_uid: ByUid<'_> = here.iter().map(|(_, pod)| (pod.facts.uid, &***pod)).collect();
        self.evicted.iter_mut().for_each(|evicted| evicted.see(&by_uid, now));
        self.pair(&here, &by_uid, now);
        let mut news = News { outdated: self.judge(set, &by_uid), ..News::default() };
        self.find_lost(owner, set, pods, now, &mut news);
        self.end(&by_uid, now);
        news
    }

    /// Gives each evicted pod one new pod that was created since, and no two the same. Times of creation say which pods are new until a
    /// pod would count as not replaced; then every pod is that was not there when the eviction began.
    fn pair(&mut self, here: &[Here<'_>], by_uid: &ByUid<'_>, now: Instant) {
        let mut taken: HashSet<u64> = self.used.clone();
        taken.extend(
            self.evicted.iter().flat_map(|it| [Some(it.uid), it.successor.as_ref().map(|(_, uid)| *uid)]).flatten(),
        );
        let seen = |pod: &PodRecord| self.seen.get(&pod.facts.uid).copied().unwrap_or(u32::MAX);
        let is_new = |evicted: &Evicted, pod: &PodRecord| !evicted.is_after(seen(pod)) && !evicted.is_younger_than(pod);
        let free = here.iter().filter(|(_, pod)| pod.active && !taken.contains(&pod.facts.uid));
        let mut free: Vec<&Here<'_>> = free.collect();
        let open = self.evicted.iter_mut().filter(|evicted| evicted.is_open(by_uid));
        let (mut late, mut open): (Vec<_>, Vec<_>) = open.partition(|evicted| evicted.is_lost(now));
        // Both in the order of time: each new pod is compared once.
        open.sort_by_key(|evicted| evicted.order());
        let mut left = Vec::new();
        let mut new = free.drain(..).peekable();
        for evicted in open {
            while let Some(old) = new.next_if(|(_, pod)| !is_new(evicted, pod)) {
                left.push(old);
            }
            let Some((key, pod)) = new.next() else { break };
            evicted.successor = Some(((*key).clone(), pod.facts.uid));
        }
        left.extend(new);
        late.sort_by_key(|evicted| evicted.order().1);
        left.sort_by_key(|(_, pod)| seen(pod));
        let mut new = left.into_iter().peekable();
        for evicted in late {
            while new.next_if(|(_, pod)| evicted.is_after(seen(pod))).is_some() {}
            let Some((key, pod)) = new.next() else { break };
            evicted.successor = Some(((*key).clone(), pod.facts.uid));
        }
    }

    /// Takes in what new pods have of the set's form, of those in the places of pods that were evicted for it. Returns which eviction brought
    /// one that lacks it.
    fn judge(&mut self, set: &CompiledSet, by_uid: &ByUid<'_>) -> Option<Number> {
        let mut found = Vec::new();
        for evicted in self.evicted.iter_mut().filter(|evicted| *evicted.set == set.name && !evicted.is_judged) {
            let Some((key, uid)) = &evicted.successor else { continue };
            let Some(pod) = by_uid.get(uid) else { continue };
            // One that the set does not select would be as little help the next time.
            let has_it = set.selector.matches(&pod.labels) && pod.hash_of(&set.name) == Some(&*set.hash);
            if evicted.is_for(set) {
                found.push(((!has_it).then(|| key.clone()), evicted.number));
            }
            evicted.is_judged = true;
        }
        let mut outdated = None;
        for (lacking, number) in found {
            outdated = lacking.as_ref().map(|_| number).or(outdated);
            self.note_tried(set, lacking);
        }
        outdated
    }

    fn find_lost(&mut self, owner: u64, set: &CompiledSet, pods: &PodIndex, now: Instant, news: &mut News) {
        if let Some(lost) = &self.lost {
            let is_new = |pod: &PodRecord| pod.active && !lost.before.contains(&pod.facts.uid);
            if pods.of_workload(owner).any(|(_, pod)| is_new(pod)) {
                self.lost = None;
                self.told.clear();
                news.is_replaced = true;
            }
            return;
        }
        let is_lost = |evicted: &&Evicted| {
            *evicted.set == set.name && !evicted.is_of_earlier_leader() && !evicted.is_orphan && evicted.is_lost(now)
        };
        let lost = self.evicted.iter().find(is_lost);
        if let Some((key, since, number)) = lost.map(|lost| (lost.key.clone(), lost.about(), lost.number)) {
            self.lose(set, key, since, pods, owner, now);
            news.lost = Some(number);
        }
    }

    /// Ends the evictions of which nothing is to be waited for. That one was not replaced is kept for an hour if the workload has no pod
    /// any more, and else until it has a new one.
    fn end(&mut self, by_uid: &ByUid<'_>, now: Instant) {
        let used = &mut self.used;
        self.evicted.retain(|evicted| {
            let is_over = evicted.is_over(by_uid, now);
            used.extend(evicted.successor.as_ref().filter(|_| is_over).map(|(_, uid)| *uid));
            !is_over
        });
        let is_old = |lost: &mut Lost| by_uid.is_empty() && now.saturating_duration_since(lost.at) >= FAILED_FOR;
        self.lost.take_if(is_old);
        if by_uid.is_empty() && self.evicted.is_empty() {
            self.tried.clear();
        }
        // A later eviction finds these among the pods that there were before.
        if self.evicted.is_empty() {
            self.used.clear();
            self.seen.clear();
        }
        self.is_awaiting = self.evicted.iter().any(|evicted| evicted.successor.is_none());
        self.told.values_mut().for_each(|told| told.retain(|uid| by_uid.contains_key(uid)));
    }
}

fn has_successor(evicted: &Evicted, uid: u64) -> bool {
    evicted.successor.as_ref().is_some_and(|(_, successor)| *successor == uid)
}
