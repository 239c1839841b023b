//! What the controller remembers of pods that it has touched, or tried to, until the watch shows it. It is lost with the leader: the
//! next one finds out again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use engine::sidecarset::index::SetIndex;
use engine::snapshot::Snapshot;

use crate::sidecarset::controller::carried::BY_OPENKRUISE;
use crate::sidecarset::controller::expectations::Expectations;
use crate::sidecarset::controller::facts::hashed;
use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::rollout::{Form, PodState};

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A pod that is not back after so long holds up its own workload and its own namespace alone.
pub const OVERDUE_AFTER: Duration = Duration::from_secs(600);

/// What is remembered of the pods of one set.
#[derive(Debug, Default)]
pub struct Memory {
    pods: HashMap<PodKey, RememberedPod>,
    // Pods that a rollout took down, as they were seen last.
    touched: HashMap<PodKey, Touched>,
    // Pods that are to be evicted in turn, or are evicted already, or whose workloads are barred.
    evictable: HashSet<PodKey>,
    // Pods whose hot upgrade cannot be ended. They count as updated.
    in_the_middle: BTreeMap<PodKey, NotEnded>,
}

/// That the hot upgrade of a pod could not be ended.
#[derive(Debug)]
struct NotEnded {
    uid: u64,
    times: u32,
    why: String,
}

/// A pod that a rollout took down.
#[derive(Debug)]
struct Touched {
    uid: u64,
    // Of the hash that it carried.
    form: u64,
    // Since when it is not back; nothing once it is.
    since: Option<Instant>,
    is_overdue: bool,
}

#[derive(Debug)]
struct RememberedPod {
    uid: u64,
    hash: Box<str>,
    what: Option<PodFact>,
    judged: Option<JudgementBasis>,
    // It stays while the pod is judged anew: the next failure makes the pause longer.
    failure: Option<FailedUpdate>,
}

/// That a pod could not be changed, or evicted.
#[derive(Debug)]
struct FailedUpdate {
    // Until then it is not tried again.
    until: Instant,
    times: u32,
    why: String,
    // By `PodDisruptionBudget`s, or the load of the API server, which pass.
    is_blocked: bool,
}

/// What a judgement on a pod was made from.
#[derive(Debug)]
struct JudgementBasis {
    // Of everything that it may depend on.
    digest: u64,
    // While both are the same, so is that.
    sets: Weak<SetIndex>,
    pod: Weak<PodRecord>,
}

impl JudgementBasis {
    fn of((key, pod): &Member, snapshot: &Snapshot) -> Self {
        let labels = snapshot.namespaces.labels(&key.namespace);
        let sets = snapshot.sets.candidates(pod.labels.iter(), &key.namespace, labels);
        let sets: Vec<_> = sets.into_iter().map(|set| (&set.name, &set.hash, set.generation)).collect();
        let digest = hashed((sets, &pod.labels, &pod.carried, &pod.skip));
        Self { digest, sets: Arc::downgrade(&snapshot.sets), pod: Arc::downgrade(pod) }
    }

    /// Whether it would be the same now, as far as is known here.
    fn holds(&mut self, member: &Member, snapshot: &Snapshot) -> bool {
        if self.sets.as_ptr() == Arc::as_ptr(&snapshot.sets) && self.pod.as_ptr() == Arc::as_ptr(&member.1) {
            return true;
        }
        let digest = self.digest;
        *self = Self::of(member, snapshot);
        self.digest == digest
    }
}

/// What was found of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodFact {
    /// Only a new pod can have the form; why.
    NewPodOnly(String),
    /// The same, and the pod may be evicted for it: its workload would create one that has the form.
    Replaceable(String),
    /// It has the form, as it is stored.
    HasIt,
    /// `OpenKruise` put the set there.
    OpenKruise,
}

impl Memory {
    /// Remembers what was found of a pod of this uid.
    #[cfg(test)]
    pub fn note(&mut self, key: &PodKey, uid: u64, hash: &str, what: PodFact) {
        self.remembered(key, uid, hash).what = Some(what);
    }

    /// Remembers what was found of a pod, until the pod or the sets that may select it are others than in this snapshot.
    pub fn note_judgement(&mut self, member: &Member, hash: &str, what: PodFact, snapshot: &Snapshot) {
        let judged = Some(JudgementBasis::of(member, snapshot));
        let remembered = self.remembered(&member.0, member.1.facts.uid, hash);
        (remembered.what, remembered.judged) = (Some(what), judged);
    }

    /// Remembers a failure, which makes the next pause longer.
    pub fn note_failure(&mut self, key: &PodKey, uid: u64, hash: &str, why: String, now: Instant) {
        self.fail(key, uid, hash, now, (why, false, Duration::ZERO));
    }

    /// Remembers that the pod may not be evicted now, and for so long at least.
    pub fn note_blocked(&mut self, key: &PodKey, uid: u64, hash: &str, (why, after): (String, Duration), now: Instant) {
        self.fail(key, uid, hash, now, (why, true, after));
    }

    fn fail(
        &mut self,
        key: &PodKey,
        uid: u64,
        hash: &str,
        now: Instant,
        (why, is_blocked, at_least): (String, bool, Duration),
    ) {
        let remembered = self.remembered(key, uid, hash);
        let before = remembered.failure.as_ref().map_or(0, |failure| failure.times);
        let pause = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(before.min(16)).unwrap_or(u32::MAX));
        let pause = pause.max(at_least).min(LONGEST_PAUSE);
        let times = before.saturating_add(1);
        remembered.failure = Some(FailedUpdate { until: now + pause, times, why, is_blocked });
    }

    /// Remembers why the hot upgrade of a pod could not be ended, or that it could.
    pub fn note_hand_over(&mut self, key: &PodKey, uid: u64, failure: Option<String>) {
        let Some(why) = failure else {
            self.in_the_middle.remove(key);
            return;
        };
        let before = self.in_the_middle.get(key).filter(|before| before.uid == uid).map_or(0, |before| before.times);
        self.in_the_middle.insert(key.clone(), NotEnded { uid, times: before.saturating_add(1), why });
    }

    /// Forgets hot upgrades of pods that are not in the middle of one any more.
    pub fn prune_hand_overs(&mut self, due: &[&Member]) {
        if !self.in_the_middle.is_empty() {
            let due: HashMap<&PodKey, u64> = due.iter().map(|(key, pod)| (key, pod.facts.uid)).collect();
            self.in_the_middle.retain(|key, found| due.get(key) == Some(&found.uid));
        }
    }

    /// Remembers that a pod was not what the watch had shown, which is no failure: it is planned again after a moment.
    pub fn note_wait(&mut self, key: &PodKey, uid: u64, hash: &str, now: Instant) {
        let failure = &mut self.remembered(key, uid, hash).failure;
        let until = now + FIRST_PAUSE;
        match failure {
            Some(before) => before.until = before.until.max(until),
            None => *failure = Some(FailedUpdate { until, times: 0, why: String::new(), is_blocked: false }),
        }
    }

    /// What is remembered of the pod, if it is the same one and was to get this form; else nothing yet.
    fn remembered(&mut self, key: &PodKey, uid: u64, hash: &str) -> &mut RememberedPod {
        let new = || RememberedPod { uid, hash: hash.into(), what: None, judged: None, failure: None };
        let remembered = self.pods.entry(key.clone()).or_insert_with(new);
        if remembered.uid != uid || *remembered.hash != *hash {
            *remembered = new();
        }
        remembered
    }

    /// The same, to read.
    fn of(&self, key: &PodKey, uid: u64, hash: &str) -> Option<&RememberedPod> {
        self.pods.get(key).filter(|found| found.uid == uid && &*found.hash == hash)
    }

    /// Why only a new pod can have the form, where the pod may be evicted for it.
    pub fn why_replaceable(&self, key: &PodKey, uid: u64, hash: &str) -> Option<&str> {
        match self.of(key, uid, hash)?.what.as_ref()? {
            PodFact::Replaceable(why) => Some(why),
            PodFact::NewPodOnly(_) | PodFact::HasIt | PodFact::OpenKruise => None,
        }
    }

    /// Forgets pods that are gone, or are others, or have the form by now, and judgements that may be another by now.
    pub fn prune(&mut self, (set, hash): (&str, &str), carrying: &[Member], snapshot: &Snapshot) {
        if self.pods.is_empty() {
            return;
        }
        let known: HashMap<&PodKey, &Member> = carrying.iter().map(|member| (&member.0, member)).collect();
        self.pods.retain(|key, remembered| {
            let Some(member) = known.get(key) else { return false };
            if remembered.judged.as_mut().is_some_and(|judged| !judged.holds(member, snapshot)) {
                (remembered.what, remembered.judged) = (None, None);
            }
            let is_same = member.1.facts.uid == remembered.uid && member.1.hash_of(set) != Some(hash);
            is_same && &*remembered.hash == hash && (remembered.what.is_some() || remembered.failure.is_some())
        });
    }

    /// The state of a pod that carries the set.
    pub fn state<'p>(
        &self,
        (set, hash): (&str, &str),
        (key, pod): &'p Member,
        expectations: &Expectations,
        now: Instant,
    ) -> PodState<'p> {
        let facts = &pod.facts;
        let (mut is_settled, mut is_touched) = (pod.is_settled(set), pod.is_touched(set));
        let given =
            expectations.given(key, facts.uid, set, now).filter(|(given, _)| pod.recorded_hash_of(set) != Some(*given));
        if let Some((_, takes_place)) = given {
            (is_settled, is_touched) = (false, takes_place);
        }
        let remembered = self.of(key, facts.uid, hash);
        let failure = remembered.and_then(|it| it.failure.as_ref()).filter(|failure| failure.until > now);
        let form = match remembered.and_then(|it| it.what.as_ref()) {
            _ if pod.hash_of(set) == Some(hash) => Form::Updated,
            _ if pod.hash_of(set) == Some(BY_OPENKRUISE) => Form::OpenKruise,
            _ if given.is_some_and(|(given, _)| given == hash) => Form::Updated,
            Some(PodFact::HasIt) => Form::Updated,
            Some(PodFact::NewPodOnly(_)) => Form::NewPodOnly,
            Some(PodFact::OpenKruise) => Form::OpenKruise,
            _ if failure.is_some_and(|failure| failure.is_blocked) => Form::Blocked,
            _ if failure.is_some() => Form::Failed,
            Some(PodFact::Replaceable(_)) => Form::Evictable,
            None => Form::Outdated,
        };
        PodState {
            namespace: &key.namespace,
            name: &key.name,
            labels: &pod.labels,
            some_left_out: pod.some_left_out,
            form,
            is_settled,
            is_ready: pod.ready,
            is_touched,
            is_overdue: false,
            is_first: false,
            owner: facts.owner,
            created: facts.created,
            ready_since: facts.ready_since,
            restarts: facts.restarts,
            phase: facts.phase,
            is_assigned: facts.is_assigned,
        }
    }

    /// Takes note of which pods that a rollout took down are back, and since when others are not: one that was back and fails later
    /// fails by itself, and one that is not back for long is overdue. It is lost with the leader, whose successor waits anew.
    pub fn note_in_flight(
        &mut self,
        set: &str,
        members: &[Member],
        states: &mut [PodState<'_>],
        expectations: &Expectations,
        now: Instant,
    ) {
        let mut seen = HashMap::new();
        for ((key, pod), state) in members.iter().zip(states).filter(|(_, state)| state.is_touched) {
            let (uid, form) = (pod.facts.uid, hashed(pod.hash_of(set)));
            let before = self.touched.remove(key).filter(|before| before.uid == uid);
            let since = if state.is_available() {
                None
            } else {
                match before {
                    Some(Touched { since: Some(since), .. }) => Some(since),
                    Some(before) if before.form == form && expectations.given(key, uid, set, now).is_none() => None,
                    _ => Some(now),
                }
            };
            state.is_touched = since.is_some();
            // Where the set's own containers do not serve, the rollout itself may be at fault: that stops it, however long it takes.
            state.is_overdue =
                state.is_settled && since.is_some_and(|since| now.saturating_duration_since(since) >= OVERDUE_AFTER);
            seen.insert(key.clone(), Touched { uid, form, since, is_overdue: state.is_overdue });
        }
        self.touched = seen;
    }

    /// Takes note of the pods that are evicted, or are to be in turn, or whose workloads are barred: no person has to create them anew, or
    /// it would be of no use.
    pub fn note_evictable(&mut self, keys: HashSet<PodKey>) {
        self.evictable = keys;
    }

    /// How many pods that a rollout took down are not back.
    pub fn in_flight(&self) -> usize {
        self.touched.values().filter(|touched| touched.since.is_some()).count()
    }

    /// How many pods that were changed are not ready for long, and the first of them.
    pub fn overdue(&self) -> (usize, Option<&PodKey>) {
        let overdue = || self.touched.iter().filter(|(_, touched)| touched.is_overdue).map(|(key, _)| key);
        (overdue().count(), overdue().min())
    }

    /// How many pods only a new pod could replace, and of the first of them its key and why.
    pub fn new_pods_only(&self) -> (usize, Option<(&PodKey, &str)>) {
        self.counted(|key, remembered| match &remembered.what {
            Some(PodFact::NewPodOnly(why) | PodFact::Replaceable(why)) if !self.evictable.contains(key) => Some(why),
            _ => None,
        })
    }

    /// The same of pods that could not be changed.
    pub fn failures(&self) -> (usize, Option<(&PodKey, &str)>) {
        self.counted(|_, remembered| match &remembered.failure {
            // The first failure may be a conflict with another writer of the pod.
            Some(FailedUpdate { times, why, is_blocked: false, .. }) if *times > 1 => Some(why),
            _ => None,
        })
    }

    /// The same of pods whose hot upgrade could not be ended.
    pub fn not_ended(&self) -> (usize, Option<(&PodKey, &str)>) {
        // As with other failures.
        let failed = || self.in_the_middle.iter().filter(|(_, found)| found.times > 1);
        (failed().count(), failed().map(|(key, found)| (key, found.why.as_str())).next())
    }

    /// The same of pods that may not be evicted at this time.
    pub fn blocked(&self) -> (usize, Option<(&PodKey, &str)>) {
        self.counted(|_, remembered| {
            let failure = remembered.failure.as_ref().filter(|failure| failure.is_blocked)?;
            Some(failure.why.as_str())
        })
    }

    fn counted<'m>(
        &'m self,
        why: impl Fn(&PodKey, &'m RememberedPod) -> Option<&'m str>,
    ) -> (usize, Option<(&'m PodKey, &'m str)>) {
        let found = self.pods.iter().filter_map(|(key, remembered)| Some((key, why(key, remembered)?)));
        let found: Vec<_> = found.collect();
        (found.len(), found.into_iter().min())
    }

    /// When the next pod that failed is tried again, after `now`.
    pub fn next_try(&self, now: Instant) -> Option<Instant> {
        let times = self.pods.values().filter_map(|remembered| Some(remembered.failure.as_ref()?.until));
        times.filter(|until| *until > now).min()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
