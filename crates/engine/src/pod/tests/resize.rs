//! Requests and limits of a set's containers that change in a running pod.

use admission::Decision::{self, Allowed, Denied};
use serde_json::{Value, json};

use crate::pod::in_place::{Change, InPlace, in_place};
use crate::pod::resize::NewAmounts;
use crate::testing::{Cluster, NAMESPACE, pod, review, set};

fn with(container: Value) -> Value {
    let mut whole = json!({"name": "log", "image": "log:1"});
    json_patch::merge(&mut whole, &container);
    json!({"containers": [whole]})
}

fn amounts(limits: Value, requests: Value) -> Value {
    with(json!({"resources": {"limits": limits, "requests": requests}}))
}

fn cpu(request: &str) -> Value {
    amounts(json!({}), json!({"cpu": request}))
}

/// The cluster that a set with this spec is in, with an API server that resizes pods.
fn cluster(spec: &Value) -> Cluster {
    Cluster::from_objects(&[set("log", spec.clone())]).resizing()
}

/// How a pod that the set has made becomes what the set makes with another spec.
fn between(made: &Value, after: &Value) -> InPlace {
    in_place(made, NAMESPACE, "log", &cluster(after).snapshot).unwrap()
}

fn made(own: Value, before: &Value) -> Value {
    cluster(before).mutate(&pod(own)).pod
}

fn changed(pod: &Value, change: &Change, with_images: bool) -> Value {
    let mut pod = pod.clone();
    for new in &change.resources {
        let list = pod["spec"][new.list].as_array_mut().unwrap();
        let container = list.iter_mut().find(|it| it["name"] == new.container.as_str()).unwrap();
        json_patch::merge(&mut container["resources"], &new.resources);
    }
    for new in change.images.iter().filter(|_| with_images) {
        let list = pod["spec"][new.list].as_array_mut().unwrap();
        let container = list.iter_mut().find(|it| it["name"] == new.container.as_str()).unwrap();
        container["image"] = new.image.as_str().into();
    }
    for (key, value) in change.annotations.iter().filter(|_| with_images) {
        pod["metadata"]["annotations"][key] = value.as_str().into();
    }
    pod
}

#[test]
fn what_differs_is_changed_and_what_comes_of_it_is_the_set() {
    let limits = json!({"memory": "1Gi"});
    let native = |request: &str| json!({"containers": null, "initContainers": [{"name": "log", "image": "log:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": request}}}]});
    let restarting = |request: &str, limit: &str| {
        let policy = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
        with(json!({"resizePolicy": policy, "resources": {"requests": {"cpu": request}, "limits": {"memory": limit}}}))
    };
    for (case, before, after, list, resources, restarts) in [
        ("a request", cpu("1"), cpu("2"), "containers", json!({"requests": {"cpu": "2"}}), false),
        ("of a native sidecar", native("1"), native("2"), "initContainers", json!({"requests": {"cpu": "2"}}), false),
        (
            "a limit, which is the request as well",
            amounts(limits.clone(), json!({})),
            amounts(json!({"memory": "2Gi"}), json!({})),
            "containers",
            json!({"limits": {"memory": "2Gi"}, "requests": {"memory": "2Gi"}}),
            false,
        ),
        (
            "one that was not there, and one with the image",
            cpu("1"),
            with(json!({"image": "log:2", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}})),
            "containers",
            json!({"limits": {"cpu": "2"}}),
            false,
        ),
        (
            "memory restarts",
            restarting("1", "1Gi"),
            restarting("1", "2Gi"),
            "containers",
            json!({"limits": {"memory": "2Gi"}, "requests": {"memory": "2Gi"}}),
            true,
        ),
        (
            "cpu does not",
            restarting("1", "1Gi"),
            restarting("2", "1Gi"),
            "containers",
            json!({"requests": {"cpu": "2"}}),
            false,
        ),
    ] {
        let old = made(json!({}), &before);
        let InPlace::Change(change) = between(&old, &after) else { panic!("{case}: {:?}", between(&old, &after)) };
        assert_eq!(change.resources, [NewAmounts { list, container: "log".to_owned(), resources, restarts }], "{case}");
        let new = changed(&old, &change, true);
        assert_eq!(between(&new, &after), InPlace::Change(Change::default()), "{case}");
        assert_eq!(cluster(&after).mutate(&new).patch, None, "{case}");
    }
}

#[test]
fn what_is_the_same_in_other_words_or_open_or_may_differ_is_no_change() {
    let mut may_differ = cpu("2");
    may_differ["allowedChanges"] = json!({"fields": ["resources"]});
    let one = json!({"cpu": "1000m"});
    for (case, before, after) in [
        ("in other words", cpu("1"), amounts(json!({}), one)),
        ("may differ", cpu("1"), may_differ),
        // Without a revision of the older form it counts as filled in.
        ("open", cpu("1"), with(json!({}))),
    ] {
        let found = between(&made(json!({}), &before), &after);
        assert!(matches!(&found, InPlace::Change(change) if change.resources.is_empty()), "{case}: {found:?}");
    }
}

#[test]
fn what_a_running_pod_cannot_take_is_named() {
    let guaranteed = |amount: &str| {
        let all = json!({"cpu": amount, "memory": "1Gi"});
        amounts(all.clone(), all)
    };
    let own = json!({"containers": [{"name": "app", "image": "shop:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}}]});
    let burstable = amounts(json!({"cpu": "2", "memory": "1Gi"}), json!({"cpu": "1", "memory": "1Gi"}));
    let storage = |amount: &str| amounts(json!({}), json!({"cpu": "1", "ephemeral-storage": amount}));
    let init = |request: &str| json!({"initContainers": [{"name": "setup", "image": "a:1", "resources": {"requests": {"cpu": request}}}]});
    for (case, own, before, after, expected) in [
        (
            "the class",
            own.clone(),
            guaranteed("1"),
            burstable,
            "the pod would be Burstable, and its QoS class Guaranteed",
        ),
        (
            "from nothing",
            json!({}),
            with(json!({})),
            cpu("1"),
            "the pod would be Burstable, and its QoS class BestEffort",
        ),
        ("another resource", json!({}), storage("1Gi"), storage("2Gi"), "resources.requests[ephemeral-storage]"),
        ("an init container that ran", json!({}), init("1"), init("2"), "\"setup\" differs in resources.requests[cpu]"),
    ] {
        let found = between(&made(own, &before), &after);
        let InPlace::NewPodOnly(why) = found else { panic!("{case}: {found:?}") };
        assert!(why.contains(expected), "{case}: {why}");
    }
    assert!(matches!(between(&made(own, &guaranteed("1")), &guaranteed("2")), InPlace::Change(_)), "the same class");
    // As its own resources decide on the class.
    let whole = json!({"resources": {"requests": {"cpu": "8"}}});
    assert!(matches!(between(&made(whole, &with(json!({}))), &cpu("1")), InPlace::Change(_)), "resources of the pod");
}

#[test]
fn without_the_sub_resource_and_on_a_node_that_cannot_resize_nothing_is_tried() {
    let old = made(json!({}), &cpu("1"));
    let found = in_place(&old, NAMESPACE, "log", &Cluster::from_objects(&[set("log", cpu("2"))]).snapshot).unwrap();
    assert_eq!(found, InPlace::NewPodOnly("container \"log\" differs in resources.requests[cpu]".to_owned()));
    let running = json!({"running": {}});
    for (statuses, may) in [
        (json!([{"name": "log", "state": running}]), false),
        (json!([{"name": "log", "state": running, "resources": {}}]), true),
        (json!([{"name": "log", "state": {"waiting": {}}}]), true),
        (json!(null), true),
    ] {
        let mut pod = old.clone();
        pod["status"] = json!({"containerStatuses": statuses});
        let found = between(&pod, &cpu("2"));
        assert_eq!(matches!(found, InPlace::Change(_)), may, "{statuses}: {found:?}");
    }
}

/// The image is changed after the resize, so that nothing is where that is refused.
#[test]
fn the_entry_after_creation_lets_a_rollout_resize_a_must_and_nobody_anything_else() {
    let must = |image: &str, request: &str| {
        let mut spec = with(json!({"image": image, "resources": {"requests": {"cpu": request}}}));
        spec["optOut"] = "Denied".into();
        spec
    };
    let ask = |after: &Value, sub_resource: &str, old: &Value, new: &Value| -> Decision {
        let mut review = review(NAMESPACE, new);
        review["request"]["operation"] = "UPDATE".into();
        review["request"]["subResource"] = sub_resource.into();
        review["request"]["oldObject"] = old.clone();
        cluster(after).ask("/validate--v1-pod-update", &review).unwrap().decision
    };
    let old = made(json!({}), &must("log:1", "1"));
    for image in ["log:1", "log:2"] {
        let after = must(image, "2");
        let InPlace::Change(change) = between(&old, &after) else { panic!("{image}") };
        let resized = changed(&old, &change, false);
        assert_eq!(ask(&after, "resize", &old, &resized), Allowed, "{image}");
        assert_eq!(ask(&after, "", &resized, &changed(&resized, &change, true)), Allowed, "{image}");
    }
    let resize = |old: &Value, limits: Value, requests: Value| {
        let mut new = old.clone();
        let list = new["spec"]["containers"].as_array_mut().unwrap();
        let log = list.iter_mut().find(|it| it["name"] == "log").unwrap();
        log["resources"] = json!({"limits": limits, "requests": requests});
        new
    };
    let after = must("log:2", "2");
    for (case, new, expected) in [
        ("another amount", resize(&old, json!({}), json!({"cpu": "3"})), Denied),
        ("less", resize(&old, json!({}), json!({"cpu": "1m"})), Denied),
        ("none", resize(&old, json!({}), json!({})), Denied),
        ("another one beside", resize(&old, json!({"memory": "1Gi"}), json!({"cpu": "2", "memory": "1Gi"})), Denied),
        ("the set's", resize(&old, json!({}), json!({"cpu": "2"})), Allowed),
    ] {
        assert_eq!(ask(&after, "resize", &old, &new), expected, "{case}");
    }
    // What the older form gave is not free because the newer one leaves it open.
    let mut open = with(json!({"image": "log:2"}));
    open["optOut"] = "Denied".into();
    assert_eq!(ask(&open, "resize", &old, &resize(&old, json!({}), json!({"cpu": "64"}))), Denied);
}
