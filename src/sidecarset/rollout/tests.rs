//! The cases 86 to 95 and 103 of `OpenKruise`'s tests, as far as they are about which pods come next, with the outcome that is
//! correct; and what our own budgets say.

mod evictions;

use admission::format::LabelSelector;
use serde_json::{Value, json};

use super::scatter::expanded;
use super::strategy::Strategy;
use super::{Disrupted, Disruption, Disruptions, Form, Phase, Plan, PodState, Waits, plan};
use crate::sidecarset::controller::packed::Packed;

/// A pod that a test can keep.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
#[derive(Debug, Clone)]
struct TestPod {
    name: String,
    labels: Packed,
    some_left_out: bool,
    form: Form,
    is_settled: bool,
    is_ready: bool,
    is_touched: bool,
    is_overdue: bool,
    is_first: bool,
    namespace: &'static str,
    owner: u64,
    created: u32,
    ready_since: u32,
    restarts: u16,
    phase: Phase,
    is_assigned: bool,
}

impl TestPod {
    fn state(&self) -> PodState<'_> {
        PodState {
            namespace: self.namespace,
            name: &self.name,
            labels: &self.labels,
            some_left_out: self.some_left_out,
            form: self.form,
            is_settled: self.is_settled,
            is_ready: self.is_ready,
            is_touched: self.is_touched,
            is_overdue: self.is_overdue,
            is_first: self.is_first,
            owner: self.owner,
            created: self.created,
            ready_since: self.ready_since,
            restarts: self.restarts,
            phase: self.phase,
            is_assigned: self.is_assigned,
        }
    }

    fn labelled(mut self, labels: &[(&str, &str)]) -> Self {
        self.labels = Packed::of(labels.iter().copied());
        self
    }
}

/// A pod that is ready and carries an older form; the nth of its kind is the nth oldest.
fn outdated(n: usize) -> TestPod {
    TestPod {
        name: format!("pod-{n}"),
        labels: Packed::default(),
        some_left_out: false,
        form: Form::Outdated,
        is_settled: true,
        is_ready: true,
        is_touched: false,
        is_overdue: false,
        is_first: false,
        namespace: "default",
        owner: 1,
        created: u32::try_from(n).unwrap(),
        ready_since: 1000,
        restarts: 0,
        phase: Phase::Running,
        is_assigned: true,
    }
}

/// So many pods, of which so many are updated, and of these so many ready.
fn pods(total: usize, updated: usize, updated_ready: usize) -> Vec<TestPod> {
    let pod = |n: usize| {
        let form = if n < updated { Form::Updated } else { Form::Outdated };
        TestPod { form, is_ready: n >= updated || n < updated_ready, is_touched: n < updated, ..outdated(n) }
    };
    (0..total).map(pod).collect()
}

fn strategy(strategy: Value) -> Strategy {
    Strategy::written(serde_json::from_value(strategy).unwrap())
}

fn planned(pods: &[TestPod], written: Value) -> Plan {
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    plan(&states, &[], &strategy(written), Disruptions::default().beyond(std::iter::empty()))
}

/// Names of the pods that are updated next.
fn next(pods: &[TestPod], written: Value) -> Vec<String> {
    let plan = planned(pods, written);
    plan.update.iter().map(|position| pods[*position].name.clone()).collect()
}

/// `[updated, ready, updated and ready]` of pods.
fn counts(pods: &[TestPod]) -> [usize; 3] {
    let count = |is: fn(&TestPod) -> bool| pods.iter().filter(|pod| is(pod)).count();
    let is_updated: fn(&TestPod) -> bool = |pod| pod.form == Form::Updated;
    [
        count(is_updated),
        count(|pod| pod.state().is_available()),
        count(|pod| pod.form == Form::Updated && pod.state().is_available()),
    ]
}

/// Touches the pods that are next: they restart.
fn touch(pods: &mut [TestPod], written: Value) -> usize {
    let plan = planned(pods, written);
    for position in &plan.update {
        let pod = &mut pods[*position];
        pod.is_touched = pod.state().is_available() || pod.state().is_in_flight();
        (pod.form, pod.is_settled) = (Form::Updated, false);
    }
    plan.update.len()
}

/// What restarts is back.
fn come_back(pods: &mut [TestPod]) {
    for pod in pods.iter_mut().filter(|pod| pod.form == Form::Updated) {
        (pod.is_settled, pod.is_ready, pod.is_touched) = (true, true, false);
    }
}

#[test]
fn case_86_what_is_not_to_be_updated_stays() {
    let ready = [outdated(0)];
    let pending = [TestPod { is_ready: false, phase: Phase::Pending, is_assigned: false, ..outdated(0) }];
    for (case, pods, written, updated, waits) in [
        ("NotUpdate", &ready, json!({"type": "NotUpdate"}), 0, Waits::NotUpdate),
        ("paused", &ready, json!({"paused": true}), 0, Waits::Paused),
        ("pending, which is free", &pending, json!({}), 1, Waits::Nothing),
        ("partition 1 of 1", &ready, json!({"partition": 1}), 0, Waits::Kept),
    ] {
        let plan = planned(pods, written);
        assert_eq!((plan.update.len(), plan.waits), (updated, waits), "{case}");
    }
}

#[test]
fn case_87_two_pods_follow_one_after_the_other() {
    let mut pods = pods(2, 0, 0);
    let mut seen = vec![counts(&pods)];
    for _ in 0..2 {
        assert_eq!(touch(&mut pods, json!({})), 1);
        seen.push(counts(&pods));
        assert_eq!(touch(&mut pods, json!({})), 0, "while it restarts no other is touched");
        come_back(&mut pods);
        seen.push(counts(&pods));
    }
    assert_eq!(seen, [[0, 2, 0], [1, 1, 0], [1, 2, 1], [2, 1, 1], [2, 2, 2]]);
    assert_eq!(planned(&pods, json!({})).waits, Waits::Done);
}

#[test]
fn case_88_those_that_can_be_updated_are() {
    let mut pods = pods(100, 0, 0);
    for pod in pods.iter_mut().take(50) {
        pod.form = Form::NewPodOnly;
    }
    let plan = planned(&pods, json!({"maxUnavailable": "50%"}));
    assert_eq!(plan.update.len(), 50);
    assert!(plan.update.iter().all(|position| pods[*position].form == Form::Outdated));
}

#[test]
fn case_89_counts() {
    for (case, total, updated, updated_ready, written, expected) in [
        ("a number", 100, 30, 26, json!({"maxUnavailable": 10}), 6),
        ("a share", 1000, 300, 260, json!({"maxUnavailable": "10%"}), 60),
        ("as many as may be", 1000, 300, 250, json!({"maxUnavailable": "5%"}), 0),
        ("all", 100, 30, 27, json!({"maxUnavailable": 100}), 70),
        ("partition 180", 1000, 800, 760, json!({"maxUnavailable": 100, "partition": 180}), 20),
        ("partition 100", 1000, 800, 760, json!({"maxUnavailable": 100, "partition": 100}), 60),
        ("partition 18%", 1000, 800, 760, json!({"maxUnavailable": 100, "partition": "18%"}), 20),
        ("partition 10%", 1000, 800, 760, json!({"maxUnavailable": 100, "partition": "10%"}), 60),
        ("5% of 5", 5, 0, 0, json!({"maxUnavailable": "5%"}), 1),
        ("partition 99% of 5", 5, 0, 0, json!({"maxUnavailable": 5, "partition": "99%"}), 1),
        ("partition 1% of 5", 5, 0, 0, json!({"maxUnavailable": 5, "partition": "1%"}), 4),
        ("partition 100% of 5", 5, 0, 0, json!({"maxUnavailable": 5, "partition": "100%"}), 0),
        ("partition 0%", 5, 0, 0, json!({"maxUnavailable": 5, "partition": "0%"}), 5),
        ("partition of more than there are", 5, 0, 0, json!({"maxUnavailable": 5, "partition": 9}), 0),
    ] {
        assert_eq!(next(&pods(total, updated, updated_ready), written).len(), expected, "{case}");
    }
    let mut thousand = pods(1000, 0, 0);
    for pod in thousand.iter_mut().take(30) {
        *pod = pod.clone().labelled(&[("canary", "true")]);
    }
    let selected = json!({"maxUnavailable": 100, "selector": {"matchLabels": {"canary": "true"}}});
    assert_eq!(next(&thousand, selected).len(), 30);
    let mut hundred = pods(100, 0, 0);
    for pod in &mut hundred {
        pod.form = Form::NewPodOnly;
    }
    let plan = planned(&hundred, json!({"maxUnavailable": 100}));
    assert_eq!((plan.update.len(), plan.waits), (0, Waits::NewPodOnly));
}

/// Pods that stay at an older form are counted whether or not they could be updated: OpenKruise counts only those that could.
#[test]
fn pods_that_cannot_be_updated_count_as_those_that_the_partition_keeps() {
    let mut pods = pods(10, 0, 0);
    for pod in pods.iter_mut().take(3) {
        pod.form = Form::NewPodOnly;
    }
    assert_eq!(next(&pods, json!({"maxUnavailable": 10, "partition": 3})).len(), 7);
    assert_eq!(next(&pods, json!({"maxUnavailable": 10, "partition": 5})).len(), 5);
}

#[test]
fn case_90_order() {
    let ten: Vec<TestPod> = (0..20).map(outdated).collect();
    let five = json!({"maxUnavailable": 5});
    assert_eq!(next(&ten, five.clone()), ["pod-19", "pod-18", "pod-17", "pod-16", "pod-15"], "newest first");
    let mut some_not_ready = ten.clone();
    for n in [10, 13] {
        some_not_ready[n].is_ready = false;
    }
    let expected = ["pod-13", "pod-10", "pod-19", "pod-18", "pod-17", "pod-16", "pod-15"];
    assert_eq!(next(&some_not_ready, five.clone()), expected, "those that are not ready first, and free");

    let mut labelled = ten.clone();
    labelled[3] = labelled[3].clone().labelled(&[("app", "foo"), ("order", "a-5")]);
    labelled[4] = labelled[4].clone().labelled(&[("app", "bar"), ("order", "a-10")]);
    labelled[5] = labelled[5].clone().labelled(&[("app", "foo"), ("order", "a-20")]);
    let weights = json!([
        {"weight": 30, "matchSelector": {"matchLabels": {"app": "bar"}}},
        {"weight": 50, "matchSelector": {"matchLabels": {"app": "foo"}}},
    ]);
    let three = |priority: Value| next(&labelled, json!({"maxUnavailable": 3, "priorityStrategy": priority}));
    assert_eq!(three(json!({"weightPriority": weights})), ["pod-5", "pod-3", "pod-4"]);
    // Pods without the label go last: OpenKruise takes them first.
    assert_eq!(three(json!({"orderPriority": [{"orderedKey": "order"}]})), ["pod-5", "pod-4", "pod-3"]);
    let two_keys = json!({"orderPriority": [{"orderedKey": "none"}, {"orderedKey": "order"}]});
    assert_eq!(three(two_keys), ["pod-5", "pod-4", "pod-3"]);
}

#[test]
fn what_serves_least_goes_first() {
    let serves_less = [
        TestPod { is_assigned: false, phase: Phase::Pending, is_ready: false, ..outdated(1) },
        TestPod { phase: Phase::Pending, is_ready: false, ..outdated(2) },
        TestPod { phase: Phase::Unknown, is_ready: false, ..outdated(3) },
        TestPod { is_ready: false, restarts: 3, ..outdated(4) },
        TestPod { is_ready: false, ..outdated(9) },
        TestPod { ready_since: 2000, ..outdated(5) },
        TestPod { restarts: 1, ..outdated(6) },
        outdated(8),
        outdated(7),
    ];
    let expected: Vec<String> = serves_less.iter().map(|pod| pod.name.clone()).collect();
    let mut shuffled = serves_less.to_vec();
    shuffled.reverse();
    assert_eq!(next(&shuffled, json!({"maxUnavailable": 100})), expected);
}

#[test]
fn case_91_terms_of_the_scatter_strategy() {
    let labelled = |values: &[&str]| -> Vec<TestPod> {
        values.iter().enumerate().map(|(n, value)| outdated(n).labelled(&[("zone", value)])).collect()
    };
    let pods = labelled(&["b", "a", "b", "c"]);
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let terms = |written: Value| {
        let found = expanded(&[0, 1, 2, 3], &states, &serde_json::from_value::<Vec<_>>(written).unwrap());
        found.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(terms(json!([{"key": "zone", "value": "a"}])), ["a"]);
    assert_eq!(terms(json!([{"key": "zone", "value": "*"}])), ["b", "a", "c"]);
    assert_eq!(terms(json!([{"key": "zone", "value": "c"}, {"key": "zone", "value": "*"}])), ["c", "b", "a"]);

    let order = |values: &[&str]| -> String {
        let mut pods = labelled(values);
        // The first is the newest.
        let count = u32::try_from(pods.len()).unwrap();
        for (n, pod) in pods.iter_mut().enumerate() {
            pod.created = count - u32::try_from(n).unwrap();
        }
        let written = json!({"maxUnavailable": 100, "scatterStrategy": [{"key": "zone", "value": "m"}]});
        let plan = planned(&pods, written);
        plan.update.iter().map(|position| values[*position]).collect()
    };
    for (pods, expected) in
        [("mmoooo", "moooom"), ("mmmoooo", "moomoom"), ("ommmmoo", "momomom"), ("mooo", "mooo"), ("mmmo", "mmmo")]
    {
        let values: Vec<&str> = pods.split("").filter(|value| !value.is_empty()).collect();
        assert_eq!(order(&values), expected, "{pods}");
    }
}

#[test]
fn case_92_a_bad_image_stops_at_max_unavailable_and_a_good_one_goes_on() {
    for (total, max_unavailable, touched) in [(2, json!(1), 1), (4, json!("50%"), 2)] {
        let written = json!({"maxUnavailable": max_unavailable});
        let mut pods = pods(total, 0, 0);
        assert_eq!(touch(&mut pods, written.clone()), touched);
        // The new image cannot be pulled.
        for pod in pods.iter_mut().filter(|pod| pod.form == Form::Updated) {
            pod.is_ready = false;
        }
        assert_eq!(planned(&pods, written.clone()).waits, Waits::MaxUnavailable(touched));
        assert_eq!(counts(&pods), [touched, total - touched, 0]);
        // The set gets another image: all pods carry an older form, and those that do not serve go first.
        for pod in &mut pods {
            pod.form = Form::Outdated;
        }
        assert_eq!(touch(&mut pods, written.clone()), touched);
        assert_eq!(pods.iter().filter(|pod| pod.is_ready).count(), total - touched, "no other is touched");
        for _ in 0..total {
            come_back(&mut pods);
            touch(&mut pods, written.clone());
        }
        assert_eq!(counts(&pods), [total; 3]);
    }
}

#[test]
fn case_95_paused_and_selected_and_kept() {
    let mut two = pods(2, 1, 1);
    assert_eq!(touch(&mut two, json!({"paused": true})), 0);
    assert_eq!(counts(&two), [1, 2, 1]);
    assert_eq!(touch(&mut two, json!({})), 1);

    let mut two = pods(2, 0, 0);
    two[0] = two[0].clone().labelled(&[("canary.release", "true")]);
    let selected = json!({"maxUnavailable": 2, "selector": {"matchLabels": {"canary.release": "true"}}});
    assert_eq!(next(&two, selected.clone()), ["pod-0"]);
    two[0].form = Form::Updated;
    assert_eq!(planned(&two, selected).waits, Waits::Kept);
    assert_eq!(next(&two, json!({"maxUnavailable": 2})), ["pod-1"]);

    let half = json!({"maxUnavailable": 2, "partition": "50%"});
    assert_eq!(next(&pods(2, 0, 0), half.clone()).len(), 1);
    assert_eq!(next(&pods(2, 1, 1), half).len(), 0);
}

#[test]
fn a_pod_that_failed_waits_and_the_others_go_on() {
    let mut pods = pods(3, 0, 0);
    pods[2].form = Form::Failed;
    assert_eq!(next(&pods, json!({"maxUnavailable": 3})), ["pod-1", "pod-0"]);
    pods[0].form = Form::Updated;
    pods[1].form = Form::Updated;
    assert_eq!(planned(&pods, json!({})).waits, Waits::Failed);
}

fn disruption(labels: Value, allowed: i32) -> Disruption {
    let selector: LabelSelector = serde_json::from_value(json!({"matchLabels": labels})).unwrap();
    Disruption {
        namespace: "default".to_owned(),
        name: "pdb".to_owned(),
        selector: selector.compile().unwrap(),
        allowed,
    }
}

/// Names of the pods that are updated next, where these budgets are and pods with these labels are on their way down.
fn within(pods: &[TestPod], disruptions: &[Disruption], in_flight: &[(&str, &str)]) -> (Vec<String>, Waits) {
    let states: Vec<PodState<'_>> = pods.iter().map(TestPod::state).collect();
    let labels: Vec<Packed> = in_flight.iter().map(|label| Packed::of([*label])).collect();
    let all = Disruptions::of(disruptions.iter().cloned());
    let in_flight = |labels| Disrupted { namespace: "default", labels, some_left_out: false };
    let left = all.beyond(labels.iter().map(in_flight));
    let plan = plan(&states, &[], &strategy(json!({"maxUnavailable": 6})), left);
    (plan.update.iter().map(|position| pods[*position].name.clone()).collect(), plan.waits)
}

#[test]
fn a_ready_pod_is_touched_only_while_every_disruption_budget_about_it_allows() {
    let mut pods: Vec<TestPod> =
        (0..6).map(|n| outdated(n).labelled(&[("app", if n < 3 { "a" } else { "b" })])).collect();
    let one_of_a = [disruption(json!({"app": "a"}), 1)];
    let (names, waits) = within(&pods, &one_of_a, &[]);
    assert_eq!(names, ["pod-5", "pod-4", "pod-3", "pod-2"]);
    assert_eq!(waits, Waits::Disruption("default".to_owned(), "pdb".to_owned()));
    let both = [disruption(json!({"app": "a"}), 1), disruption(json!({}), 2)];
    assert_eq!(within(&pods, &both, &[]).0.len(), 2, "each of them");
    // One that does not serve costs nothing.
    pods[0].is_ready = false;
    assert_eq!(within(&pods, &[disruption(json!({}), 0)], &[]).0, ["pod-0"]);
    let mut elsewhere = disruption(json!({}), 0);
    elsewhere.namespace = "other".to_owned();
    assert_eq!(within(&pods, &[elsewhere], &[]).0.len(), 6);
}

#[test]
fn a_pod_of_which_labels_were_left_out_counts_for_every_disruption_budget_of_its_namespace() {
    let pods = [TestPod { some_left_out: true, ..outdated(0) }];
    for (allowed, expected) in [(0, 0), (1, 1)] {
        assert_eq!(within(&pods, &[disruption(json!({"app": "a"}), allowed)], &[]).0.len(), expected);
    }
}

#[test]
fn a_pod_that_is_on_its_way_down_for_any_set_takes_its_place_in_a_disruption_budget() {
    let pods: Vec<TestPod> = (0..3).map(|n| outdated(n).labelled(&[("app", "a")])).collect();
    let two_of_a = [disruption(json!({"app": "a"}), 2)];
    for (in_flight, expected) in [(&[][..], 2), (&[("app", "b")], 2), (&[("app", "a")], 1), (&[("app", "a"); 3], 0)] {
        assert_eq!(within(&pods, &two_of_a, in_flight).0.len(), expected, "{in_flight:?}");
    }
}

#[test]
fn no_workload_loses_more_pods_than_it_may() {
    // 7A-41: one budget for all lets one workload lose all its pods.
    let mut pods: Vec<TestPod> = (0..8).map(|n| TestPod { owner: if n < 4 { 1 } else { 2 }, ..outdated(n) }).collect();
    let written = json!({"maxUnavailable": 8, "maxUnavailablePerOwner": "25%"});
    assert_eq!(next(&pods, written.clone()), ["pod-7", "pod-3"]);
    touch(&mut pods, written.clone());
    let plan = planned(&pods, written.clone());
    assert_eq!((plan.update.len(), plan.waits), (0, Waits::MaxUnavailablePerOwner));
    come_back(&mut pods);
    assert_eq!(next(&pods, written.clone()), ["pod-6", "pod-2"]);
    let alone: Vec<TestPod> = (0..3).map(|n| TestPod { owner: 0, ..outdated(n) }).collect();
    assert_eq!(next(&alone, written).len(), 3, "pods of nobody are each by itself");
}

#[test]
fn pods_that_only_a_new_pod_can_follow_and_pods_of_openkruise_are_never_touched() {
    let mut pods: Vec<TestPod> = (0..4).map(|n| TestPod { form: Form::NewPodOnly, ..outdated(n) }).collect();
    let plan = planned(&pods, json!({"maxUnavailable": 2}));
    assert_eq!((plan.update, plan.waits), (vec![], Waits::NewPodOnly));
    for pod in &mut pods {
        pod.form = Form::OpenKruise;
        pod.is_ready = false;
    }
    let plan = planned(&pods, json!({"maxUnavailable": 2}));
    assert_eq!((plan.update, plan.waits), (vec![], Waits::OpenKruise));
    pods.push(outdated(4));
    assert_eq!(next(&pods, json!({})), ["pod-4"], "and hold up no other");
}

/// Any tenant can create a pod with the set that never becomes ready.
#[test]
fn a_pod_that_was_created_with_the_current_form_and_is_not_ready_takes_no_place() {
    let mut pods = pods(3, 1, 0);
    assert_eq!(planned(&pods, json!({})).waits, Waits::MaxUnavailable(1), "one that the rollout touched does");
    pods[0].is_touched = false;
    assert_eq!(next(&pods, json!({})), ["pod-2"]);
}

/// One tenant's application crashes, whatever the set does.
#[test]
fn a_pod_that_was_not_ready_when_it_was_touched_holds_up_nobody() {
    let mut pods = pods(4, 0, 0);
    pods[0].is_ready = false;
    assert_eq!(touch(&mut pods, json!({})), 2, "the one that is free, and another");
    come_back(&mut pods[1..]);
    assert_eq!(next(&pods, json!({})), ["pod-2"]);
}

/// Image 2 starts and crashes, image 3 too.
#[test]
fn edits_while_pods_are_down_give_no_further_places() {
    let written = json!({"maxUnavailable": "10%", "maxUnavailablePerOwner": "50%"});
    let mut pods = pods(100, 0, 0);
    for _ in 0..4 {
        touch(&mut pods, written.clone());
        for pod in pods.iter_mut().filter(|pod| pod.form == Form::Updated) {
            // Each is another container, and is not ready.
            (pod.is_settled, pod.is_ready) = (true, false);
        }
        assert_eq!(pods.iter().filter(|pod| !pod.is_ready).count(), 10);
        for pod in &mut pods {
            pod.form = Form::Outdated;
        }
    }
}

#[test]
fn a_pod_that_is_overdue_holds_up_its_namespace_and_its_workload_alone() {
    let mut pods = pods(4, 1, 0);
    for pod in &mut pods[2..] {
        (pod.namespace, pod.owner) = ("other", 2);
    }
    assert_eq!(planned(&pods, json!({})).waits, Waits::MaxUnavailable(1));
    pods[0].is_overdue = true;
    assert_eq!(next(&pods, json!({})), ["pod-3"]);
    let two = json!({"maxUnavailable": 2, "maxUnavailablePerOwner": 1});
    assert_eq!(next(&pods, two), ["pod-3"], "its workload has no place left");
}

/// 900 of 1,000 selected pods have never been scheduled.
#[test]
fn a_share_is_of_the_pods_that_serve() {
    let mut pods = pods(1000, 0, 0);
    for pod in &mut pods[100..] {
        (pod.is_ready, pod.is_assigned, pod.form) = (false, false, Form::NewPodOnly);
    }
    assert_eq!(next(&pods, json!({"maxUnavailable": "10%"})).len(), 10);
}

#[test]
fn a_set_whose_canaries_cannot_be_read_changes_no_pod() {
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    for written in [json!({"selector": bad}), json!({"partition": "many"}), json!({"partition": -1})] {
        let plan = planned(&pods(3, 0, 0), written.clone());
        assert_eq!((plan.update, plan.waits), (vec![], Waits::Unreadable), "{written}");
    }
}

/// Whatever happens to the pods meanwhile, the budget holds at every step, and the rollout ends.
#[test]
fn max_unavailable_holds_at_every_step_and_the_rollout_ends() {
    for (total, max_unavailable) in [(1, 1), (7, 2), (50, 5), (200, 10)] {
        let written = json!({"maxUnavailable": max_unavailable});
        let mut pods = pods(total, 0, 0);
        let mut steps = 0;
        while counts(&pods) != [total; 3] {
            touch(&mut pods, written.clone());
            let unavailable = pods.iter().filter(|pod| !pod.state().is_available()).count();
            assert!(unavailable <= max_unavailable, "{total}: {unavailable}");
            // Now and then only some come back.
            let back = if steps % 3 == 0 { 1 } else { max_unavailable };
            for pod in pods.iter_mut().filter(|pod| !pod.is_settled).take(back) {
                (pod.is_settled, pod.is_ready, pod.is_touched) = (true, true, false);
            }
            steps += 1;
            assert!(steps <= 3 * total, "it does not end");
        }
    }
}

#[test]
fn pods_of_workloads_that_are_held_back_are_kept_and_take_no_place() {
    let held = |n| TestPod { form: Form::HeldBack, ..outdated(n) };
    let all = [held(0), outdated(1), held(2), outdated(3)];
    assert_eq!(next(&all, json!({"maxUnavailable": 4})), ["pod-3", "pod-1"]);
    let rest = [held(0), TestPod { form: Form::Updated, ..outdated(1) }];
    assert_eq!(planned(&rest, json!({})), Plan { update: vec![], waits: Waits::Kept });
}
