//! When no pod is evicted at all, or none of a workload or a namespace.

use kube::Resource as _;
use serde_json::{Value, json};

use super::tests::{OLD, Stage, at, of};
use super::*;
use crate::sidecarset::controller::facts::seconds_now;
use crate::sidecarset::controller::watched_pod::WatchedPod;
use crate::sidecarset::controller::workload::NOT_REPLACED_AFTER;

fn refused(mut pod: WatchedPod) -> WatchedPod {
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

#[test]
fn nothing_is_evicted_while_the_account_has_no_right_to() {
    let mut stage = Stage::of(&["left"]);
    assert_eq!(stage.hold_after(LEADER_PAUSE), None);
    stage.evictions.forbid("no".to_owned(), stage.start);
    assert_eq!(stage.hold_after(LEADER_PAUSE), Some(EvictionsWait::Forbidden("no".to_owned())));
    stage.vacant_after(FORBIDDEN_FOR);
    assert_eq!(stage.hold_after(FORBIDDEN_FOR), None, "it is tried again");
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
        assert!(stage.evictions.begin(&stage.set, &member, true, &stage.index, stage.start));
        stage.evictions.answered(&member, Answer::Evicted(at("2026-01-01T00:00:10Z")));
        stage.index.update(&key, None);
    }
    stage.vacant();
    stage.vacant_after(NOT_REPLACED_AFTER);
}

#[test]
fn workloads_that_replace_no_pod_stop_the_evictions_of_their_namespace_for_an_hour() {
    let mut stage = Stage::of(&["left"]);
    let halted = |stage: &Stage, time| stage.evictions.halted(&stage.set, stage.start + time).len();
    lose(&mut stage, &["default"], &["v", "w"]);
    assert_eq!(halted(&stage, NOT_REPLACED_AFTER), 0);
    lose(&mut stage, &["default"], &["x"]);
    assert_eq!(halted(&stage, NOT_REPLACED_AFTER), 1);
    assert_eq!(stage.hold_after(LEADER_PAUSE), None, "others go on");
    assert_eq!(halted(&stage, NOT_REPLACED_AFTER + LOST_FOR), 0);
    assert_eq!(stage.evictions.barred(&stage.set).not_replaced.0, 3, "these workloads stay as they are");
    let places = stage.vacancies_after(NOT_REPLACED_AFTER);
    assert!(places.len() == 3 && places.iter().all(|place| place.is_overdue), "in their namespace alone");
}

#[test]
fn workloads_of_several_namespaces_that_replace_no_pod_stop_the_evictions_of_the_set() {
    let mut stage = Stage::of(&["left"]);
    lose(&mut stage, &["default", "shop"], &["v", "w"]);
    assert_eq!(stage.hold_after(NOT_REPLACED_AFTER), None);
    lose(&mut stage, &["other"], &["v"]);
    assert_eq!(stage.hold_after(NOT_REPLACED_AFTER), Some(EvictionsWait::Lost(3)));
    assert_eq!(stage.hold_after(NOT_REPLACED_AFTER + LOST_FOR), None);
}

#[test]
fn what_the_condition_of_a_pod_says_bars_its_workload_under_the_next_leader() {
    let created = at("2026-01-01T00:00:10Z");
    for (bar, expected) in [
        (Bar::Outdated, Allowance::Barred(Bar::Outdated)),
        (Bar::NotReplaced(created), Allowance::Barred(Bar::NotReplaced(created))),
        // A pod was created since: of the older form.
        (Bar::NotReplaced(created - 1), Allowance::Barred(Bar::Outdated)),
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
    stage.evictions.resume(&stage.set, &member, Bar::NotReplaced(created), &stage.index, stage.start);
    assert_eq!(stage.allowance(), Allowance::Free);
}
