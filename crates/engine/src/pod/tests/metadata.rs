//! Annotations that sets give to pods. Numbers are those of the cases of the reference for `OpenKruise`'s behaviour.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn gives(name: &str, order: i32, entries: Value) -> Value {
    set(name, json!({"order": order, "patchPodMetadata": entries}))
}

fn entry(policy: &str, key: &str, value: &str) -> Value {
    json!({"patchPolicy": policy, "annotations": {key: value}})
}

fn annotated(annotations: Value) -> Value {
    let mut pod = pod(json!({}));
    pod["metadata"]["annotations"] = annotations;
    pod
}

#[test]
fn case_41_patches_of_several_sets_are_merged_in_their_order() {
    let cluster = Cluster::from_objects(&[
        gives("b", 0, json!([entry("MergePatchJson", "key1", r#"{"log-agent":1}"#), entry("Retain", "key", "a")])),
        gives("a", 1, json!([entry("MergePatchJson", "key1", r#"{"envoy":2}"#)])),
    ]);
    let first = cluster.mutate(&pod(json!({})));
    let annotations = &first.pod["metadata"]["annotations"];
    assert_eq!(annotations["key1"], r#"{"envoy":2,"log-agent":1}"#);
    assert_eq!(annotations["key"], "a");
    assert_eq!(cluster.mutate(&first.pod).decision, Decision::Allowed);
}

#[test]
fn cases_42_and_43_a_policy_says_what_happens_to_an_annotation_that_the_pod_has() {
    for (policy, given, before, expected) in [
        ("Retain", "new", Some("old"), "old"),
        ("Retain", "new", Some(""), ""),
        ("Retain", "new", None, "new"),
        ("Overwrite", "new", Some("old"), "new"),
        ("Overwrite", "new", None, "new"),
        ("MergePatchJson", r#"{"a": 1}"#, None, r#"{"a": 1}"#),
        ("MergePatchJson", r#"{"a": 1}"#, Some(""), r#"{"a": 1}"#),
        ("MergePatchJson", r#"{"a": 1}"#, Some(r#"{ "a": 1, "b": 2 }"#), r#"{ "a": 1, "b": 2 }"#),
        ("MergePatchJson", r#"{"a": 1}"#, Some(r#"{"b": 2}"#), r#"{"a":1,"b":2}"#),
        // A fuzzer found that the null was written, and taken out in the second pass.
        ("MergePatchJson", r#"{"a": null, "b": {"c": null}}"#, None, r#"{"b":{}}"#),
        ("MergePatchJson", r#"{"a": null, "b": 1}"#, Some(""), r#"{"b":1}"#),
        // Case 44.
        ("MergePatchJson", r#"{"a": null}"#, Some(r#"{"a": 1, "b": 2}"#), r#"{"b":2}"#),
    ] {
        let cluster = Cluster::from_objects(&[gives("s", 0, json!([entry(policy, "k", given)]))]);
        let reply = cluster.mutate(&annotated(before.map_or_else(|| json!({}), |before| json!({"k": before}))));
        assert_eq!(reply.pod["metadata"]["annotations"]["k"], expected, "{policy} {before:?}");
        let second = cluster.mutate(&reply.pod);
        assert_eq!(
            (second.decision, second.reason),
            (Decision::Allowed, reasons::ALREADY_INJECTED),
            "{policy} {before:?}"
        );
    }
}

#[test]
fn case_44_a_value_that_is_no_json_cannot_be_merged_into() {
    for (policy, decision) in [("Refuse", Decision::Denied), ("Skip", Decision::Allowed)] {
        let mut object = gives("s", 0, json!([entry("MergePatchJson", "k", r#"{"a":1}"#)]));
        object["spec"]["clashPolicy"] = json!(policy);
        let reply = Cluster::from_objects(&[object]).mutate(&annotated(json!({"k": "no json"})));
        assert_eq!((reply.decision, reply.reason), (decision, reasons::EVALUATION_FAILED), "{policy}");
        let said = format!("{}{:?}", reply.message, reply.warnings);
        let expected =
            "SidecarSet \"s\" merges JSON into annotation \"k\" of the pod, whose value is no JSON: \"no json\"";
        assert!(said.replace("\\\"", "\"").contains(expected), "{said}");
        assert_eq!(reply.names("containers"), ["app"]);
    }
}

#[test]
fn of_two_sets_that_overwrite_one_annotation_the_earlier_wins() {
    let cluster = Cluster::from_objects(&[
        gives("b", 0, json!([entry("Overwrite", "k", "of b")])),
        gives("a", 1, json!([entry("Overwrite", "k", "of a")])),
        gives("c", 2, json!([entry("Retain", "k", "of c")])),
    ]);
    let reply = cluster.mutate(&annotated(json!({"k": "old"})));
    assert_eq!(reply.pod["metadata"]["annotations"]["k"], "of b");
    assert_eq!(reply.names("containers"), ["b", "c", "app"]);
    assert!(reply.audit["skipped"].contains("a=SetConflict"), "{:?}", reply.audit);
}

#[test]
fn a_must_has_its_annotations_when_it_is_stored() {
    let mut must = gives("s", 0, json!([entry("Overwrite", "k", "v"), entry("Retain", "kept", "x")]));
    must["spec"]["optOut"] = json!("Denied");
    let cluster = Cluster::from_objects(&[must]);
    let whole = cluster.mutate(&annotated(json!({"k": "forged", "kept": "own"}))).pod;
    assert_eq!(cluster.validate(&whole).decision, Decision::Allowed);
    for change in [json!({"k": "forged"}), json!({"k": null}), json!({"kept": null})] {
        let mut changed = whole.clone();
        json_patch::merge(&mut changed["metadata"]["annotations"], &change);
        let twin = cluster.validate(&changed);
        assert_eq!(twin.decision, Decision::Denied, "{change}");
        assert!(twin.message.contains("and lacks its annotation"), "{}", twin.message);
        assert_eq!(cluster.validate(&cluster.mutate(&changed).pod).decision, Decision::Allowed, "{change}");
    }
}

#[test]
fn two_musts_that_merge_one_member_are_content_with_the_later_value() {
    let merges = |name: &str, order: i32, value: i32| {
        let mut object = gives(name, order, json!([entry("MergePatchJson", "k", &format!(r#"{{"x":{value}}}"#))]));
        object["spec"]["optOut"] = json!("Denied");
        object
    };
    let cluster = Cluster::from_objects(&[merges("a", 0, 1), merges("b", 1, 2)]);
    let whole = cluster.mutate(&pod(json!({}))).pod;
    assert_eq!(whole["metadata"]["annotations"]["k"], r#"{"x":2}"#);
    assert_eq!(cluster.mutate(&whole).decision, Decision::Allowed);
    let twin = cluster.validate(&whole);
    assert_eq!(twin.decision, Decision::Allowed, "{}", twin.message);
}

#[test]
fn annotations_that_exceed_the_limit_are_no_patch() {
    let big = "x".repeat(200 * 1024);
    let cluster = Cluster::from_objects(&[gives("s", 0, json!([entry("Overwrite", "k", &big)]))]);
    assert_eq!(cluster.mutate(&pod(json!({}))).decision, Decision::Patched);
    let reply = cluster.mutate(&annotated(json!({"own": "y".repeat(60 * 1024)})));
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::RESULT_ILLEGAL));
}

#[test]
fn a_container_may_be_named_by_an_annotation_of_the_set() {
    let container = json!({"name": "side", "image": "side:1", "transferEnv": [
        {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.annotations['biz']"}}, "envName": "A"}]});
    let object = set(
        "s",
        json!({"containers": [container], "optOut": "Denied", "patchPodMetadata": [entry("Retain", "biz", "app")]}),
    );
    let cluster = Cluster::from_objects(&[object]);
    let mut pod = pod(json!({}));
    pod["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
    let whole = cluster.mutate(&pod).pod;
    assert_eq!(whole["spec"]["containers"][0]["env"][1], json!({"name": "A", "value": "1"}));
    assert_eq!(cluster.validate(&whole).decision, Decision::Allowed);
}

const SAFE: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

#[test]
fn empty_directories_of_sets_join_those_that_may_be_lost() {
    let container = json!({"name": "side", "image": "side:1", "volumeMounts": [
        {"name": "scratch", "mountPath": "/s"}, {"name": "config", "mountPath": "/c"}]});
    let volumes = json!([{"name": "scratch"}, {"name": "config", "configMap": {"name": "c"}}, {"name": "unused", "emptyDir": {}}]);
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [container], "volumes": volumes}))]);
    for (before, expected) in [
        (json!({}), json!(null)),
        (json!({SAFE: ""}), json!("scratch")),
        (json!({SAFE: "mine"}), json!("mine,scratch")),
        (json!({SAFE: "mine,scratch"}), json!("mine,scratch")),
    ] {
        let reply = cluster.mutate(&annotated(before.clone()));
        assert_eq!(reply.pod["metadata"]["annotations"][SAFE], expected, "{before}");
        assert_eq!(cluster.mutate(&reply.pod).decision, Decision::Allowed, "{before}");
    }
}

/// The record names containers that other sets bring, and the set counts as carried in the second round no more than in the first.
#[test]
fn a_set_is_not_carried_by_a_container_of_another_that_its_older_record_names() {
    let of = |name: &str| json!([{"name": name, "image": "side:1"}]);
    let spec = json!({
        "containers": of("side"), "volumes": [{"name": "scratch"}], "clashPolicy": "Skip",
        "patchPodMetadata": [{"patchPolicy": "MergePatchJson", "annotations": {"biz": r#"{"a":1}"#}}],
    });
    for other in ["0", "b"] {
        let cluster = Cluster::from_objects(&[set("a", spec.clone()), set(other, json!({"containers": of("other")}))]);
        let record = json!({"a": {"hash": "v1:0123456789abcdef", "containers": ["other"]}}).to_string();
        let mut pod = annotated(json!({SAFE: "mine", "biz": "{", "outrider.dev/injected": record}));
        pod["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
        let first = cluster.mutate(&pod);
        assert_eq!(first.reason, reasons::INJECTED, "{other}");
        assert_eq!(cluster.mutate(&first.pod).patch, None, "{other}");
    }
}

/// The same, where the volume is another one.
#[test]
fn a_volume_of_the_pod_that_is_no_empty_directory_does_not_join_them() {
    let side = json!({"name": "side", "image": "side:1", "volumeMounts": [{"name": "scratch", "mountPath": "/s"}]});
    let of =
        |container: Value| json!({"clashPolicy": "Skip", "containers": [container], "volumes": [{"name": "scratch"}]});
    let other = json!({"containers": [{"name": "other", "image": "other:1"}]});
    let cluster = Cluster::from_objects(&[set("a", of(side)), set("b", other)]);
    let record = json!({"a": {"hash": "v1:0123456789abcdef", "revision": "r", "containers": ["other"]}}).to_string();
    let mut pod = annotated(json!({SAFE: "mine", "outrider.dev/injected": record}));
    pod["spec"]["volumes"] = json!([{"name": "scratch", "hostPath": {"path": "/x"}}]);
    let first = cluster.mutate(&pod).pod;
    assert!(first["spec"]["containers"].as_array().unwrap().iter().any(|it| it["name"] == "other"), "{first}");
    assert_eq!(first["metadata"]["annotations"][SAFE], "mine");
    assert_eq!(cluster.mutate(&first).pod, first);
}
