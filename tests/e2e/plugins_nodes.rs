//! Plugins of nodes beside the API server's own.

use std::collections::BTreeMap;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::differential::{Random, seed, size};
use crate::plugins::{apply, plugin, served, small, webhooks};
use crate::plugins_asking::{programmed, run, said};

/// Nodes as kubelets register them, with taints and without.
fn nodes() -> Vec<Value> {
    let mut random = Random(seed(20_261_134) as u64);
    let mut one = |at: usize| {
        let mut taints = Vec::new();
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "pool"] {
            let taint = |effect: &str| json!({"key": key, "effect": effect});
            let valued = json!({"key": key, "value": "v", "effect": "NoSchedule"});
            let none = Value::Null;
            let taint = random.pick(&[none.clone(), none, taint("NoSchedule"), taint("NoExecute"), valued]);
            taints.extend(Some(taint).filter(|taint| !taint.is_null()));
        }
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}")}, "spec": {}});
        if !taints.is_empty() {
            node["spec"]["taints"] = taints.into();
        }
        if at.is_multiple_of(3) {
            node["status"] = ready;
        }
        node
    };
    (0..size(90)).map(&mut one).collect()
}

fn taints(cluster: &Cluster) -> BTreeMap<String, Value> {
    let list = cluster.kubectl_ok(&["get", "nodes", "-o", "json"], None).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let of = |it: &Value| (it["metadata"]["name"].to_string(), it["spec"]["taints"].clone());
    list["items"].as_array().unwrap().iter().map(of).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn nodes_are_tainted_as_by_the_plugin_of_the_api_server() {
    let original = small(&[]);
    let (replaced, outrider_alone) = served(&["--disable-admission-plugins=TaintNodesByCondition".to_owned()]);
    let (both, outrider) = served(&[]);
    for cluster in [&replaced, &both] {
        apply(cluster, &[plugin("nodes", &json!({"plugin": "TaintNodesByCondition"}))]);
        programmed(cluster, "nodes");
    }
    let nodes = nodes();
    for cluster in [&original, &replaced, &both] {
        assert_eq!(run(cluster, "create", "", &nodes), Vec::<String>::new());
    }
    let theirs = taints(&original);
    assert_eq!(theirs.len(), nodes.len());
    for cluster in [&replaced, &both] {
        assert_eq!(taints(cluster), theirs);
    }
    let written = |node: &Value| node["spec"]["taints"].clone();
    let changed = nodes.iter().filter(|it| theirs[&it["metadata"]["name"].to_string()] != written(it)).count();
    assert!(changed * 3 > nodes.len(), "the nodes show little: {changed}");
    let decisions = outrider.plugin_decisions();
    assert_eq!(decisions, Vec::<String>::new(), "where the original is on as well, ours is not called");

    // A node registers without us, and what it reports never waits for us.
    outrider_alone.kill();
    let late = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}});
    assert_eq!(run(&replaced, "create", "", &[late]), Vec::<String>::new());
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).to_string();
    replaced.kubectl_ok(&["patch", "node/late", "--subresource=status", "--type=merge", "-p", &status], None).unwrap();
    assert_eq!(taints(&replaced)["\"late\""], Value::Null);
    assert_eq!(webhooks(&replaced), ["taintnodesbycondition.policy.outrider.dev"], "the entry is in force");
}

/// Kubelets, who may do everything, so that only the plugin refuses.
fn kubelets() -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kubelets"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}]})
}

/// What is said to the kubelet of `n1`.
fn as_kubelet(cluster: &Cluster, verb: &[&str], object: Option<&Value>) -> Vec<String> {
    let user = ["--as=system:node:n1", "--as-group=system:nodes", "--as-group=system:authenticated"];
    let text = object.map(ToString::to_string);
    said(&cluster.kubectl(&[verb, &user].concat(), text.as_deref()).unwrap())
}

fn mirror_pod(cluster: &Cluster, name: &str, node: &str, more: &Value) -> Value {
    let path = "jsonpath={.metadata.uid}";
    let uid = cluster.kubectl_ok(&["get", "node", node, "-o", path], None).unwrap();
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true});
    let metadata = json!({"name": name, "namespace": "default", "annotations": {"kubernetes.io/config.mirror": "h"}, "ownerReferences": [owner]});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in more.as_object().unwrap() {
        match field.as_str() {
            "annotations" | "ownerReferences" => pod["metadata"][field] = value.clone(),
            _ => pod["spec"][field] = value.clone(),
        }
    }
    pod
}

/// All that kubelets may do with nodes and pods, and may not.
fn everything_of_kubelets(cluster: &Cluster) -> Vec<String> {
    let node = |name: &str, more: Value| {
        let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        node["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    let mut all = Vec::new();
    let protected =
        json!({"labels": {"node-restriction.kubernetes.io/pool": "x", "node-role.kubernetes.io/a": "", "pool": "x"}});
    all.push(as_kubelet(cluster, &["create", "-f", "-"], Some(&node("n1", protected))));
    all.push(as_kubelet(
        cluster,
        &["create", "-f", "-"],
        Some(&node("n1", json!({"labels": {"kubernetes.io/os": "linux"}}))),
    ));
    all.push(as_kubelet(cluster, &["create", "-f", "-"], Some(&node("n2", json!({})))));
    apply(cluster, &[node("n2", json!({}))]);
    for (name, patch) in [
        ("n1", json!({"metadata": {"labels": {"pool": "y", "topology.kubernetes.io/zone": "z"}}})),
        (
            "n1",
            json!({"metadata": {"labels": {"node-restriction.kubernetes.io/pool": "y", "topology.kubernetes.io/rack": "z"}}}),
        ),
        (
            "n1",
            json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}),
        ),
        ("n1", json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})),
        ("n1", json!({"spec": {"taints": null}})),
        ("n1", json!({"spec": {"unschedulable": true}})),
        ("n2", json!({"metadata": {"labels": {"pool": "y"}}})),
    ] {
        all.push(as_kubelet(
            cluster,
            &["patch", &format!("node/{name}"), "--type=merge", "-p", &patch.to_string()],
            None,
        ));
    }
    let secret = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    let map = json!([{"name": "v", "configMap": {"name": "m"}}]);
    let claim = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    let owner = |more: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": true});
        owner.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"ownerReferences": [owner]})
    };
    for (name, of, more) in [
        ("mirror", "n1", json!({})),
        ("other-node", "n2", json!({})),
        ("no-mirror", "n1", json!({"annotations": {}})),
        ("secret", "n1", json!({"volumes": secret})),
        ("map", "n1", json!({"volumes": map})),
        ("claim", "n1", json!({"volumes": claim})),
        ("pull", "n1", json!({"imagePullSecrets": [{"name": "s"}]})),
        ("account", "n1", json!({"serviceAccountName": "a"})),
        ("driver", "n1", json!({"volumes": [{"name": "v", "csi": {"driver": "d.example"}}]})),
        ("orphan", "n1", json!({"ownerReferences": []})),
        ("other-owner", "n1", owner(json!({"name": "n2"}))),
        ("not-controlled", "n1", owner(json!({"controller": false}))),
        ("blocking", "n1", owner(json!({"blockOwnerDeletion": true}))),
    ] {
        all.push(as_kubelet(cluster, &["create", "-f", "-"], Some(&mirror_pod(cluster, name, of, &more))));
    }
    run(cluster, "create", "", &[mirror_pod(cluster, "foreign", "n2", &json!({}))]);
    for (pod, verb) in [
        ("pod/foreign", &["delete", "--grace-period=0", "--force"][..]),
        ("pod/mirror", &["annotate", "a=b"]),
        ("pod/mirror", &["delete", "--grace-period=0", "--force"]),
    ] {
        let (first, rest) = verb.split_first().unwrap();
        all.push(as_kubelet(cluster, &[&[*first, pod][..], rest].concat(), None));
    }
    // The scheduler and people are left alone.
    all.push(run(
        cluster,
        "create",
        "",
        &[mirror_pod(cluster, "by-admin", "n2", &json!({"volumes": [{"name": "v", "emptyDir": {}}]}))],
    ));
    all.push(as_kubelet(cluster, &["delete", "node/n2"], None));
    all.push(as_kubelet(cluster, &["delete", "node/n1"], None));
    all.into_iter().flatten().collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn kubelets_are_restricted_as_by_the_plugin_of_the_api_server() {
    let original = small(&["--enable-admission-plugins=NodeRestriction".to_owned()]);
    let (replaced, outrider_alone) = served(&[]);
    let (both, outrider) = served(&["--enable-admission-plugins=NodeRestriction".to_owned()]);
    let section = json!({"iUnderstandTheRisk": true});
    for cluster in [&original, &replaced, &both] {
        apply(cluster, &[kubelets()]);
    }
    for cluster in [&replaced, &both] {
        apply(cluster, &[plugin("kubelets", &json!({"plugin": "NodeRestriction", "nodeRestriction": section}))]);
        programmed(cluster, "kubelets");
    }
    let theirs = everything_of_kubelets(&original);
    assert!(theirs.len() > 15, "the requests show little: {theirs:?}");
    for cluster in [&replaced, &both] {
        assert_eq!(everything_of_kubelets(cluster), theirs);
    }
    let decisions = outrider.plugin_decisions();
    assert_eq!(decisions, Vec::<String>::new(), "where the original is on as well, it refuses first");

    // A kubelet goes on without us, and says that it lives without waiting for us.
    outrider_alone.kill();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    assert_eq!(as_kubelet(&replaced, &["create", "-f", "-"], Some(&node)), Vec::<String>::new());
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).to_string();
    let reported = ["patch", "node/n1", "--subresource=status", "--type=merge", "-p", &status];
    assert_eq!(as_kubelet(&replaced, &reported, None), Vec::<String>::new());
    assert_eq!(webhooks(&replaced), ["noderestriction.policy.outrider.dev"], "the entry is in force");
}
