//! Plugins of nodes beside the API server's own.

use std::collections::BTreeMap;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::differential::{Random, seed, size};
use crate::plugins::{apply, plugin, served, small, webhooks};
use crate::plugins_asking::{programmed, run};

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
