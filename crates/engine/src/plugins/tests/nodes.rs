//! `TaintNodesByCondition` (4.21).

use admission::registry::{FailurePolicy, Phase, Scope};
use admission::{Decision, Operation};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::demands;
use crate::testing::{Reply, World};

const TAINT: &str = "/mutate--v1-node-taintnodesbycondition";

fn review(object: &Value) -> Value {
    let mut review = crate::testing::review("", object);
    let request = json!({"kind": {"kind": "Node"}, "resource": {"resource": "nodes"}, "userInfo": {"username": "kim"}});
    json_patch::merge(&mut review, &json!({"request": request}));
    review
}

fn tainting(more: Value) -> World {
    let mut spec = json!({"plugin": "TaintNodesByCondition"});
    json_patch::merge(&mut spec, &more);
    World::from_objects(&[plugin("t", spec)])
}

fn created(world: &World, node: &Value) -> Reply {
    world.ask(TAINT, &review(node)).unwrap()
}

#[test]
fn a_new_node_gets_its_taint_once_as_the_table_says() {
    let not_ready = || json!({"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"});
    let own = || json!({"key": "pool", "value": "gpu", "effect": "NoExecute"});
    let other = |key: &str, effect: &str| json!({"key": key, "effect": effect});
    let lasting = || json!({"key": "node.kubernetes.io/not-ready", "value": "v", "effect": "NoSchedule"});
    for (row, spec, expected) in [
        ("no taints", json!({}), json!([not_ready()])),
        ("an empty list", json!({"taints": []}), json!([not_ready()])),
        ("no spec", Value::Null, json!([not_ready()])),
        ("taints of the kubelet", json!({"taints": [own()]}), json!([own(), not_ready()])),
        ("the taint", json!({"taints": [own(), not_ready()]}), json!([own(), not_ready()])),
        ("the taint with a value", json!({"taints": [lasting()]}), json!([lasting()])),
        (
            "its key with another effect",
            json!({"taints": [other("node.kubernetes.io/not-ready", "NoExecute")]}),
            json!([other("node.kubernetes.io/not-ready", "NoExecute"), not_ready()]),
        ),
        (
            "its effect with another key",
            json!({"taints": [other("node.kubernetes.io/unreachable", "NoSchedule")]}),
            json!([other("node.kubernetes.io/unreachable", "NoSchedule"), not_ready()]),
        ),
    ] {
        // Whether it is ready is no matter: a kubelet may say so before anybody checked.
        for status in [json!({}), json!({"conditions": [{"type": "Ready", "status": "True"}]})] {
            let mut node = json!({"metadata": {"name": "n"}, "spec": spec, "status": status});
            if spec.is_null() {
                node.as_object_mut().unwrap().remove("spec");
            }
            let world = tainting(json!({}));
            let reply = created(&world, &node);
            assert_eq!(reply.pod["spec"]["taints"], expected, "{row}");
            assert_eq!(created(&world, &reply.pod).patch, None, "{row}: a second call changes nothing");
        }
    }
}

#[test]
fn only_new_nodes_are_tainted_and_in_other_modes_it_is_said() {
    let node = json!({"metadata": {"name": "n"}, "spec": {}});
    let mut update = review(&node);
    json_patch::merge(&mut update, &json!({"request": {"operation": "UPDATE", "oldObject": node}}));
    assert_eq!(tainting(json!({})).ask(TAINT, &update).unwrap().patch, None);
    let warned = created(&tainting(json!({"mode": "Warn"})), &node);
    assert_eq!((warned.decision, warned.patch), (Decision::Allowed, None));
    let says = "would add the taint node.kubernetes.io/not-ready:NoSchedule";
    assert!(warned.warnings[0].ends_with(says), "{:?}", warned.warnings);
    assert_eq!(created(&tainting(json!({"match": {"excludeUsers": ["kim"]}})), &node).patch, None);
}

#[test]
fn many_taints_are_searched_in_one_walk() {
    let many: Vec<Value> = (0..50_000).map(|at| json!({"key": format!("k{at}"), "effect": "NoSchedule"})).collect();
    let reply = created(&tainting(json!({})), &json!({"metadata": {"name": "n"}, "spec": {"taints": many}}));
    assert_eq!(reply.pod["spec"]["taints"].as_array().unwrap().len(), 50_001);
}

#[test]
fn the_entry_of_new_nodes_never_fails_and_is_not_for_what_they_report() {
    for (spec, seconds) in [(json!({}), 2), (json!({"timeoutSeconds": 1}), 1)] {
        let found = demands(&tainting(spec).snapshot);
        let [entry] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((entry.failure_policy, entry.timeout_seconds), (FailurePolicy::Ignore, seconds));
        let resources: Vec<&str> = entry.rule.resources.iter().map(|resource| resource.resource).collect();
        assert_eq!((resources.as_slice(), entry.rule.operations), (&["nodes"][..], &[Operation::Create][..]));
        assert_eq!((entry.phase, entry.rule.scope), (Phase::Mutating, Scope::Cluster));
    }
}
