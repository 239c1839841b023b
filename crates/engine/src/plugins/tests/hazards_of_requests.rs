//! The hazards that are about one request or one object, under the numbers of the checklist: see [`super::hazards`].

use std::collections::{BTreeMap, BTreeSet};

use admission::registry::{Phase, Rule};
use admission::{Decision, Known, Operation, Unserved};
use serde_json::json;

use super::hazards::{entries, everything, of, of_pods, offence, plugin_of, strict, with_quotas};
use super::{namespace, plugin, pod, update};
use crate::plugins::Plugin;
use crate::testing::{Cluster, review};

const NODES: &str = "system:nodes";
const DAEMON_SETS: &str = "system:serviceaccount:kube-system:daemon-set-controller";

#[test]
fn hazard_6_nothing_that_the_author_of_a_pod_writes_exempts_it() {
    let cluster = Cluster::from_objects(
        &[of([Plugin::AlwaysPullImages, Plugin::PodNodeSelector]), vec![namespace(json!({}))]].concat(),
    );
    let controller =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]);
    for forged in [
        json!({"annotations": {"outrider.dev/skip": "true"}}),
        json!({"annotations": {"kubernetes.io/config.mirror": "1"}}),
        json!({"annotations": {"scheduler.alpha.kubernetes.io/node-selector": ""}}),
        json!({"labels": {"outrider.dev/exclude": "", "control-plane": "true"}}),
        json!({"ownerReferences": controller, "generateName": "d-", "name": ""}),
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        json!({"namespace": "kube-system"}),
    ] {
        let mut pod = pod(json!({}));
        json_patch::merge(&mut pod, &json!({"metadata": forged}));
        let reply = cluster.mutate(&pod);
        let spec = &reply.pod["spec"];
        assert_eq!(
            (&spec["containers"][0]["imagePullPolicy"], &spec["nodeSelector"]),
            (&json!("Always"), &json!({"pool": "a"})),
            "{forged}"
        );
        assert_eq!(cluster.validate(&pod).decision, Decision::Denied, "{forged}");
    }
}

#[test]
fn hazard_7_pods_of_daemon_sets_and_of_kubelets_are_known_by_who_asks() {
    let section = json!({"clusterDefaultNodeSelector": "pool=a", "daemonSetPods": "Skip"});
    let cluster = Cluster::from_objects(&[
        plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": section})),
        plugin(
            "t",
            json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": strict(Plugin::PodTolerationRestriction)}),
        ),
        namespace(json!({})),
    ]);
    let mut mirror = pod(json!({}));
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
    for (pod, user, group, is_placed, is_tolerating) in [
        (pod(json!({})), DAEMON_SETS, "system:authenticated", false, true),
        (pod(json!({})), "kim", "system:authenticated", true, true),
        (mirror.clone(), "system:node:a", NODES, false, false),
        (mirror, "kim", "system:authenticated", true, true),
    ] {
        let mut review = review("shop", &pod);
        review["request"]["userInfo"] = json!({"username": user, "groups": [group]});
        let spec = cluster.ask("/mutate--v1-pod", &review).unwrap().pod["spec"].take();
        assert_eq!(
            (!spec["nodeSelector"].is_null(), !spec["tolerations"].is_null()),
            (is_placed, is_tolerating),
            "{user} {pod}"
        );
    }
}

#[test]
fn hazard_8_of_a_stored_pod_only_tolerations_are_added_and_nothing_else_is_changed() {
    let cluster = everything();
    let old = pod(
        json!({"tolerations": [{"key": "team", "operator": "Equal", "value": "x"}, {"key": "team", "operator": "Exists"}]}),
    );
    let mut new = old.clone();
    new["spec"]["containers"][0] = json!({"name": "app", "image": "shop:2", "imagePullPolicy": "Never", "resources": {"requests": {"cpu": "1", "a.com/b": "1"}}});
    let before = new["spec"]["tolerations"].as_array().unwrap().clone();
    for entry in entries().iter().filter(|entry| {
        entry.phase == Phase::Mutating
            && entry.rule.resources[0].resource == "pods"
            && entry.rule.operations.contains(&Operation::Update)
    }) {
        let mut reply = update(&cluster, &entry.rule.path(entry.phase), "", &old, &new);
        let after = reply.pod["spec"]["tolerations"].take();
        assert_eq!(after.as_array().unwrap()[..before.len()], before, "{}", entry.name);
        assert_eq!(reply.decision, Decision::Patched, "{}", entry.name);
        let mut same = new.clone();
        same["spec"]["tolerations"].take();
        assert_eq!(reply.pod, same, "{}", entry.name);
    }
    let refused = update(&cluster, "/validate--v1-pod-alwayspullimages", "", &old, &new);
    assert!(refused.message.ends_with("recreate the pod"), "{}", refused.message);
}

#[test]
fn hazard_9_subresources_are_listed_by_name_and_each_is_judged() {
    let mut by_resource = BTreeMap::<&str, BTreeSet<&str>>::new();
    for entry in entries() {
        for resource in entry.rule.resources.iter().filter(|resource| !resource.parts().1.is_empty()) {
            by_resource.entry(resource.resource).or_default().insert(plugin_of(&entry.rule));
        }
    }
    let expected = [
        ("*/*", BTreeSet::from(["ownerreferences"])),
        ("pods/binding", BTreeSet::from(["podtopologylabels"])),
        ("pods/ephemeralcontainers", BTreeSet::from(["alwayspullimages", "imagepolicywebhook", "serviceaccount"])),
        ("pods/resize", BTreeSet::from(["resourcequota"])),
    ];
    // Evictions and tokens change nothing that a plugin decides on.
    assert_eq!(by_resource, BTreeMap::from(expected));
    let cluster = with_quotas();
    let small = pod(json!({}));
    let large =
        pod(json!({"containers": [{"name": "app", "image": "shop:1", "resources": {"requests": {"cpu": "1"}}}]}));
    let resized = update(&cluster, "/validate--v1-pod-resourcequota", "resize", &small, &large);
    assert!(resized.message.contains("insufficient quota to consume: count/pods,cpu"), "{}", resized.message);
    let debugged = pod(json!({"ephemeralContainers": [{"name": "d", "image": "sh", "imagePullPolicy": "Never"}]}));
    let path = "/validate--v1-pod-ephemeralcontainers-alwayspullimages";
    assert_eq!(update(&cluster, path, "ephemeralcontainers", &small, &debugged).decision, Decision::Denied);
}

#[test]
fn hazard_10_of_a_request_for_many_objects_the_name_is_that_of_the_old_object() {
    let rule = entries().into_iter().find(|entry| entry.rule.operations == [Operation::Delete]).unwrap().rule;
    let mut review = offence(&rule, "prod");
    review["request"]["name"] = "".into();
    review["request"]["namespace"] = "".into();
    let reply = everything().ask(&rule.path(Phase::Validating), &review).unwrap();
    assert!(reply.message.starts_with("namespaces \"prod\" is forbidden"), "{}", reply.message);
}

#[test]
fn hazard_11_a_namespace_that_was_created_a_moment_ago_is_waited_for_and_not_guessed() {
    let cluster = everything();
    for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
        let found = cluster.ask(path, &review("new", &pod(json!({})))).unwrap_err();
        assert!(matches!(&found, Unserved::NamespaceUnknown(name) if name == "new"), "{path}: {found:?}");
        assert_eq!((found.status(), found.retry_after()), (503, Some(1)));
    }
}

#[test]
fn hazard_12_what_the_api_server_converted_is_decided_on_as_it_was_converted() {
    let cluster = Cluster::from_objects(&[
        plugin("a", json!({"plugin": "AlwaysPullImages"})),
        plugin(
            "e",
            json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": strict(Plugin::EventRateLimit)["limits"], "coverEventsV1": true}}),
        ),
        namespace(json!({})),
    ]);
    let other = json!({"group": "core.example", "version": "v9", "kind": "Newer", "resource": "newers"});
    let mut converted = review("shop", &pod(json!({})));
    (converted["request"]["requestKind"], converted["request"]["requestResource"]) = (other.clone(), other);
    assert_eq!(cluster.ask("/mutate--v1-pod", &converted).unwrap().decision, Decision::Patched);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}});
    let mut converted = review("shop", &event);
    converted["request"]["kind"]["kind"] = "Event".into();
    converted["request"]["resource"]["resource"] = "events".into();
    converted["request"]["requestResource"] = json!({"group": "events.k8s.io", "version": "v1", "resource": "events"});
    let (_, asked) =
        cluster.ask_with("/validate--v1-event-eventratelimit", &converted, |_| Known::Tokens(vec![true])).unwrap();
    assert_eq!(asked.len(), 1);
}

#[test]
fn hazard_13_all_entries_that_one_request_waits_for_in_turn_leave_room_in_its_timeout() {
    // The API server calls mutating entries one after another. The shortest time-out of a client is 30 s.
    let mut seconds = BTreeMap::<(&str, &str), u32>::new();
    seconds.insert(("pods", "CREATE"), u32::from(Rule::TIMEOUT_SECONDS));
    for entry in entries().iter().filter(|entry| entry.phase == Phase::Mutating) {
        for resource in entry.rule.resources {
            for operation in entry.rule.operations {
                *seconds.entry((resource.resource, operation.as_str())).or_default() +=
                    u32::from(entry.timeout_seconds);
            }
        }
    }
    assert!(seconds.values().all(|seconds| *seconds < 30), "{seconds:?}");
}

#[test]
fn hazard_16_where_the_api_server_runs_the_plugin_too_ours_changes_nothing() {
    // What the in-tree plugins stored, as the differential test shows.
    let lasting = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1});
    let tolerations = json!([lasting("node.kubernetes.io/not-ready"), lasting("node.kubernetes.io/unreachable"),
        {"key": "team", "operator": "Exists"}]);
    let stored = pod(json!({
        "nodeSelector": {"pool": "a"}, "tolerations": tolerations, "runtimeClassName": "sandbox",
        "priorityClassName": "low", "priority": 1000, "preemptionPolicy": "Never",
        "containers": [{"name": "app", "image": "shop:1", "imagePullPolicy": "Always"}],
    }));
    let cluster = of_pods(&[]);
    let reply = cluster.mutate(&stored);
    assert_eq!((reply.decision, reply.patch), (Decision::Allowed, None));
    assert_eq!(cluster.validate(&stored).decision, Decision::Allowed);
}

#[test]
fn hazard_19_the_text_of_the_original_begins_the_message() {
    let judged = Cluster::from_objects(&[of([Plugin::AlwaysPullImages]), vec![namespace(json!({}))]].concat())
        .validate(&pod(json!({})));
    assert!(
        judged.message.starts_with("pods \"p\" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value"),
        "{}",
        judged.message
    );
}
