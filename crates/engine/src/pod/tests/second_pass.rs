//! A pod that comes again: reinvoked after another webhook, or created anew from what was read back.

use admission::Decision;
use serde_json::{Value, json};

use crate::pod::in_place::STATE_ANNOTATION;
use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn mesh() -> Value {
    set(
        "mesh",
        json!({
            "containers": [
                {"name": "proxy", "image": "proxy:1", "volumeMounts": [{"name": "certs", "mountPath": "/c"}]},
                {"name": "tap", "image": "tap:1", "podInjectPolicy": "AfterAppContainer"},
            ],
            "initContainers": [{"name": "setup", "image": "setup:1"}],
            "volumes": [{"name": "certs", "emptyDir": {"sizeLimit": "1024Mi"}}],
            "imagePullSecrets": [{"name": "pull"}],
        }),
    )
}

fn drop_named(pod: &mut Value, list: &str, name: &str) {
    pod["spec"][list].as_array_mut().unwrap().retain(|element| element["name"] != name);
}

#[test]
fn an_injected_pod_is_left_as_it_is() {
    let cluster = Cluster::from_objects(&[mesh(), set("log", json!({"optOut": "Denied"}))]);
    let first = cluster.mutate(&pod(json!({})));
    let second = cluster.mutate(&first.pod);
    assert_eq!((second.decision, second.reason), (Decision::Allowed, reasons::ALREADY_INJECTED));
    assert!(second.patch.is_none() && second.warnings.is_empty());
    assert_eq!(second.audit["reason"], "AlreadyInjected");
}

/// It comes with a template that was exported from a running pod.
#[test]
fn what_rollouts_wrote_of_another_pod_is_taken_from_a_new_one() {
    let cluster = Cluster::from_objects(&[mesh()]);
    let state = json!({"mesh": {"revision": "v1:0", "wasReady": true}}).to_string();
    let annotations = json!({STATE_ANNOTATION: state, "of-the-app": "x"});
    let mut exported = pod(json!({}));
    exported["metadata"]["annotations"] = annotations;
    let made = cluster.mutate(&exported);
    assert_eq!(made.reason, reasons::INJECTED);
    let annotations = made.pod["metadata"]["annotations"].as_object().unwrap();
    assert!(!annotations.contains_key(STATE_ANNOTATION) && annotations.contains_key("of-the-app"));
    let mut again = made.pod;
    again["metadata"]["annotations"][STATE_ANNOTATION] = "{}".into();
    let again = cluster.mutate(&again);
    assert_eq!(again.reason, reasons::ALREADY_INJECTED);
    assert!(again.pod["metadata"]["annotations"].get(STATE_ANNOTATION).is_none());
}

#[test]
fn only_what_was_removed_is_added_again() {
    let cluster = Cluster::from_objects(&[mesh()]);
    let first = cluster.mutate(&pod(json!({}))).pod;
    for (list, name) in [
        ("containers", "proxy"),
        ("containers", "tap"),
        ("initContainers", "setup"),
        ("volumes", "certs"),
        ("imagePullSecrets", "pull"),
    ] {
        let mut changed = first.clone();
        drop_named(&mut changed, list, name);
        let second = cluster.mutate(&changed);
        assert_eq!(second.reason, reasons::INJECTED);
        assert_eq!(second.patch.as_ref().unwrap().as_array().unwrap().len(), 1, "{name}: {:?}", second.patch);
        assert_eq!(second.pod, first, "{name}");
    }
}

/// There, containers of these names are replaced where they are.
#[test]
fn case_13_containers_that_are_there_stay_in_their_place_and_a_new_one_comes_first() {
    let of_set = |name: &str, side: &str| json!({"name": name, "image": "s:1", "podInjectPolicy": side});
    let (before, after) = ("BeforeAppContainer", "AfterAppContainer");
    let there = |name: &str| json!({"name": name, "image": "s:1", "env": [{"name": "IS_INJECTED", "value": "true"}]});
    let own = json!([there("sidecar-1"), {"name": "app", "image": "shop:1"}, there("sidecar-2")]);
    let pod = pod(json!({"containers": own}));
    let mut of_spec = vec![of_set("sidecar-1", after), of_set("sidecar-2", after)];
    let both = Cluster::from_objects(&[set("s", json!({"containers": of_spec}))]).mutate(&pod);
    assert_eq!(
        (both.reason, both.names("containers")),
        (reasons::ALREADY_INJECTED, vec!["sidecar-1", "app", "sidecar-2"])
    );
    assert_eq!(both.pod["spec"], pod["spec"]);
    of_spec.insert(0, of_set("new-sidecar-1", before));
    let one_more = Cluster::from_objects(&[set("s", json!({"containers": of_spec}))]).mutate(&pod);
    assert_eq!(one_more.names("containers"), ["new-sidecar-1", "sidecar-1", "app", "sidecar-2"]);
    assert_eq!(
        one_more.pod["spec"]["containers"].as_array().unwrap()[1..],
        *pod["spec"]["containers"].as_array().unwrap()
    );
}

#[test]
fn all_containers_removed_are_added_again_with_the_record_as_it_was() {
    let cluster = Cluster::from_objects(&[set("log", json!({}))]);
    let first = cluster.mutate(&pod(json!({}))).pod;
    let mut changed = first.clone();
    drop_named(&mut changed, "containers", "log");
    let second = cluster.mutate(&changed);
    assert_eq!((&second.pod, second.patch.unwrap().as_array().unwrap().len()), (&first, 1));
}

#[test]
fn what_the_api_server_fills_in_is_no_reason_to_refuse() {
    let cluster = Cluster::from_objects(&[mesh()]);
    let mut pod = cluster.mutate(&pod(json!({}))).pod;
    pod["spec"]["volumes"] =
        json!([{"name": "certs", "emptyDir": {"sizeLimit": "1Gi", "fieldOfTomorrow": "filled in"}}]);
    for container in pod["spec"]["containers"].as_array_mut().unwrap() {
        container["terminationMessagePath"] = json!("/dev/termination-log");
        container["resources"] = json!({});
    }
    assert_eq!(cluster.mutate(&pod).reason, reasons::ALREADY_INJECTED);
    // With a container to add, the volume has to be the one that it needs.
    drop_named(&mut pod, "containers", "proxy");
    assert_eq!(cluster.mutate(&pod).reason, reasons::VOLUME_CLASH);
}

#[test]
fn a_volume_that_another_webhook_took_is_added_for_a_later_set_too() {
    let mounting = |name: &str| {
        set(
            name,
            json!({
                "containers": [{"name": name, "image": "i:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }),
        )
    };
    let cluster = Cluster::from_objects(&[mounting("a"), mounting("b")]);
    let mut pod = pod(json!({"containers": [{"name": "a", "image": "i:1"}]}));
    pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "a"});
    let reply = cluster.mutate(&pod);
    assert_eq!((reply.names("containers"), reply.names("volumes")), (vec!["b", "a"], vec!["v"]));
}

#[test]
fn the_same_bytes_come_out_whatever_the_order_of_the_sets() {
    let mut sets = [mesh(), set("log", json!({})), set("zip", json!({"order": -3})), set("tap", json!({}))];
    let pod = pod(json!({}));
    let expected = Cluster::from_objects(&sets).mutate(&pod).body;
    for _ in 0..sets.len() {
        sets.rotate_left(1);
        let cluster = Cluster::from_objects(&sets);
        assert_eq!(cluster.mutate(&pod).body, expected);
        assert_eq!(cluster.mutate(&pod).body, expected);
    }
}

#[test]
fn a_container_whose_first_field_is_written_with_escapes_is_found_again() {
    let cluster =
        Cluster::from_objects(&[set("log", json!({"containers": [{"name": "log", "image": "log:1", "-\"field": 1}]}))]);
    let first = cluster.mutate(&pod(json!({})));
    let second = cluster.mutate(&first.pod);
    assert_eq!((second.reason, second.patch), (reasons::ALREADY_INJECTED, None));
}

#[test]
fn a_current_record_that_claims_a_container_of_the_pod_gives_it_no_other_owner() {
    let refusing = set("mesh", json!({"containers": [{"name": "proxy", "image": "proxy:1"}], "clashPolicy": "Refuse"}));
    let cluster = Cluster::from_objects(&[set("log", json!({})), refusing]);
    let hash = cluster.mutate(&pod(json!({}))).record()["log"]["hash"].clone();
    let record = json!({"log": {"hash": hash, "containers": ["log", "proxy"]}}).to_string();
    let mut forged = pod(json!({"containers": [{"name": "proxy", "image": "other"}]}));
    forged["metadata"]["annotations"] = json!({"outrider.dev/injected": record});
    let first = cluster.mutate(&forged);
    assert_eq!((first.decision, first.reason), (Decision::Denied, reasons::CONTAINER_CLASH));
}
