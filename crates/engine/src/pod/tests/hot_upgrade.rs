//! Pairs of containers for a hot upgrade. Numbers are those of the cases of the reference for `OpenKruise`'s behaviour.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn hot(name: &str, more: Value) -> Value {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    let mut container = json!({"name": name, "image": format!("{name}:1"), "upgradeStrategy": upgrade});
    json_patch::merge(&mut container, &more);
    container
}

fn version_of(name: &str) -> Value {
    let variable = |variable: &str, prefix: &str| {
        let path = format!("metadata.annotations['{prefix}.sidecarset.outrider.dev/{name}']");
        json!({"name": variable, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
    };
    json!([variable("SIDECARSET_VERSION", "version"), variable("SIDECARSET_VERSION_ALT", "versionalt")])
}

#[test]
fn case_47_a_container_with_a_hot_upgrade_is_there_twice_with_versions() {
    let containers =
        json!([hot("dns-f", json!({})), {"name": "log-agent", "image": "l:1", "podInjectPolicy": "AfterAppContainer"}]);
    let cluster = Cluster::from_objects(&[set("sidecarset1", json!({"containers": containers}))]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!(reply.names("containers"), ["dns-f-1", "dns-f-2", "app", "log-agent"]);
    let containers = &reply.pod["spec"]["containers"];
    for (at, name, image) in [(0, "dns-f-1", "dns-f:1"), (1, "dns-f-2", "empty:1")] {
        let mut env = json!([{"name": "IS_INJECTED", "value": "true"}]);
        env.as_array_mut().unwrap().extend(version_of(name).as_array().unwrap().clone());
        assert_eq!(containers[at], json!({"name": name, "image": image, "env": env}));
    }
    let annotations = &reply.pod["metadata"]["annotations"];
    assert_eq!(annotations["outrider.dev/sidecarset-working-hotupgrade-container"], r#"{"dns-f":"dns-f-1"}"#);
    for (key, value) in [
        ("version.sidecarset.outrider.dev/dns-f-1", "1"),
        ("version.sidecarset.outrider.dev/dns-f-2", "0"),
        ("versionalt.sidecarset.outrider.dev/dns-f-1", "0"),
        ("versionalt.sidecarset.outrider.dev/dns-f-2", "1"),
    ] {
        assert_eq!(annotations[key], value, "{key}");
    }
    assert_eq!(reply.record()["sidecarset1"]["containers"], json!(["dns-f-1", "dns-f-2", "log-agent"]));
    assert_eq!(cluster.mutate(&reply.pod).reason, reasons::ALREADY_INJECTED);
    assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed);
}

#[test]
fn case_48_native_sidecars_of_two_sets_cold_and_hot() {
    let cold = json!([{"name": "init-1", "image": "i:1", "restartPolicy": "Always"}]);
    let cluster = Cluster::from_objects(&[
        set("sidecarset-1", json!({"containers": null, "initContainers": cold})),
        set(
            "sidecarset-2",
            json!({"containers": null, "initContainers": [hot("hot-init", json!({"restartPolicy": "Always"}))]}),
        ),
    ]);
    let reply = cluster.mutate(&pod(json!({"initContainers": [{"name": "own", "image": "o:1"}]})));
    assert_eq!(reply.names("initContainers"), ["own", "init-1", "hot-init-1", "hot-init-2"]);
    let working = &reply.pod["metadata"]["annotations"]["outrider.dev/sidecarset-working-hotupgrade-container"];
    assert_eq!(*working, r#"{"hot-init":"hot-init-1"}"#);
    assert_eq!(reply.record()["sidecarset-1"]["initContainers"], json!(["init-1"]));
    assert_eq!(reply.record()["sidecarset-2"]["initContainers"], json!(["hot-init-1", "hot-init-2"]));
}

#[test]
fn case_51_a_set_of_plain_init_containers_alone_is_recorded() {
    let cluster = Cluster::from_objects(&[set(
        "s",
        json!({"containers": null, "initContainers": [{"name": "i", "image": "i:1"}]}),
    )]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!(
        (&reply.record()["s"]["containers"], &reply.record()["s"]["initContainers"]),
        (&json!([]), &json!(["i"]))
    );
}

#[test]
fn variables_of_the_app_come_in_front_of_the_versions() {
    let more = json!({"transferEnv": [{"sourceContainerName": "app", "envName": "A"}]});
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [hot("h", more)]}))]);
    let mut pod = pod(json!({}));
    pod["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
    let reply = cluster.mutate(&pod);
    let names = |at: usize| -> Vec<String> {
        let env = reply.pod["spec"]["containers"][at]["env"].as_array().unwrap();
        env.iter().map(|variable| variable["name"].as_str().unwrap().to_owned()).collect()
    };
    for at in [0, 1] {
        assert_eq!(names(at), ["IS_INJECTED", "A", "SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"]);
    }
    assert_eq!(cluster.mutate(&reply.pod).decision, Decision::Allowed);
}

#[test]
fn pairs_of_two_sets_are_named_in_one_annotation() {
    let cluster = Cluster::from_objects(&[
        set("a", json!({"containers": [hot("x", json!({}))]})),
        set("b", json!({"containers": [hot("y", json!({}))]})),
    ]);
    let reply = cluster.mutate(&pod(json!({})));
    let working = &reply.pod["metadata"]["annotations"]["outrider.dev/sidecarset-working-hotupgrade-container"];
    assert_eq!(*working, r#"{"x":"x-1","y":"y-1"}"#);
}

#[test]
fn no_pod_says_of_a_new_pair_which_one_works() {
    for must in [false, true] {
        let mut spec = json!({"containers": [hot("h", json!({}))]});
        if must {
            spec["optOut"] = json!("Denied");
        }
        let cluster = Cluster::from_objects(&[set("s", spec)]);
        let mut forged = pod(json!({}));
        forged["metadata"]["annotations"] = json!({
            "outrider.dev/sidecarset-working-hotupgrade-container": r#"{"h":"h-2"}"#,
            "version.sidecarset.outrider.dev/h-1": "0", "version.sidecarset.outrider.dev/h-2": "7",
        });
        let reply = cluster.mutate(&forged);
        let annotations = &reply.pod["metadata"]["annotations"];
        assert_eq!(annotations["outrider.dev/sidecarset-working-hotupgrade-container"], r#"{"h":"h-1"}"#);
        assert_eq!(annotations["version.sidecarset.outrider.dev/h-1"], "1");
        assert_eq!(annotations["version.sidecarset.outrider.dev/h-2"], "0");
        let mut changed = reply.pod.clone();
        changed["metadata"]["annotations"]["version.sidecarset.outrider.dev/h-1"] = json!("0");
        assert_eq!(cluster.validate(&changed).decision == Decision::Denied, must);
    }
}
