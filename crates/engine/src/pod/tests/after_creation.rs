//! What happens to pods after they were created, while there is a must.

use admission::Decision;
use serde_json::{Value, json};

use crate::pod::after_creation::demands;
use crate::reasons;
use crate::testing::{Cluster, Reply, pod, review, set};

const PATH: &str = "/validate--v1-pod-update";

fn must() -> Cluster {
    Cluster::from_objects(&[set("log", json!({"optOut": "Denied"}))])
}

/// A pod as the must made it.
fn carrying() -> Value {
    must().mutate(&pod(json!({}))).pod
}

fn update(sub_resource: &str, old: &Value, new: &Value) -> Reply {
    let mut review = review("shop", new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["subResource"] = sub_resource.into();
    review["request"]["oldObject"] = old.clone();
    must().ask(PATH, &review).unwrap()
}

fn container(pod: &Value, of_set: bool) -> usize {
    let list = pod["spec"]["containers"].as_array().unwrap();
    list.iter().position(|container| (container["name"] == "app") != of_set).unwrap()
}

#[test]
fn the_entry_exists_only_while_there_is_a_must() {
    let of = |sets: &[Value]| demands(&Cluster::from_objects(sets).snapshot).len();
    assert_eq!(of(&[]), 0);
    assert_eq!(of(&[set("log", json!({}))]), 0);
    assert_eq!(of(&[set("log", json!({"optOut": "Denied"}))]), 1);
}

#[test]
fn containers_of_a_must_may_not_become_others_and_those_of_the_pod_may() {
    let old = carrying();
    for sub_resource in ["", "resize"] {
        for (field, value) in
            [("image", json!("evil:1")), ("resources", json!({"limits": {"cpu": "1m"}})), ("command", json!(["sh"]))]
        {
            let mut new = old.clone();
            let of_set = container(&new, true);
            new["spec"]["containers"][of_set][field] = value.clone();
            let reply = update(sub_resource, &old, &new);
            if field == "resources" {
                // Requests and limits that the set leaves open may be filled, as on creation.
                assert_eq!(reply.decision, Decision::Allowed);
                continue;
            }
            assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(403)), "{field}");
            assert!(reply.message.contains("SidecarSet \"log\""), "{}", reply.message);
            let mut new = old.clone();
            let of_pod = container(&new, false);
            new["spec"]["containers"][of_pod][field] = value;
            assert_eq!(update(sub_resource, &old, &new).decision, Decision::Allowed, "{field}");
        }
    }
}

#[test]
fn a_container_that_was_another_before_may_become_the_sets() {
    let (current, mut old) = (carrying(), carrying());
    let of_set = container(&old, true);
    old["spec"]["containers"][of_set]["image"] = "older:1".into();
    assert_eq!(update("", &old, &current).decision, Decision::Allowed, "as a rollout does");
    let mut worse = old.clone();
    worse["spec"]["containers"][of_set]["image"] = "older:2".into();
    assert_eq!(update("", &old, &worse).decision, Decision::Denied);
    assert_eq!(update("", &old, &old).decision, Decision::Allowed, "what is as it was is not judged");
}

#[test]
fn what_a_pod_lacked_it_may_go_on_lacking() {
    let old = pod(json!({}));
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = "shop:2".into();
    new["metadata"]["labels"]["more"] = "1".into();
    let reply = update("", &old, &new);
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::ALLOWED));
}

/// `NoMatch` would say that no set selects the pod.
#[test]
fn an_update_that_concerns_no_must_is_allowed_whatever_other_sets_select_the_pod() {
    let optional = set("optional", json!({}));
    let must = set("must", json!({"selector": {"matchLabels": {"app": "other"}}, "optOut": "Denied"}));
    let cluster = Cluster::from_objects(&[optional, must]);
    let old = cluster.mutate(&pod(json!({}))).pod;
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = "shop:2".into();
    let mut review = review("shop", &new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["oldObject"] = old;
    let reply = cluster.ask(PATH, &review).unwrap();
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::ALLOWED));
}

#[test]
fn the_label_of_a_must_is_gained_by_recreating_the_pod_and_not_lost() {
    let (with, mut other) = (pod(json!({})), pod(json!({})));
    other["metadata"]["labels"] = json!({"app": "other"});
    let gained = update("", &other, &with);
    assert_eq!(gained.decision, Decision::Denied);
    assert!(gained.message.contains("recreate the pod"), "{}", gained.message);

    let carrying = carrying();
    let mut lost = carrying.clone();
    lost["metadata"]["labels"] = json!({"app": "other"});
    let reply = update("", &carrying, &lost);
    assert_eq!(reply.decision, Decision::Denied);
    assert!(reply.message.contains("recreate the pod"), "{}", reply.message);
    // One that never carried the set loses nothing.
    assert_eq!(update("", &with, &other).decision, Decision::Allowed);
}

/// A set without containers of its own says nothing by their names.
#[test]
fn the_label_of_a_must_that_adds_to_the_pods_containers_is_gained_only_with_what_it_adds() {
    let entries =
        json!([{"env": [{"name": "AGENT", "value": "1"}], "volumeMounts": [{"name": "agent", "mountPath": "/agent"}]}]);
    let spec = json!({"optOut": "Denied", "containers": [], "appContainers": entries, "volumes": [{"name": "agent", "emptyDir": {}}]});
    let cluster = Cluster::from_objects(&[set("agent", spec)]);
    let without_label = |pod: &Value| {
        let mut pod = pod.clone();
        pod["metadata"]["labels"] = json!({"app": "other"});
        pod
    };
    let update = |old: &Value, new: &Value| {
        let mut review = review("shop", new);
        review["request"]["operation"] = "UPDATE".into();
        review["request"]["oldObject"] = old.clone();
        cluster.ask(PATH, &review).unwrap()
    };
    let (plain, carrying) = (pod(json!({})), cluster.mutate(&pod(json!({}))).pod);
    let gained = update(&without_label(&plain), &plain);
    assert_eq!(gained.decision, Decision::Denied);
    assert!(gained.message.contains("it lacks variables and mounts of container \"app\""), "{}", gained.message);
    assert_eq!(update(&without_label(&carrying), &carrying).decision, Decision::Allowed);
    // What the pod lacked while it had the label it may go on lacking.
    let mut renamed = plain.clone();
    renamed["spec"]["containers"][0]["image"] = "shop:2".into();
    assert_eq!(update(&plain, &renamed).decision, Decision::Allowed);
}

#[test]
fn an_ephemeral_container_may_not_target_a_container_of_a_must() {
    let old = carrying();
    let name = old["spec"]["containers"][container(&old, true)]["name"].clone();
    for (target, expected) in
        [(name, Decision::Denied), (json!("app"), Decision::Allowed), (json!(null), Decision::Allowed)]
    {
        let mut new = old.clone();
        new["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "sh", "targetContainerName": target}]);
        assert_eq!(update("ephemeralcontainers", &old, &new).decision, expected, "{target}");
        // One that is there already is no reason to refuse another.
        assert_eq!(update("ephemeralcontainers", &new, &new).decision, Decision::Allowed, "{target}");
    }
}

#[test]
fn pods_that_go_mirrors_and_excluded_namespaces_are_left_alone() {
    let mut changed = carrying();
    let of_set = container(&changed, true);
    changed["spec"]["containers"][of_set]["image"] = "evil:1".into();
    for metadata in [
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        json!({"annotations": {"kubernetes.io/config.mirror": "0f"}}),
    ] {
        let mut old = carrying();
        json_patch::merge(&mut old["metadata"], &metadata);
        assert_eq!(update("", &old, &changed).decision, Decision::Allowed, "{metadata}");
    }
    let mut review = review("kube-system", &changed);
    json_patch::merge(&mut review, &json!({"request": {"operation": "UPDATE", "oldObject": carrying()}}));
    assert_eq!(must().ask(PATH, &review).unwrap().reason, reasons::NAMESPACE_EXCLUDED);
}

#[test]
fn what_of_a_must_depends_on_the_pod_is_no_other_form_of_it() {
    let transfer = json!([{"sourceContainerName": "app", "envName": "TZ"}]);
    let container = json!({"name": "log", "image": "log:1", "transferEnv": transfer});
    let sets = [set(
        "log",
        json!({
            "optOut": "Denied", "containers": [container], "allowedChanges": {"fields": ["readinessProbe"]},
        }),
    )];
    let cluster = Cluster::from_objects(&sets);
    let mut pod = pod(json!({}));
    pod["spec"]["containers"][0]["env"] = json!([{"name": "TZ", "value": "Europe/Berlin"}]);
    let old = cluster.mutate(&pod).pod;
    let of_set = self::container(&old, true);
    assert!(old["spec"]["containers"][of_set]["env"].as_array().unwrap().iter().any(|env| env["name"] == "TZ"));
    let ask = |field: &str, value: Value| {
        let mut new = old.clone();
        new["spec"]["containers"][of_set][field] = value;
        let mut review = review("shop", &new);
        review["request"]["operation"] = "UPDATE".into();
        review["request"]["oldObject"] = old.clone();
        cluster.ask(PATH, &review).unwrap().decision
    };
    assert_eq!(ask("readinessProbe", json!({"exec": {"command": ["true"]}})), Decision::Allowed);
    assert_eq!(ask("image", json!("evil:1")), Decision::Denied);
}

#[test]
fn a_must_that_depends_on_the_pod_leaves_nothing_open_when_the_pod_changes_what_it_depends_on() {
    let policy = json!({
        "targetContainersMode": "sum", "resourcesExpr": {"limits": {"memory": "memory*50%"}, "requests": {"memory": "memory*50%"}},
    });
    let container = json!({"name": "log", "image": "log:1", "resourcesPolicy": policy});
    let spec = json!({"optOut": "Denied", "jobPods": "Skip", "containers": [container]});
    let cluster = Cluster::from_objects(&[set("log", spec)]);
    let mut pod = pod(json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "1Gi"}});
    let carrying = cluster.mutate(&pod).pod;
    let [of_set, of_pod] = [true, false].map(|of_set| self::container(&carrying, of_set));
    assert_eq!(carrying["spec"]["containers"][of_set]["resources"]["limits"]["memory"], "512Mi");
    let resized = |old: &Value, container: usize| {
        let mut new = old.clone();
        let amounts = json!({"limits": {"memory": "1Mi"}, "requests": {"memory": "1Mi"}});
        new["spec"]["containers"][container]["resources"] = amounts;
        let mut review = review("shop", &new);
        json_patch::merge(
            &mut review,
            &json!({"request": {"operation": "UPDATE", "subResource": "resize", "oldObject": old}}),
        );
        cluster.ask(PATH, &review).unwrap()
    };
    assert_eq!(resized(&carrying, of_set).decision, Decision::Denied);
    // Annotations and owners may be changed without a webhook. No set lets this pod ask for anything, and it is unknown
    // whether it was created by a Job.
    let job = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}]);
    for (metadata, says) in [
        (json!({"annotations": {"outrider.dev/overrides": r#"{"log":{}}"#}}), "changes log of SidecarSet"),
        (json!({"annotations": {"outrider.dev/overrides": r#"{"log":[]}"#}}), "changes log of SidecarSet"),
        (json!({"ownerReferences": job}), "spec.jobPods: Skip"),
    ] {
        let mut old = carrying.clone();
        json_patch::merge(&mut old["metadata"], &metadata);
        let reply = resized(&old, of_set);
        assert_eq!(reply.decision, Decision::Denied, "{metadata}");
        assert!(reply.message.contains(says), "{}", reply.message);
        assert_eq!(resized(&old, of_pod).decision, Decision::Allowed, "{metadata}");
    }
}

#[test]
fn many_ephemeral_containers_are_refused_in_few_words() {
    let old = carrying();
    let name = old["spec"]["containers"][container(&old, true)]["name"].clone();
    let mut new = old.clone();
    let many = (0..1_000).map(|at| json!({"name": format!("e{at}"), "targetContainerName": name}));
    new["spec"]["ephemeralContainers"] = many.collect();
    let reply = update("ephemeralcontainers", &old, &new);
    assert_eq!(reply.decision, Decision::Denied);
    assert!(reply.body.len() < 16 * 1024, "{}", reply.body.len());
    assert!(reply.message.contains("ephemeral container \"e0\""), "{}", reply.message);
    // A long name is not repeated as a whole.
    new["spec"]["ephemeralContainers"] = json!([{"name": "e".repeat(1_000_000), "targetContainerName": name}]);
    let reply = update("ephemeralcontainers", &old, &new);
    assert!(reply.body.len() < 16 * 1024, "{}", reply.body.len());
}

#[test]
fn containers_of_other_sets_are_not_the_pods_own_when_a_must_is_updated() {
    let policy = json!({"targetContainersMode": "sum", "resourcesExpr": {"limits": {"memory": "memory*50%"}}});
    let must = |image: &str| {
        let container = json!({"name": "log", "image": image, "resourcesPolicy": policy});
        set("log", json!({"optOut": "Denied", "containers": [container]}))
    };
    let limits = json!({"limits": {"memory": "1Gi"}});
    let other = set("other", json!({"containers": [{"name": "other", "image": "o:1", "resources": limits}]}));
    let mut pod = pod(json!({}));
    pod["spec"]["containers"][0]["resources"] = limits;
    let old = Cluster::from_objects(&[must("log:1"), other.clone()]).mutate(&pod).pod;
    let containers = old["spec"]["containers"].as_array().unwrap();
    let at = containers.iter().position(|container| container["name"] == "log").unwrap();
    assert_eq!(old["spec"]["containers"][at]["resources"]["limits"]["memory"], "512Mi");
    let mut new = old.clone();
    new["spec"]["containers"][at]["image"] = "log:2".into();
    let mut review = review("shop", &new);
    json_patch::merge(&mut review, &json!({"request": {"operation": "UPDATE", "oldObject": old}}));
    let reply = Cluster::from_objects(&[must("log:2"), other]).ask(PATH, &review).unwrap();
    assert_eq!(reply.decision, Decision::Allowed, "as a rollout does: {}", reply.message);
}
