//! Sets decide on a new pod as it is stored: with what ranges fill in and plugins give it, which its own containers lack when it comes.

use admission::format::Quantity;
use admission::{Decision, Unserved};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn range(limits: Value) -> Value {
    json!({
        "apiVersion": "policy.outrider.dev/v1alpha1", "kind": "ClusterLimitRange", "metadata": {"name": "r"},
        "spec": {"limits": [limits], "namespaceSelector": {"matchLabels": {"team": "a"}}},
    })
}

fn namespace(labels: &Value, annotations: &Value) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": labels, "annotations": annotations}})
}

/// A must whose container follows from those of the pod.
fn must(mode: &str) -> Value {
    let expressions = json!({"limits": {"cpu": "cpu*50%"}, "requests": {"cpu": "cpu*50%", "memory": "memory+1Mi"}});
    let policy = json!({"targetContainersMode": mode, "resourcesExpr": expressions});
    let containers = json!([{"name": "log", "image": "l:1", "resourcesPolicy": policy}]);
    set("s", json!({"containers": containers, "optOut": "Denied"}))
}

#[test]
fn a_must_is_computed_with_what_ranges_fill_in_for_the_pods_own_containers() {
    let full =
        json!({"type": "Container", "default": {"cpu": "200m", "memory": "64Mi"}, "defaultRequest": {"cpu": "100m"}});
    let requests = json!({"type": "Container", "defaultRequest": {"cpu": "100m"}});
    let open = json!({"name": "app", "image": "shop:1"});
    let half = json!({"name": "half", "image": "shop:1", "resources": {"limits": {"cpu": "1"}}});
    let asking =
        json!({"name": "asking", "image": "shop:1", "resources": {"requests": {"cpu": "300m", "memory": "1Gi"}}});
    let sidecar = json!({"name": "side", "image": "shop:1", "restartPolicy": "Always"});
    let none = || json!({});
    let amounts = |cpu: &str, request: &str, memory: &str| json!({"limits": {"cpu": cpu}, "requests": {"cpu": request, "memory": memory}});
    for (limits, mode, containers, inits, expected) in [
        (&full, "sum", json!([open]), none(), amounts("100m", "50m", "65Mi")),
        (&full, "sum", json!([open, half]), none(), amounts("600m", "550m", "129Mi")),
        (&full, "sum", json!([open, asking]), none(), amounts("200m", "200m", "1089Mi")),
        (&full, "max", json!([open, half, asking]), none(), amounts("500m", "500m", "1025Mi")),
        (&full, "sum", json!([open]), json!([sidecar]), amounts("200m", "100m", "129Mi")),
        (&requests, "sum", json!([half]), none(), amounts("500m", "500m", "1Mi")),
    ] {
        let cluster =
            Cluster::from_objects(&[must(mode), range(limits.clone()), namespace(&json!({"team": "a"}), &none())]);
        let mut pod = pod(json!({"containers": containers}));
        if inits.is_array() {
            pod["spec"]["initContainers"] = inits;
        }
        let reply = cluster.mutate(&pod);
        assert_eq!(reply.reason, reasons::INJECTED, "{}", reply.message);
        let log = &reply.pod["spec"]["containers"][0];
        for (list, names) in [("limits", &["cpu"][..]), ("requests", &["cpu", "memory"][..])] {
            for name in names {
                assert_eq!(log["resources"][list][name], expected[list][name], "{list} {name} of {}", reply.pod);
            }
        }
        // What the API server refuses otherwise.
        let amount = |list: &str, name: &str| Quantity::deserialize(&log["resources"][list][name]).ok();
        for name in ["cpu", "memory"] {
            let (request, limit) = (amount("requests", name), amount("limits", name));
            assert!(
                limit.is_none_or(|limit| request.is_none_or(|request| request <= limit)),
                "{name} of {}",
                reply.pod
            );
        }
        let validated = cluster.validate(&reply.pod);
        assert_eq!(validated.decision, Decision::Allowed, "{}", validated.message);
        assert_eq!(cluster.mutate(&reply.pod).patch, None, "a second call changes nothing");
    }
}

#[test]
fn ranges_of_other_namespaces_count_for_nothing_and_an_unknown_namespace_is_waited_for() {
    let full = range(json!({"type": "Container", "default": {"cpu": "200m"}}));
    let other = Cluster::from_objects(&[must("sum"), full.clone(), namespace(&json!({}), &json!({}))]);
    let reply = other.mutate(&pod(json!({})));
    assert_eq!(reply.pod["spec"]["containers"][0]["resources"], json!({"requests": {"cpu": "0", "memory": "1Mi"}}));
    assert_eq!(other.validate(&reply.pod).decision, Decision::Allowed);
    let live = Cluster::from_objects(&[must("sum"), full]).live();
    assert!(matches!(live.mutate_in("new", &pod(json!({}))), Err(Unserved::NamespaceUnknown(_))));
}

#[test]
fn the_operating_system_is_that_of_the_node_selector_which_the_namespace_gives() {
    let key = "scheduler.alpha.kubernetes.io/node-selector";
    let plugin = |mode: &str, default: &str| {
        json!({"kind": "AdmissionPlugin", "metadata": {"name": "n"}, "spec": {
            "plugin": "PodNodeSelector", "mode": mode, "podNodeSelector": {"clusterDefaultNodeSelector": default},
        }})
    };
    let (windows, linux) = ("kubernetes.io/os=windows", "kubernetes.io/os=linux");
    let build = "node.kubernetes.io/windows-build=10.0.20348";
    let none = || json!({});
    for (mode, default, annotation, spec, expected) in [
        ("Enforce", windows, none(), none(), "Windows"),
        ("Enforce", build, none(), none(), "Windows"),
        ("Enforce", "", json!({key: windows}), none(), "Windows"),
        ("Enforce", windows, json!({key: linux}), none(), "Linux"),
        ("Enforce", windows, json!({key: ""}), none(), "Linux"),
        ("Enforce", "pool=shared", none(), none(), "Linux"),
        // Nothing is given, and the pod goes where it says.
        ("Warn", windows, none(), none(), "Linux"),
        ("Enforce", linux, none(), json!({"nodeSelector": {"kubernetes.io/os": "linux"}}), "Linux"),
    ] {
        let of = |platform: &str| {
            let more = json!({"optOut": "Denied", "platform": platform.to_lowercase()});
            let sets = [set("s", more), plugin(mode, default), namespace(&none(), &annotation)];
            let cluster = Cluster::from_objects(&sets);
            let reply = cluster.mutate(&pod(spec.clone()));
            if reply.reason == reasons::INJECTED {
                assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed, "{}", reply.pod);
            }
            (reply.reason, reply.message)
        };
        let (is_on, other) = if expected == "Windows" { ("Windows", "Linux") } else { ("Linux", "Windows") };
        assert_eq!(of(is_on).0, reasons::INJECTED, "{mode} {default} {annotation}: {}", of(is_on).1);
        assert_ne!(of(other).0, reasons::INJECTED, "{mode} {default} {annotation}");
    }
}
