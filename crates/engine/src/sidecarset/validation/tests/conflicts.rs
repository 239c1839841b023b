//! Sets that can meet in one pod.

use serde_json::{Value, json};

use super::{cluster, judged, named_set, set};

fn against(own: &Value, other: &Value) -> String {
    judged(own, &cluster(std::slice::from_ref(other))).0
}

const CONTAINER: &str = "spec.containers[0].name: Invalid value: \"log\": SidecarSet \"other\" adds a container of this name to pods \
                         that both sets select";

#[test]
fn containers_of_one_name_clash_where_the_selectors_overlap() {
    let labels = |labels: Value| json!({"selector": {"matchLabels": labels}});
    let term = |operator: &str, values: Value| json!({"selector": {"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}});
    let h = labels(json!({"a": "h"}));
    let cases = [
        (&h, h.clone(), true),
        (&h, labels(json!({"a": "i"})), false),
        (&h, labels(json!({"b": "i"})), true),
        (&h, labels(json!({"a": "i", "b": "i", "c": "i"})), false),
        (&h, term("In", json!(["h", "i", "j"])), true),
        (&h, term("In", json!(["i", "j"])), false),
        (&h, term("NotIn", json!(["h", "i"])), false),
        (&h, term("Exists", json!([])), true),
        (&h, term("DoesNotExist", json!([])), false),
        (&labels(json!({"c": "h"})), term("Exists", json!([])), true),
        (&term("Exists", json!([])), term("NotIn", json!(["x"])), true),
    ];
    for (own, other, clash) in cases {
        let expected = if clash { CONTAINER } else { "" };
        assert_eq!(against(&set(own), &named_set("other", &other)), expected, "{own} {other}");
        assert_eq!(against(&set(&other), &named_set("other", own)), expected, "{other} {own}");
    }
}

#[test]
fn namespaces_keep_sets_apart() {
    let labelled = |team: &str| json!({"namespaceSelector": {"matchLabels": {"team": team}}});
    let named = |name: &str| json!({"namespace": name});
    let by_name = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}});
    let cases = [
        (labelled("nginx"), labelled("redis"), false),
        (labelled("nginx"), labelled("nginx"), true),
        (labelled("nginx"), json!({}), true),
        (named("shop"), named("bank"), false),
        (named("shop"), named("shop"), true),
        (named("shop"), by_name.clone(), true),
        (named("bank"), by_name, false),
        (named("shop"), labelled("nginx"), true),
        (named("shop"), json!({}), true),
    ];
    for (own, other, clash) in cases {
        let expected = if clash { CONTAINER } else { "" };
        assert_eq!(against(&set(&own), &named_set("other", &other)), expected, "{own} {other}");
    }
}

#[test]
fn init_containers_clash_with_containers_too() {
    let init = json!({"containers": null, "initContainers": [{"name": "log", "image": "log:1"}]});
    assert_eq!(against(&set(&json!({})), &named_set("other", &init)), CONTAINER);
    assert_eq!(
        against(&set(&init), &named_set("other", &json!({}))),
        CONTAINER.replace("containers", "initContainers")
    );
}

#[test]
fn case_73_two_sets_with_the_same_containers_have_one_fault_for_each() {
    let spec = json!({"initContainers": [{"name": "setup", "image": "setup:1"}], "volumes": [{"name": "v", "hostPath": {"path": "/v"}}]});
    let found = against(&set(&spec), &named_set("other", &spec));
    let expected =
        ["spec.initContainers[0].name: Invalid value: \"setup\"", "spec.containers[0].name: Invalid value: \"log\""];
    assert!(expected.iter().all(|fault| found.contains(fault)), "{found}");
    assert_eq!(found.matches("adds a ").count(), 2, "{found}");
}

#[test]
fn volumes_of_one_name_clash_only_with_another_source() {
    let with = |volume: Value, container: &str| json!({"volumes": [volume], "containers": [{"name": container, "image": "x"}]});
    let host = |path: &str| json!({"name": "v", "hostPath": {"path": path}});
    let cases = [
        (host("/a"), host("/a"), false),
        (host("/a"), json!({"name": "v", "hostPath": {"path": "/a", "type": null}}), false),
        (host("/a"), host("/b"), true),
        (host("/a"), json!({"name": "w", "hostPath": {"path": "/b"}}), false),
    ];
    let clash = "spec.volumes[0].name: Invalid value: \"v\": SidecarSet \"other\" adds a volume of this name with another source to \
                 pods that both sets select";
    for (own, other, clashes) in cases {
        let expected = if clashes { clash } else { "" };
        assert_eq!(
            against(&set(&with(own.clone(), "a")), &named_set("other", &with(other.clone(), "b"))),
            expected,
            "{own} {other}"
        );
    }
}

#[test]
fn host_ports_clash_where_both_are_taken_at_the_same_time() {
    let with = |name: &str, ports: Value| json!({"containers": [{"name": name, "image": "x", "ports": ports}]});
    let host = |port: u16| json!([{"containerPort": 1}, {"containerPort": port, "hostPort": port}]);
    let init = |policy: Value| {
        let init = json!({"name": "b", "image": "x", "ports": host(80), "restartPolicy": policy});
        json!({"containers": null, "initContainers": [init], "updateStrategy": {"type": "NotUpdate"}})
    };
    let clash = "spec.containers[0].ports[1].hostPort: Invalid value: 80: SidecarSet \"other\" takes this port of the node for \
                 pods that both sets select";
    for (other, clashes) in [
        (with("b", host(80)), true),
        (with("b", host(81)), false),
        (with("b", json!([{"containerPort": 80}])), false),
        (with("b", json!([{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}])), false),
        (with("b", json!([{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}])), true),
        (init(json!(null)), false),
        (init(json!("Always")), true),
    ] {
        let expected = if clashes { clash } else { "" };
        assert_eq!(against(&set(&with("a", host(80))), &named_set("other", &other)), expected, "{other}");
    }
}

#[test]
fn set_does_not_clash_with_what_is_stored_of_itself() {
    assert_eq!(against(&set(&json!({})), &set(&json!({}))), "");
}

#[test]
fn case_60_canary_and_base_do_not_clash_either_way() {
    for prefix in ["apps.kruise.io", "apps.outrider.dev"] {
        let mut canary = named_set("canary", &json!({"updateStrategy": {"type": "NotUpdate"}}));
        canary["metadata"]["annotations"] =
            json!({format!("{prefix}/sidecarset-canary"): "true", format!("{prefix}/sidecarset-base"): "base"});
        let base = named_set("base", &json!({}));
        assert_eq!(against(&base, &canary), "");
        assert_eq!(against(&canary, &base), "");
        assert_ne!(against(&named_set("unrelated", &json!({})), &canary), "");
    }
}

#[test]
fn of_many_sets_that_bring_the_same_the_first_are_named() {
    let others: Vec<Value> = (0..100).map(|at| named_set(&format!("other-{at}"), &json!({}))).collect();
    let (few, many) =
        (judged(&set(&json!({})), &cluster(&others[..3])).0, judged(&set(&json!({})), &cluster(&others)).0);
    assert_eq!((few.matches("adds a container of this name").count(), few.contains("further SidecarSets")), (3, false));
    let named = many.matches("adds a container of this name").count();
    assert!((10..50).contains(&named) && many.contains("further SidecarSets may bring the same"), "{named}: {many}");
}

#[test]
fn a_variable_that_both_overwrite_with_different_values_is_a_conflict() {
    let of = |value: &str, overwrites: bool, selector: &str| {
        let env = json!([{"name": "A", "value": "same"}, {"name": "X", "value": value}]);
        let entry = json!({"containerNames": [format!("c{value}")], "overwriteEnv": overwrites, "env": env});
        json!({"containers": [], "appContainers": [entry], "selector": {"matchLabels": {"app": selector}}})
    };
    let fault = "spec.appContainers[0].env[1].name: Invalid value: \"X\": SidecarSet \"other\" overwrites this variable with another \
                 value in containers of pods that both sets select";
    for (other, expected) in [
        (of("2", true, "web"), fault),
        (of("1", true, "web"), ""),
        (of("2", false, "web"), ""),
        (of("2", true, "db"), ""),
    ] {
        assert_eq!(against(&set(&of("1", true, "web")), &named_set("other", &other)), expected, "{other}");
    }
    assert_eq!(against(&set(&of("1", false, "web")), &named_set("other", &of("2", true, "web"))), "");
}
