//! `AlwaysPullImages` (4.1), `ExtendedResourceToleration` (4.4), `LimitPodHardAntiAffinityTopology` (4.7) and
//! `DefaultTolerationSeconds` (4.24).

use admission::Decision;
use serde_json::{Value, json};

use super::{admitted, namespace, plugin, pod};
use crate::testing::{Cluster, review, set};

fn cluster(spec: Value) -> Cluster {
    Cluster::from_objects(&[plugin("a", spec), namespace(json!({}))])
}

fn pulled() -> Value {
    let four = |name: &str| -> Vec<Value> {
        ["", "Never", "IfNotPresent", "Always"]
            .iter()
            .enumerate()
            .map(|(at, policy)| json!({"name": format!("{name}{at}"), "image": "image", "imagePullPolicy": policy}))
            .collect()
    };
    let volumes: Vec<Value> = ["", "Never", "IfNotPresent", "Always"]
        .iter()
        .enumerate()
        .map(|(at, policy)| json!({"name": format!("v{at}"), "image": {"reference": "image", "pullPolicy": policy}}))
        .collect();
    pod(json!({"initContainers": four("init"), "containers": four("ctr"), "volumes": volumes}))
}

#[test]
fn every_image_is_pulled() {
    // Row 1.
    let found = admitted(&cluster(json!({"plugin": "AlwaysPullImages"})), &pulled()).unwrap();
    for list in ["initContainers", "containers"] {
        assert!(found["spec"][list].as_array().unwrap().iter().all(|one| one["imagePullPolicy"] == "Always"));
    }
    assert!(found["spec"]["volumes"].as_array().unwrap().iter().all(|one| one["image"]["pullPolicy"] == "Always"));
}

#[test]
fn a_pod_that_would_not_pull_is_refused_when_stored_in_the_words_of_the_api_server() {
    // Row 2.
    let mut pod = pulled();
    pod["metadata"]["name"] = "123".into();
    let reply = cluster(json!({"plugin": "AlwaysPullImages"})).validate(&pod);
    let fault = |field: &str, policy: &str| {
        format!(
            "pods \"123\" is forbidden: spec.{field}: Unsupported value: \"{policy}\": supported values: \"Always\""
        )
    };
    let mut faults = Vec::new();
    for (list, end) in
        [("initContainers", "imagePullPolicy"), ("containers", "imagePullPolicy"), ("volumes", "image.pullPolicy")]
    {
        let policies = ["", "Never", "IfNotPresent"].iter().enumerate();
        faults.extend(policies.map(|(at, policy)| fault(&format!("{list}[{at}].{end}"), policy)));
    }
    assert_eq!((reply.code, reply.message), (Some(403), format!("[{}]", faults.join(", "))));
}

#[test]
fn exempt_images_are_left_alone() {
    let section = json!({"exemptImages": ["registry.example/*@sha256:*", "pause"]});
    let cluster = cluster(json!({"plugin": "AlwaysPullImages", "alwaysPullImages": section}));
    let images = ["registry.example/a@sha256:1", "pause", "pause:1", "other/a@sha256:1", "registry.example/a:1"];
    let containers: Vec<Value> = images.iter().map(|image| json!({"name": "c", "image": image})).collect();
    let found = admitted(&cluster, &pod(json!({"containers": containers}))).unwrap();
    let policies: Vec<bool> =
        found["spec"]["containers"].as_array().unwrap().iter().map(|one| one["imagePullPolicy"] == "Always").collect();
    assert_eq!(policies, [false, false, true, true, true]);
}

#[test]
fn an_injected_container_obeys_and_its_extended_resource_is_tolerated() {
    let spec = json!({"containers": [
        {"name": "log", "image": "log:1", "imagePullPolicy": "Never", "podInjectPolicy": "BeforeAppContainer",
         "resources": {"requests": {"example.com/dev": "1"}, "limits": {"example.com/dev": "1"}}},
    ]});
    let cluster = Cluster::from_objects(&[
        set("log", spec),
        plugin("a", json!({"plugin": "AlwaysPullImages"})),
        plugin("e", json!({"plugin": "ExtendedResourceToleration"})),
        namespace(json!({})),
    ]);
    let found = admitted(&cluster, &crate::testing::pod(json!({}))).unwrap();
    let containers = found["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2);
    assert!(containers.iter().all(|one| one["imagePullPolicy"] == "Always"), "{containers:?}");
    assert_eq!(
        found["spec"]["tolerations"],
        json!([{"key": "example.com/dev", "operator": "Exists", "effect": "NoSchedule"}])
    );
}

fn toleration(key: &str) -> Value {
    json!({"key": key, "operator": "Exists", "effect": "NoSchedule"})
}

#[test]
fn extended_resources_are_tolerated_as_the_table_says() {
    let asks = |list: &str, resources: &[&str]| {
        let requests: serde_json::Map<String, Value> =
            resources.iter().map(|name| ((*name).to_owned(), json!("1"))).collect();
        json!({list: [{"name": "c", "image": "i", "resources": {"requests": requests}}]})
    };
    let (device, other) = ("example.com/device-ek", "example.com/device-do");
    let foo = json!({"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"});
    let equal = json!({"key": device, "operator": "Equal", "value": "foo", "effect": "NoExecute"});
    let all = json!({"operator": "Exists"});
    // In the order of the reference: pod, its tolerations, and those that it has then.
    let rows = [
        (asks("containers", &["cpu", "memory"]), json!(null), json!(null)),
        (asks("containers", &[device]), json!(null), json!([toleration(device)])),
        (asks("initContainers", &[device]), json!(null), json!([toleration(device)])),
        (asks("containers", &[device]), json!([foo]), json!([foo, toleration(device)])),
        (asks("containers", &[device, other]), json!(null), json!([toleration(other), toleration(device)])),
        (asks("containers", &[device]), json!([toleration(device)]), json!([toleration(device)])),
        (asks("containers", &[device]), json!([equal]), json!([equal, toleration(device)])),
        (asks("containers", &[device]), json!([all]), json!([all, toleration(device)])),
        (asks("containers", &["requests.x/y", "a.kubernetes.io/b", "-/x"]), json!(null), json!(null)),
    ];
    let cluster = cluster(json!({"plugin": "ExtendedResourceToleration"}));
    for (row, (spec, tolerations, expected)) in rows.into_iter().enumerate() {
        let mut pod = pod(spec);
        pod["spec"]["tolerations"] = tolerations;
        assert_eq!(admitted(&cluster, &pod).unwrap()["spec"]["tolerations"], expected, "row {row}");
    }
}

#[test]
fn required_anti_affinity_is_between_nodes_as_the_table_says() {
    let required = |keys: &[&str]| {
        let terms: Vec<Value> = keys.iter().map(|key| json!({"topologyKey": key})).collect();
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    };
    let preferred = json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}}});
    let rows = [
        (json!({}), true),
        (json!({"affinity": null}), true),
        (required(&[]), true),
        (preferred, true),
        (required(&["kubernetes.io/hostname"]), true),
        (required(&[" zone "]), false),
        (required(&["kubernetes.io/hostname", " zone ", "kubernetes.io/hostname"]), false),
    ];
    let cluster = cluster(json!({"plugin": "LimitPodHardAntiAffinityTopology"}));
    let message = "pods \"p\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey  zone  but only key \
                   kubernetes.io/hostname is allowed";
    for (row, (spec, is_allowed)) in rows.into_iter().enumerate() {
        let expected = if is_allowed { Ok(()) } else { Err((Some(403), message.to_owned())) };
        assert_eq!(admitted(&cluster, &pod(spec)).map(drop), expected, "row {row}");
    }
    let section = json!({"allowedTopologyKeys": ["kubernetes.io/hostname", "rack"]});
    let wider = self::cluster(
        json!({"plugin": "LimitPodHardAntiAffinityTopology", "limitPodHardAntiAffinityTopology": section}),
    );
    assert!(admitted(&wider, &pod(required(&["rack"]))).is_ok());
    assert!(
        admitted(&wider, &pod(required(&["zone"])))
            .unwrap_err()
            .1
            .contains("only keys kubernetes.io/hostname, rack are allowed")
    );
}

#[test]
fn seconds_on_failing_nodes_are_those_of_the_configuration_as_the_table_says() {
    let of = |key: &str, seconds: i64| json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
    let (ready, reach) = ("not-ready", "unreachable");
    let other = json!({"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"});
    let wrong = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"});
    let all = json!({"operator": "Exists"});
    // Seconds, tolerations of the pod, and those that it has then.
    let rows = [
        (300, json!([]), json!([of(ready, 300), of(reach, 300)])),
        (300, json!([other]), json!([other, of(ready, 300), of(reach, 300)])),
        (300, json!([wrong]), json!([wrong, of(ready, 300), of(reach, 300)])),
        (300, json!([of(ready, 700)]), json!([of(ready, 700), of(reach, 300)])),
        (300, json!([of(ready, 700), of(reach, 7)]), json!([of(ready, 700), of(reach, 7)])),
        (300, json!([all]), json!([all])),
        (30, json!([of(ready, 300), of(reach, 300)]), json!([of(ready, 30), of(reach, 30)])),
        (30, json!([of(ready, 60), of(reach, 300)]), json!([of(ready, 60), of(reach, 30)])),
    ];
    for (row, (seconds, tolerations, expected)) in rows.into_iter().enumerate() {
        let section = json!({"notReadySeconds": seconds, "unreachableSeconds": seconds});
        let cluster = cluster(json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": section}));
        let found = admitted(&cluster, &pod(json!({"tolerations": tolerations}))).unwrap();
        assert_eq!(found["spec"]["tolerations"], expected, "row {row}");
    }
}

#[test]
fn a_sub_resource_is_left_untouched_and_what_is_no_pod_is_an_error() {
    // Rows 3 and 4 of 4.1, and the rows of 4.7 about evictions.
    for (spec, path) in [
        (json!({"plugin": "AlwaysPullImages"}), "/mutate--v1-pod"),
        (json!({"plugin": "LimitPodHardAntiAffinityTopology"}), "/validate--v1-pod"),
    ] {
        let cluster = cluster(spec);
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
        let concerned = pod(json!({"affinity": {"podAntiAffinity": terms}}));
        let asked = |change: &dyn Fn(&mut Value)| {
            let mut review = review("shop", &concerned);
            change(&mut review["request"]);
            cluster.ask(path, &review).unwrap()
        };
        assert!(asked(&|_| {}).audit.contains_key("plugins"), "the pod itself concerns the plugin");
        for sub_resource in ["exec", "eviction", "binding", "resize"] {
            let reply = asked(&|request| request["subResource"] = sub_resource.into());
            assert!(reply.patch.is_none() && !reply.audit.contains_key("plugins"), "{sub_resource}");
        }
        for object in [json!([]), json!("pod"), json!({"spec": {"containers": "none"}})] {
            let reply = asked(&|request| request["object"] = object.clone());
            assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(400)), "{object}");
        }
    }
}
