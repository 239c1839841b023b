//! `PodTopologyLabels` beside the API server's own plugin.

use cluster::Cluster;
use serde_json::{Value, json};

use crate::plugins::{apply, plugin, served, small, webhooks};
use crate::plugins_asking::programmed;
use crate::process::eventually;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

fn nodes() -> Vec<Value> {
    let node = |at: usize| {
        let mut labels = json!({"example.com/rack": format!("r{at}"), "topology.kubernetes.io/arbitrary": "a"});
        if !at.is_multiple_of(4) {
            labels[ZONE] = format!("z{at}").into();
        }
        if !at.is_multiple_of(3) {
            labels[REGION] = "r".into();
        }
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"), "labels": labels}})
    };
    (0..12).map(node).collect()
}

/// A pod, for a node or for the scheduler.
fn pod(name: &str, node: Option<&str>) -> Value {
    let labels = json!({"app": "a", ZONE: "mine"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "a", "image": "a"}], "nodeName": node}})
}

/// Binds a pod, as the scheduler does.
fn bind(cluster: &Cluster, pod: &str, node: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}});
    let path = format!("/api/v1/namespaces/default/pods/{pod}/binding");
    let bound = cluster.kubectl(&["create", "--raw", &path, "-f", "-"], Some(&binding.to_string())).unwrap();
    assert!(bound.success(), "{}", bound.stderr);
}

/// Creates pods on every node in both ways, and returns their metadata.
fn place(cluster: &Cluster, prefix: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for at in 0..12 {
        let (bound, named, node) = (format!("{prefix}-bound-{at}"), format!("{prefix}-named-{at}"), format!("n{at}"));
        apply(cluster, &[pod(&bound, None), pod(&named, Some(&node))]);
        bind(cluster, &bound, &node);
        for name in [bound, named] {
            let stored = cluster.kubectl_ok(&["get", "pod", &name, "-o", "json"], None).unwrap();
            let mut stored: Value = serde_json::from_str(&stored).unwrap();
            found.push(json!({"labels": stored["metadata"]["labels"].take(), "annotations": stored["metadata"]["annotations"].take()}));
        }
    }
    found
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_get_the_labels_of_their_nodes_as_from_the_plugin_of_the_api_server() {
    let original = small(&[]);
    let (replaced, _outrider) = served(&["--disable-admission-plugins=PodTopologyLabels".to_owned()]);
    let (both, outrider) = served(&[]);
    let object = |labels: &[&str], target: &str| {
        let section = json!({"nodeLabels": labels, "target": target});
        plugin("topology", &json!({"plugin": "PodTopologyLabels", "podTopologyLabels": section}))
    };
    for cluster in [&original, &replaced, &both] {
        apply(cluster, &nodes());
    }
    for cluster in [&replaced, &both] {
        apply(cluster, &[object(&[ZONE, REGION], "Labels")]);
        programmed(cluster, "topology");
    }
    let theirs = place(&original, "a");
    for cluster in [&replaced, &both] {
        assert_eq!(place(cluster, "a"), theirs);
    }
    let changed = theirs.iter().filter(|metadata| metadata["labels"][ZONE] != "mine").count();
    assert!(changed * 3 > theirs.len(), "the pods show little: {changed}");
    assert_eq!(
        outrider.plugin_decisions(),
        Vec::<String>::new(),
        "where the original is on as well, ours changes nothing"
    );

    apply(&both, &[object(&["example.com/rack"], "Both")]);
    let mut round = 0;
    eventually("any label is copied", || {
        round += 1;
        let name = format!("rack-{round}");
        apply(&both, &[pod(&name, None)]);
        bind(&both, &name, "n5");
        let stored = both.kubectl_ok(&["get", "pod", &name, "-o", "json"], None).unwrap();
        let stored: Value = serde_json::from_str(&stored).unwrap();
        ["labels", "annotations"].iter().all(|map| stored["metadata"][map]["example.com/rack"] == "r5")
    });
    // The scheduler goes on without us.
    apply(&both, &[pod("without", None)]);
    outrider.kill();
    bind(&both, "without", "n5");
    assert_eq!(webhooks(&both), ["podtopologylabels.policy.outrider.dev"], "the entry is in force");
}
