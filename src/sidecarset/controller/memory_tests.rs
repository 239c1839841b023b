//! What the leader remembers of the pods of a set, over time.

use engine::sidecarset::compiled::CompiledSet;
use serde_json::{Value, json};

use super::*;
use crate::sidecarset::controller::injection_counts::tests::{set, snapshot};
use crate::sidecarset::controller::record::tests::{pod, wanted};
use crate::sidecarset::controller::watched_pod::WatchedPod;

fn member_of(pod: &WatchedPod) -> Member {
    (PodKey::of(pod), Arc::new(PodRecord::of(pod, &wanted(&["a"])).unwrap()))
}

fn member(name: &str, hash: &str) -> Member {
    member_of(&pod(name, "web", &[("a", hash)], true))
}

fn state<'p>(memory: &Memory, member: &'p Member, now: Instant) -> PodState<'p> {
    memory.state(("a", "new"), member, &Expectations::default(), now)
}

fn form(memory: &Memory, member: &Member, now: Instant) -> Form {
    state(memory, member, now).form
}

#[test]
fn a_touched_pod_counts_as_updated_and_unavailable_until_the_watch_shows_it() {
    let (now, old, memory) = (Instant::now(), member("p", "old"), Memory::default());
    assert_eq!(form(&memory, &old, now), Form::Outdated);
    let mut expectations = Expectations::default();
    expectations.enter(&old.0, old.1.facts.uid, ("a", "new"), true, now);
    let state = memory.state(("a", "new"), &old, &expectations, now);
    assert!(state.form == Form::Updated && state.is_in_flight());
    let state = memory.state(("a", "newer"), &old, &expectations, now);
    assert!(state.form == Form::Outdated && state.is_in_flight(), "the set has changed again");
    expectations.enter(&old.0, old.1.facts.uid, ("a", "new"), false, now);
    assert!(!memory.state(("a", "new"), &old, &expectations, now).is_in_flight(), "it did not serve");
    let shown = member("p", "new");
    assert!(!memory.state(("a", "new"), &shown, &expectations, now).is_in_flight());
}

fn touched(hash: &str, ready: bool) -> Member {
    let mut pod = pod("p", "web", &[("a", hash)], ready);
    let state = json!({"a": {"revision": hash, "wasReady": true}}).to_string();
    pod.annotations.get_or_insert_default().in_place_state = Some(state.into());
    member_of(&pod)
}

#[test]
fn a_touched_pod_takes_its_place_until_it_is_back_and_is_overdue_after_a_while() {
    let (now, mut memory) = (Instant::now(), Memory::default());
    let expectations = Expectations::default();
    // Hash and readiness, seconds later, and whether it is in flight and overdue.
    for (case, hash, ready, later, expected) in [
        ("down", "1", false, 0, (true, false)),
        ("the set has changed again", "2", false, 599, (true, false)),
        ("overdue", "2", false, 600, (true, true)),
        ("back", "2", true, 601, (false, false)),
        ("it fails by itself", "2", false, 700, (false, false)),
        ("taken down again", "3", false, 800, (true, false)),
    ] {
        let (at, member) = (now + Duration::from_secs(later), touched(hash, ready));
        let mut states = [memory.state(("a", "3"), &member, &expectations, at)];
        memory.note_in_flight("a", std::slice::from_ref(&member), &mut states, &expectations, at);
        assert_eq!((states[0].is_in_flight(), states[0].is_overdue), expected, "{case}");
        assert_eq!(memory.overdue().0, usize::from(expected.1), "{case}");
    }
    memory.note_in_flight("a", &[], &mut [], &expectations, now);
    assert!(memory.touched.is_empty(), "gone");
}

#[test]
fn a_pod_that_is_gone_or_another_or_has_the_form_is_forgotten() {
    let (old, empty) = (member("p", "old"), Snapshot::default());
    let mut another = old.clone();
    Arc::make_mut(&mut another.1).facts.uid += 1;
    for (case, carrying, left) in [
        ("the same", vec![old.clone()], 1),
        ("gone", vec![], 0),
        ("another of the name", vec![another], 0),
        ("changed by somebody else", vec![member("p", "new")], 0),
    ] {
        let mut memory = Memory::default();
        memory.note(&old.0, old.1.facts.uid, "new", PodFact::HasIt);
        memory.prune(("a", "new"), &carrying, &empty);
        assert_eq!(memory.pods.len(), left, "{case}");
    }
}

/// Set `b` brings a container that is in the way of `a`, and goes.
#[test]
fn that_only_a_new_pod_can_have_the_form_is_judged_again_when_pod_or_sets_are_others() {
    let named = |name: &str, spec: Value| {
        let mut set = set(&spec);
        name.clone_into(&mut set.name);
        set
    };
    let b = |image: &str| named("b", json!({"containers": [{"name": "b-c", "image": image}]}));
    let of_others = named("c", json!({"selector": {"matchLabels": {"app": "api"}}}));
    let a = || set(&json!({}));
    let sets = |sets: Vec<CompiledSet>| snapshot(sets, &json!({}));
    let before = sets(vec![a(), b("b:1")]);
    let old = member("p", "old");
    let mut skipping = pod("p", "web", &[("a", "old")], true);
    skipping.annotations.get_or_insert_default().skip = Some("b".into());
    let unready = member_of(&pod("p", "web", &[("a", "old")], false));
    for (case, member, snapshot, stays) in [
        ("the same", old.clone(), sets(vec![a(), b("b:1")]), true),
        ("a set that concerns other pods", old.clone(), sets(vec![a(), b("b:1"), of_others]), true),
        ("the pod restarts", unready, sets(vec![a(), b("b:1")]), true),
        ("the other set is gone", old.clone(), sets(vec![a()]), false),
        ("the other set has another form", old.clone(), sets(vec![a(), b("b:2")]), false),
        ("the pod opts out of it", member_of(&skipping), sets(vec![a(), b("b:1")]), false),
    ] {
        let mut memory = Memory::default();
        memory.note_judgement(&old, "new", PodFact::NewPodOnly("b".to_owned()), &before);
        memory.prune(("a", "new"), std::slice::from_ref(&member), &snapshot);
        let expected = if stays { Form::NewPodOnly } else { Form::Outdated };
        assert_eq!(form(&memory, &member, Instant::now()), expected, "{case}");
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
        let pause = memory.next_try(now).unwrap().duration_since(now);
        assert!(pause >= last && pause <= LONGEST_PAUSE);
        last = pause;
    }
    assert_eq!(last, LONGEST_PAUSE);
    assert_eq!(form(&memory, &old, now + LONGEST_PAUSE), Form::Outdated);
    assert_eq!(memory.state(("a", "newer"), &old, &Expectations::default(), now).form, Form::Outdated);
    assert_eq!(memory.failures().0, 1);
}

/// As where an eviction is refused, and the pod is judged again meanwhile.
#[test]
fn a_pod_that_is_judged_anew_keeps_the_count_of_its_failures() {
    let (now, old, snapshot) = (Instant::now(), member("p", "old"), Snapshot::default());
    let (key, uid, mut memory) = (&old.0, old.1.facts.uid, Memory::default());
    let judge = |memory: &mut Memory| {
        memory.note_judgement(&old, "new", PodFact::Replaceable("env".to_owned()), &snapshot);
    };
    judge(&mut memory);
    assert_eq!(form(&memory, &old, now), Form::Evictable);
    let mut last = Duration::ZERO;
    for _ in 0..10 {
        memory.note_failure(key, uid, "new", "refused".to_owned(), now);
        judge(&mut memory);
        memory.note_wait(key, uid, "new", now);
        assert_eq!(form(&memory, &old, now), Form::Failed);
        let pause = memory.next_try(now).unwrap().duration_since(now);
        assert!(pause > last || pause == LONGEST_PAUSE);
        last = pause;
    }
    assert_eq!(form(&memory, &old, now + LONGEST_PAUSE), Form::Evictable, "it need not be judged again");
    assert_eq!(memory.next_try(now + LONGEST_PAUSE), None, "nothing is waited for any more");
    // Another form begins anew.
    memory.note_failure(key, uid, "newer", "refused".to_owned(), now);
    assert_eq!(memory.next_try(now).unwrap(), now + FIRST_PAUSE);
}

#[test]
fn a_pod_that_may_not_be_evicted_now_is_no_failure_and_waits_as_long_as_the_api_server_says() {
    let (now, old) = (Instant::now(), member("p", "old"));
    let mut memory = Memory::default();
    for (after, pause) in [(0, FIRST_PAUSE), (0, FIRST_PAUSE * 2), (10, Duration::from_secs(10)), (999, LONGEST_PAUSE)]
    {
        let why = ("Cannot evict pod".to_owned(), Duration::from_secs(after));
        memory.note_blocked(&old.0, old.1.facts.uid, "new", why, now);
        assert_eq!(memory.next_try(now).unwrap(), now + pause);
    }
    assert_eq!((form(&memory, &old, now), memory.failures().0, memory.blocked().0), (Form::Blocked, 0, 1));
}

#[test]
fn pods_that_are_evicted_in_turn_need_nobody_who_creates_them_anew() {
    let (old, mut memory) = (member("p", "old"), Memory::default());
    memory.note(&old.0, old.1.facts.uid, "new", PodFact::Replaceable("env".to_owned()));
    assert_eq!(memory.new_pods_only().0, 1);
    memory.note_evictable(HashSet::from([old.0.clone()]));
    assert_eq!(memory.new_pods_only().0, 0);
    memory.note_evictable(HashSet::new());
    assert_eq!(memory.new_pods_only().0, 1);
}

#[test]
fn a_pod_that_is_not_what_the_watch_showed_is_planned_again_and_is_no_failure() {
    let (now, old) = (Instant::now(), member("p", "old"));
    let mut memory = Memory::default();
    memory.note_wait(&old.0, old.1.facts.uid, "new", now);
    let state = state(&memory, &old, now);
    assert!(state.form == Form::Failed && !state.is_in_flight(), "it takes no place meanwhile");
    assert_eq!(form(&memory, &old, now + FIRST_PAUSE), Form::Outdated);
    assert_eq!(memory.failures().0, 0);
}

#[test]
fn a_pod_of_openkruise_is_left_alone_and_degrades_nothing() {
    let now = Instant::now();
    let mut kruise = pod("p", "web", &[], true);
    kruise.annotations.get_or_insert_default().openkruise_list = Some("a".into());
    let kruise = member_of(&kruise);
    let mut memory = Memory::default();
    assert_eq!(form(&memory, &kruise, now), Form::OpenKruise);
    let old = member("p", "old");
    memory.note(&old.0, old.1.facts.uid, "new", PodFact::OpenKruise);
    assert_eq!(form(&memory, &old, now), Form::OpenKruise, "as its containers say");
    assert_eq!((memory.new_pods_only().0, memory.failures().0), (0, 0));
}

#[test]
fn that_a_pod_cannot_be_updated_in_place_is_remembered_for_this_form_alone() {
    let (now, old) = (Instant::now(), member("p", "old"));
    let mut memory = Memory::default();
    memory.note(&old.0, old.1.facts.uid, "new", PodFact::NewPodOnly("env".to_owned()));
    assert_eq!(form(&memory, &old, now), Form::NewPodOnly);
    assert_eq!(memory.state(("a", "newer"), &old, &Expectations::default(), now).form, Form::Outdated);
    assert_eq!(memory.new_pods_only(), (1, Some((&old.0, "env"))));
}
