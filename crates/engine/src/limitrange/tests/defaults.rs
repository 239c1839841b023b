//! What containers get that leave requests or limits open (4.8).

use admission::Decision;
use serde_json::{Value, json};

use super::{bounded, pod, range};
use crate::testing::{Cluster, set};

/// The pod after the mutating webhook. A second call changes nothing, and the validating one accepts it.
fn filled(cluster: &Cluster, pod: &Value) -> Value {
    let reply = cluster.mutate(pod);
    assert_ne!(reply.decision, Decision::Denied, "{}", reply.message);
    assert_eq!(cluster.mutate(&reply.pod).patch, None, "the second call changes nothing");
    assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed);
    reply.pod
}

fn said(pod: &Value) -> &Value {
    &pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
}

/// The limits of the table; its amounts are the other way round there, which no API server stores.
fn defaults() -> Cluster {
    bounded(json!({"type": "Container", "default": {"cpu": "100m", "memory": "10Mi"},
        "defaultRequest": {"cpu": "50m", "memory": "5Mi"}}))
}

#[test]
fn a_pod_that_leaves_everything_open_gets_all_defaults_and_an_annotation() {
    let found =
        filled(&defaults(), &pod(json!({"containers": [{"name": "app"}], "initContainers": [{"name": "first"}]})));
    let all = json!({"requests": {"cpu": "50m", "memory": "5Mi"}, "limits": {"cpu": "100m", "memory": "10Mi"}});
    assert_eq!(found["spec"]["containers"][0]["resources"], all);
    assert_eq!(found["spec"]["initContainers"][0]["resources"], all);
    assert_eq!(
        *said(&found),
        "LimitRanger plugin set: cpu, memory request for container app; cpu, memory limit for container app; \
         cpu, memory request for init container first; cpu, memory limit for init container first"
    );
}

#[test]
fn what_a_container_has_stays_and_zero_is_something() {
    let all = json!({"requests": {"cpu": "1m", "memory": "1"}, "limits": {"cpu": "2m", "memory": "2"}});
    let rows = [
        (1, all.clone(), all, ""),
        (
            2,
            json!({"requests": {"cpu": "10m"}}),
            json!({"requests": {"cpu": "10m", "memory": "5Mi"}, "limits": {"cpu": "100m", "memory": "10Mi"}}),
            "memory request for container c; cpu, memory limit for container c",
        ),
        (
            3,
            json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": 0}}),
            json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": 0, "memory": "10Mi"}}),
            "memory limit for container c",
        ),
        // The API server makes a limit the request, before and after webhooks.
        (
            4,
            json!({"limits": {"memory": "8Mi"}}),
            json!({"requests": {"cpu": "50m"}, "limits": {"memory": "8Mi", "cpu": "100m"}}),
            "cpu request for container c; cpu limit for container c",
        ),
        (
            5,
            json!({"requests": null, "limits": {}, "claims": []}),
            json!({"requests": {"cpu": "50m", "memory": "5Mi"}, "limits": {"cpu": "100m", "memory": "10Mi"}, "claims": []}),
            "cpu, memory request for container c; cpu, memory limit for container c",
        ),
        (
            6,
            Value::Null,
            json!({"requests": {"cpu": "50m", "memory": "5Mi"}, "limits": {"cpu": "100m", "memory": "10Mi"}}),
            "cpu, memory request for container c; cpu, memory limit for container c",
        ),
    ];
    for (row, resources, expected, text) in rows {
        let found = filled(&defaults(), &pod(json!({"containers": [{"name": "c", "resources": resources}]})));
        assert_eq!(found["spec"]["containers"][0]["resources"], expected, "row {row}");
        let annotation = if text.is_empty() { Value::Null } else { format!("LimitRanger plugin set: {text}").into() };
        assert_eq!(*said(&found), annotation, "row {row}");
    }
}

#[test]
fn limits_of_other_types_fill_nothing_in() {
    let open =
        pod(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]}));
    for type_ in ["Pod", "Container"] {
        let field = if type_ == "Pod" { "max" } else { "maxLimitRequestRatio" };
        let reply = bounded(json!({"type": type_, field: {"cpu": "2"}})).mutate(&open);
        assert_eq!(reply.patch, None, "{type_}");
    }
}

#[test]
fn the_maximum_is_the_limit_that_is_the_request_and_the_minimum_is_a_request_too() {
    let resources = |limit: Value| {
        let mut limit = limit;
        limit["type"] = "Container".into();
        filled(&bounded(limit), &pod(json!({"containers": [{"name": "c"}]})))["spec"]["containers"][0]["resources"]
            .clone()
    };
    let cpu = |amount: &str| json!({"cpu": amount});
    for (row, limit, expected) in [
        (1, json!({"max": cpu("2")}), json!({"requests": cpu("2"), "limits": cpu("2")})),
        (2, json!({"max": cpu("2"), "default": cpu("1")}), json!({"requests": cpu("1"), "limits": cpu("1")})),
        (3, json!({"max": cpu("2"), "defaultRequest": cpu("1")}), json!({"requests": cpu("1"), "limits": cpu("2")})),
        (4, json!({"min": cpu("50m")}), json!({"requests": cpu("50m")})),
        (5, json!({"min": cpu("50m"), "max": cpu("2")}), json!({"requests": cpu("2"), "limits": cpu("2")})),
        // Amounts are written as the API server stores them.
        (6, json!({"default": cpu("0.5")}), json!({"requests": cpu("500m"), "limits": cpu("500m")})),
        (7, json!({"default": cpu("0.1m")}), json!({"requests": cpu("1m"), "limits": cpu("1m")})),
    ] {
        assert_eq!(resources(limit), expected, "row {row}");
    }
}

#[test]
fn the_first_range_by_name_that_knows_a_resource_gives_it() {
    let of = |name: &str, amounts: Value| range(name, json!([{"type": "Container", "default": amounts}]));
    let cluster = Cluster::from_objects(&[of("b", json!({"cpu": "2", "memory": "2Gi"})), of("a", json!({"cpu": "1"}))]);
    let reply = cluster.mutate(&pod(json!({"containers": [{"name": "c"}]})));
    assert_eq!(reply.pod["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "1", "memory": "2Gi"}));
    assert_eq!(reply.audit["limits"], "a=PluginChanged,b=PluginChanged");
}

#[test]
fn the_annotation_is_beside_others_and_replaces_that_of_the_api_server() {
    let key = "kubernetes.io/limit-ranger";
    for annotations in [json!(null), json!({}), json!({"a/b": "c"}), json!({key: "LimitRanger plugin set: …"})] {
        let mut open = pod(json!({"containers": [{"name": "c"}]}));
        open["metadata"]["annotations"] = annotations.clone();
        let mut expected = if annotations.is_null() { json!({}) } else { annotations };
        expected[key] = "LimitRanger plugin set: cpu request for container c; cpu limit for container c".into();
        let cluster = bounded(json!({"type": "Container", "default": {"cpu": "1"}}));
        assert_eq!(filled(&cluster, &open)["metadata"]["annotations"], expected);
    }
}

#[test]
fn containers_of_a_set_are_filled_in_as_those_of_the_pod() {
    let spec = json!({
        "containers": [
            {"name": "log", "image": "log:1"},
            {"name": "own", "image": "own:1", "resources": {"requests": {"cpu": "7m"}, "limits": {"cpu": "9m"}}}],
        "initContainers": [{"name": "first", "image": "first:1"}],
    });
    let limit = range("r", json!([{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]));
    let cluster = Cluster::from_objects(&[set("log", spec), limit]);
    let found = filled(&cluster, &crate::testing::pod(json!({})));
    let of = |list: &str, name: &str| {
        let list = found["spec"][list].as_array().unwrap();
        list.iter().find(|container| container["name"] == name).unwrap()["resources"].clone()
    };
    let given = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
    assert_eq!(of("containers", "app"), given);
    assert_eq!(of("containers", "log"), given);
    assert_eq!(of("initContainers", "first"), given);
    assert_eq!(of("containers", "own"), json!({"requests": {"cpu": "7m"}, "limits": {"cpu": "9m"}}));
    // One that asks for too much is refused as one of the pod would be.
    let greedy = json!({"containers": [{"name": "log", "image": "log:1", "resources": {"limits": {"cpu": "3"}}}]});
    let limit = range("r", json!([{"type": "Container", "max": {"cpu": "2"}}]));
    let cluster = Cluster::from_objects(&[set("log", greedy), limit]);
    let reply = cluster.validate(&cluster.mutate(&crate::testing::pod(json!({}))).pod);
    assert!(reply.message.ends_with("maximum cpu usage per Container is 2, but limit is 3"), "{}", reply.message);
}
