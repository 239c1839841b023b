//! An evicted pod, until one new pod has taken its place.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::brakes::Number;
use crate::sidecarset::controller::facts::seconds_now;
use crate::sidecarset::controller::memory::OVERDUE_AFTER;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::signs::serves;

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

/// The pods of a workload by uid.
pub type ByUid<'p> = HashMap<u64, &'p PodRecord>;

/// An evicted pod.
#[derive(Debug)]
pub struct Evicted {
    /// By which a pod of a `StatefulSet` comes back; others get new names.
    pub key: PodKey,
    /// Its uid; 0 where an earlier leader may have evicted it.
    pub uid: u64,
    /// The set that it was evicted for.
    pub set: Box<str>,
    // Sets that have evicted a pod in this place before: it is one of theirs too.
    earlier: Vec<Box<str>>,
    // The form that its successor is to have; nothing once the set has changed since, or is gone.
    hash: Option<Box<str>>,
    /// Whether it served, or a pod that it has replaced.
    pub served: bool,
    /// What the API server answered.
    pub answer: Answer,
    /// Which of the evictions for the set it was.
    pub number: Number,
    at: Instant,
    // The same by the clock of this machine, in seconds since 1970.
    asked: u32,
    // Pods of the workload that were seen up to this count were there before.
    seen: u32,
    gone: Option<Instant>,
    // The same, whatever has become of successors since.
    ended: Option<Instant>,
    /// The new pod in its place, by key and uid. No other eviction has the same.
    pub successor: Option<(PodKey, u64)>,
    /// Whether it is known if the successor has the form, or that does not matter any more.
    pub is_judged: bool,
    /// Whether the set is gone that it was evicted for.
    pub is_orphan: bool,
    // What there was in this place until its successor, which is the pod, was about to be evicted.
    before: Option<Box<Self>>,
}

impl Evicted {
    /// The pod of this key and uid, which `served` or not, is about to be evicted for the set. Pods that were seen up to this count were
    /// there before.
    pub fn new(set: &CompiledSet, (key, uid): (PodKey, u64), seen: u32, served: bool, at: Instant) -> Self {
        Self {
            key,
            uid,
            set: set.name.as_str().into(),
            earlier: Vec::new(),
            hash: Some(set.hash.as_str().into()),
            served,
            answer: Answer::Asked,
            number: Number::default(),
            at,
            asked: seconds_now(),
            seen,
            gone: None,
            ended: None,
            successor: None,
            is_judged: false,
            is_orphan: false,
            before: None,
        }
    }

    /// A pod of which nothing is known but that this one may be its successor: an earlier leader may have evicted it.
    pub fn of_earlier_leader(set: &CompiledSet, (key, uid): (PodKey, u64), seen: u32, gone: Instant) -> Self {
        let successor = Some((key.clone(), uid));
        let is_judged = true;
        Self { gone: Some(gone), ended: Some(gone), successor, is_judged, ..Self::new(set, (key, 0), seen, true, gone) }
    }

    /// Whether an earlier leader may have evicted it, as far as is known.
    pub const fn is_of_earlier_leader(&self) -> bool {
        self.uid == 0
    }

    /// Whether the set has evicted a pod in this place.
    pub fn is_of(&self, set: &str) -> bool {
        *self.set == *set || self.earlier.iter().any(|earlier| **earlier == *set)
    }

    /// Takes the place of an eviction whose successor this is: the workload lacks one pod, not two.
    pub fn take_over(&mut self, before: Self) {
        self.served |= before.served;
        self.earlier.clone_from(&before.earlier);
        if before.set != self.set && !self.earlier.contains(&before.set) {
            self.earlier.push(before.set.clone());
        }
        self.before = Some(Box::new(Self { before: None, ..before }));
    }

    /// What there was in this place before, if the pod is not evicted.
    pub fn undone(self) -> Option<Self> {
        self.before.map(|before| *before)
    }

    /// What the API server answered.
    pub fn is_answered(&mut self, answer: Answer, number: Number) {
        (self.answer, self.number) = (answer, number);
        if matches!(answer, Answer::Evicted(_)) {
            self.before = None;
        }
    }

    /// What its successor has does not matter any more.
    pub fn needs_no_judgement(&mut self) {
        (self.hash, self.is_judged) = (None, true);
    }

    /// Whether its successor is to have this form of the set.
    pub fn is_for(&self, set: &CompiledSet) -> bool {
        *self.set == set.name && self.hash.as_deref() == Some(&*set.hash)
    }

    /// Takes in which pods the workload has by now.
    pub fn see(&mut self, pods: &ByUid<'_>, now: Instant) {
        match pods.get(&self.uid) {
            Some(_) => (self.gone, self.ended) = (None, None),
            None => _ = (self.gone.get_or_insert(now), self.ended.get_or_insert(now)),
        }
        let is_left = |uid: u64| pods.get(&uid).is_some_and(|pod| pod.active);
        if self.successor.as_ref().is_some_and(|(_, uid)| !is_left(*uid)) {
            // Its workload has the same time for the next one.
            (self.successor, self.is_judged) = (None, self.hash.is_none());
            self.gone = self.gone.map(|_| now);
        }
    }

    /// Whether a new pod may be its successor: there is none, and the pod ends, as far as is known.
    pub fn is_open(&self, pods: &ByUid<'_>) -> bool {
        let is_known = matches!(self.answer, Answer::Evicted(_)) || self.is_gone();
        self.successor.is_none() && (is_known || pods.get(&self.uid).is_none_or(|pod| !pod.active))
    }

    /// Whether the pod that was seen first at this count was there before the eviction.
    pub const fn is_after(&self, seen: u32) -> bool {
        seen <= self.seen
    }

    /// Whether the pod is older than the eviction, by the clocks of API servers. These, and what the watch shows when, are no proof.
    pub const fn is_younger_than(&self, pod: &PodRecord) -> bool {
        pod.facts.created.saturating_add(CLOCKS_DIFFER_BY) < self.since()
    }

    /// By what evictions are in the order of time.
    pub const fn order(&self) -> (u32, u32) {
        (self.since(), self.seen)
    }

    /// How long ago it was evicted.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }

    /// Whether there is no answer, and none will come.
    pub fn is_doubtful(&self, now: Instant) -> bool {
        self.uid != 0 && !matches!(self.answer, Answer::Evicted(_)) && self.age(now) >= ANSWERED_AFTER
    }

    /// Whether it has come to its end.
    pub const fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// Whether that, or the end of the last successor, was so long ago.
    pub fn is_gone_for(&self, time: Duration, now: Instant) -> bool {
        self.gone.is_some_and(|gone| now.saturating_duration_since(gone) >= time)
    }

    /// Whether the pod itself has ended so long ago: who deletes its successors again and again gains no time.
    pub fn has_ended_for(&self, time: Duration, now: Instant) -> bool {
        self.ended.is_some_and(|ended| now.saturating_duration_since(ended) >= time)
    }

    /// Whether no new pod has come in the time in which workloads create one.
    pub fn is_lost(&self, now: Instant) -> bool {
        self.successor.is_none() && self.is_gone_for(NOT_REPLACED_AFTER, now)
    }

    /// Whether there is nothing to wait for any more: the pod is gone and its successor serves, where the pod did. One that no other
    /// replaces is given up when its workload has no pod any more, or after ten minutes: the workload stays barred.
    pub fn is_over(&self, pods: &ByUid<'_>, now: Instant) -> bool {
        let Some((_, successor)) = self.successor.as_ref().filter(|_| self.is_gone()) else {
            let is_given_up = self.is_gone_for(OVERDUE_AFTER, now) || pods.is_empty() || self.is_of_earlier_leader();
            return self.is_lost(now) && is_given_up;
        };
        self.is_judged && (!self.served || pods.get(successor).is_some_and(|pod| serves(pod)))
    }

    /// Whether the pod or its successor counts for the set.
    pub fn is_counted(&self, set: &str, pods: &PodIndex) -> bool {
        let active = |key: &PodKey, uid: u64| pods.get(key).filter(|pod| pod.facts.uid == uid && pod.active);
        let carries = |key: &PodKey, uid: u64| active(key, uid).is_some_and(|pod| pod.hash_of(set).is_some());
        // It may have been evicted as it lacks the set.
        active(&self.key, self.uid).is_some() || self.successor.as_ref().is_some_and(|(key, uid)| carries(key, *uid))
    }

    /// When it was evicted, by the clock of the API server; 0 where that is not known.
    const fn since(&self) -> u32 {
        if let Answer::Evicted(since) = self.answer { since } else { 0 }
    }

    /// For people.
    pub const fn about(&self) -> u32 {
        if self.since() == 0 { self.asked } else { self.since() }
    }
}
