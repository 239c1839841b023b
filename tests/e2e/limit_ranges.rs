//! The same pods and claims in a namespace with a `LimitRange`, in one that a ClusterLimitRange of the same limits selects, and in one with
//! both.

use std::collections::BTreeMap;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::differential::{Random, without_prefix};
use crate::plugins::{apply, served, webhooks};
use crate::process::eventually;

const OWN: &str = "own";
const SELECTED: &str = "selected";
const BOTH: &str = "both";

fn limits() -> Value {
    json!([
        {"type": "Container", "min": {"cpu": "10m"}, "max": {"cpu": "2", "memory": "1Gi"},
            "default": {"cpu": "0.5"}, "defaultRequest": {"cpu": "100m", "memory": "64Mi"}, "maxLimitRequestRatio": {"cpu": "7.5"}},
        {"type": "Pod", "max": {"cpu": "3"}, "min": {"memory": "48Mi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}},
    ])
}

fn policies() -> Vec<Value> {
    let namespace = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let limited = |namespace: &str| {
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": namespace},
            "spec": {"limits": limits()}})
    };
    let team = json!({"limits": "team"});
    vec![
        namespace(OWN, json!({})),
        namespace(SELECTED, team.clone()),
        namespace(BOTH, team.clone()),
        limited(OWN),
        limited(BOTH),
        json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "ClusterLimitRange", "metadata": {"name": "team"},
            "spec": {"namespaceSelector": {"matchLabels": team}, "limits": limits()}}),
    ]
}

fn amounts(random: &mut Random, cpu: &[&str], memory: &[&str]) -> Value {
    let mut list = json!({});
    for (name, amounts) in [("cpu", cpu), ("memory", memory)] {
        if random.below(2) == 0 {
            list[name] = amounts[random.below(amounts.len())].into();
        }
    }
    list
}

fn resources(random: &mut Random) -> Value {
    let requests = amounts(random, &["5m", "50m", "0.2", "1"], &["32Mi", "64Mi", "100M"]);
    let limits = amounts(random, &["1", "1500m", "2", "3"], &["128Mi", "1Gi", "1.5Gi"]);
    random.pick(&[
        json!({}),
        json!({"requests": requests}),
        json!({"limits": limits}),
        json!({"requests": requests, "limits": limits}),
    ])
}

fn object(random: &mut Random, at: usize) -> Value {
    if at % 8 == 7 {
        let storage = random.pick(&[json!("500Mi"), json!("1Gi"), json!("5Gi"), json!("11Gi")]);
        return json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("c{at}")},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}});
    }
    let mut container = |name: String| json!({"name": name, "image": "i:1", "resources": resources(random)});
    let mut spec = json!({"containers": (0..=at % 3).map(|at| container(format!("c{at}"))).collect::<Vec<_>>()});
    if at % 4 == 1 {
        let (first, mut sidecar) = (container("first".to_owned()), container("sidecar".to_owned()));
        sidecar["restartPolicy"] = "Always".into();
        spec["initContainers"] = json!([first, sidecar, container("last".to_owned())]);
    }
    if at.is_multiple_of(5) {
        let limits = amounts(random, &["2", "4"], &["1Gi", "2Gi"]);
        spec["resources"] = json!({"requests": amounts(random, &["1", "2"], &["40Mi", "1Gi"]), "limits": limits});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}")}, "spec": spec})
}

/// A refusal without what differs: the prefix of webhooks, and the order of messages, which is another each time in the API server.
fn alike(line: &str) -> Vec<String> {
    let message = without_prefix(line).replace(", but ", " but ").replace(['[', ']'], "");
    let message = message.trim_start_matches("Error from server (Forbidden): ");
    let parted = [" is forbidden: ", " is invalid: "].iter().find_map(|between| message.split_once(between));
    let (object, why) = parted.unwrap_or(("", message));
    let mut parts: Vec<String> = why.split(", ").map(str::to_owned).collect();
    parts.sort();
    parts.insert(0, object.to_owned());
    parts
}

/// Spec and annotations of each object of a namespace.
fn stored(cluster: &Cluster, namespace: &str) -> BTreeMap<String, (Value, Value)> {
    let found =
        cluster.kubectl_ok(&["get", "pods,persistentvolumeclaims", "-n", namespace, "-o", "json"], None).unwrap();
    let found: Value = serde_json::from_str(&found).unwrap();
    let of = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        (name, (object["spec"].clone(), object["metadata"]["annotations"].clone()))
    };
    found["items"].as_array().unwrap().iter().map(of).collect()
}

/// Why objects were refused in a namespace.
fn created(cluster: &Cluster, namespace: &str, objects: &[Value]) -> Vec<Vec<String>> {
    let mut refusals = Vec::new();
    for part in objects.chunks(60) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": part}).to_string();
        let output = cluster.kubectl(&["create", "-n", namespace, "-f", "-"], Some(&list)).unwrap();
        refusals.extend(output.stderr.lines().filter(|line| !line.starts_with("Warning:")).map(alike));
    }
    refusals.sort();
    refusals
}

/// Resizes the first container of some pods, and returns the refusals.
fn resized(cluster: &Cluster, namespace: &str, names: &[String]) -> Vec<Vec<String>> {
    let patch = |(at, name): (usize, &String)| {
        let limit = ["200m", "1", "1900m", "2500m"][at % 4];
        let resources = json!({"requests": {"cpu": "150m"}, "limits": {"cpu": limit}});
        let patch = json!({"spec": {"containers": [{"name": "c0", "resources": resources}]}}).to_string();
        let arguments = ["patch", "pod", name, "-n", namespace, "--subresource=resize", "-p", &patch];
        cluster.kubectl(&arguments, None).unwrap().stderr.lines().map(alike).collect::<Vec<_>>()
    };
    names.iter().enumerate().flat_map(patch).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_cluster_limit_range_does_what_a_limit_range_does_and_nothing_more_beside_one() {
    let (cluster, _outrider) = served(&[]);
    apply(&cluster, &policies());
    eventually("the entries of the range exist", || {
        webhooks(&cluster).iter().filter(|name| name.starts_with("limitranger")).count() == 3
    });
    let programmed = "jsonpath={.status.conditions[?(@.type==\"Programmed\")].status}";
    eventually("the range is programmed", || {
        cluster.kubectl_ok(&["get", "clusterlimitrange", "team", "-o", programmed], None).unwrap() == "True"
    });
    eventually("the range fills in what is open", || {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": SELECTED},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
        let arguments = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let found = cluster.kubectl(&arguments, Some(&pod.to_string())).unwrap();
        found.stdout.contains("kubernetes.io/limit-ranger")
    });
    let mut random = Random(20_261_129);
    let objects: Vec<Value> = (0..240).map(|at| object(&mut random, at)).collect();
    let [own, selected, both] = [OWN, SELECTED, BOTH].map(|namespace| created(&cluster, namespace, &objects));
    assert_eq!(selected, own);
    assert_eq!(both, own);
    let original = stored(&cluster, OWN);
    for namespace in [SELECTED, BOTH] {
        let found = stored(&cluster, namespace);
        for (name, expected) in &original {
            assert_eq!(found.get(name), Some(expected), "{namespace}/{name}");
        }
        assert_eq!(found.len(), original.len());
    }
    let filled = original.values().filter(|(_, annotations)| !annotations.is_null()).count();
    eprintln!("{} of {} objects were refused, {filled} filled in, alike", own.len(), objects.len());
    assert!(
        own.len() * 5 > objects.len() && filled * 5 > objects.len(),
        "the objects show little: {} {filled}",
        own.len()
    );

    let pods: Vec<String> = original.keys().filter(|name| name.starts_with('p')).take(24).cloned().collect();
    let [own, selected, both] = [OWN, SELECTED, BOTH].map(|namespace| resized(&cluster, namespace, &pods));
    assert_eq!(selected, own);
    assert_eq!(both, own);
    assert!(!own.is_empty() && own.len() < pods.len(), "the resizes show little: {}", own.len());
    let original = stored(&cluster, OWN);
    assert_eq!(stored(&cluster, SELECTED), original);
    assert_eq!(stored(&cluster, BOTH), original);

    cluster.kubectl_ok(&["delete", "clusterlimitrange/team"], None).unwrap();
    eventually("the entries are withdrawn", || webhooks(&cluster).is_empty());
}
