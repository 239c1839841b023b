//! Objects of one plugin that contradict each other.

use serde_json::{Value, json};

use super::plugin;
use crate::plugins::{conflict, work};
use crate::testing::Cluster;

/// What the first of two objects says of the second.
fn said(one: Value, other: Value) -> Option<String> {
    let cluster = Cluster::from_objects(&[plugin("a", one), plugin("b", other)]);
    let mut found = conflict::all(&cluster.snapshot.plugins, 4);
    found.remove("a").map(|said| said.join("; "))
}

fn spec(plugin: &str, section: &str, value: Value) -> Value {
    json!({"plugin": plugin, section: value})
}

#[test]
fn every_plugin_says_which_configurations_contradict_each_other() {
    let pull = |list: Value| spec("AlwaysPullImages", "alwaysPullImages", json!({"exemptImages": list}));
    let node = |value: Value| spec("PodNodeSelector", "podNodeSelector", value);
    let seconds =
        |value: i64| spec("DefaultTolerationSeconds", "defaultTolerationSeconds", json!({"notReadySeconds": value}));
    let tolerate = |value: Value| spec("PodTolerationRestriction", "podTolerationRestriction", value);
    let key = |key: &str| json!([{"key": key, "operator": "Exists"}]);
    let topology = |list: Value| {
        spec(
            "LimitPodHardAntiAffinityTopology",
            "limitPodHardAntiAffinityTopology",
            json!({"allowedTopologyKeys": list}),
        )
    };
    let ips = |list: Value| spec("DenyServiceExternalIPs", "denyServiceExternalIPs", json!({"allowedCIDRs": list}));
    let lifecycle = |names: Value, annotation: &str| {
        let section = json!({"protectedNamespaces": names, "breakGlassAnnotation": annotation});
        spec("NamespaceLifecycle", "namespaceLifecycle", section)
    };
    let security = |level: &str| spec("PodSecurity", "podSecurity", json!({"defaults": {"enforce": level}}));
    for (one, other, part) in [
        (
            pull(json!(["x"])),
            pull(json!(["y"])),
            Some("spec.alwaysPullImages.exemptImages: AdmissionPlugin \"b\" has another list"),
        ),
        (pull(json!(["x", "*y"])), pull(json!(["*y", "x"])), None),
        (
            node(json!({"clusterDefaultNodeSelector": "a=1"})),
            node(json!({"clusterDefaultNodeSelector": "a=2"})),
            Some("clusterDefaultNodeSelector: AdmissionPlugin \"b\" has another value of a"),
        ),
        (
            node(json!({"clusterDefaultNodeSelector": "a=1"})),
            node(json!({"namespaceAllowLists": {"shop": "b=1"}})),
            Some("does not allow a in namespace shop"),
        ),
        (
            node(json!({"namespaceAllowLists": {"shop": "b=1"}})),
            node(json!({"clusterDefaultNodeSelector": "a=1"})),
            Some("namespaceAllowLists: AdmissionPlugin \"b\" adds a default"),
        ),
        (
            node(json!({"namespaceAllowLists": {"shop": "b=1"}})),
            node(json!({"namespaceAllowLists": {"shop": "b=1,c=1"}})),
            Some("has another list for namespace shop"),
        ),
        (node(json!({"clusterDefaultNodeSelector": "a=1"})), node(json!({"clusterDefaultNodeSelector": "b=2"})), None),
        (seconds(30), seconds(60), Some("has other seconds")),
        (
            tolerate(json!({"default": key("x")})),
            tolerate(json!({"whitelist": key("y")})),
            Some("default: AdmissionPlugin \"b\" has a whitelist"),
        ),
        (
            tolerate(json!({"whitelist": key("y")})),
            tolerate(json!({"default": key("x")})),
            Some("whitelist: AdmissionPlugin \"b\" adds"),
        ),
        (
            tolerate(json!({"whitelist": key("y")})),
            tolerate(json!({"whitelist": key("x")})),
            Some("only what both allow"),
        ),
        (tolerate(json!({"default": key("x")})), tolerate(json!({"whitelist": key("x")})), None),
        (topology(json!(["zone"])), topology(json!([])), Some("allowedTopologyKeys")),
        (ips(json!(["192.0.2.0/24"])), ips(json!([])), Some("allowedCIDRs")),
        (ips(json!(["192.0.2.0/25", "192.0.2.128/25"])), ips(json!(["192.0.2.0/24"])), None),
        (lifecycle(json!(["prod-*"]), "x/a"), lifecycle(json!(["prod-a"]), "x/b"), Some("breakGlassAnnotation")),
        (lifecycle(json!(["prod-*"]), "x/a"), lifecycle(json!(["vault"]), "x/b"), None),
        (security("baseline"), security("restricted"), Some("has another value of pod-security.kubernetes.io/enforce")),
        (security("baseline"), json!({"plugin": "ExtendedResourceToleration"}), None),
    ] {
        let found = said(one.clone(), other.clone());
        match part {
            Some(part) => assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{one} {other}: {found:?}"),
            None => assert_eq!(found, None, "{one} {other}"),
        }
    }
}

#[test]
fn objects_contradict_each_other_only_where_both_are_enforced_in_one_namespace() {
    let object = |level: &str, mode: &str, scope: Value| json!({"plugin": "PodSecurity", "mode": mode, "match": scope, "podSecurity": {"defaults": {"enforce": level}}});
    let enforced = || object("baseline", "Enforce", json!({}));
    assert!(said(enforced(), object("restricted", "Enforce", json!({}))).is_some());
    assert_eq!(said(enforced(), object("restricted", "Warn", json!({}))), None);
    let named = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}});
    let without = json!({"excludeNamespaces": ["x"]});
    assert_eq!(said(object("baseline", "Enforce", named), object("restricted", "Enforce", without)), None);
}

/// Steps to find that so many objects of tenants do not contradict each other.
fn steps(count: usize) -> usize {
    let objects: Vec<Value> = (0..count)
        .map(|at| {
            let scope = json!({"namespaceSelector": {"matchLabels": {"tenant": format!("t{at}")}}});
            let section = json!({"clusterDefaultNodeSelector": format!("pool=p{at}")});
            plugin(&format!("p{at}"), json!({"plugin": "PodNodeSelector", "match": scope, "podNodeSelector": section}))
        })
        .collect();
    let cluster = Cluster::from_objects(&objects);
    let (steps, found) = work::of(|| conflict::all(&cluster.snapshot.plugins, 4));
    assert!(found.is_empty());
    steps
}

#[test]
fn objects_of_many_tenants_are_compared_in_time_in_proportion_to_their_number() {
    let (few, many) = (steps(50), steps(200));
    assert!(few > 0 && many <= 5 * few, "{few} {many}");
}
