//! Pods that are evicted, in the budgets.

use serde_json::{Value, json};

use super::{TestPod, disruption, next, outdated, planned, strategy, within};
use crate::sidecarset::rollout::{Disruptions, EvictionsWait, Form, PodState, Vacancy, Waits, plan};

#[test]
fn pods_that_may_be_evicted_are_next_within_the_same_budgets() {
    let mut pods: Vec<TestPod> = (0..6).map(|n| TestPod { form: Form::Evictable, ..outdated(n) }).collect();
    assert_eq!(next(&pods, json!({"maxUnavailable": 2})), ["pod-5", "pod-4"]);
    assert_eq!(next(&pods, json!({"maxUnavailable": 6, "partition": 4})), ["pod-5", "pod-4"]);
    pods[0].is_ready = false;
    assert_eq!(next(&pods, json!({})), ["pod-0", "pod-5"], "one that does not serve is free");
    assert_eq!(within(&pods[1..], &[disruption(json!({}), 1)], &[]).0.len(), 1);
}

/// An eviction of a pod of this workload that served.
fn vacancy(owner: u64) -> Vacancy {
    let [ends, is_overdue, is_guess, is_counted] = [false; 4];
    Vacancy { namespace: "default".into(), owner, served: true, ends, is_overdue, is_guess, is_counted }
}

#[test]
fn an_evicted_pod_keeps_its_place_until_another_is_there() {
    let pods: Vec<TestPod> =
        (0..6).map(|n| TestPod { form: Form::Evictable, owner: if n < 3 { 1 } else { 2 }, ..outdated(n) }).collect();
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let none = Disruptions::default();
    let next = |vacancy: Vacancy, written: Value| {
        let plan = plan(&states, &[vacancy], &strategy(written), none.beyond(std::iter::empty()));
        (plan.update, plan.waits)
    };
    assert_eq!(next(vacancy(1), json!({"maxUnavailable": 1})), (vec![], Waits::MaxUnavailable(1)));
    assert_eq!(next(vacancy(1), json!({"maxUnavailable": 2})).0, [5]);
    let of_one = json!({"maxUnavailable": 3, "maxUnavailablePerOwner": 1});
    assert_eq!(next(vacancy(2), of_one).0, [2], "of the other workload");
    // Six of seven pods are here, and half of seven is to stay.
    assert_eq!(next(vacancy(1), json!({"maxUnavailable": 9, "partition": "50%"})).0.len(), 2);
    let counted = Vacancy { is_counted: true, ..vacancy(1) };
    assert_eq!(next(counted, json!({"maxUnavailable": 9, "partition": "50%"})).0.len(), 3, "it is one of the six");
    let unready = Vacancy { served: false, ..vacancy(1) };
    assert_eq!(next(unready, json!({"maxUnavailable": 1})).0, [5], "nothing was lost");
    let overdue = Vacancy { is_overdue: true, ..vacancy(1) };
    assert_eq!(next(overdue, json!({"maxUnavailable": 1})), (vec![], Waits::MaxUnavailable(1)), "in its namespace");
    let elsewhere = Vacancy { is_overdue: true, namespace: "other".into(), ..vacancy(9) };
    assert_eq!(next(elsewhere, json!({"maxUnavailable": 1})).0, [5]);
}

/// After a change of leaders: they may be pods that fail by themselves, of any author.
#[test]
fn places_that_may_be_none_leave_one_for_a_pod_that_shows_whether_the_form_serves() {
    let pods: Vec<TestPod> = (0..6).map(|n| TestPod { form: Form::Evictable, owner: 7, ..outdated(n) }).collect();
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let none = Disruptions::default();
    let next = |vacancies: &[Vacancy], max_unavailable: i32| {
        let strategy = strategy(json!({"maxUnavailable": max_unavailable}));
        let plan = plan(&states, vacancies, &strategy, none.beyond(std::iter::empty()));
        plan.update.len()
    };
    let guess = |owner: u64| Vacancy { is_guess: true, ..vacancy(owner) };
    assert_eq!(next(&[guess(1)], 1), 1);
    assert_eq!((next(&[guess(1), guess(2)], 2), next(&[guess(1), guess(2)], 4)), (1, 2));
    let probed = [guess(1), guess(2), vacancy(7)];
    assert_eq!((next(&probed, 1), next(&probed, 3), next(&probed, 4)), (0, 0, 1), "it is there");
}

#[test]
fn the_first_pod_of_a_workload_is_evicted_alone() {
    let of = |n: usize, owner: u64| TestPod { form: Form::Evictable, is_first: true, owner, ..outdated(n) };
    let pods = [of(0, 1), of(1, 1), of(2, 2), of(3, 2)];
    let plan = planned(&pods, json!({"maxUnavailable": 4}));
    assert_eq!((plan.update, plan.waits), (vec![3, 1], Waits::Evictions(EvictionsWait::Successors)));
    let waiting = pods.map(|pod| TestPod { form: Form::Awaiting, ..pod });
    let plan = planned(&waiting, json!({"maxUnavailable": 4}));
    assert_eq!((plan.update, plan.waits), (vec![], Waits::Evictions(EvictionsWait::Successors)));
}

#[test]
fn pods_that_do_not_serve_are_evicted_in_turn_as_well() {
    let pod = |n: usize| TestPod { form: Form::Evictable, is_ready: false, ..outdated(n) };
    let pods: Vec<TestPod> = (0..4).map(pod).collect();
    assert_eq!(next(&pods, json!({"maxUnavailable": 2})).len(), 2);
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let evicted = [Vacancy { served: false, ..vacancy(1) }, Vacancy { served: false, ..vacancy(1) }];
    let none = Disruptions::default();
    let found = plan(&states, &evicted, &strategy(json!({"maxUnavailable": 2})), none.beyond(std::iter::empty()));
    assert_eq!((found.update, found.waits), (vec![], Waits::MaxUnavailable(2)));
}

#[test]
fn a_pod_that_two_disruption_budgets_select_is_not_evicted_and_one_that_changes_in_place_needs_both() {
    let budgets = [disruption(json!({}), 9), disruption(json!({}), 9)];
    let evictable = [TestPod { form: Form::Evictable, ..outdated(0) }];
    let found = within(&evictable, &budgets, &[]);
    assert!(found.0.is_empty() && matches!(found.1, Waits::SeveralDisruptions(..)), "{found:?}");
    let unready = [TestPod { is_ready: false, ..evictable[0].clone() }];
    assert!(within(&unready, &budgets, &[]).0.is_empty(), "ready or not");
    assert_eq!(within(&evictable, &budgets[..1], &[]).0.len(), 1);
    assert_eq!(within(&[outdated(0)], &budgets, &[]).0.len(), 1);
}

#[test]
fn a_rollout_is_not_done_before_the_last_evicted_pod_is_replaced() {
    let pods = [TestPod { form: Form::Updated, ..outdated(0) }];
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let none = Disruptions::default();
    let waits =
        |vacancies: &[Vacancy]| plan(&states, vacancies, &strategy(json!({})), none.beyond(std::iter::empty())).waits;
    assert_eq!(waits(&[]), Waits::Done);
    let successors = Waits::Evictions(EvictionsWait::Successors);
    assert_eq!(waits(&[vacancy(1)]), successors);
    assert_eq!(waits(&[Vacancy { is_overdue: true, ..vacancy(1) }]), successors, "none comes");
    assert_eq!(waits(&[Vacancy { ends: true, ..vacancy(1) }]), successors);
    assert_eq!(
        waits(&[Vacancy { ends: true, is_overdue: true, ..vacancy(1) }]),
        Waits::Done,
        "its author keeps it there"
    );
}

#[test]
fn two_budgets_about_one_pod_are_the_reason_only_if_nothing_goes_on() {
    let evictable = |n: usize, namespace: &'static str| TestPod { form: Form::Evictable, namespace, ..outdated(n) };
    let budgets = [disruption(json!({}), 9), disruption(json!({}), 9)];
    let found = within(&[evictable(1, "default"), evictable(0, "elsewhere")], &budgets, &[]);
    assert_eq!(found, (vec!["pod-0".to_owned()], Waits::Nothing));
    let pods = [evictable(1, "default")];
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let all = Disruptions::of(budgets.iter().cloned());
    let waits = |vacancies: &[Vacancy]| {
        let plan = plan(&states, vacancies, &strategy(json!({"maxUnavailable": 9})), all.beyond(std::iter::empty()));
        plan.waits
    };
    assert!(matches!(waits(&[]), Waits::SeveralDisruptions(..)));
    assert_eq!(waits(&[vacancy(2)]), Waits::Evictions(EvictionsWait::Successors));
    // Labels that are not kept may be what distinguishes the budgets: the API server is asked.
    let clipped = [TestPod { some_left_out: true, ..evictable(0, "default") }];
    assert_eq!(within(&clipped, &budgets, &[]).0.len(), 1);
}

#[test]
fn a_pod_that_could_not_be_changed_is_the_reason_only_if_no_other_waits_for_a_new_one() {
    let pods = [TestPod { form: Form::Failed, ..outdated(0) }, TestPod { form: Form::Awaiting, ..outdated(1) }];
    assert_eq!(planned(&pods, json!({})).waits, Waits::Evictions(EvictionsWait::Successors));
    assert_eq!(planned(&pods[..1], json!({})).waits, Waits::Failed);
}
