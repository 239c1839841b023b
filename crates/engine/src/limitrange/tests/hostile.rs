//! Of a hostile pod the work grows with its size, and no faster; the answer does not grow without end.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use super::{pod, range, review};
use crate::plugins::work;
use crate::pod::limits::CONTAINERS;
use crate::testing::Cluster;

/// The most resources of a limit.
const RESOURCES: usize = 64;

fn cluster() -> Cluster {
    let amounts: serde_json::Map<String, Value> =
        (0..RESOURCES).map(|at| (format!("a.com/r{at:02}"), json!("5"))).collect();
    Cluster::from_objects(&[range(
        "r",
        json!([{"type": "Container", "max": amounts}, {"type": "Pod", "max": amounts}]),
    )])
}

fn containers(count: usize, resources: &dyn Fn(usize) -> Value) -> Value {
    let all = (0..count).map(|at| json!({"name": format!("c{at}"), "resources": resources(at)}));
    pod(json!({"containers": all.collect::<Vec<_>>()}))
}

fn steps(cluster: &Cluster, pod: &Value) -> usize {
    work::of(|| (cluster.mutate(pod), cluster.validate(pod))).0
}

#[test]
fn ranges_are_made_one_before_containers_are_judged() {
    let cluster = |ranges: usize| {
        let amounts = |at: usize| json!({"cpu": format!("{}m", 1000 + at), "memory": "1Gi"});
        let limits = |at: usize| {
            json!([{"type": "Container", "max": amounts(at), "default": amounts(0), "maxLimitRequestRatio": {"cpu": 1000 + at}},
                {"type": "Pod", "min": {"cpu": format!("{at}m")}}])
        };
        Cluster::from_objects(&(0..ranges).map(|at| range(&format!("r{at:03}"), limits(at))).collect::<Vec<_>>())
    };
    let pod = |count: usize| {
        let resources = |at: usize| {
            let mut limits = json!({"cpu": "1", "memory": "1Mi"});
            limits[format!("a.com/r{at}")] = "1".into();
            json!({"requests": {"cpu": "1m", "memory": "1"}, "limits": limits})
        };
        containers(count, &resources)
    };
    let (few, many) = (cluster(1), cluster(100));
    assert_eq!(many.validate(&pod(1_000)).message, "");
    let (small, large) = (steps(&many, &pod(250)), steps(&many, &pod(1_000)));
    assert!(small > 0 && large <= 5 * small, "{small} {large}");
    let alone = steps(&few, &pod(1_000));
    assert!(large <= 2 * alone, "of 100 ranges: {large}, of one: {alone}");
}

#[test]
fn of_many_ranges_about_other_resources_each_a_pod_is_given_up_early() {
    let resources = |range: usize| -> serde_json::Map<String, Value> {
        (0..RESOURCES).map(|at| (format!("{range}.com/r{at}"), json!("1"))).collect()
    };
    let ranges: Vec<Value> =
        (0..100).map(|at| range(&format!("r{at:03}"), json!([{"type": "Container", "max": resources(at)}]))).collect();
    let cluster = Cluster::from_objects(&ranges);
    let (small, large) = (containers(250, &|_| json!({})), containers(1_000, &|_| json!({})));
    assert_eq!(cluster.mutate(&large).reason, Reason::TOO_LARGE);
    assert_eq!(cluster.validate(&large).decision, Decision::Denied);
    assert_eq!(steps(&cluster, &small), steps(&cluster, &large));
}

#[test]
fn work_grows_with_the_containers_and_not_with_what_one_of_them_names() {
    let cluster = cluster();
    let (small, large) =
        (steps(&cluster, &containers(50, &|_| json!({}))), steps(&cluster, &containers(200, &|_| json!({}))));
    assert!(small > 0 && large <= 5 * small, "{small} {large}");
    let named = |count: usize| {
        let amounts: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("b.com/r{at}"), json!("1"))).collect();
        containers(1, &|_| json!({"requests": amounts, "limits": amounts}))
    };
    assert_eq!(steps(&cluster, &named(200)), steps(&cluster, &named(1)), "amounts are looked up by name");
}

#[test]
fn a_pod_with_more_containers_than_are_read_is_refused() {
    let cluster = cluster();
    let many = containers(100_000, &|_| Value::Null);
    for reply in [cluster.mutate(&many), cluster.validate(&many)] {
        assert_eq!((reply.code, reply.reason), (Some(422), Reason::TOO_LARGE));
    }
    let resized = review("Pod", "pods", "resize", Some(&many), &many);
    for path in ["/mutate--v1-pod-resize-limitranger", "/validate--v1-pod-resize-limitranger"] {
        let reply = cluster.ask(path, &resized).unwrap();
        assert_eq!((reply.code, reply.reason), (Some(422), Reason::TOO_LARGE), "{path}");
    }
}

#[test]
fn a_pod_that_defaults_would_make_too_large_is_refused() {
    let reply = cluster().mutate(&containers(CONTAINERS, &|_| Value::Null));
    assert_eq!((reply.code, reply.reason), (Some(422), Reason::TOO_LARGE));
    assert!(reply.message.contains("with what ClusterLimitRanges fill in"), "{}", reply.message);
    assert!(reply.body.len() < 4096, "{}", reply.body.len());
}

#[test]
fn a_refusal_does_not_grow_with_the_faults() {
    let greedy = |at: usize| json!({"limits": {"cpu": (at + 2).to_string()}});
    let cluster = Cluster::from_objects(&[range("r", json!([{"type": "Container", "max": {"cpu": "1"}}]))]);
    let message = |count: usize| {
        let reply = cluster.validate(&containers(count, &greedy));
        assert_eq!(reply.decision, Decision::Denied);
        reply.message
    };
    let (all, many) = (message(64), message(1_000));
    assert!(all.ends_with("but limit is 65]"), "{all}");
    assert_eq!(many, all.trim_end_matches(']').to_owned() + ", and more]");
}

#[test]
fn a_refusal_does_not_grow_with_the_digits_of_an_amount() {
    let cluster = Cluster::from_objects(&[range("r", json!([{"type": "Container", "max": {"cpu": "1"}}]))]);
    let message =
        |digits: usize| cluster.validate(&containers(1, &|_| json!({"limits": {"cpu": "9".repeat(digits)}}))).message;
    assert!(message(100).ends_with(&"9".repeat(100)), "{}", message(100));
    let (long, longer) = (message(1_000), message(100_000));
    assert!(long.contains("maximum cpu usage per Container is 1, but limit is 999"), "{long}");
    assert_eq!(long.len(), longer.len());
}

#[test]
fn hundred_thousand_resources_are_no_trouble() {
    let amounts: serde_json::Map<String, Value> = (0..100_000).map(|at| (format!("b.com/r{at}"), json!("1"))).collect();
    let cluster = Cluster::from_objects(&[range("r", json!([{"type": "Container", "default": {"cpu": "1"}}]))]);
    let reply = cluster.mutate(&containers(1, &|_| json!({"limits": amounts})));
    match reply.decision {
        Decision::Denied => assert_eq!(reply.reason, Reason::TOO_LARGE),
        _ => assert_eq!(reply.pod["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1"),
    }
    let claim = json!({"metadata": {"name": "p"}, "spec": {"resources": {"requests": amounts}}});
    let cluster =
        Cluster::from_objects(&[range("r", json!([{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]))]);
    let review = review("PersistentVolumeClaim", "persistentvolumeclaims", "", None, &claim);
    let reply = cluster.ask("/validate--v1-persistentvolumeclaim-limitranger", &review).unwrap();
    assert_eq!((reply.reason, reply.code), (Reason::TOO_LARGE, Some(422)), "{}", reply.message);
}
