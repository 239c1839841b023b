//! Which pods a set selects.

use admission::{Decision, Unserved};
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

const NAMESPACES: &str = "
kind: Namespace
metadata: {name: shop, labels: {team: blue}}
---
kind: Namespace
metadata: {name: bank, labels: {team: red}}
---
kind: Namespace
metadata: {name: bare}
";

fn cluster(spec: Value) -> Cluster {
    let mut objects: Vec<Value> = crate::yaml::read(NAMESPACES).unwrap().into_iter().map(|it| it.value).collect();
    objects.push(set("log", spec));
    Cluster::from_objects(&objects)
}

fn labelled(labels: Value) -> Value {
    let mut pod = pod(json!({}));
    pod["metadata"]["labels"] = labels;
    pod
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    let values = if values.is_empty() { Value::Null } else { json!(values) };
    json!({"selector": {"matchLabels": null, "matchExpressions": [{"key": key, "operator": operator, "values": values}]}})
}

#[test]
fn a_set_selects_pods_by_every_operator() {
    let labels = json!({"app": "web", "tier": "front"});
    for (spec, selected) in [
        (json!({}), true),
        (json!({"selector": {"matchLabels": {"app": "db"}}}), false),
        (json!({"selector": {"matchLabels": {"tier": "front"}}}), true),
        (json!({"selector": {"matchLabels": {"tier": "back"}}}), false),
        (json!({"selector": {"matchLabels": {"more": "x"}}}), false),
        (expression("app", "In", &["db", "web"]), true),
        (expression("app", "In", &["db"]), false),
        (expression("more", "In", &["db"]), false),
        (expression("app", "NotIn", &["db"]), true),
        (expression("more", "NotIn", &["db"]), true),
        (expression("app", "NotIn", &["db", "web"]), false),
        (expression("tier", "Exists", &[]), true),
        (expression("more", "Exists", &[]), false),
        (expression("more", "DoesNotExist", &[]), true),
        (expression("tier", "DoesNotExist", &[]), false),
    ] {
        let reply = cluster(spec.clone()).mutate(&labelled(labels.clone()));
        assert_eq!(reply.decision == Decision::Patched, selected, "{spec}");
        assert_eq!(reply.reason, if selected { reasons::INJECTED } else { reasons::NO_MATCH }, "{spec}");
    }
}

#[test]
fn a_pod_without_labels_is_selected_by_what_asks_for_none() {
    for labels in [json!({}), json!(null)] {
        let pod = labelled(labels);
        assert_eq!(cluster(json!({})).mutate(&pod).reason, reasons::NO_MATCH);
        assert_eq!(cluster(expression("app", "DoesNotExist", &[])).mutate(&pod).reason, reasons::INJECTED);
    }
}

#[test]
fn of_a_label_written_twice_the_last_counts() {
    let cluster = cluster(json!({}));
    for (labels, reason) in
        [(r#"{"app":"db","app":"web"}"#, reasons::INJECTED), (r#"{"app":"web","app":"db"}"#, reasons::NO_MATCH)]
    {
        let body = crate::testing::review("shop", &labelled(json!("LABELS"))).to_string().replace("\"LABELS\"", labels);
        assert_eq!(cluster.ask_bytes("/mutate--v1-pod", body.as_bytes()).unwrap().reason, reason, "{labels}");
    }
}

#[test]
fn a_set_reaches_the_namespaces_it_asks_for() {
    let by_labels = |labels: Value| json!({"namespaceSelector": {"matchLabels": labels}});
    for (spec, namespace, selected) in [
        (json!({}), "shop", true),
        (json!({}), "unheard-of", true),
        (json!({"namespace": "shop"}), "shop", true),
        (json!({"namespace": "shop"}), "bare", false),
        (json!({"namespace": ""}), "bare", true),
        (json!({"namespaceSelector": {}}), "bare", true),
        (json!({"namespaceSelector": {}}), "unheard-of", true),
        (by_labels(json!({"team": "blue"})), "shop", true),
        (by_labels(json!({"team": "blue"})), "bare", false),
        (by_labels(json!({"team": "red"})), "shop", false),
        (by_labels(json!({"team": "red"})), "bank", true),
        (by_labels(json!({"kubernetes.io/metadata.name": "shop"})), "shop", true),
        (by_labels(json!({"kubernetes.io/metadata.name": "shop"})), "bare", false),
        (by_labels(json!({"kubernetes.io/metadata.name": "unheard-of"})), "unheard-of", true),
        (by_labels(json!({"kubernetes.io/metadata.name": "shop", "team": "blue"})), "shop", true),
        (by_labels(json!({"kubernetes.io/metadata.name": "bare", "team": "blue"})), "shop", false),
        (
            json!({"selector": {"matchLabels": null}, "namespaceSelector": {"matchLabels": {"team": "blue"}}}),
            "shop",
            true,
        ),
    ] {
        let reply = cluster(spec.clone()).live().mutate_in(namespace, &pod(json!({}))).unwrap();
        assert_eq!(reply.reason, if selected { reasons::INJECTED } else { reasons::NO_MATCH }, "{spec} in {namespace}");
        assert_eq!(reply.warnings, [""; 0]);
    }
}

#[test]
fn the_namespace_of_the_request_counts_not_the_one_in_the_object() {
    let cluster = cluster(json!({"namespace": "shop"}));
    let mut pod = pod(json!({}));
    pod["metadata"]["namespace"] = json!("bare");
    assert_eq!(cluster.mutate_in("shop", &pod).unwrap().reason, reasons::INJECTED);
    pod["metadata"]["namespace"] = json!("shop");
    assert_eq!(cluster.mutate_in("bare", &pod).unwrap().reason, reasons::NO_MATCH);
}

#[test]
fn labels_of_an_unknown_namespace_are_waited_for_with_a_cluster() {
    let spec = json!({"namespaceSelector": {"matchLabels": {"team": "blue"}}});
    let unknown = Unserved::NamespaceUnknown("new".to_owned());
    assert_eq!(cluster(spec.clone()).live().mutate_in("new", &pod(json!({}))).unwrap_err(), unknown);
    assert_eq!((unknown.status(), unknown.retry_after()), (503, Some(1)));
    // A set that does not select the pod anyway asks for nothing.
    let other = labelled(json!({"app": "db"}));
    assert_eq!(cluster(spec).live().mutate_in("new", &other).unwrap().reason, reasons::NO_MATCH);
}

#[test]
fn labels_of_an_unknown_namespace_are_taken_as_no_match_offline() {
    let cluster =
        cluster(json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}));
    let reply = cluster.mutate_in("new", &pod(json!({}))).unwrap();
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::NAMESPACE_UNKNOWN));
    assert_eq!(
        reply.warnings,
        [
            "NamespaceUnknown: SidecarSet \"log\" selects namespaces by label, and the labels of namespace \"new\" are not \
          known; the set counts as not matching. Add the Namespace with its labels to the manifests"
        ]
    );
    assert_eq!(reply.audit["skipped"], "log=NamespaceUnknown");
}

#[test]
fn a_paused_set_leaves_pods_alone_and_says_so() {
    let reply = cluster(json!({"injectionStrategy": {"paused": true}})).mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::SET_PAUSED));
    assert_eq!(reply.warnings, ["SetPaused: injection by SidecarSet \"log\" is paused"]);
}

#[test]
fn containers_go_to_pods_of_their_own_platform() {
    let windows = json!({"containers": [{"name": "log", "image": "log:1", "securityContext": {"windowsOptions": {"hostProcess": false}}}]});
    for (pod_spec, platform) in [
        (json!({}), "Linux"),
        (json!({"os": {"name": "linux"}}), "Linux"),
        (json!({"os": {"name": "windows"}}), "Windows"),
        (json!({"os": null, "nodeSelector": {"kubernetes.io/os": "windows"}}), "Windows"),
        (json!({"os": {"name": ""}, "nodeSelector": {"kubernetes.io/os": "windows"}}), "Windows"),
        (json!({"nodeSelector": {"beta.kubernetes.io/os": "windows"}}), "Windows"),
        (json!({"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "windows"}}), "Linux"),
        (json!({"nodeSelector": {"disk": "windows"}}), "Linux"),
    ] {
        for (spec, of_set) in [(json!({}), "Linux"), (windows.clone(), "Windows")] {
            let reply = cluster(spec).mutate(&pod(pod_spec.clone()));
            let expected = if platform == of_set { reasons::INJECTED } else { reasons::WRONG_PLATFORM };
            assert_eq!(reply.reason, expected, "{pod_spec} and a set for {of_set}");
        }
    }
    let must = json!({"containers": windows["containers"], "optOut": "Denied", "clashPolicy": "Refuse"});
    let reply = cluster(must.clone()).mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::PLATFORM_UNKNOWN));
    assert_eq!(reply.causes[0]["field"], "spec.os.name");
    let reply = cluster(must).mutate(&pod(json!({"os": {"name": "linux"}})));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::WRONG_PLATFORM));
    let reply = cluster(json!({})).mutate(&pod(json!({"os": {"name": "windows"}})));
    assert_eq!(
        reply.warnings,
        ["WrongPlatform: the pod runs on Windows, the containers of SidecarSet \"log\" on Linux"]
    );
}

/// Where nodes are watched; without that, a pod that names a node is one that names no system.
#[test]
fn a_pod_that_names_its_node_runs_on_the_system_of_the_node() {
    let node = |name: &str, labels: Value| json!({"kind": "Node", "metadata": {"name": name, "labels": labels}});
    let nodes = [
        node("w", json!({"kubernetes.io/os": "windows"})),
        node("b", json!({"node.kubernetes.io/windows-build": "10.0.20348"})),
        node("l", json!({"kubernetes.io/os": "linux"})),
        node("n", json!({"rack": "a"})),
    ];
    let mut objects = vec![set("log", json!({}))];
    objects.extend(nodes);
    let cluster = Cluster::from_objects(&objects);
    for (spec, reason) in [
        (json!({"nodeName": "w"}), reasons::WRONG_PLATFORM),
        (json!({"nodeName": "b"}), reasons::WRONG_PLATFORM),
        (json!({"nodeName": "l"}), reasons::INJECTED),
        (json!({"nodeName": "n"}), reasons::INJECTED),
        (json!({"nodeName": "unknown"}), reasons::INJECTED),
        (json!({"nodeName": "w", "os": {"name": "linux"}}), reasons::INJECTED),
        (json!({"nodeName": "w", "nodeSelector": {"kubernetes.io/os": "linux"}}), reasons::INJECTED),
    ] {
        assert_eq!(cluster.mutate(&pod(spec.clone())).reason, reason, "{spec}");
    }
}
