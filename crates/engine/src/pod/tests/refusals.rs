//! A refusal names the first faults and counts the rest: of any number of sets, each may find one.

use admission::Decision;
use serde_json::{Value, json};

use crate::testing::{Cluster, Reply, pod, review, set};

/// Bytes of a reply that no number of sets exceeds. A warning has up to 256 characters, and there are at most 16.
const MOST: usize = 16 * 1024;

fn sets(count: usize, spec: &Value) -> Cluster {
    Cluster::from_objects(&(0..count).map(|at| set(&format!("s{at:04}"), spec.clone())).collect::<Vec<_>>())
}

fn counted(reply: &Reply, more: usize, causes: usize) {
    let rest = format!("and {more} more");
    assert_eq!(reply.decision, Decision::Denied);
    assert!(reply.message.contains("\"s0009\"") && !reply.message.contains("\"s0010\""), "{}", reply.message);
    assert!(reply.message.contains(&format!("; {rest}")), "{}", reply.message);
    let found = reply.causes.as_array().unwrap();
    assert_eq!((found.len(), &found[causes - 1]["message"]), (causes, &json!(rest)));
    assert!(reply.body.len() < MOST, "{}", reply.body.len());
}

#[test]
fn a_refusal_of_a_new_pod_does_not_grow_with_the_sets() {
    let port = json!({"name": "c", "image": "i:1", "ports": [{"containerPort": 80, "hostPort": 80}]});
    let cluster = sets(1_000, &json!({"optOut": "Denied", "clashPolicy": "Refuse", "containers": [port]}));
    let taken = json!([{"name": "c", "image": "shop:1"}]);
    let reply = cluster.mutate(&pod(json!({ "containers": taken })));
    counted(&reply, 990, 11);
    let skipped = &reply.audit["skipped"];
    assert!(skipped.starts_with("s0000=ContainerClash,s0001=") && skipped.ends_with(",and 990 more"), "{skipped}");
    counted(&cluster.validate(&pod(json!({ "containers": taken }))), 990, 11);
}

#[test]
fn a_pod_that_goes_without_many_sets_gets_a_short_reply() {
    let cluster = sets(1_000, &json!({"clashPolicy": "Skip", "containers": [{"name": "app", "image": "i:1"}]}));
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.warnings.len()), (Decision::Allowed, 16));
    assert_eq!(reply.warnings[15], "985 more warnings were left out");
    assert!(reply.audit["skipped"].ends_with(",s0009=ContainerClash,and 990 more"), "{:?}", reply.audit);
    assert!(reply.body.len() < MOST, "{}", reply.body.len());
}

#[test]
fn a_refusal_of_a_changed_pod_does_not_grow_with_the_sets() {
    let sets: Vec<Value> = (0..300)
        .map(|at| set(&format!("s{at:04}"), json!({"optOut": "Denied", "selector": {"matchLabels": {"app": "web"}}})))
        .collect();
    let cluster = Cluster::from_objects(&sets);
    let old = cluster.mutate(&pod(json!({}))).pod;
    let mut new = old.clone();
    for container in new["spec"]["containers"].as_array_mut().unwrap() {
        container["image"] = "evil:1".into();
    }
    let mut changed = review("shop", &new);
    changed["request"]["operation"] = "UPDATE".into();
    changed["request"]["oldObject"] = old;
    counted(&cluster.ask("/validate--v1-pod-update", &changed).unwrap(), 290, 11);
}

#[test]
fn a_long_fault_is_cut() {
    let container = json!({"name": "c", "image": "i:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let spec = json!({
        "clashPolicy": "Refuse", "containers": [container], "volumes": [{"name": "v", "emptyDir": {}}],
    });
    let reply =
        sets(1, &spec).mutate(&pod(json!({"volumes": [{"name": "v", "hostPath": {"path": "x".repeat(100_000)}}]})));
    assert_eq!(reply.decision, Decision::Denied);
    assert!(reply.body.len() < MOST, "{}", reply.body.len());
}

#[test]
fn as_many_faults_as_are_named_are_not_counted() {
    let cluster = sets(
        10,
        &json!({"optOut": "Denied", "clashPolicy": "Refuse", "containers": [{"name": "app", "image": "i:1"}]}),
    );
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!(reply.causes.as_array().unwrap().len(), 10);
    assert!(!reply.message.contains(" more"), "{}", reply.message);
}
