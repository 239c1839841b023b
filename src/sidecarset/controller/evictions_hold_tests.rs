//! When no pod is evicted at all, or none of a workload or a namespace.

use kube::Resource as _;
use serde_json::{Value, json};

use super::tests::{OLD, Stage, at, of};
use super::*;
use crate::sidecarset::controller::brakes::FAILED_FOR;
use crate::sidecarset::controller::evicted::NOT_REPLACED_AFTER;
use crate::sidecarset::controller::facts::seconds_now;
use crate::sidecarset::controller::record::tests::labelled;
use crate::sidecarset::controller::signs::is_rolling;
use crate::sidecarset::controller::watched_pod::WatchedPod;

pub fn refused(mut pod: WatchedPod) -> WatchedPod {
    let message = json!({"a": "env"}).to_string();
    let conditions = json!([
        {"type": "Ready", "status": "True"},
        {"type": crate::names::UPGRADABLE, "status": "False", "message": message},
    ]);
    pod.status = serde_json::from_value(json!({"phase": "Running", "conditions": conditions})).unwrap();
    pod
}

#[test]
fn pods_that_an_earlier_leader_may_have_evicted_are_vacant_while_they_end_and_nothing_is_evicted_meanwhile() {
    let mut stage = Stage::of(&["p", "left"]);
    assert_eq!(stage.vacant(), 0);
    stage.ends("p");
    assert_eq!(stage.vacant(), 0, "somebody else deletes it");
    let mut ending = refused(of("web", "p", OLD, true));
    ending.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    stage.show(&ending);
    assert_eq!((stage.vacant(), stage.hold_after(LEADER_PAUSE)), (1, Some(EvictionsWait::EarlierLeader)));
    stage.gone("p");
    assert_eq!(stage.vacant(), 0);
    // Its successor is on its way, as far as is known.
    let current = stage.current();
    let mut new = of("web", "new", &current, false);
    let now = jiff::Timestamp::from_second(seconds_now().into()).unwrap().to_string();
    new.meta_mut().creation_timestamp = serde_json::from_value(Value::from(now)).unwrap();
    stage.show(&new);
    assert_eq!(stage.hold_after(LEADER_PAUSE), Some(EvictionsWait::EarlierLeader));
    assert_eq!(stage.hold_after(OVERDUE_AFTER), None, "it has had its time");
    stage.evictions = Evictions::new(stage.start);
    stage.comes("new", &current, true);
    assert_eq!(stage.hold_after(LEADER_PAUSE / 2), Some(EvictionsWait::EarlierLeader), "requests may be on their way");
    assert_eq!(stage.hold_after(LEADER_PAUSE), None);
    assert_eq!(stage.hold_after(Duration::ZERO), None, "once for all");
}

/// The kubelet evicted it, and its remains are kept.
#[test]
fn a_pod_that_has_failed_is_not_taken_for_one_that_ends() {
    let mut stage = Stage::of(&["p", "left"]);
    let mut failed = refused(of("web", "p", OLD, true));
    failed.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    stage.show(&failed);
    assert_eq!((stage.vacant(), stage.hold_after(LEADER_PAUSE)), (0, None));
}

/// Three workloads of each of these namespaces lose a pod.
fn lose(stage: &mut Stage, namespaces: &[&str], workloads: &[&str]) {
    for (namespace, workload) in namespaces.iter().flat_map(|it| workloads.iter().map(move |workload| (it, workload))) {
        let mut pods = ["1", "2"].map(|name| of(workload, &format!("{workload}-{name}"), OLD, true));
        for pod in &mut pods {
            pod.meta_mut().namespace = Some((*namespace).to_owned());
            pod.meta_mut().uid = Some(format!("{namespace}-{}", pod.meta().name.clone().unwrap()));
            stage.show(pod);
        }
        let key = PodKey::of(&pods[0]);
        let member = (key.clone(), Arc::clone(stage.index.get(&key).unwrap()));
        assert!(stage.evictions.begin(&stage.set, &member, true, (&stage.index, &mut HashSet::new()), stage.start));
        stage.evictions.answered("a", &member, Answer::Evicted(at("2026-01-01T00:00:10Z")));
        stage.index.update(&key, None);
    }
    stage.vacant();
    stage.vacant_after(NOT_REPLACED_AFTER);
}

#[test]
fn workloads_that_replace_no_pod_stop_the_evictions_of_their_namespace_for_an_hour() {
    let mut stage = Stage::of(&["left"]);
    let halted = |stage: &Stage, time| stage.evictions.brakes.halted("a", stage.start + time).len();
    lose(&mut stage, &["default"], &["v", "w"]);
    assert_eq!(halted(&stage, NOT_REPLACED_AFTER), 0);
    lose(&mut stage, &["default"], &["x"]);
    assert_eq!(halted(&stage, NOT_REPLACED_AFTER), 1);
    assert_eq!(stage.hold_after(LEADER_PAUSE), None, "others go on");
    assert_eq!(halted(&stage, NOT_REPLACED_AFTER + FAILED_FOR), 0);
    assert_eq!(stage.barred().not_replaced.0, 3, "these workloads stay as they are");
    let places = stage.vacancies_after(NOT_REPLACED_AFTER);
    assert!(places.len() == 3 && places.iter().all(|place| place.is_overdue), "in their namespace alone");
}

#[test]
fn workloads_of_several_namespaces_that_replace_no_pod_stop_the_evictions_of_the_set() {
    let mut stage = Stage::of(&["left"]);
    lose(&mut stage, &["default", "shop"], &["v", "w"]);
    assert_eq!(stage.hold_after(NOT_REPLACED_AFTER), None);
    lose(&mut stage, &["other"], &["v"]);
    assert_eq!(
        stage.hold_after(NOT_REPLACED_AFTER),
        Some(EvictionsWait::Failures { namespaces: 3, is_all: true, are_lost: true })
    );
    assert_eq!(stage.hold_after(NOT_REPLACED_AFTER + FAILED_FOR), None);
}

#[test]
fn what_the_condition_of_a_pod_says_bars_its_workload_under_the_next_leader() {
    let created = at("2026-01-01T00:00:10Z");
    for (bar, expected) in [
        (Bar::Outdated, Allowance::Barred(Bar::Outdated)),
        (Bar::NotReplaced(created + 1), Allowance::Barred(Bar::NotReplaced(created + 1))),
        // A pod was created since, or in that second: of the older form.
        (Bar::NotReplaced(created), Allowance::Barred(Bar::Outdated)),
    ] {
        let mut stage = Stage::of(&["left"]);
        let member = stage.member("left");
        stage.evictions.resume(&stage.set, &member, bar, &stage.index, stage.start);
        assert_eq!(stage.allowance(), expected, "{bar:?}");
    }
    let mut stage = Stage::of(&["left"]);
    let (member, current) = (stage.member("left"), stage.current());
    let mut new = of("web", "new", &current, true);
    new.meta_mut().creation_timestamp = serde_json::from_value(json!("2026-01-01T00:00:20Z")).unwrap();
    stage.show(&new);
    stage.evictions.resume(&stage.set, &member, Bar::NotReplaced(created + 1), &stage.index, stage.start);
    assert_eq!(stage.allowance(), Allowance::Free);
}

/// The conditions say it for as long as the pods are there: that does not stop the set again and again.
#[test]
fn workloads_that_an_earlier_leader_barred_stop_no_others() {
    for bar in [Bar::Outdated, Bar::NotReplaced(u32::MAX)] {
        let mut stage = Stage::of(&["left"]);
        for namespace in ["x", "y", "z"] {
            let mut pod = of("web", "p", OLD, true);
            pod.meta_mut().namespace = Some(namespace.to_owned());
            stage.show(&pod);
            let key = PodKey::of(&pod);
            let member = (key.clone(), Arc::clone(stage.index.get(&key).unwrap()));
            stage.evictions.resume(&stage.set, &member, bar, &stage.index, stage.start);
            let owner = member.1.facts.owner;
            assert_eq!(stage.evictions.allowance(&stage.set, owner), Allowance::Barred(bar));
        }
        assert_eq!((stage.hold_after(LEADER_PAUSE), stage.allowance()), (None, Allowance::First));
    }
}

/// Its new pod of the older form is not taken for the one of an evicted pod by its hash, but by the pods beside it.
#[test]
fn a_new_leader_waits_for_new_pods_of_workloads_with_refused_pods_whatever_these_have() {
    let now = jiff::Timestamp::from_second(seconds_now().into()).unwrap().to_string();
    let young = |mut pod: WatchedPod| {
        pod.meta_mut().creation_timestamp = serde_json::from_value(Value::from(now.clone())).unwrap();
        pod
    };
    for (workload, hash, is_refused, expected) in [
        ("web", OLD, true, Some(EvictionsWait::EarlierLeader)),
        ("web", OLD, false, None),
        ("other", OLD, true, None),
        ("web", "", true, Some(EvictionsWait::EarlierLeader)),
    ] {
        let mut stage = Stage::of(&["left"]);
        if is_refused {
            stage.show(&refused(of("web", "left", OLD, true)));
        }
        stage.show(&young(of(workload, "new", hash, false)));
        assert_eq!(stage.hold_after(LEADER_PAUSE), expected, "{workload}, {hash:?}, {is_refused}");
        stage.show(&young(of(workload, "new", hash, true)));
        assert_eq!(stage.hold_after(LEADER_PAUSE), None, "it serves");
    }
}

#[test]
fn each_leader_counts_the_pods_of_a_form_that_serves_nowhere_as_places_of_those_that_the_last_one_evicted() {
    let mut stage = Stage::of(&["left"]);
    let current = stage.current();
    for name in ["new-1", "new-2"] {
        stage.comes(name, &current, false);
    }
    let overdue =
        |stage: &mut Stage, time| stage.vacancies_after(time).iter().map(|it| it.is_overdue).collect::<Vec<_>>();
    assert_eq!(overdue(&mut stage, LEADER_PAUSE), [] as [bool; 0], "nothing is evicted yet");
    assert_eq!(stage.hold_after(LEADER_PAUSE), None);
    assert!(stage.vacancies_after(LEADER_PAUSE).iter().all(|place| place.is_guess));
    assert_eq!(overdue(&mut stage, OVERDUE_AFTER * 10), [false, false], "however long it takes");
    // It serves elsewhere: the applications fail by themselves, and hold up their own namespace.
    let mut elsewhere = of("web", "elsewhere", &current, true);
    elsewhere.meta_mut().namespace = Some("shop".to_owned());
    stage.show(&elsewhere);
    assert_eq!(overdue(&mut stage, OVERDUE_AFTER * 10), [true, true]);
    stage.gone("new-1");
    stage.vacant();
    assert_eq!(stage.vacant_after(NOT_REPLACED_AFTER), 1, "nobody has evicted it, as far as is known");
    assert_eq!(stage.barred(), Barred::default());
    stage.comes("new-2", &current, true);
    assert_eq!(stage.vacant(), 0);
    // A leader that knows the set from its beginning on knows what it has evicted, and that is all.
    let mut later = Stage::of(&["left"]);
    later.evictions = Evictions::new(later.start.checked_sub(OVERDUE_AFTER).unwrap());
    later.comes("new-1", &current, false);
    assert_eq!((later.hold_after(Duration::ZERO), later.vacant()), (None, 0));
}

#[test]
fn new_pods_of_a_form_that_serves_in_their_namespace_take_no_place_under_the_next_leader() {
    let mut stage = Stage::of(&["left"]);
    let current = stage.current();
    stage.comes("new-1", &current, false);
    stage.comes("new-2", &current, true);
    assert_eq!((stage.hold_after(LEADER_PAUSE), stage.vacant()), (None, 0));
}

/// It has a day to end, or its author keeps it there by a finalizer.
#[test]
fn a_pod_that_others_delete_holds_up_only_its_own_namespace_after_ten_minutes_though_it_serves_on() {
    let mut ending = refused(of("web", "p", OLD, true));
    ending.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    let mut stage = Stage::of(&["left"]);
    stage.show(&ending);
    let found = |stage: &mut Stage, time| {
        stage.vacancies_after(time).iter().map(|it| (it.served, it.is_overdue)).collect::<Vec<_>>()
    };
    assert_eq!(found(&mut stage, Duration::ZERO), [(true, false)]);
    // Its containers stop.
    let unready = json!([
        {"type": "Ready", "status": "False"},
        {"type": crate::names::UPGRADABLE, "status": "False", "message": json!({"a": "env"}).to_string()},
    ]);
    ending.status = serde_json::from_value(json!({"phase": "Running", "conditions": unready})).unwrap();
    stage.show(&ending);
    assert_eq!(found(&mut stage, OVERDUE_AFTER / 2), [(true, false)]);
    assert_eq!(found(&mut stage, OVERDUE_AFTER), [(true, true)]);
    stage.evictions.update(&stage.set, false, &stage.index, stage.start);
    assert_eq!(stage.evictions.vacancies(&stage.set, &stage.index, stage.start), [], "the set evicts none");
}

/// Who may delete pods does not hold up the rollout in other namespaces, one pod after the other.
#[test]
fn pods_that_begin_to_end_late_in_a_leaders_term_take_no_place() {
    let mut stage = Stage::of(&["left"]);
    let ends = |stage: &mut Stage, name: &str| {
        let mut ending = refused(of("web", name, OLD, true));
        ending.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        stage.show(&ending);
    };
    ends(&mut stage, "early");
    assert_eq!(stage.vacant_after(OVERDUE_AFTER / 2), 1);
    ends(&mut stage, "late");
    assert_eq!(stage.vacant_after(OVERDUE_AFTER), 1);
    stage.gone("early");
    assert_eq!(stage.vacant_after(OVERDUE_AFTER), 0);
}

#[test]
fn pods_of_two_templates_are_those_of_a_deployment_that_is_rolling() {
    let mut stage = Stage::of(&[]);
    let show = |stage: &mut Stage, name: &str, template: Option<&str>| {
        let labels = match template {
            Some(template) => json!({"app": "web", "pod-template-hash": template}),
            None => json!({"app": "web"}),
        };
        let mut pod = labelled(name, &labels, &[("a", OLD)], true);
        pod.meta_mut().owner_references = of("web", name, OLD, true).meta().owner_references.clone();
        if let Some(template) = template {
            pod.meta_mut().owner_references.as_mut().unwrap()[0].name = format!("web-{template}");
        }
        stage.show(&pod);
        stage.index.get(&PodKey::of(&pod)).unwrap().facts.owner
    };
    let owner = show(&mut stage, "p", Some("1"));
    show(&mut stage, "q", Some("1"));
    let other = show(&mut stage, "r", None);
    assert_eq!((is_rolling(&stage.index, owner), is_rolling(&stage.index, other)), (false, false));
    assert_eq!(show(&mut stage, "s", Some("2")), owner);
    assert!(is_rolling(&stage.index, owner));
}
