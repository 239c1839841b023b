//! `Priority` and `RuntimeClass` beside the API server's own plugins, which compute what follows from a class.

use cluster::Cluster;
use serde_json::{Value, json};

use crate::plugins::{apply, plugin, served, small};
use crate::plugins_asking::{programmed, run};
use crate::process::eventually;

fn priority(name: &str, value: i64, more: &Value) -> Value {
    let mut class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    class.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    class
}

fn runtime() -> Value {
    let tolerations = json!([{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}]);
    json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandbox"}, "handler": "runsc",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
        "scheduling": {"nodeSelector": {"sandbox": "yes"}, "tolerations": tolerations}})
}

fn pod(name: &str, spec: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "a"}]}});
    pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    pod
}

/// The spec of a pod as it is stored.
fn stored(cluster: &Cluster, name: &str) -> Value {
    let pod = cluster.kubectl_ok(&["get", "pod", name, "-o", "json"], None).unwrap();
    serde_json::from_str::<Value>(&pod).unwrap()["spec"].take()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_priority_class_of_a_namespace_comes_out_as_one_that_the_pod_names() {
    let original = small(&[]);
    let (both, outrider) = served(&[]);
    let classes = [priority("low", 1_000, &json!({"preemptionPolicy": "Never"})), priority("high", 2_000, &json!({}))];
    for cluster in [&original, &both] {
        apply(cluster, &classes);
    }
    let section = json!({"priorityClassName": "low", "replacedClassNames": ["usual"]});
    apply(&both, &[plugin("priority", &json!({"plugin": "Priority", "priority": section}))]);
    programmed(&both, "priority");
    // Who names a class gets it from the API server, and nothing from us.
    let named =
        [pod("named", &json!({"priorityClassName": "low"})), pod("high", &json!({"priorityClassName": "high"}))];
    for cluster in [&original, &both] {
        assert_eq!(run(cluster, "create", "", &named), Vec::<String>::new());
    }
    for name in ["named", "high"] {
        assert_eq!(stored(&both, name), stored(&original, name));
    }
    assert_eq!(outrider.plugin_decisions(), Vec::<String>::new());
    // Who names none gets the same as who names ours.
    assert_eq!(run(&both, "create", "", &[pod("open", &json!({}))]), Vec::<String>::new());
    assert_eq!(stored(&both, "open"), stored(&original, "named"));
    assert_eq!(stored(&both, "open")["priority"], 1_000);
    apply(&both, &[priority("usual", 10, &json!({"globalDefault": true}))]);
    let mut round = 0;
    eventually("the default of the cluster is in force", || {
        round += 1;
        run(&both, "create", "", &[pod(&format!("defaulted-{round}"), &json!({}))]);
        assert_eq!(stored(&both, &format!("defaulted-{round}")), stored(&original, "named"));
        round == 3
    });
    // A class that does not exist is refused in the words of the API server.
    let section = json!({"priorityClassName": "gone", "replacedClassNames": ["usual"]});
    apply(&both, &[plugin("priority", &json!({"plugin": "Priority", "priority": section}))]);
    cluster_refuses(&both, "no PriorityClass with name gone was found");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_runtime_class_of_a_namespace_comes_out_as_one_that_the_pod_names() {
    let original = small(&[]);
    let (both, outrider) = served(&[]);
    for cluster in [&original, &both] {
        apply(cluster, &[runtime()]);
    }
    let object =
        |name: &str| plugin("runtime", &json!({"plugin": "RuntimeClass", "runtimeClass": {"runtimeClassName": name}}));
    apply(&both, &[object("sandbox")]);
    programmed(&both, "runtime");
    let spec = json!({"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "own", "operator": "Exists"}]});
    let mut named = spec.clone();
    named["runtimeClassName"] = "sandbox".into();
    for cluster in [&original, &both] {
        assert_eq!(run(cluster, "create", "", &[pod("named", &named)]), Vec::<String>::new());
    }
    assert_eq!(outrider.plugin_decisions(), Vec::<String>::new());
    assert_eq!(run(&both, "create", "", &[pod("open", &spec)]), Vec::<String>::new());
    let (theirs, ours) = (stored(&original, "named"), stored(&both, "open"));
    assert_eq!(ours, theirs);
    assert_eq!((&ours["overhead"]["cpu"], &ours["nodeSelector"]["sandbox"]), (&json!("250m"), &json!("yes")));
    apply(&both, &[object("gone")]);
    cluster_refuses(&both, "RuntimeClass \"gone\" not found");
}

/// Waits until a pod without a class is refused with these words.
fn cluster_refuses(cluster: &Cluster, words: &str) {
    let mut round = 0;
    eventually("a class that does not exist is refused", || {
        round += 1;
        let said = run(cluster, "create", "", &[pod(&format!("refused-{round}"), &json!({}))]);
        said.iter().any(|line| line.contains(words))
    });
}
