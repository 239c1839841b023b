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

#[test]
fn an_annotation_of_pairs_that_is_no_json_is_named_as_what_it_is() {
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [hot("h", json!({}))]}))]);
    let mut forged = pod(json!({}));
    forged["metadata"]["annotations"] = json!({"outrider.dev/sidecarset-working-hotupgrade-container": "no json"});
    let reply = cluster.mutate(&forged);
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::EVALUATION_FAILED));
    let expected = "annotation \"outrider.dev/sidecarset-working-hotupgrade-container\" of the pod is no JSON: \"no json\"; with \
                    SidecarSet \"s\" it names the container that works of each pair for a hot upgrade: remove it from the pod, which \
                    gets it anew";
    assert!(reply.message.contains(expected), "{}", reply.message);
}

/// A pod in which the second container of the pair works, as rollouts leave it.
fn handed_over(cluster: &Cluster) -> Value {
    let mut pod = cluster.mutate(&pod(json!({}))).pod;
    for (at, image) in [(0, "empty:1"), (1, "h:1")] {
        pod["spec"]["containers"][at]["image"] = json!(image);
    }
    let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
    for (key, value) in [
        ("outrider.dev/sidecarset-working-hotupgrade-container", r#"{"h":"h-2"}"#),
        ("version.sidecarset.outrider.dev/h-1", "0"),
        ("version.sidecarset.outrider.dev/h-2", "2"),
        ("versionalt.sidecarset.outrider.dev/h-1", "2"),
        ("versionalt.sidecarset.outrider.dev/h-2", "0"),
    ] {
        annotations.insert(key.to_owned(), json!(value));
    }
    pod
}

fn cluster_of(must: bool) -> Cluster {
    let mut spec = json!({"containers": [hot("h", json!({}))]});
    if must {
        spec["optOut"] = json!("Denied");
    }
    Cluster::from_objects(&[set("s", spec)])
}

#[test]
fn a_pod_in_which_the_second_container_works_is_created_again_as_it_is() {
    for must in [false, true] {
        let cluster = cluster_of(must);
        let backup = handed_over(&cluster);
        let reply = cluster.mutate(&backup);
        assert_eq!((reply.decision, &reply.warnings), (Decision::Patched, &Vec::new()), "{}", reply.message);
        assert_eq!(reply.pod["spec"], backup["spec"]);
        let annotations = &reply.pod["metadata"]["annotations"];
        for (key, value) in [
            ("outrider.dev/sidecarset-working-hotupgrade-container", r#"{"h":"h-2"}"#),
            ("version.sidecarset.outrider.dev/h-1", "0"),
            ("version.sidecarset.outrider.dev/h-2", "1"),
            ("versionalt.sidecarset.outrider.dev/h-1", "1"),
            ("versionalt.sidecarset.outrider.dev/h-2", "0"),
            ("outrider.dev/injected", backup["metadata"]["annotations"]["outrider.dev/injected"].as_str().unwrap()),
        ] {
            assert_eq!(annotations[key], value, "{key}");
        }
        assert_eq!(cluster.mutate(&reply.pod).reason, reasons::ALREADY_INJECTED);
        let stored = cluster.validate(&reply.pod);
        assert_eq!((stored.decision, stored.reason), (Decision::Allowed, reasons::ALREADY_INJECTED));
        assert!(cluster.take_out(&backup).patch.is_empty(), "nothing of it is of another form");
    }
}

/// Which of a pair works follows from the images alone, and everything else of both containers is compared.
#[test]
fn nothing_else_passes_for_a_pair_that_has_handed_over() {
    let cluster = cluster_of(true);
    let backup = handed_over(&cluster);
    for (case, change) in [
        ("none works", json!([{"op": "replace", "path": "/spec/containers/1/image", "value": "empty:1"}])),
        ("both work", json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "h:1"}])),
        ("in the middle", json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "h:0"}])),
        ("another image", json!([{"op": "replace", "path": "/spec/containers/1/image", "value": "evil:1"}])),
        ("a command", json!([{"op": "add", "path": "/spec/containers/1/command", "value": ["sleep"]}])),
        (
            "a command of the one that waits",
            json!([{"op": "add", "path": "/spec/containers/0/command", "value": ["x"]}]),
        ),
        ("another version", json!([{"op": "remove", "path": "/spec/containers/1/env/1"}])),
    ] {
        let mut forged = backup.clone();
        json_patch::patch(&mut forged, &serde_json::from_value::<json_patch::Patch>(change).unwrap()).unwrap();
        for reply in [cluster.mutate(&forged), cluster.validate(&forged)] {
            assert_eq!(reply.decision, Decision::Denied, "{case}");
        }
    }
    // Images that say the one and annotations that say the other are not stored.
    let whole = cluster.mutate(&pod(json!({}))).pod;
    let mut exchanged = whole.clone();
    for (at, image) in [(0, "empty:1"), (1, "h:1")] {
        exchanged["spec"]["containers"][at]["image"] = json!(image);
    }
    assert_eq!(cluster.validate(&whole).decision, Decision::Allowed);
    assert_eq!(cluster.validate(&exchanged).decision, Decision::Denied);
}

#[test]
fn of_two_pairs_each_has_its_own_turn() {
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [hot("h", json!({})), hot("k", json!({}))]}))]);
    let mut backup = cluster.mutate(&pod(json!({}))).pod;
    for (name, image) in [("k-1", "empty:1"), ("k-2", "k:1")] {
        let containers = backup["spec"]["containers"].as_array_mut().unwrap();
        containers.iter_mut().find(|container| container["name"] == name).unwrap()["image"] = json!(image);
    }
    let annotations = cluster.mutate(&backup).pod["metadata"]["annotations"].clone();
    assert_eq!(annotations["outrider.dev/sidecarset-working-hotupgrade-container"], r#"{"h":"h-1","k":"k-2"}"#);
    assert_eq!(annotations["version.sidecarset.outrider.dev/h-1"], "1");
    assert_eq!(annotations["version.sidecarset.outrider.dev/k-1"], "0");
    assert_eq!(annotations["version.sidecarset.outrider.dev/k-2"], "1");
}
