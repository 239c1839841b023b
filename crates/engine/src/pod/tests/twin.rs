//! `/validate--v1-pod`: a pod that must carry a set and does not.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::reasons;
use crate::sidecarset::sameness::COMPARED;
use crate::testing::{Cluster, pod, review, set};

fn must(name: &str, more: Value) -> Value {
    let mut spec = json!({"optOut": "Denied"});
    json_patch::merge(&mut spec, &more);
    set(name, spec)
}

#[test]
fn a_pod_that_carries_its_sets_is_allowed() {
    let cluster = Cluster::from_objects(&[must("log", json!({})), set("mesh", json!({}))]);
    let injected = cluster.mutate(&pod(json!({}))).pod;
    let reply = cluster.validate(&injected);
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::ALREADY_INJECTED));
    assert!(reply.patch.is_none());
}

#[test]
fn a_pod_that_lost_a_set_it_must_carry_is_refused() {
    let cluster = Cluster::from_objects(&[must("log", json!({})), set("mesh", json!({}))]);
    let bare = pod(json!({}));
    let reply = cluster.validate(&bare);
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
        assert_eq!(Cluster::from_objects(&sets).validate(&pod).decision, Decision::Allowed, "{sets:?}");
    }
}

#[test]
fn a_must_that_loses_to_another_set_refuses_the_pod() {
    let same = json!({"containers": [{"name": "same", "image": "i:1"}]});
    let cluster = Cluster::from_objects(&[set("a", same.clone()), must("b", same.clone())]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::SET_CONFLICT), "{}", reply.message);
    // One that may be skipped loses in silence.
    let cluster = Cluster::from_objects(&[set("a", same.clone()), must("b", json!({"clashPolicy": "Skip"}))]);
    assert_eq!(cluster.mutate(&pod(json!({}))).decision, Decision::Patched);
    let cluster = Cluster::from_objects(&[set("a", same.clone()), must("b", same)]);
    let injected = Cluster::from_objects(&[set("a", json!({"containers": [{"name": "same", "image": "i:1"}]}))]);
    let injected = injected.mutate(&pod(json!({}))).pod;
    assert_eq!(cluster.validate(&injected).decision, Decision::Denied);
}

#[test]
fn a_pod_that_lost_a_set_that_it_may_go_without_is_told_of() {
    let cluster = Cluster::from_objects(&[set("log", json!({})), set("mesh", json!({}))]);
    let reply = cluster.validate(&pod(json!({"containers": [{"name": "app", "image": "a"}]})));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::UNINJECTED));
    assert_eq!(
        reply.warnings,
        ["log", "mesh"].map(|name| format!(
            "Uninjected: the pod should carry SidecarSet {name:?} but lacks its container {name:?}; another admission webhook may \
             have removed it after injection"
        ))
    );
    assert_eq!(reply.audit["reason"], "Uninjected");
}

#[test]
fn one_reason_speaks_for_all_sets_of_a_pod() {
    let cluster = Cluster::from_objects(&[set("log", json!({})), set("mesh", json!({}))]);
    let injected = cluster.mutate(&pod(json!({}))).pod;
    let mut lacking = injected.clone();
    lacking["spec"]["containers"].as_array_mut().unwrap().remove(1);
    let mut opted_out = pod(json!({}));
    opted_out["metadata"]["annotations"] = json!({"outrider.dev/skip": "true"});
    for (pod, reason) in
        [(injected, reasons::ALREADY_INJECTED), (lacking, reasons::UNINJECTED), (opted_out, reasons::OPTED_OUT)]
    {
        let reply = cluster.validate(&pod);
        assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reason));
    }
}

#[test]
fn every_lost_set_is_named() {
    let two = json!({"containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "i"}]});
    let cluster = Cluster::from_objects(&[must("a", two), must("b", json!({}))]);
    let reply = cluster.validate(&pod(json!({})));
    assert_eq!(reply.causes.as_array().unwrap().len(), 2);
    assert!(reply.message.contains("lacks its container \"x\", \"y\""), "{}", reply.message);
}

#[test]
fn each_container_is_compared_once_a_review() {
    let cluster = Cluster::from_objects(&[set("log", json!({"containers": [{"name": "log", "image": "l:1"}]}))]);
    let pod = pod(json!({"containers": [{"name": "log", "image": "l:1"}, {"name": "app", "image": "a:1"}]}));
    for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
        COMPARED.set(0);
        cluster.ask(path, &review("shop", &pod)).unwrap();
        assert_eq!(COMPARED.get(), 1, "{path}");
    }
}
