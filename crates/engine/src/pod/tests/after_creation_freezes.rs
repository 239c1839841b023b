//! What the owner of a running pod may change without keeping a must's new version from it, and what would.

use admission::Decision::{self, Allowed, Denied};
use serde_json::{Value, json};

use crate::pod::in_place::{InPlace, in_place};
use crate::testing::{Cluster, NAMESPACE, Reply, pod, review, set};

const PATH: &str = "/validate--v1-pod-update";
const RECORD: &str = "outrider.dev/injected";
const OVERRIDES: &str = "outrider.dev/overrides";

fn update(cluster: &Cluster, sub_resource: &str, old: &Value, new: &Value) -> Reply {
    let mut review = review("shop", new);
    let of = json!({"request": {"operation": "UPDATE", "subResource": sub_resource, "oldObject": old}});
    json_patch::merge(&mut review, &of);
    cluster.ask(PATH, &review).unwrap()
}

fn at<'p>(pod: &'p mut Value, container: &str) -> &'p mut Value {
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    containers.iter_mut().find(|it| it["name"] == container).unwrap()
}

fn memory(amount: &str) -> Value {
    json!({"limits": {"memory": amount}, "requests": {"memory": amount}})
}

/// A must whose memory is half of that of the pod's own containers.
fn computed(image: &str) -> Cluster {
    let half = json!({"memory": "memory*50%"});
    let policy = json!({"targetContainersMode": "sum", "resourcesExpr": {"limits": half, "requests": half}});
    let container = json!({"name": "log", "image": image, "resourcesPolicy": policy});
    Cluster::from_objects(&[set("s", json!({"optOut": "Denied", "containers": [container]}))])
}

#[test]
fn a_pod_whose_own_container_was_resized_still_gets_a_musts_new_version() {
    let mut created = pod(json!({}));
    at(&mut created, "app")["resources"] = memory("1Gi");
    let old = computed("log:1").mutate(&created).pod;
    let mut resized = old.clone();
    at(&mut resized, "app")["resources"] = memory("2Gi");
    assert_eq!(update(&computed("log:1"), "resize", &old, &resized).decision, Allowed);
    let with = |pod: &Value, field: &str, value: Value| {
        let mut pod = pod.clone();
        at(&mut pod, "log")[field] = value;
        pod
    };
    let rolled_out = with(&resized, "image", json!("log:2"));
    let reply = update(&computed("log:2"), "", &resized, &rolled_out);
    assert_eq!(reply.decision, Allowed, "{}", reply.message);
    for (case, image, new, expected) in [
        ("another image", "log:2", with(&resized, "image", json!("evil:1")), Denied),
        ("what follows from the new size", "log:1", with(&resized, "resources", memory("1Gi")), Allowed),
        ("neither what it had nor what follows", "log:1", with(&resized, "resources", memory("1Mi")), Denied),
        ("the new image, and other amounts", "log:2", with(&rolled_out, "resources", memory("1Mi")), Denied),
    ] {
        let reply = update(&computed(image), "resize", &resized, &new);
        assert_eq!(reply.decision, expected, "{case}: {}", reply.message);
    }
}

#[test]
fn a_pod_that_gains_a_musts_label_has_the_amounts_that_follow_and_not_any() {
    let half = json!({"memory": "memory*50%"});
    let policy = json!({"targetContainersMode": "sum", "resourcesExpr": {"limits": half, "requests": half}});
    let container = json!({"name": "log", "image": "log:1", "resourcesPolicy": policy});
    let selector = json!({"matchLabels": {"mesh": "on"}});
    let cluster = Cluster::from_objects(&[set(
        "s",
        json!({"optOut": "Denied", "selector": selector, "containers": [container]}),
    )]);
    let mut labelled = pod(json!({}));
    at(&mut labelled, "app")["resources"] = memory("1Gi");
    labelled["metadata"]["labels"]["mesh"] = "on".into();
    let labelled = cluster.mutate(&labelled).pod;
    for (amount, expected) in [("512Mi", Allowed), ("1Mi", Denied)] {
        let mut new = labelled.clone();
        at(&mut new, "log")["resources"] = memory(amount);
        let mut old = new.clone();
        old["metadata"]["labels"].as_object_mut().unwrap().remove("mesh");
        assert_eq!(update(&cluster, "", &old, &new).decision, expected, "{amount}");
    }
}

/// A must that lets pods choose the tag of its image.
fn overridable(more: Value) -> Cluster {
    let mut spec = json!({
        "optOut": "Denied", "containers": [{"name": "proxy", "image": "proxy:1"}, {"name": "cache", "image": "cache:1"}],
        "podOverrides": {"imageTag": true},
    });
    json_patch::merge(&mut spec, &more);
    Cluster::from_objects(&[set("s", spec), set("other", json!({"containers": [{"name": "other", "image": "o:1"}]}))])
}

fn annotated(pod: &Value, key: &str, value: Value) -> Value {
    let mut pod = pod.clone();
    if pod["metadata"]["annotations"].is_null() {
        pod["metadata"]["annotations"] = json!({});
    }
    json_patch::merge(&mut pod["metadata"]["annotations"], &json!({key: value}));
    pod
}

#[test]
fn what_a_running_pod_asks_of_a_must_does_not_change() {
    let asked = r#"{"proxy":{"image":"proxy:2"}}"#;
    let with = overridable(json!({})).mutate(&annotated(&pod(json!({})), OVERRIDES, json!(asked))).pod;
    let without = overridable(json!({})).mutate(&pod(json!({}))).pod;
    let spaced = r#"{"other":{}, "proxy":{"image":"proxy:2"}}"#;
    for (case, old, value, expected) in [
        ("taken away", &with, json!(null), Denied),
        ("another", &with, json!(r#"{"proxy":{"image":"proxy:3"}}"#), Denied),
        ("of another container", &with, json!(r#"{"proxy":{"image":"proxy:2"},"cache":{"image":"cache:2"}}"#), Denied),
        ("no JSON", &with, json!("no"), Denied),
        ("the same, and of no must", &with, json!(spaced), Allowed),
        ("given", &without, json!(asked), Denied),
        ("given, no JSON", &without, json!("no"), Denied),
        ("given, for nobody", &without, json!(r#"{"app":{}}"#), Allowed),
    ] {
        let reply = update(&overridable(json!({})), "", old, &annotated(old, OVERRIDES, value));
        assert_eq!(reply.decision, expected, "{case}: {}", reply.message);
        let says = "what its annotation outrider.dev/overrides asks of the set may not change in a running pod; recreate the pod";
        assert_eq!(reply.message.contains(says), expected == Denied, "{case}: {}", reply.message);
    }
    // A set that lets pods change nothing is asked for nothing, and a pod that does not carry the must is not concerned.
    let strict = json!({"podOverrides": null});
    let carrying = overridable(strict.clone()).mutate(&pod(json!({}))).pod;
    let asking = |pod: &Value| annotated(pod, OVERRIDES, json!(asked));
    assert_eq!(update(&overridable(strict.clone()), "", &carrying, &asking(&carrying)).decision, Denied);
    let lacking = pod(json!({}));
    assert_eq!(update(&overridable(strict), "", &lacking, &asking(&lacking)).decision, Allowed);
}

#[test]
fn the_record_of_a_must_becomes_no_other_than_that_of_the_form_in_the_pod() {
    let plain = || overridable(json!({"podOverrides": null}));
    let newer = || {
        overridable(
            json!({"podOverrides": null, "containers": [{"name": "proxy", "image": "proxy:2"}, {"name": "cache", "image": "cache:1"}]}),
        )
    };
    let carrying = plain().mutate(&pod(json!({}))).pod;
    let record = |pod: &Value| -> Value {
        serde_json::from_str(pod["metadata"]["annotations"][RECORD].as_str().unwrap()).unwrap()
    };
    let current = record(&newer().mutate(&pod(json!({}))).pod);
    let with = |set: &str, entry: Value| {
        let mut record = record(&carrying);
        json_patch::merge(&mut record, &json!({set: entry}));
        annotated(&carrying, RECORD, json!(record.to_string()))
    };
    let rolled_out = |pod: &Value| {
        let mut pod = pod.clone();
        at(&mut pod, "proxy")["image"] = "proxy:2".into();
        pod
    };
    let forged = with("s", current["s"].clone());
    for (case, cluster, new, expected) in [
        ("taken away", plain(), annotated(&carrying, RECORD, json!(null)), Denied),
        ("no JSON", plain(), annotated(&carrying, RECORD, json!("no")), Denied),
        ("without the must", plain(), with("s", json!(null)), Denied),
        ("of a hash that is none", plain(), with("s", json!({"hash": "v1:0"})), Denied),
        ("with no containers", plain(), with("s", json!({"containers": []})), Denied),
        ("without another set", plain(), with("other", json!(null)), Allowed),
        ("of the version that the pod does not have", newer(), forged.clone(), Denied),
        ("as the rollout writes it", newer(), rolled_out(&forged), Allowed),
        ("the new version without its record", newer(), rolled_out(&carrying), Allowed),
    ] {
        let reply = update(&cluster, "", &carrying, &new);
        assert_eq!(reply.decision, expected, "{case}: {}", reply.message);
    }
    // A record that was lost is written anew.
    let lost = annotated(&carrying, RECORD, json!(null));
    assert_eq!(update(&plain(), "", &lost, &carrying).decision, Decision::Allowed);
    let reply = update(&plain(), "", &carrying, &lost);
    assert!(reply.message.contains("its record of the set may not become another"), "{}", reply.message);
}

/// What is added to the record for sets that do not select the pod hides no must's.
#[test]
fn a_record_is_not_filled_up_with_other_sets() {
    let cluster = overridable(json!({"podOverrides": null}));
    let carrying = cluster.mutate(&pod(json!({}))).pod;
    let recorded = |more: &dyn Fn(&mut Value)| {
        let mut record: Value =
            serde_json::from_str(carrying["metadata"]["annotations"][RECORD].as_str().unwrap()).unwrap();
        more(&mut record);
        annotated(&carrying, RECORD, json!(record.to_string()))
    };
    let containers = json!([{"name": "proxy", "image": "proxy:2"}, {"name": "cache", "image": "cache:1"}]);
    let newer = overridable(json!({"podOverrides": null, "containers": containers})).snapshot;
    // Of a set that does not select the pod, and of one that does; both are in front of the must by name.
    for (of, count) in [("!", 2_001), ("other", 2_000), ("other", 2_001)] {
        let names = recorded(&|record| record[of] = json!({"containers": vec!["x"; count]}));
        assert_eq!(update(&cluster, "", &carrying, &names).decision, Allowed);
        let found = in_place(&names, NAMESPACE, "s", &newer).unwrap();
        assert!(matches!(found, InPlace::Change(_)), "a rollout goes on beside {of}: {found:?}");
    }

    let long = recorded(&|record| record["!"] = json!({"x": "y".repeat(33_000)}));
    let reply = update(&cluster, "", &carrying, &long);
    let says = "the pod's annotation outrider.dev/injected would have 33";
    assert!(reply.decision == Denied && reply.message.contains(says), "{}", reply.message);
    assert_eq!(update(&cluster, "", &long, &carrying).decision, Allowed, "it may get shorter");

    // As many as are read beside the must alone: the pod's author may leave the other set by a label.
    let beyond = recorded(&|record| (0..500).for_each(|number| record[number.to_string()] = json!({})));
    let reply = update(&cluster, "", &carrying, &beyond);
    assert!(
        reply.decision == Denied && reply.message.contains("would have more other sets than are read"),
        "{}",
        reply.message
    );
    let others = |record: &mut Value| (0..499).for_each(|number| record[number.to_string()] = json!({}));
    let full = recorded(&others);
    assert_eq!(update(&cluster, "", &carrying, &full).decision, Allowed);
    let without = recorded(&|record| {
        others(record);
        record.as_object_mut().unwrap().remove("s");
    });
    assert_eq!(update(&cluster, "", &full, &without).decision, Denied);
    let spec = json!({
        "optOut": "Denied", "containers": [{"name": "proxy", "image": "proxy:1"}, {"name": "cache", "image": "cache:1"}],
    });
    let left = Cluster::from_objects(&[set("s", spec)]);
    assert_eq!(update(&left, "", &full, &without).decision, Denied, "the other set does not select the pod any more");
}

#[test]
fn other_annotations_are_no_matter() {
    let carrying = overridable(json!({})).mutate(&pod(json!({}))).pod;
    let new = annotated(&carrying, "example.com/note", json!("x"));
    assert_eq!(update(&overridable(json!({})), "", &carrying, &new).decision, Allowed);
}
