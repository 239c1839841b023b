//! `TaintNodesByCondition` (4.21) and `NodeRestriction` (4.14).

use admission::registry::{FailurePolicy, Phase, Scope};
use admission::{Decision, Operation};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const TAINT: &str = "/mutate--v1-node-taintnodesbycondition";

fn review(object: &Value) -> Value {
    let mut review = crate::testing::review("", object);
    let request = json!({"kind": {"kind": "Node"}, "resource": {"resource": "nodes"}, "userInfo": {"username": "kim"}});
    json_patch::merge(&mut review, &json!({"request": request}));
    review
}

fn tainting(more: Value) -> Cluster {
    let mut spec = json!({"plugin": "TaintNodesByCondition"});
    json_patch::merge(&mut spec, &more);
    Cluster::from_objects(&[plugin("t", spec)])
}

fn created(cluster: &Cluster, node: &Value) -> Reply {
    cluster.ask(TAINT, &review(node)).unwrap()
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
            let cluster = tainting(json!({}));
            let reply = created(&cluster, &node);
            assert_eq!(reply.pod["spec"]["taints"], expected, "{row}");
            assert_eq!(created(&cluster, &reply.pod).patch, None, "{row}: a second call changes nothing");
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

const RESTRICT: &str = "/validate--v1-node-noderestriction";

fn restricting() -> Cluster {
    let section = json!({"iUnderstandTheRisk": true});
    let spec = json!({"plugin": "NodeRestriction", "nodeRestriction": section});
    Cluster::from_objects(&[plugin("r", spec), super::namespace(json!({}))])
}

/// What is said to the kubelet of `n1`.
fn said(operation: &str, new: &Value, old: &Value) -> String {
    let kind = [new, old].into_iter().find(|object| !object.is_null()).unwrap()["kind"].clone();
    let (resource, namespace) = if kind == "Node" { ("nodes", "") } else { ("pods", "shop") };
    let mut review = crate::testing::review(namespace, new);
    let user = json!({"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]});
    let request = json!({"operation": operation, "oldObject": old, "kind": {"kind": kind}, "resource": {"resource": resource},
        "userInfo": user, "name": ""});
    json_patch::merge(&mut review, &json!({"request": request}));
    restricting().ask(RESTRICT, &review).unwrap().message
}

fn node(name: &str, more: Value) -> Value {
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}});
    json_patch::merge(&mut node, &more);
    node
}

fn mirror(node: &str, more: Value) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": "u", "controller": true});
    let metadata =
        json!({"name": "p", "annotations": {"kubernetes.io/config.mirror": "h"}, "ownerReferences": [owner]});
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    json_patch::merge(&mut pod, &more);
    pod
}

/// What is said to the creation of pods.
fn assert_created(rows: Vec<(&str, Value, String)>) {
    for (row, object, why) in rows {
        let expected = if why.is_empty() { why } else { format!("pods \"p\" is forbidden: {why}") };
        assert_eq!(said("CREATE", &object, &Value::Null), expected, "{row}");
    }
}

#[test]
fn kubelets_change_their_own_node_and_pods_as_the_table_says() {
    let none = Value::Null;
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    let protected = || {
        labels(
            json!({"node-restriction.kubernetes.io/b": "x", "a.k8s.io/a": "x", "pool": "x", "kubernetes.io/os": "linux"}),
        )
    };
    let taints = || json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let own = |more: Value| node("n1", more);
    let source = || json!({"spec": {"configSource": {"configMap": {"name": "c"}}}});
    let owned =
        || json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}});
    let nodes = [
        ("its own", "CREATE", own(json!({})), none.clone(), ""),
        ("with taints", "CREATE", own(taints()), none.clone(), ""),
        (
            "with labels of kubelets",
            "CREATE",
            own(labels(json!({"kubernetes.io/os": "linux", "pool": "x"}))),
            none.clone(),
            "",
        ),
        (
            "with protected labels",
            "CREATE",
            own(protected()),
            none.clone(),
            "node \"n1\" is not allowed to set the following labels: a.k8s.io/a, node-restriction.kubernetes.io/b",
        ),
        (
            "with a source",
            "CREATE",
            own(source()),
            none.clone(),
            "node \"n1\" is not allowed to create pods with a non-nil configSource",
        ),
        ("another", "CREATE", node("n2", json!({})), none.clone(), "node \"n1\" is not allowed to modify node \"n2\""),
        ("another", "DELETE", none.clone(), node("n2", json!({})), "node \"n1\" is not allowed to modify node \"n2\""),
        ("its own", "DELETE", none.clone(), own(json!({})), ""),
        ("protected labels stay", "UPDATE", own(protected()), own(protected()), ""),
        (
            "protected labels go",
            "UPDATE",
            own(json!({})),
            own(protected()),
            "is not allowed to modify labels: a.k8s.io/a, node-restriction.kubernetes.io/b",
        ),
        (
            "a protected label changes",
            "UPDATE",
            own(labels(json!({"a.k8s.io/a": "y"}))),
            own(labels(json!({"a.k8s.io/a": "x"}))),
            "is not allowed to modify labels: a.k8s.io/a",
        ),
        ("other labels change", "UPDATE", own(labels(json!({"pool": "y"}))), own(json!({})), ""),
        ("taints come", "UPDATE", own(taints()), own(json!({})), "node \"n1\" is not allowed to modify taints"),
        ("taints go", "UPDATE", own(json!({})), own(taints()), "node \"n1\" is not allowed to modify taints"),
        ("taints stay", "UPDATE", own(taints()), own(taints()), ""),
        ("an empty list is none", "UPDATE", own(json!({"spec": {"taints": []}})), own(json!({})), ""),
        (
            "a source comes",
            "UPDATE",
            own(source()),
            own(json!({})),
            "node \"n1\" is not allowed to update configSource to a new non-nil configSource",
        ),
        ("a source goes", "UPDATE", own(json!({})), own(source()), ""),
        (
            "an owner comes",
            "UPDATE",
            own(owned()),
            own(json!({})),
            "node \"n1\" is not allowed to modify ownerReferences",
        ),
    ];
    for (row, operation, new, old, why) in &nodes {
        let name = if new.is_null() { old } else { new }["metadata"]["name"].as_str().unwrap();
        let expected = if why.is_empty() { String::new() } else { format!("nodes \"{name}\" is forbidden: {why}") };
        assert_eq!(said(operation, new, old), expected, "{operation} {row}");
    }
    let pod = |node: &str| mirror(node, json!({"metadata": {"annotations": null}}));
    let unexpected = "unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods";
    for (operation, new, old, why) in [
        ("UPDATE", pod("n1"), pod("n1"), unexpected),
        ("DELETE", none.clone(), pod("n1"), ""),
        ("DELETE", none, pod("n2"), "node \"n1\" can only delete pods with spec.nodeName set to itself"),
    ] {
        let expected = if why.is_empty() { String::new() } else { format!("pods \"p\" is forbidden: {why}") };
        assert_eq!(said(operation, &new, &old), expected, "{operation} of a pod");
    }
}

#[test]
fn kubelets_create_mirror_pods_of_their_own_alone() {
    let with = |more: Value| mirror("n1", more);
    let owner = |more: Value| {
        let mut pod = with(json!({}));
        json_patch::merge(&mut pod["metadata"]["ownerReferences"][0], &more);
        pod
    };
    let mut two = with(json!({}));
    two["metadata"]["ownerReferences"] = json!([two["metadata"]["ownerReferences"][0], {"kind": "Pod"}]);
    let only = |what: &str| format!("node \"n1\" can only create pods with {what}");
    let other = "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods";
    let blocks = "node \"n1\" must not set blockOwnerDeletion on an owner reference";
    let (on_itself, by_itself) = (only("spec.nodeName set to itself"), only("an owner reference set to itself"));
    assert_created(vec![
        ("a mirror pod", with(json!({})), String::new()),
        ("another pod", with(json!({"metadata": {"annotations": null}})), other.to_owned()),
        ("of another node", mirror("n2", json!({})), on_itself.clone()),
        ("of no node", with(json!({"spec": {"nodeName": null}})), on_itself),
        ("without an owner", with(json!({"metadata": {"ownerReferences": null}})), by_itself.clone()),
        ("with two owners", two, only("a single owner reference set to itself")),
        ("of another owner", owner(json!({"name": "n2"})), by_itself.clone()),
        ("of another kind", owner(json!({"kind": "Pod"})), by_itself),
        ("not controlled", owner(json!({"controller": null})), only("a controller owner reference set to itself")),
        ("that blocks", owner(json!({"blockOwnerDeletion": true})), blocks.to_owned()),
    ]);
}

#[test]
fn kubelets_create_no_pod_that_refers_to_other_objects() {
    let spec = |spec: Value| mirror("n1", json!({"spec": spec}));
    let volume = |volume: Value| spec(json!({"volumes": [{"name": "e", "emptyDir": {}}, volume]}));
    let refers = |what: &str| format!("node \"n1\" can not create pods that reference {what}");
    let bundle = json!({"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p"}}]}});
    let map = json!({"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}]}});
    let token = json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}});
    let variable = json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}});
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    assert_created(vec![
        ("none", volume(json!({"name": "h", "hostPath": {"path": "/x"}})), String::new()),
        ("an account", spec(json!({"serviceAccountName": "a"})), refers("serviceaccounts")),
        ("a secret", volume(json!({"name": "v", "secret": {"secretName": "s"}})), refers("secrets")),
        ("a pull secret", spec(json!({"imagePullSecrets": [{"name": "s"}]})), refers("secrets")),
        ("a map", volume(map), refers("configmaps")),
        ("a variable", spec(json!({"containers": [{"name": "c", "env": [variable]}]})), refers("configmaps")),
        ("a bundle", volume(bundle), refers("clustertrustbundles")),
        ("a claim", volume(claim), refers("persistentvolumeclaims")),
        ("a driver", volume(json!({"name": "v", "csi": {"driver": "d"}})), refers("csidrivers (via CSI volumes)")),
        ("a token", volume(token), refers("serviceaccounts (via projected volumes)")),
        ("a resource", spec(json!({"resourceClaims": [{"name": "r"}]})), refers("resourceclaims")),
    ]);
}

#[test]
fn only_kubelets_are_restricted_and_one_without_a_name_may_do_nothing() {
    let cluster = restricting();
    let asked = |username: &str, groups: Value| {
        let mut review = review(&node("n2", json!({})));
        review["request"]["userInfo"] = json!({"username": username, "groups": groups});
        cluster.ask(RESTRICT, &review).unwrap()
    };
    for (username, groups, why) in [
        ("system:node:n2", json!(["system:nodes"]), ""),
        ("system:node:n1", json!(["system:nodes"]), "node \"n1\" is not allowed to modify node \"n2\""),
        ("system:node:n1", json!(["system:authenticated"]), ""),
        ("kim", json!(["system:nodes"]), ""),
        ("system:node:", json!(["system:nodes"]), "could not determine node from user \"system:node:\""),
    ] {
        let reply = asked(username, groups);
        assert!(
            reply.message.ends_with(why) && reply.message.is_empty() == why.is_empty(),
            "{username}: {}",
            reply.message
        );
    }
    assert_eq!(asked("system:node:n1", json!(["system:nodes"])).code, Some(403));
}

#[test]
fn the_entry_of_kubelets_never_fails_and_is_not_for_what_nodes_report() {
    let found = demands(&restricting().snapshot);
    let [entry] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((entry.failure_policy, entry.timeout_seconds), (FailurePolicy::Ignore, 2));
    let resources: Vec<&str> = entry.rule.resources.iter().map(|resource| resource.resource).collect();
    assert_eq!((entry.phase, resources.as_slice()), (Phase::Validating, &["nodes", "pods"][..]));
}

/// A message names some of very many labels, each of which is compared once.
#[test]
fn many_labels_are_compared_in_one_walk() {
    let labels = |value: &str| -> Value {
        let all = (0..50_000).map(|at| (format!("a.k8s.io/l{at:05}"), value.into()));
        json!({"metadata": {"labels": Value::Object(all.collect())}})
    };
    let message = said("UPDATE", &node("n1", labels("new")), &node("n1", labels("old")));
    assert!(message.ends_with("a.k8s.io/l00063, and 49936 more"), "{message}");
}
