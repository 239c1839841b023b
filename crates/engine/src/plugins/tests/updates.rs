//! Pods that are changed, and ephemeral containers.

use admission::Decision;
use serde_json::{Value, json};

use super::{namespace, plugin, pod, update};
use crate::plugins::endpoints::demands;
use crate::pod::limits;
use crate::testing::Cluster;

const PULLED: &str = "/validate--v1-pod-alwayspullimages";

fn with_images(images: &[&str]) -> Value {
    let containers: Vec<Value> = images
        .iter()
        .enumerate()
        .map(|(at, image)| json!({"name": format!("c{at}"), "image": image, "imagePullPolicy": "IfNotPresent"}))
        .collect();
    pod(json!({"containers": containers}))
}

#[test]
fn a_change_that_brings_no_new_image_is_left_alone_and_one_that_does_says_what_to_do() {
    // Rows 5 and 6 of 4.1.
    let cluster = Cluster::from_objects(&[plugin("a", json!({"plugin": "AlwaysPullImages"})), namespace(json!({}))]);
    let old = with_images(&["image", "other"]);
    let mut annotated = old.clone();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    for (new, is_allowed) in
        [(annotated, true), (with_images(&["other", "image"]), true), (with_images(&["image2", "other"]), false)]
    {
        let reply = update(&cluster, PULLED, "", &old, &new);
        assert_eq!(reply.decision == Decision::Allowed, is_allowed, "{new}");
        if !is_allowed {
            assert!(reply.message.contains("spec.containers[0].imagePullPolicy: Unsupported value: \"IfNotPresent\""));
            assert!(reply.message.ends_with("recreate the pod"), "{}", reply.message);
        }
    }
}

#[test]
fn ephemeral_containers_are_covered_where_so_configured() {
    // Row 7 of 4.1.
    let debug = |policy: &str| json!({"name": "debug", "image": "sh", "imagePullPolicy": policy});
    let old = pod(json!({}));
    let with = |policy: &str| pod(json!({"ephemeralContainers": [debug(policy)]}));
    let paths = [
        "/mutate--v1-pod-ephemeralcontainers-alwayspullimages",
        "/validate--v1-pod-ephemeralcontainers-alwayspullimages",
    ];
    for covers in [true, false] {
        let section = json!({"includeEphemeralContainers": covers});
        let cluster = Cluster::from_objects(&[
            plugin("a", json!({"plugin": "AlwaysPullImages", "alwaysPullImages": section})),
            namespace(json!({})),
        ]);
        let [changed, judged] =
            paths.map(|path| update(&cluster, path, "ephemeralcontainers", &old, &with("IfNotPresent")));
        assert_eq!((changed.decision == Decision::Patched, judged.decision == Decision::Denied), (covers, covers));
        assert_eq!(changed.pod["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "Always", covers);
        let kept = update(&cluster, paths[1], "ephemeralcontainers", &with("IfNotPresent"), &with("IfNotPresent"));
        assert_eq!(kept.decision, Decision::Allowed, "one that was there before stays as it is");
        let names: Vec<String> = demands(&cluster.snapshot).into_iter().map(|demand| demand.name).collect();
        assert_eq!(names.iter().any(|name| name.starts_with("alwayspullimages-ephemeral")), covers);
    }
}

#[test]
fn tolerations_of_a_changed_pod_are_only_added_to_and_judged() {
    // Rows 14 and 15 of 4.22.
    let key = |key: &str| json!({"key": key, "operator": "Exists"});
    let pressure = json!({"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"});
    let section = json!({"default": [key("given")], "whitelist": [key("a"), key("given")]});
    let cluster = Cluster::from_objects(&[
        plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section})),
        namespace(json!({})),
    ]);
    let [mutate, validate] = ["/mutate--v1-pod-podtolerationrestriction", "/validate--v1-pod-podtolerationrestriction"];
    let old = pod(json!({"tolerations": [key("a")]}));
    let same = update(&cluster, mutate, "", &old, &old);
    assert_eq!((same.decision, same.patch), (Decision::Allowed, None), "the default is for new pods");
    let burstable = pod(json!({"tolerations": [key("a"), key("a")], "resources": {"requests": {"memory": "1"}}}));
    let changed = update(&cluster, mutate, "", &old, &burstable);
    assert_eq!(changed.pod["spec"]["tolerations"], json!([key("a"), key("a"), pressure]));
    assert_eq!(update(&cluster, validate, "", &old, &changed.pod).decision, Decision::Allowed);
    let more = pod(json!({"tolerations": [key("a"), key("b")]}));
    assert!(update(&cluster, validate, "", &old, &more).message.contains("conflict with its cluster whitelist"));
    let mut leaving = old.clone();
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(update(&cluster, validate, "", &leaving, &more).decision, Decision::Allowed);
}

#[test]
fn extended_resources_and_topology_of_changed_pods_are_seen_to() {
    let cluster = Cluster::from_objects(&[
        plugin("e", json!({"plugin": "ExtendedResourceToleration"})),
        plugin("l", json!({"plugin": "LimitPodHardAntiAffinityTopology"})),
        namespace(json!({})),
    ]);
    let asks = pod(json!({"initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"a.com/b": 1}}}]}));
    let changed = update(&cluster, "/mutate--v1-pod-extendedresourcetoleration", "", &pod(json!({})), &asks);
    assert_eq!(changed.pod["spec"]["tolerations"][0]["key"], "a.com/b");
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
    let apart = pod(json!({"affinity": {"podAntiAffinity": terms}}));
    let judged = update(&cluster, "/validate--v1-pod-limitpodhardantiaffinitytopology", "", &pod(json!({})), &apart);
    assert_eq!((judged.decision, judged.code), (Decision::Denied, Some(403)));
}

#[test]
fn more_tolerations_than_a_pod_may_have_are_refused_and_not_added() {
    let cluster =
        Cluster::from_objects(&[plugin("e", json!({"plugin": "ExtendedResourceToleration"})), namespace(json!({}))]);
    let asking = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("a.com/{at}")).collect();
        let container = |names: &[String]| {
            let requests: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!("1"))).collect();
            json!({"name": "c", "image": "c", "resources": {"requests": requests}})
        };
        pod(json!({"containers": names.chunks(100).map(container).collect::<Vec<_>>()}))
    };
    for (count, code) in [(limits::TOLERATIONS, None), (limits::TOLERATIONS + 1, Some(422))] {
        let path = "/mutate--v1-pod-extendedresourcetoleration";
        for reply in [cluster.mutate(&asking(count)), update(&cluster, path, "", &pod(json!({})), &asking(count))] {
            assert_eq!(reply.code, code, "{}", reply.message);
            let added = reply.pod["spec"]["tolerations"].as_array().map_or(0, Vec::len);
            assert_eq!(added, if code.is_none() { count } else { 0 });
        }
    }
}

#[test]
fn each_plugin_needs_its_own_entries_and_one_that_is_off_needs_none() {
    let names = |name: &str, spec: Value| -> Vec<String> {
        let cluster = Cluster::from_objects(&[plugin(name, spec)]);
        demands(&cluster.snapshot).into_iter().map(|demand| demand.name).collect()
    };
    assert_eq!(names("p", json!({"plugin": "PodNodeSelector"})), [""; 0]);
    let both = ["podtolerationrestriction.policy.outrider.dev"; 2];
    assert_eq!(names("p", json!({"plugin": "PodTolerationRestriction"})), both);
    assert_eq!(names("p", json!({"plugin": "PodTolerationRestriction", "mode": "Off"})), [""; 0]);
}

#[test]
fn a_plugin_that_does_not_enforce_changes_and_refuses_no_update_and_says_what_it_would_do() {
    let key = |key: &str| json!({"key": key, "operator": "Exists"});
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
    let asks = json!({"resources": {"limits": {"a.com/b": 1, "memory": "1Mi"}}});
    let image = |image: &str| json!({"containers": [{"name": "app", "image": image, "imagePullPolicy": "Never"}]});
    let debugged = json!({"ephemeralContainers": [{"name": "d", "image": "sh", "imagePullPolicy": "Never"}]});
    let with_resources = {
        let mut container = json!({"name": "app", "image": "shop:1"});
        json_patch::merge(&mut container, &asks);
        json!({"containers": [container]})
    };
    let whitelist = json!({"podTolerationRestriction": {"whitelist": [key("a")]}});
    let ephemeral = json!({"alwaysPullImages": {"includeEphemeralContainers": true}});
    let pressured =
        json!({"containers": [{"name": "app", "image": "shop:1", "resources": {"requests": {"cpu": "1"}}}]});
    for (plugin_name, section, path, sub, spec, code) in [
        ("AlwaysPullImages", json!({}), "/validate--v1-pod-alwayspullimages", "", image("shop:2"), "PluginWouldDeny"),
        (
            "AlwaysPullImages",
            ephemeral,
            "/mutate--v1-pod-ephemeralcontainers-alwayspullimages",
            "ephemeralcontainers",
            debugged,
            "PluginWouldChange",
        ),
        (
            "PodTolerationRestriction",
            whitelist.clone(),
            "/mutate--v1-pod-podtolerationrestriction",
            "",
            pressured,
            "PluginWouldChange",
        ),
        (
            "PodTolerationRestriction",
            whitelist,
            "/validate--v1-pod-podtolerationrestriction",
            "",
            json!({"tolerations": [key("b")]}),
            "PluginWouldDeny",
        ),
        (
            "ExtendedResourceToleration",
            json!({}),
            "/mutate--v1-pod-extendedresourcetoleration",
            "",
            with_resources,
            "PluginWouldChange",
        ),
        (
            "LimitPodHardAntiAffinityTopology",
            json!({}),
            "/validate--v1-pod-limitpodhardantiaffinitytopology",
            "",
            json!({"affinity": {"podAntiAffinity": terms}}),
            "PluginWouldDeny",
        ),
    ] {
        for (mode, warnings) in [("Warn", 1), ("Audit", 0)] {
            let mut object = section.clone();
            json_patch::merge(&mut object, &json!({"plugin": plugin_name, "mode": mode}));
            let cluster = Cluster::from_objects(&[plugin("a", object), namespace(json!({}))]);
            let reply = update(&cluster, path, sub, &pod(json!({})), &pod(spec.clone()));
            assert_eq!((reply.decision, &reply.patch), (Decision::Allowed, &None), "{plugin_name} {mode} {path}");
            assert_eq!(reply.audit["plugins"], format!("a={code}"), "{plugin_name} {mode} {path}");
            assert_eq!(reply.warnings.len(), warnings, "{plugin_name} {mode} {path}: {:?}", reply.warnings);
        }
    }
}
