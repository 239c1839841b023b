//! What the controller remembers of pods that it has touched, or tried to, until the watch shows it. It is lost with the leader: the
//! next one finds out again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::sidecarset::controller::carried::BY_OPENKRUISE;
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::rollout::{Form, PodState};

/// After so long what was written would have been seen: whatever happened to it, it holds up nothing any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is remembered of the pods of one set.
#[derive(Debug, Default)]
pub struct Memory {
    pods: HashMap<PodKey, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    uid: u64,
    hash: Box<str>,
    what: What,
}

/// What became of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It was given the form, at that time.
    Touched(Instant),
    /// Only a new pod can have the form; why.
    NewPodOnly(String),
    /// It has the form, as it is stored.
    HasIt,
    /// `OpenKruise` put the set there.
    OpenKruise,
    /// It could not be changed, and is tried again at that time; how often it failed, and why.
    Failed(Instant, u32, String),
}

impl Memory {
    /// Remembers what became of a pod of this uid that was to get the form of this hash.
    pub fn note(&mut self, key: &PodKey, uid: u64, hash: &str, what: What) {
        self.pods.insert(key.clone(), Remembered { uid, hash: hash.into(), what });
    }

    /// Remembers a failure, which makes the next pause longer.
    pub fn note_failure(&mut self, key: &PodKey, uid: u64, hash: &str, why: String, now: Instant) {
        let before = match self.of(key, uid, hash) {
            Some(What::Failed(_, failures, _)) => *failures,
            _ => 0,
        };
        let pause =
            FIRST_PAUSE.saturating_mul(1_u32.checked_shl(before.min(16)).unwrap_or(u32::MAX)).min(LONGEST_PAUSE);
        self.note(key, uid, hash, What::Failed(now + pause, before.saturating_add(1), why));
    }

    /// Remembers that a pod was not what the watch had shown, which is no failure: it is planned again after a moment.
    pub fn note_wait(&mut self, key: &PodKey, uid: u64, hash: &str, now: Instant) {
        self.note(key, uid, hash, What::Failed(now + FIRST_PAUSE, 0, String::new()));
    }

    /// What is remembered of the pod, if it is the same one and was to get this form.
    fn of(&self, key: &PodKey, uid: u64, hash: &str) -> Option<&What> {
        let found = self.pods.get(key).filter(|found| found.uid == uid && &*found.hash == hash)?;
        Some(&found.what)
    }

    /// Forgets pods that are gone, or are others, or have the form by now: a pod that vanished at the wrong moment blocks nothing.
    pub fn prune(&mut self, set: &str, hash: &str, carrying: &[(PodKey, PodRecord)], now: Instant) {
        let known: HashMap<&PodKey, &PodRecord> = carrying.iter().map(|(key, pod)| (key, pod)).collect();
        self.pods.retain(|key, remembered| {
            let is_same = |pod: &&PodRecord| pod.facts.uid == remembered.uid && pod.hash_of(set) != Some(hash);
            let is_fresh = !matches!(remembered.what, What::Touched(at) if now.duration_since(at) > FORGOTTEN_AFTER);
            &*remembered.hash == hash && is_fresh && known.get(key).copied().is_some_and(|pod| is_same(&pod))
        });
    }

    /// The state of a pod that carries the set.
    pub fn state<'p>(&self, set: &str, hash: &str, (key, pod): &'p (PodKey, PodRecord), now: Instant) -> PodState<'p> {
        let facts = &pod.facts;
        let (mut is_settled, mut is_touched) = (pod.is_settled(set), pod.is_touched(set));
        let form = match self.of(key, facts.uid, hash) {
            _ if pod.hash_of(set) == Some(hash) => Form::Updated,
            _ if pod.hash_of(set) == Some(BY_OPENKRUISE) => Form::OpenKruise,
            Some(What::Touched(_)) => {
                (is_settled, is_touched) = (false, true);
                Form::Updated
            }
            Some(What::HasIt) => Form::Updated,
            Some(What::NewPodOnly(_)) => Form::NewPodOnly,
            Some(What::OpenKruise) => Form::OpenKruise,
            Some(What::Failed(until, ..)) if *until > now => Form::Failed,
            Some(What::Failed(..)) | None => Form::Outdated,
        };
        PodState {
            namespace: &key.namespace,
            name: &key.name,
            labels: &pod.labels,
            form,
            is_settled,
            is_ready: pod.ready,
            is_known_down: !pod.ready && facts.is_long_unready(),
            is_touched,
            owner: facts.owner,
            created: facts.created,
            ready_since: facts.ready_since,
            restarts: facts.restarts,
            phase: facts.phase,
            is_assigned: facts.is_assigned,
        }
    }

    /// How many pods only a new pod could replace, and of the first of them its key and why.
    pub fn new_pods_only(&self) -> (usize, Option<(&PodKey, &str)>) {
        self.counted(|what| match what {
            What::NewPodOnly(why) => Some(why),
            _ => None,
        })
    }

    /// The same of pods that could not be changed.
    pub fn failures(&self) -> (usize, Option<(&PodKey, &str)>) {
        self.counted(|what| match what {
            // The first failure may be a conflict with another writer of the pod.
            What::Failed(_, failures, why) if *failures > 1 => Some(why),
            _ => None,
        })
    }

    fn counted(&self, why: impl Fn(&What) -> Option<&str>) -> (usize, Option<(&PodKey, &str)>) {
        let found = self.pods.iter().filter_map(|(key, remembered)| Some((key, why(&remembered.what)?)));
        let found: Vec<_> = found.collect();
        (found.len(), found.into_iter().min())
    }

    /// When the next pod that failed is tried again.
    pub fn next_try(&self) -> Option<Instant> {
        let times = self.pods.values().filter_map(|remembered| match remembered.what {
            What::Failed(until, ..) => Some(until),
            _ => None,
        });
        times.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecarset::controller::record::tests::{pod, wanted};

    fn member(name: &str, hash: &str) -> (PodKey, PodRecord) {
        let pod = pod(name, "web", &[("a", hash)], true);
        (PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a"])).unwrap())
    }

    fn form(memory: &Memory, member: &(PodKey, PodRecord), now: Instant) -> Form {
        memory.state("a", "new", member, now).form
    }

    #[test]
    fn a_touched_pod_counts_as_updated_and_unavailable_until_the_watch_shows_it() {
        let (now, old) = (Instant::now(), member("p", "old"));
        let mut memory = Memory::default();
        assert_eq!(form(&memory, &old, now), Form::Outdated);
        memory.note(&old.0, old.1.facts.uid, "new", What::Touched(now));
        let state = memory.state("a", "new", &old, now);
        assert!(state.form == Form::Updated && state.is_in_flight());
        memory.prune("a", "new", &[member("p", "new")], now);
        assert!(memory.pods.is_empty());
    }

    /// Case 103: there, a pod that is deleted before the expectation is recorded blocks the set for ever.
    #[test]
    fn case_103_a_pod_that_is_gone_or_another_blocks_nothing() {
        let (now, old) = (Instant::now(), member("p", "old"));
        let later = now + FORGOTTEN_AFTER * 2;
        let mut another = old.clone();
        another.1.facts.uid += 1;
        for (case, carrying, at) in [
            ("gone", vec![], now),
            ("another of the name", vec![another.clone()], now),
            ("never seen", vec![old.clone()], later),
        ] {
            let mut memory = Memory::default();
            memory.note(&old.0, old.1.facts.uid, "new", What::Touched(now));
            assert_eq!(form(&memory, &another, now), Form::Outdated, "{case}");
            memory.prune("a", "new", &carrying, at);
            assert!(memory.pods.is_empty(), "{case}");
        }
    }

    #[test]
    fn a_pod_that_failed_waits_longer_each_time_and_another_form_is_tried_at_once() {
        let (now, old) = (Instant::now(), member("p", "old"));
        let mut memory = Memory::default();
        let mut last = Duration::ZERO;
        for _ in 0..30 {
            memory.note_failure(&old.0, old.1.facts.uid, "new", "refused".to_owned(), now);
            assert_eq!(form(&memory, &old, now), Form::Failed);
            let pause = memory.next_try().unwrap().duration_since(now);
            assert!(pause >= last && pause <= LONGEST_PAUSE);
            last = pause;
        }
        assert_eq!(last, LONGEST_PAUSE);
        assert_eq!(form(&memory, &old, now + LONGEST_PAUSE), Form::Outdated);
        assert_eq!(memory.state("a", "newer", &old, now).form, Form::Outdated);
        assert_eq!(memory.failures().0, 1);
    }

    #[test]
    fn a_pod_that_is_not_what_the_watch_showed_is_planned_again_and_is_no_failure() {
        let (now, old) = (Instant::now(), member("p", "old"));
        let mut memory = Memory::default();
        memory.note_wait(&old.0, old.1.facts.uid, "new", now);
        let state = memory.state("a", "new", &old, now);
        assert!(state.form == Form::Failed && !state.is_in_flight(), "it takes no place meanwhile");
        assert_eq!(form(&memory, &old, now + FIRST_PAUSE), Form::Outdated);
        assert_eq!(memory.failures().0, 0);
    }

    #[test]
    fn a_pod_of_openkruise_is_left_alone_and_degrades_nothing() {
        let now = Instant::now();
        let mut kruise = pod("p", "web", &[], true);
        kruise.annotations.get_or_insert_default().openkruise_list = Some("a".into());
        let kruise = (PodKey::of(&kruise), PodRecord::of(&kruise, &wanted(&["a"])).unwrap());
        let mut memory = Memory::default();
        assert_eq!(form(&memory, &kruise, now), Form::OpenKruise);
        let old = member("p", "old");
        memory.note(&old.0, old.1.facts.uid, "new", What::OpenKruise);
        assert_eq!(form(&memory, &old, now), Form::OpenKruise, "as its containers say");
        assert_eq!((memory.new_pods_only().0, memory.failures().0), (0, 0));
    }

    #[test]
    fn that_a_pod_cannot_be_updated_in_place_is_remembered_for_this_form_alone() {
        let (now, old) = (Instant::now(), member("p", "old"));
        let mut memory = Memory::default();
        memory.note(&old.0, old.1.facts.uid, "new", What::NewPodOnly("env".to_owned()));
        assert_eq!(form(&memory, &old, now), Form::NewPodOnly);
        assert_eq!(memory.state("a", "newer", &old, now).form, Form::Outdated);
        assert_eq!(memory.new_pods_only(), (1, Some((&old.0, "env"))));
    }
}
