//! Of a hostile object the work grows with its size, and no faster, however long the lists of the configuration are.

use serde_json::{Value, json};

use super::{namespace, plugin, pod};
use crate::plugins::work;
use crate::testing::Cluster;

/// The most entries of a list.
const LONG: usize = 256;

/// Four times the size is at most five times the work, and there is some.
fn in_proportion(name: &str, steps: impl Fn(usize) -> usize) {
    let (small, large) = (steps(60), steps(240));
    assert!(small > 0 && large <= 5 * small, "{name}: {small} {large}");
}

fn list(of: impl Fn(usize) -> Value) -> Value {
    (0..LONG).map(of).collect::<Vec<_>>().into()
}

fn cluster(spec: &Value) -> Cluster {
    Cluster::from_objects(&[plugin("a", spec.clone()), namespace(json!({}))])
}

fn work_on(cluster: &Cluster, spec: Value) -> usize {
    let pod = pod(spec);
    work::of(|| (cluster.mutate(&pod), cluster.validate(&pod))).0
}

#[test]
fn images_are_compared_with_patterns_once_each() {
    let section = json!({"exemptImages": list(|at| json!(format!("*{at}x*y*")))});
    let cluster = cluster(&json!({"plugin": "AlwaysPullImages", "alwaysPullImages": section}));
    let containers = |count: usize, image: &dyn Fn(usize) -> String| {
        let all = (0..count).map(|at| json!({"name": format!("c{at}"), "image": image(at)})).collect::<Vec<_>>();
        json!({"containers": all})
    };
    in_proportion("distinct images", |count| work_on(&cluster, containers(count, &|at| format!("i{at:05}"))));
    let same = work_on(&cluster, containers(1000, &|_| "image".to_owned()));
    let one = work_on(&cluster, containers(1, &|_| "image".to_owned()));
    assert_eq!(same, one, "the same image is compared once");
}

#[test]
fn tolerations_are_looked_up_in_lists() {
    let whitelist: Vec<Value> = (0..1000).map(|at| json!({"key": format!("k{at}"), "operator": "Exists"})).collect();
    let defaults = json!([{"key": "k1", "operator": "Exists"}]);
    let section = json!({"default": defaults, "whitelist": whitelist});
    let cluster = cluster(&json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
    let tolerations = |count: usize| {
        let all = (0..count).map(|at| json!({"key": "k7", "operator": "Equal", "value": format!("v{at}")}));
        json!({"tolerations": all.collect::<Vec<_>>()})
    };
    in_proportion("tolerations", |count| work_on(&cluster, tolerations(count)));
    let each = work_on(&cluster, tolerations(250)) / 250;
    assert!(each < 250, "a toleration is not compared with all of the list: {each}");
}

#[test]
fn topology_keys_are_looked_up_in_a_set() {
    let section = json!({"allowedTopologyKeys": list(|at| json!(format!("k{at}")))});
    let cluster =
        cluster(&json!({"plugin": "LimitPodHardAntiAffinityTopology", "limitPodHardAntiAffinityTopology": section}));
    let terms = |count: usize| {
        let all = (0..count).map(|at| json!({"topologyKey": format!("k{}", at % LONG)})).collect::<Vec<_>>();
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": all}}})
    };
    in_proportion("terms", |count| work_on(&cluster, terms(count)));
    assert!(work_on(&cluster, terms(1000)) <= 1000);
}

#[test]
fn addresses_are_looked_up_in_sorted_ranges() {
    let section = json!({"allowedCIDRs": list(|at| json!(format!("10.{at}.0.0/17")))});
    let cluster = cluster(&json!({"plugin": "DenyServiceExternalIPs", "denyServiceExternalIPs": section}));
    let steps = |count: usize| {
        let ips: Vec<String> = (0..count).map(|at| format!("10.{}.0.{}", at % LONG, at % 250)).collect();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "namespace": "shop", "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "Service"},
            "resource": {"group": "", "version": "v1", "resource": "services"},
            "object": {"metadata": {"name": "s"}, "spec": {"externalIPs": ips}},
        }});
        let (steps, reply) = work::of(|| cluster.ask("/validate--v1-service-denyserviceexternalips", &review).unwrap());
        assert_eq!(reply.decision, admission::Decision::Allowed);
        steps
    };
    in_proportion("addresses", steps);
    assert!(steps(1000) <= 1000 * 10, "{}", steps(1000));
}
