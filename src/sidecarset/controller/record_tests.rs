//! What is kept of a pod.

use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::workload::Workload;
use serde_json::json;

use super::*;
use crate::names::UPGRADABLE;

/// A pod that carries the sets named, ready or not.
pub fn pod(name: &str, app: &str, sets: &[(&str, &str)], ready: bool) -> WatchedPod {
    labelled(name, &json!({"app": app}), sets, ready)
}

/// The same, with these labels.
pub fn labelled(name: &str, labels: &serde_json::Value, sets: &[(&str, &str)], ready: bool) -> WatchedPod {
    let injected: serde_json::Map<String, serde_json::Value> = sets
        .iter()
        .map(|(set, hash)| ((*set).to_owned(), json!({"hash": hash, "containers": [format!("{set}-c")]})))
        .collect();
    let mut containers: Vec<_> = sets.iter().map(|(set, _)| json!({"name": format!("{set}-c")})).collect();
    containers.push(json!({"name": "app"}));
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "default", "name": name, "labels": labels,
            "annotations": {engine::sidecarset::injection::INJECTED_ANNOTATION: json!(injected).to_string()},
        },
        "spec": {"containers": containers, "nodeName": "n"},
        "status": {
            "phase": "Running", "containerStatuses": [{"name": "app"}],
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        },
    }))
    .unwrap()
}

/// What is wanted where these sets exist.
pub fn wanted(sets: &[&str]) -> Wanted {
    Wanted { sets: sets.iter().map(|set| Arc::from(*set)).collect(), ..Wanted::default() }
}

#[test]
fn phase_deletion_and_condition_decide_what_is_active_and_ready() {
    let cases: [(&str, serde_json::Value, bool, bool); 6] = [
        (
            "running, ready",
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
            true,
            true,
        ),
        (
            "pending, ready",
            json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}),
            true,
            false,
        ),
        ("running, no condition", json!({"phase": "Running", "conditions": null}), true, false),
        ("succeeded", json!({"phase": "Succeeded"}), false, false),
        ("failed", json!({"phase": "Failed"}), false, false),
        ("no status", json!(null), true, false),
    ];
    for (case, status, active, ready) in cases {
        let mut pod = pod("p", "web", &[("a", "1")], false);
        pod.status = serde_json::from_value(status).unwrap();
        let record = PodRecord::of(&pod, &wanted(&[])).unwrap();
        assert_eq!((record.active, record.ready), (active, ready), "{case}");
        pod.meta_mut().deletion_timestamp = Some(serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap());
        assert!(!PodRecord::of(&pod, &wanted(&[])).unwrap().active, "{case}, terminating");
    }
}

#[test]
fn a_pod_that_carries_nothing_is_kept_only_while_it_could_carry_something() {
    let mirror = json!({"metadata": {"annotations": {engine::pod::view::MIRROR_ANNOTATION: "x"}}});
    let cases = [
        ("running", json!({}), true),
        ("no status yet", json!({"status": null}), true),
        ("finished", json!({"status": {"phase": "Succeeded"}}), false),
        ("on its way out", json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}), false),
        (
            "evicted for a set that it lacks",
            json!({
                "metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"},
                "status": {"conditions": [{"type": UPGRADABLE, "status": "False", "message": json!({"a": "why"}).to_string()}]},
            }),
            true,
        ),
        ("a mirror", mirror.clone(), false),
    ];
    for (case, pod, kept) in cases {
        assert_eq!(PodRecord::of(&serde_json::from_value(pod).unwrap(), &wanted(&[])).is_some(), kept, "{case}");
    }
}

#[test]
fn a_hash_in_an_annotation_does_not_make_a_pod_of_a_must_updated() {
    let index = |opt_out: &str| {
        let spec = json!({
            "selector": {"matchLabels": {"app": "web"}}, "optOut": opt_out,
            "containers": [{"name": "a-c", "image": "proxy:2"}],
        });
        let set = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        SetIndex::build([Arc::new(CompiledSet::compile(&set).unwrap())])
    };
    for (opt_out, image, is_current) in
        [("Denied", "proxy:1", false), ("Denied", "proxy:2", true), ("Allowed", "mirror.example/proxy:2", true)]
    {
        let sets = index(opt_out);
        let hash = sets.get("a").unwrap().hash.clone();
        let mut pod = pod("p", "web", &[("a", &hash), ("b", "1")], true);
        for container in pod.spec.as_mut().unwrap().containers.iter_mut().flatten() {
            container.image = image.to_owned();
        }
        let record = PodRecord::of(&pod, &wanted(&["a", "b"])).unwrap().verified(&pod, &sets);
        let expected = if is_current { hash.as_str() } else { "" };
        assert_eq!((record.hash_of("a"), record.hash_of("b")), (Some(expected), Some("1")), "{opt_out} {image}");
    }
}

#[test]
fn the_list_of_openkruise_takes_no_pod_of_a_must_out_of_its_rollout() {
    for (opt_out, expected) in [("Denied", ""), ("Allowed", BY_OPENKRUISE)] {
        let spec = json!({
            "selector": {"matchLabels": {"app": "web"}}, "optOut": opt_out,
            "containers": [{"name": "a-c", "image": "proxy:2"}],
        });
        let set = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        let sets = SetIndex::build([Arc::new(CompiledSet::compile(&set).unwrap())]);
        let mut pod = pod("p", "web", &[], true);
        pod.annotations.get_or_insert_default().openkruise_list = Some("a".into());
        let record = PodRecord::of(&pod, &wanted(&["a"])).unwrap().verified(&pod, &sets);
        assert_eq!(record.hash_of("a"), Some(expected), "{opt_out}");
    }
}

#[test]
fn sets_that_our_condition_names_are_refused_and_no_others() {
    let mut pod = pod("p", "web", &[("a", "1"), ("b", "1")], true);
    let message = json!({"a": "env", "c": "env"}).to_string();
    for (kind, message, expected) in [
        (UPGRADABLE, message.as_str(), true),
        (UPGRADABLE, "", false),
        (UPGRADABLE, "[", false),
        ("Ready", message.as_str(), false),
    ] {
        let conditions = json!([{"type": kind, "status": "False", "message": message}]);
        pod.status = serde_json::from_value(json!({"phase": "Running", "conditions": conditions})).unwrap();
        let record = PodRecord::of(&pod, &wanted(&["a", "b"])).unwrap();
        assert_eq!(record.is_refused("a"), expected, "{kind} {message}");
        assert!(!record.is_refused("b") && !record.is_refused("c"));
    }
}

#[test]
fn the_bucket_of_a_pod_is_the_one_that_admission_reads_from_it() {
    let of = |metadata: serde_json::Value| {
        let injected =
            json!({"a": {"hash": "1", "containers": ["c"]}, "b": {"hash": "1", "containers": ["c"]}}).to_string();
        let annotations = json!({engine::sidecarset::injection::INJECTED_ANNOTATION: injected});
        let mut whole = json!({"namespace": "shop", "name": "web-1a-x", "annotations": annotations});
        whole.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        let pod = json!({"metadata": whole, "spec": {"containers": [{"name": "c"}]}});
        let record = PodRecord::of(&serde_json::from_value(pod).unwrap(), &wanted(&["a", "b"])).unwrap();
        assert_eq!(record.bucket_of("another"), None);
        ["a", "b"].map(|set| record.bucket_of(set).unwrap())
    };
    let expected = |kind, name| {
        let workload = Workload { namespace: "shop", kind, name };
        ["a", "b"].map(|set| workload.bucket(set))
    };
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
    let replica_set = json!({"ownerReferences": owner("ReplicaSet", "web-1a"), "labels": {"pod-template-hash": "1a"}});
    assert_eq!(of(replica_set), expected("Deployment", "web"));
    let stateful_set = json!({"ownerReferences": owner("StatefulSet", "web"), "generateName": "web-"});
    assert_eq!(of(stateful_set), expected("Pod", "web-1a-x"));
    assert_eq!(of(json!({"generateName": "web-1a-"})), expected("Pod", "web-1a-"));
    assert_eq!(of(json!({})), expected("Pod", "web-1a-x"));
}

#[test]
fn a_mirror_pod_is_never_kept_whatever_its_annotations_say() {
    let mut mirror = pod("p", "web", &[("a", "1")], true);
    assert!(PodRecord::of(&mirror, &wanted(&["a"])).is_some());
    mirror.annotations.get_or_insert_default().is_mirror = true;
    assert!(PodRecord::of(&mirror, &wanted(&["a"])).is_none());
}

#[test]
fn a_pod_is_touched_where_a_rollout_took_it_down_whatever_form_it_has_now() {
    let mut pod = pod("p", "web", &[("a", "v1:new"), ("b", "v1:other"), ("d", "v1:d")], true);
    let state = json!({
        "a": {"revision": "v1:new", "wasReady": true}, "b": {"revision": "v1:older", "wasReady": true}, "d": {"revision": "v1:d"},
    });
    pod.annotations.get_or_insert_default().in_place_state = Some(state.to_string().into());
    let record = PodRecord::of(&pod, &wanted(&["a", "b", "d"])).unwrap();
    assert!(record.is_touched("a") && record.is_touched("b"));
    assert!(!record.is_touched("c") && !record.is_touched("d"), "one that was not ready serves as before");
}

/// Templates that were exported from a running pod have it, and anybody can write it.
#[test]
fn what_rollouts_wrote_counts_for_nothing_in_a_pod_that_has_never_run() {
    let state = json!({"a": {"revision": "1", "wasReady": true, "lastContainerStatuses": {"a-c": {}}}}).to_string();
    for (case, status, node, counts) in [
        ("it runs", json!({"containerStatuses": [{"name": "app"}]}), "n", true),
        ("without a node", json!({"containerStatuses": [{"name": "app"}]}), "", false),
        ("without a container", json!({"containerStatuses": []}), "n", false),
        ("without a status", json!({}), "n", false),
    ] {
        let mut pod = pod("p", "web", &[("a", "1")], false);
        pod.annotations.get_or_insert_default().in_place_state = Some(state.clone().into());
        pod.status = serde_json::from_value(status).unwrap();
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
        let record = PodRecord::of(&pod, &wanted(&["a"])).unwrap();
        assert_eq!((record.is_touched("a"), !record.is_settled("a")), (counts, counts), "{case}");
    }
}

/// A pod with labels of so many bytes each, and these annotations.
fn pod_with(labels: usize, annotations: &serde_json::Value) -> WatchedPod {
    let labels: serde_json::Map<_, _> =
        (0..labels).map(|n| (format!("example.com/label-{n:05}"), json!("value"))).collect();
    let metadata = json!({"name": "p", "namespace": "n", "labels": labels, "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

#[test]
fn a_record_is_bounded_whatever_the_pod_holds() {
    let list = |names: usize| (0..names).map(|n| format!("{n:x}")).collect::<Vec<_>>().join(",");
    let objects = |names: usize| {
        let sets: serde_json::Map<_, _> = (0..names).map(|n| (format!("{n:x}"), json!({"hash": "h"}))).collect();
        json!(sets).to_string()
    };
    let (injected, openkruise) =
        (engine::sidecarset::injection::INJECTED_ANNOTATION, crate::sidecarset::controller::records::OPENKRUISE_LIST);
    for (case, labels, annotations) in [
        ("a list as long as is read", 0, json!({openkruise: list(6_000)})),
        ("a list as long as can be", 0, json!({openkruise: list(50_000)})),
        ("records", 0, json!({injected: objects(1_500)})),
        ("as many as can be", 0, json!({injected: objects(25_000)})),
        ("labels", 20_000, json!({})),
        (
            "all of it",
            20_000,
            json!({openkruise: list(6_000), injected: objects(1_500), "outrider.dev/skip": list(9_000)}),
        ),
    ] {
        let record = PodRecord::of(&pod_with(labels, &annotations), &wanted(&["1"])).unwrap();
        let bytes = record.labels.bytes() + record.carried.bytes();
        assert!(bytes <= MAX_BYTES && record.carried.iter().count() <= carried::MAX_SETS, "{case}: {bytes}");
        assert!(record.some_left_out && record.skip.is_none_or(|skip| skip.len() <= 256), "{case}");
    }
    let honest = pod_with(20, &json!({openkruise: list(10), injected: objects(5)}));
    assert!(!PodRecord::of(&honest, &wanted(&[])).unwrap().some_left_out);
}

#[test]
fn a_usual_pod_costs_less_than_a_kibibyte() {
    let mut pod = pod_with(12, &json!({}));
    let sets = pod_of_two_sets();
    pod.annotations = sets.annotations.clone();
    pod.spec = sets.spec.clone();
    let record = PodRecord::of(&pod, &wanted(&["a", "b"])).unwrap();
    assert_eq!(record.carried.iter().count(), 2);
    // With its key, which several indexes share, and their places in these.
    let own = size_of::<PodRecord>() + record.labels.bytes() + record.carried.bytes();
    let key = size_of::<crate::sidecarset::controller::pods::PodName>() + "web-5d8f9c7b6-x2x4z".len() + 16;
    let places = 4 * size_of::<crate::sidecarset::controller::pods::PodKey>();
    let bytes = own + key + places;
    assert!(bytes < 1024, "{bytes}");
}

fn pod_of_two_sets() -> WatchedPod {
    pod("p", "web", &[("a", "v1:0123456789abcdef"), ("b", "v1:0123456789abcdef")], true)
}

#[test]
fn of_too_many_labels_those_that_sets_select_by_are_kept() {
    let key = "example.com/label-00150";
    let wanted = Wanted { labels: HashSet::from([key.to_owned()]), ..Wanted::default() };
    let record = PodRecord::of(&pod_with(200, &json!({})), &wanted).unwrap();
    assert!(record.labels.iter().any(|label| label == (key, "value")));
    assert!(record.some_left_out);
}

#[test]
fn a_pod_that_the_kubelet_does_not_resize_has_not_the_form_that_its_record_names() {
    let resized = json!({"a": {"revision": "v1:new", "lastContainerStatuses": {"a-c": {"resources": {}}}}}).to_string();
    let condition =
        |reason: &str| json!({"type": "PodResizePending", "status": "True", "reason": reason, "message": "too large"});
    for (reason, actual, expected) in [
        ("Infeasible", "1", Some("the kubelet has not resized the pod (Infeasible): too large")),
        ("Deferred", "1", Some("the kubelet has not resized the pod (Deferred): too large")),
        ("Other", "1", None),
        // It is another container that waits.
        ("Deferred", "2", None),
    ] {
        let mut pod = pod("p", "web", &[("a", "v1:new"), ("b", "v1:b")], true);
        pod.annotations.get_or_insert_default().in_place_state = Some(resized.as_str().into());
        let spec = json!({
            "nodeName": "n", "containers": [{"name": "a-c", "resources": {"requests": {"cpu": "2"}}}, {"name": "b-c"}],
        });
        pod.spec = serde_json::from_value(spec).unwrap();
        pod.status = serde_json::from_value(json!({
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, condition(reason)],
            "containerStatuses": [{"name": "a-c", "resources": {"requests": {"cpu": actual}}}],
        }))
        .unwrap();
        let record = PodRecord::of(&pod, &wanted(&["a", "b"])).unwrap();
        let hash = if expected.is_some() { "" } else { "v1:new" };
        assert_eq!((record.hash_of("a"), record.hash_of("b")), (Some(hash), Some("v1:b")), "{reason} {actual}");
        assert_eq!(record.recorded_hash_of("a"), Some("v1:new"), "its revision is kept");
        assert_eq!(pod.why_unresized("a").as_deref(), expected, "{reason} {actual}");
        assert!(record.is_settled("a"));
    }
}
