//! Collector: what it reports is what kubectl says.

use std::sync::OnceLock;

use cluster::Namespace;
use serde_json::{Value, json};

use crate::process::eventually;
use crate::workshop::{Stage, get};

pub const KINDS: &str = "--enable-kinds=collector";

/// What the tests of a whole cluster share.
pub fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| Stage::set_up(KINDS))
}

/// A Deployment `web`.
pub fn deployment(replicas: u32) -> String {
    let labels = json!({"app": "web"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    })
    .to_string()
}

pub fn collector(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "collector.ip.outrider.dev/v1", "kind": "Collector", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

pub fn target() -> Value {
    json!({"target": {"name": "web"}})
}

/// The status of a Collector.
pub fn status(namespace: &Namespace<'_>, name: &str) -> Value {
    get(namespace, &format!("collector/{name}")).unwrap()["status"].take()
}

/// Status and reason of a condition.
fn condition(namespace: &Namespace<'_>, name: &str, type_: &str) -> String {
    let status = status(namespace, name);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default();
    format!("{} {}", found["status"].as_str().unwrap_or_default(), found["reason"].as_str().unwrap_or_default())
}

/// Name, address and node of each pod, by name.
fn listed_by_kubectl(namespace: &Namespace<'_>) -> Vec<[String; 3]> {
    let args = ["get", "pod", "-l", "app=web", "-o", "wide", "--no-headers"];
    let table = namespace.kubectl_ok(&args, None).unwrap();
    let mut rows: Vec<[String; 3]> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .map(|row| [0, 5, 6].map(|column| row[column].to_owned()))
        .collect();
    rows.sort();
    rows
}

fn listed_by_collector(namespace: &Namespace<'_>, name: &str) -> Vec<[String; 3]> {
    let status = status(namespace, name);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ips = status["ips"].as_array().cloned().unwrap_or_default();
    ips.iter().map(|ip| [text(&ip["pod"]), text(&ip["podIP"]), text(&ip["node"])]).collect()
}

/// Acceptance check 28, the list of addresses.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_list_of_addresses_is_the_sorted_list_of_pods() {
    let namespace = stage().cluster.namespace("addresses").unwrap();
    namespace.apply(&deployment(3)).unwrap();
    namespace.apply(&collector("by-target", &target())).unwrap();
    let selector = json!({"selector": {"matchLabels": {"app": "web"}}, "maxIPs": 10_000});
    namespace.apply(&collector("by-selector", &selector)).unwrap();
    let agree = |pods: usize| {
        let listed = listed_by_kubectl(&namespace);
        let agrees = |name: &str| {
            let status = status(&namespace, name);
            status["matchedPods"] == pods
                && status["readyPods"] == pods
                && listed_by_collector(&namespace, name) == listed
        };
        listed.len() == pods && agrees("by-target") && agrees("by-selector")
    };
    eventually("three pods are listed", || agree(3));
    namespace.kubectl_ok(&["scale", "deployment/web", "--replicas=5"], None).unwrap();
    eventually("five pods are listed", || agree(5));
    // It leaves by its labels; another takes its place.
    let pod = listed_by_kubectl(&namespace)[0][0].clone();
    namespace.kubectl_ok(&["label", "--overwrite", "pod", &pod, "app=other"], None).unwrap();
    eventually("the relabelled pod is replaced", || {
        agree(5) && listed_by_collector(&namespace, "by-target").iter().all(|row| row[0] != pod)
    });
    namespace.kubectl_ok(&["delete", "pod", &pod], None).unwrap();
    namespace.kubectl_ok(&["scale", "deployment/web", "--replicas=0"], None).unwrap();
    eventually("no pod is listed", || agree(0));

    assert_eq!(status(&namespace, "by-selector").get("events"), None, "a selector has no Deployment to count");
    let table = namespace.kubectl_ok(&["get", "coll"], None).unwrap();
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["NAME", "TARGET", "PODS", "READY", "EVENTS", "AGE"]);
}

/// Acceptance check 29, refusals.
#[test]
#[ignore = "needs a control plane: make test"]
fn both_selector_and_target_are_refused_with_the_field() {
    let namespace = stage().cluster.namespace("refused").unwrap();
    let mut both = target();
    both["selector"] = json!({"matchLabels": {"app": "web"}});
    for (spec, said) in [
        (both, "The Collector \"c\" is invalid: spec.target: Forbidden: may not be specified together with `selector`"),
        (json!({}), "The Collector \"c\" is invalid: spec: Required value: must specify either `selector` or `target`"),
        (json!({"selector": {}}), "spec.selector: Invalid value: {}: empty selector is invalid for collector"),
        (json!({"target": {"name": "web", "kind": "Pod"}}), "spec.target.kind: Unsupported value: \"Pod\""),
        (json!({"target": {"name": "web"}, "maxIPs": 0}), "spec.maxIPs in body should be greater than or equal to 1"),
    ] {
        let output = namespace.kubectl(&["apply", "-f", "-"], Some(&collector("c", &spec))).unwrap();
        assert!(!output.success() && output.stderr.contains(said), "{spec}: {}", output.stderr);
    }
    namespace.apply(&collector("c", &target())).unwrap();
    let stored = get(&namespace, "collector/c").unwrap()["spec"].take();
    let defaulted = json!({"target": {"kind": "Deployment", "name": "web"}, "includeIPv6": true, "maxIPs": 1000});
    assert_eq!(stored, defaulted);
}

/// Acceptance check 29, a target that is not there.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_target_that_is_absent_is_told_and_taken_up_when_it_comes() {
    let stage = stage();
    let namespace = stage.cluster.namespace("absent").unwrap();
    namespace.apply(&collector("c", &target())).unwrap();
    let says = |ready: &str, not_found: &str| {
        condition(&namespace, "c", "Ready") == ready && condition(&namespace, "c", "TargetNotFound") == not_found
    };
    eventually("it says so", || says("False TargetNotFound", "True DeploymentNotFound"));
    namespace.apply(&deployment(1)).unwrap();
    eventually("it recovers", || says("True Collected", "False DeploymentFound"));
    eventually("the pod is listed", || listed_by_collector(&namespace, "c").len() == 1);
    assert_eq!(status(&namespace, "c")["events"]["added"], 1);
    namespace.kubectl_ok(&["delete", "deployment/web"], None).unwrap();
    eventually("it says so again", || says("False TargetNotFound", "True DeploymentNotFound"));
    let counted = status(&namespace, "c");
    assert_eq!((&counted["events"]["deleted"], counted["events"].get("lastResourceVersion")), (&json!(1), None));
    assert_eq!(counted["lastOperation"], json!({"description": "deleted", "events": 1}));

    for sample in ["web-deployment.yaml", "collector.ip_v1_collector.yaml"] {
        let file = format!("{}/config/samples/{sample}", env!("CARGO_MANIFEST_DIR"));
        stage.cluster.kubectl_ok(&["apply", "-f", &file], None).unwrap();
    }
    let ready = ["wait", "--for=condition=Ready", "collector/collector-sample", "--timeout=120s"];
    stage.cluster.kubectl_ok(&ready, None).unwrap();
    assert_eq!(stage.outrider.forbidden(), [""; 0], "the printed roles are not enough");
}
