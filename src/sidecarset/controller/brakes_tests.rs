use super::*;

const NOW: fn() -> Instant = Instant::now;

/// What has become of evictions, in their order: in which namespace, and what failed if it did.
fn after(evictions: &[(&str, Option<EvictionFailure>)], now: Instant) -> Brakes {
    let mut brakes = Brakes::default();
    for (owner, (namespace, failure)) in (1..).zip(evictions) {
        let namespace: Arc<str> = (*namespace).into();
        let number = brakes.count("a", &namespace);
        if let Some(failure) = failure {
            brakes.note("a", (owner, &namespace), *failure, number, now);
        }
    }
    brakes
}

const FINE: Option<EvictionFailure> = None;
const LOST: Option<EvictionFailure> = Some(EvictionFailure::NotReplaced);
const OUTDATED: Option<EvictionFailure> = Some(EvictionFailure::Outdated);

#[test]
fn new_pods_without_the_form_stop_evictions_as_pods_that_are_not_replaced_do() {
    let now = NOW();
    for (failure, are_lost) in [(LOST, true), (OUTDATED, false)] {
        let brakes = after(&[("x", failure), ("y", failure), ("y", failure)], now);
        assert_eq!((brakes.hold("a", now), brakes.halted("a", now).len()), (None, 0));
        let brakes = after(&[("x", failure), ("y", failure), ("z", failure)], now);
        let expected = EvictionsWait::Failures { namespaces: 3, is_all: true, are_lost };
        assert_eq!(brakes.hold("a", now), Some(expected));
        assert_eq!(brakes.hold("b", now), None, "of another set nothing is known");
        assert_eq!(brakes.hold("a", now + FAILED_FOR), None, "for an hour");
        let brakes = after(&[("x", failure), ("x", FINE), ("x", failure), ("x", failure)], now);
        assert_eq!((brakes.hold("a", now), brakes.halted("a", now)), (None, HashSet::from(["x"])));
        assert_eq!(brakes.why_halted("a", 1, now), EvictionsWait::Failures { namespaces: 1, is_all: false, are_lost });
    }
}

/// In a large cluster workloads are scaled down all the time.
#[test]
fn a_few_failures_among_many_evictions_stop_nothing() {
    let now = NOW();
    let mut many = Vec::new();
    for namespace in ["x", "y", "z", "x", "x"] {
        many.push((namespace, LOST));
        many.extend(std::iter::repeat_n(("x", FINE), 5));
        many.extend(std::iter::repeat_n(("w", FINE), 5));
    }
    let brakes = after(&many, now);
    assert_eq!((brakes.hold("a", now), brakes.halted("a", now).len()), (None, 0));
    many.extend([("x", OUTDATED), ("y", OUTDATED), ("z", LOST)]);
    assert!(after(&many, now).hold("a", now).is_some(), "in a row they do");
}

#[test]
fn what_has_passed_does_not_count_any_more() {
    let now = NOW();
    let mut brakes = after(&[("x", OUTDATED), ("y", OUTDATED), ("z", LOST)], now);
    brakes.is_of_another_form("a");
    assert_eq!(brakes.hold("a", now), None, "another form is one that new pods may get");
    let mut brakes = after(&[("x", LOST), ("y", LOST), ("z", LOST)], now);
    brakes.is_of_another_form("a");
    assert!(brakes.hold("a", now).is_some(), "a workload replaces its pods or not");
    brakes.is_replaced(2);
    assert_eq!(brakes.hold("a", now), None);
    let mut brakes = after(&[("x", LOST), ("y", LOST), ("z", LOST)], now);
    brakes.forget("a");
    assert_eq!(brakes.hold("a", now), None);
}

#[test]
fn what_is_found_of_a_workload_counts_once_and_for_no_longer_as_it_is_found_again() {
    let (now, mut brakes) = (NOW(), Brakes::default());
    let note = |brakes: &mut Brakes, namespace: &str, at| {
        let (namespace, owner): (Arc<str>, _) = (namespace.into(), u64::from(namespace.as_bytes()[0]));
        let number = brakes.count("a", &namespace);
        brakes.note("a", (owner, &namespace), EvictionFailure::Outdated, number, at);
    };
    for namespace in ["x", "x", "x", "y", "z"] {
        assert_eq!(brakes.hold("a", now), None);
        note(&mut brakes, namespace, now);
    }
    assert!(brakes.hold("a", now).is_some() && brakes.halted("a", now).is_empty());
    note(&mut brakes, "x", now + FAILED_FOR / 2);
    assert_eq!(brakes.hold("a", now + FAILED_FOR), None);
}

/// The watch is faster than the answer.
#[test]
fn a_failure_that_is_seen_before_the_answer_to_its_eviction_counts_as_one_of_the_last() {
    let now = NOW();
    let mut brakes = after(&[("x", FINE); 20], now);
    for (owner, namespace) in (1..).zip(["x", "y", "z"]) {
        brakes.note("a", (owner, &namespace.into()), EvictionFailure::NotReplaced, Number::default(), now);
        brakes.count("a", &namespace.into());
    }
    assert!(brakes.hold("a", now).is_some());
}

#[test]
fn where_the_right_is_missing_nothing_is_tried_for_longer_and_longer_and_elsewhere_it_is() {
    let (mut now, mut brakes) = (NOW(), Brakes::default());
    let namespace: Arc<str> = "x".into();
    let mut pauses = Vec::new();
    for _ in 0..5 {
        brakes.forbid(&namespace, "no".to_owned(), now);
        // Another pod of the same batch.
        brakes.forbid(&namespace, "no".to_owned(), now);
        assert_eq!((brakes.forbidden("x", now), brakes.forbidden("y", now)), (Some("no"), None));
        let end =
            (0..600).map(|seconds| now + Duration::from_secs(seconds)).find(|at| brakes.forbidden("x", *at).is_none());
        pauses.push((end.unwrap() - now).as_secs());
        now = end.unwrap();
        brakes.prune(now);
    }
    assert_eq!(pauses, [30, 60, 120, 240, 240]);
    brakes.forbid(&namespace, "no".to_owned(), now);
    brakes.allow("x");
    assert_eq!(brakes.forbidden("x", now), None);
}
