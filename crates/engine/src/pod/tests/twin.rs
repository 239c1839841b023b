//! `/validate--v1-pod`: a pod that must carry a set and does not.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{World, pod, set};

fn must(name: &str, more: Value) -> Value {
    let mut spec = json!({"optOut": "Denied"});
    json_patch::merge(&mut spec, &more);
    set(name, spec)
}

#[test]
fn a_pod_that_carries_its_sets_is_allowed() {
    let world = World::from_objects(&[must("log", json!({})), set("mesh", json!({}))]);
    let injected = world.mutate(&pod(json!({}))).pod;
    let reply = world.validate(&injected);
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::ALREADY_INJECTED));
    assert!(reply.patch.is_none());
}

#[test]
fn a_pod_that_lost_a_set_it_must_carry_is_refused() {
    let world = World::from_objects(&[must("log", json!({})), set("mesh", json!({}))]);
    let bare = pod(json!({}));
    let reply = world.validate(&bare);
    assert_eq!((reply.decision, reply.reason, reply.code), (Decision::Denied, Reason::INVALID, Some(403)));
    assert_eq!(
        reply.message,
        "pod must carry SidecarSet \"log\" (spec.optOut: Denied) and lacks its container \"log\"; another admission webhook may \
         have removed it after injection"
    );
    assert_eq!(reply.causes[0]["field"], "spec.containers");
    assert_eq!(reply.audit["reason"], "Invalid");
}

#[test]
fn the_twin_refuses_nothing_that_mutation_may_let_go() {
    let opted_out = {
        let mut pod = pod(json!({}));
        pod["metadata"]["annotations"] = json!({"outrider.dev/skip": "true"});
        pod
    };
    let clashing = pod(json!({"containers": [{"name": "log", "image": "mine"}]}));
    for (sets, pod) in [
        (vec![set("log", json!({}))], pod(json!({}))),
        (vec![set("log", json!({}))], opted_out),
        (vec![must("log", json!({"clashPolicy": "Skip"}))], clashing),
        (vec![must("log", json!({"injectionStrategy": {"paused": true}}))], pod(json!({}))),
        (vec![must("log", json!({}))], pod(json!({"os": {"name": "windows"}}))),
        (vec![must("log", json!({"selector": {"matchLabels": {"app": "db"}}}))], pod(json!({}))),
        (vec![must("log", json!({"namespace": "other"}))], pod(json!({}))),
    ] {
        assert_eq!(World::from_objects(&sets).validate(&pod).decision, Decision::Allowed, "{sets:?}");
    }
}

#[test]
fn a_set_in_whose_place_another_stands_is_not_missed() {
    let same = json!({"containers": [{"name": "same", "image": "i:1"}]});
    let world = World::from_objects(&[must("a", same.clone()), must("b", same)]);
    let injected = world.mutate(&pod(json!({}))).pod;
    assert_eq!(world.validate(&injected).decision, Decision::Allowed);
    let reply = world.validate(&pod(json!({})));
    assert_eq!(reply.causes.as_array().unwrap().len(), 1, "only the one that would be injected: {}", reply.message);
}

#[test]
fn every_lost_set_is_named() {
    let two = json!({"containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "i"}]});
    let world = World::from_objects(&[must("a", two), must("b", json!({}))]);
    let reply = world.validate(&pod(json!({})));
    assert_eq!(reply.causes.as_array().unwrap().len(), 2);
    assert!(reply.message.contains("lacks its container \"x\", \"y\""), "{}", reply.message);
}
