//! Pods that bring a set's containers with them: copies, restored pods, manifests that were rendered before.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn log(more: Value) -> Value {
    let mut spec = json!({
        "containers": [{
            "name": "log", "image": "log:1", "env": [{"name": "LEVEL", "value": "info"}],
            "volumeMounts": [{"name": "log-data", "mountPath": "/data"}],
        }],
        "volumes": [{"name": "log-data", "emptyDir": {}}],
    });
    json_patch::merge(&mut spec, &more);
    set("log", spec)
}

fn with_image(image: &str) -> Value {
    let mut set = log(json!({}));
    set["spec"]["containers"][0]["image"] = json!(image);
    set
}

fn carrying(set: &Value) -> Value {
    Cluster::from_objects(std::slice::from_ref(set)).mutate(&pod(json!({}))).pod
}

fn without_annotations(mut pod: Value) -> Value {
    pod["metadata"].as_object_mut().unwrap().remove("annotations");
    pod
}

#[test]
fn a_copy_without_its_record_is_the_sets_and_gets_the_record_again() {
    for more in [json!({}), json!({"optOut": "Denied"})] {
        let cluster = Cluster::from_objects(&[log(more)]);
        let injected = cluster.mutate(&pod(json!({})));
        let reply = cluster.mutate(&without_annotations(injected.pod.clone()));
        assert_eq!((reply.decision, reply.reason), (Decision::Patched, reasons::ALREADY_INJECTED), "{}", reply.message);
        assert_eq!((reply.record(), &reply.pod["spec"]), (injected.record(), &injected.pod["spec"]));
        assert!(cluster.mutate(&reply.pod).patch.is_none());
        assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed);
    }
}

#[test]
fn what_is_missing_of_an_adopted_set_is_added() {
    let two = set("s", json!({"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}));
    let cluster = Cluster::from_objects(&[two]);
    let injected = cluster.mutate(&pod(json!({})));
    let mut copy = without_annotations(injected.pod.clone());
    copy["spec"]["containers"].as_array_mut().unwrap().remove(0);
    let reply = cluster.mutate(&copy);
    assert_eq!((reply.reason, reply.record()), (reasons::INJECTED, injected.record()));
}

#[test]
fn a_container_that_is_not_the_sets_is_not_adopted() {
    let cluster = Cluster::from_objects(&[log(json!({}))]);
    let copy = without_annotations(carrying(&log(json!({}))));
    for (pointer, value) in [
        ("/spec/containers/0/image", json!("log:2")),
        ("/spec/containers/0/env/0/value", json!("debug")),
        ("/spec/containers/0/fieldOfTomorrow", json!(true)),
        ("/spec/volumes/0/emptyDir/medium", json!("Memory")),
    ] {
        let mut pod = copy.clone();
        let operations: json_patch::Patch =
            serde_json::from_value(json!([{"op": "add", "path": pointer, "value": value}])).unwrap();
        json_patch::patch(&mut pod, &operations).unwrap();
        let reply = cluster.mutate(&pod);
        let reason = if pointer.contains("volumes") { reasons::VOLUME_CLASH } else { reasons::CONTAINER_CLASH };
        assert_eq!((reply.decision, reply.reason), (Decision::Denied, reason), "{pointer}");
    }
    let mut pod = copy;
    pod["spec"]["containers"][0]["env"][0]["value"] = json!("debug");
    let message = cluster.mutate(&pod).message;
    assert!(
        message.contains("the pod's own container \"log\" (image \"log:1\"), which differs in env[LEVEL]"),
        "{message}"
    );
}

#[test]
fn an_older_form_is_told_of_and_left_as_it_is() {
    let cluster = Cluster::from_objects(&[with_image("log:2")]);
    let old = carrying(&with_image("log:1"));
    let reply = cluster.mutate(&old);
    assert_eq!((reply.decision, reply.reason, reply.patch), (Decision::Allowed, reasons::OUTDATED, None));
    let warning = "Outdated: the pod carries another form of SidecarSet \"log\" than the current one: container \"log\" differs in \
                   image; it is left as it is";
    assert_eq!(reply.warnings, [warning]);
    let reply = cluster.validate(&old);
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::OUTDATED));
    assert_eq!(reply.warnings, [warning]);
}

#[test]
fn a_changed_container_of_the_current_form_is_not_recorded_as_current() {
    let cluster = Cluster::from_objects(&[log(json!({}))]);
    let mut changed = carrying(&log(json!({})));
    changed["spec"]["containers"][0]["image"] = json!("log:0");
    let reply = cluster.mutate(&changed);
    assert_eq!((reply.decision, reply.reason), (Decision::Patched, reasons::OUTDATED));
    assert_eq!(reply.record(), json!({"log": {"containers": ["log"], "initContainers": []}}));
    assert_eq!(reply.pod["spec"], changed["spec"]);
    let again = cluster.mutate(&reply.pod);
    assert_eq!((again.reason, again.patch), (reasons::OUTDATED, None));
}

#[test]
fn a_record_is_of_one_form() {
    let renamed = set("log", json!({"containers": [{"name": "logger", "image": "log:2"}]}));
    let grown =
        set("log", json!({"containers": [{"name": "log", "image": "log:1"}, {"name": "more", "image": "m:1"}]}));
    let shrunk = set("log", json!({"containers": [{"name": "more", "image": "m:1"}]}));
    let old = carrying(&set("log", json!({})));
    let other_volume = log(json!({"volumes": [{"name": "log-data", "emptyDir": {"medium": "Memory"}}]}));
    for (set, old, differing) in [
        (&other_volume, &carrying(&log(json!({}))), "volume \"log-data\" has another source"),
        (&renamed, &old, "container \"logger\" is missing"),
        (&grown, &old, "container \"more\" is missing"),
        (&shrunk, &carrying(&grown), "the set has no container \"log\" any more"),
    ] {
        let reply = Cluster::from_objects(std::slice::from_ref(set)).mutate(old);
        assert_eq!((reply.reason, &reply.pod), (reasons::OUTDATED, old), "{differing}");
        assert!(reply.warnings[0].contains(differing), "{:?}", reply.warnings);
    }
}

#[test]
fn a_record_of_an_older_form_is_renewed_where_the_containers_are_the_current_ones() {
    let cluster = Cluster::from_objects(&[log(json!({}))]);
    let injected = cluster.mutate(&pod(json!({})));
    let mut stale = injected.pod.clone();
    stale["metadata"]["annotations"]["outrider.dev/injected"] =
        json!(r#"{"log":{"hash":"v1:0","containers":["log"]}}"#);
    let reply = cluster.mutate(&stale);
    assert_eq!((reply.reason, reply.record()), (reasons::ALREADY_INJECTED, injected.record()));
}

#[test]
fn a_must_accepts_no_older_form() {
    let must = |image: &str| {
        let mut set = with_image(image);
        set["spec"]["optOut"] = json!("Denied");
        set
    };
    let cluster = Cluster::from_objects(&[must("log:2")]);
    let old = carrying(&must("log:1"));
    for reply in [cluster.mutate(&old), cluster.validate(&old)] {
        assert_eq!(reply.decision, Decision::Denied);
        assert!(
            reply
                .message
                .contains("an older form is accepted only where spec.injectionStrategy.revision gives it to new pods")
        );
    }
    // Recorded, of an older form, and nothing of the current one.
    let renamed = set("log", json!({"optOut": "Denied", "containers": [{"name": "logger", "image": "log:2"}]}));
    let reply = Cluster::from_objects(&[renamed]).mutate(&old);
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::CONTAINER_CLASH));
}

#[test]
fn a_pod_that_openkruise_injected_in_part_gets_no_second_form() {
    let two = set("s", json!({"containers": [{"name": "a", "image": "a:2"}, {"name": "b", "image": "b:2"}]}));
    let cluster = Cluster::from_objects(&[two]);
    let claimed = |image: &str| {
        let mut pod = pod(json!({"containers": [
            {"name": "app", "image": "a"}, {"name": "a", "image": image, "env": [{"name": "IS_INJECTED", "value": "true"}]},
        ]}));
        pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "s"});
        pod
    };
    let reply = cluster.mutate(&claimed("a:1"));
    assert_eq!((reply.reason, reply.patch), (reasons::INJECTED_BY_OPENKRUISE, None));
    assert_eq!(cluster.mutate(&claimed("a:2")).names("containers"), ["b", "app", "a"]);
}

#[test]
fn kubectl_keeps_to_the_pods_own_container_behind_one_of_a_set() {
    const KEY: &str = "kubectl.kubernetes.io/default-container";
    let own = json!({"containers": [{"name": "main", "image": "m"}, {"name": "helper", "image": "h"}]});
    let after = json!({"containers": [{"name": "log", "image": "log:1", "podInjectPolicy": "AfterAppContainer"}]});
    let chosen = |sets: &[Value], pod: &Value| {
        Cluster::from_objects(sets).mutate(pod).pod["metadata"]["annotations"][KEY].clone()
    };
    assert_eq!(chosen(&[log(json!({}))], &pod(own.clone())), "main");
    assert_eq!(chosen(&[set("log", after)], &pod(own.clone())), json!(null));
    let mut named = pod(own);
    named["metadata"]["annotations"] = json!({KEY: "helper"});
    assert_eq!(chosen(&[log(json!({}))], &named), "helper");
    // A set that comes later finds another set's container in front.
    let mut injected = carrying(&log(json!({})));
    injected["metadata"]["annotations"].as_object_mut().unwrap().remove(KEY);
    assert_eq!(chosen(&[log(json!({})), set("mesh", json!({}))], &injected), "app");
    // Restored without its annotations, and the set has another name for its container meanwhile: the old one is no own container.
    let mut restored = carrying(&log(json!({})));
    restored["metadata"].as_object_mut().unwrap().remove("annotations");
    let renamed = set("log", json!({"containers": [{"name": "log2", "image": "log:1"}]}));
    assert_eq!(chosen(std::slice::from_ref(&renamed), &restored), "app");
    restored["spec"]["containers"].as_array_mut().unwrap().retain(|container| container["name"] != "app");
    assert_eq!(chosen(&[renamed], &restored), json!(null));
}
