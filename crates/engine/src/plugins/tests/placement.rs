//! `PodNodeSelector` (4.2) and `PodTolerationRestriction` (4.22).

use admission::Unserved;
use serde_json::{Value, json};

use super::{admitted, namespace, plugin, pod};
use crate::testing::{Cluster, review};

const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";
const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const CONFLICT: &str =
    "pods \"p\" is forbidden: pod node label selector conflicts with its namespace node label selector";
const NOT_LISTED: &str =
    "pods \"p\" is forbidden: pod node label selector labels conflict with its namespace whitelist";

/// Number, cluster default, annotation, allow-list, selector of the pod, and the result.
type NodeSelectorRow =
    (u8, &'static str, Option<&'static str>, Option<&'static str>, Value, Result<Value, &'static str>);

#[test]
fn pod_node_selector_does_what_the_table_says() {
    let rows: [NodeSelectorRow; 11] = [
        (1, "", None, None, json!({}), Ok(json!({}))),
        (2, "infra = false", None, None, json!({}), Ok(json!({"infra": "false"}))),
        (3, "", Some(" infra = false "), None, json!({}), Ok(json!({"infra": "false"}))),
        (4, "infra = false", Some("infra=true"), None, json!({}), Ok(json!({"infra": "true"}))),
        (5, "infra = false", Some(""), None, json!({}), Ok(json!({}))),
        (
            6,
            "infra = false",
            Some("infra=true"),
            None,
            json!({"env": "test"}),
            Ok(json!({"infra": "true", "env": "test"})),
        ),
        (7, "", Some("infra=true"), None, json!({"infra": "false"}), Err(CONFLICT)),
        (8, "", Some("infra=false, env = test"), None, json!({"env": "dev", "color": "blue"}), Err(CONFLICT)),
        (
            9,
            "",
            Some("infra=false, env = dev"),
            Some("env=dev, infra=false, color=blue"),
            json!({"env": "dev", "color": "blue"}),
            Ok(json!({"infra": "false", "env": "dev", "color": "blue"})),
        ),
        (10, "", Some("infra=false"), Some("infra=true"), json!({}), Err(NOT_LISTED)),
        (11, "env=dev", None, Some("env=prd"), json!({}), Err(NOT_LISTED)),
    ];
    for (row, default, annotation, list, selector, expected) in rows {
        let lists = list.map_or_else(|| json!({}), |list| json!({"shop": list}));
        let section = json!({"clusterDefaultNodeSelector": default, "namespaceAllowLists": lists});
        let annotations = annotation.map_or_else(|| json!({}), |text| json!({NODE_SELECTOR: text}));
        let plugin = plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": section}));
        let cluster = Cluster::from_objects(&[plugin, namespace(annotations)]);
        let found = admitted(&cluster, &pod(json!({"nodeSelector": selector})));
        match expected {
            Ok(labels) => assert_eq!(found.unwrap()["spec"]["nodeSelector"], labels, "row {row}"),
            Err(text) => assert_eq!(found.unwrap_err(), (Some(403), text.to_owned()), "row {row}"),
        }
    }
}

#[test]
fn a_namespace_that_is_not_known_yet_is_waited_for_and_offline_taken_as_one_without_annotations() {
    // Row 12.
    let objects =
        [plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "a=b"}}))];
    let live = Cluster::from_objects(&objects).live();
    assert!(matches!(live.mutate_in("new", &pod(json!({}))), Err(Unserved::NamespaceUnknown(name)) if name == "new"));
    let reply = Cluster::from_objects(&objects).mutate_in("new", &pod(json!({}))).unwrap();
    assert_eq!(reply.pod["spec"]["nodeSelector"], json!({"a": "b"}));
    assert!(reply.warnings[0].contains("those of namespace \"new\" are not known"), "{:?}", reply.warnings);
}

#[test]
fn only_new_pods_are_placed() {
    // Row 13.
    let cluster = Cluster::from_objects(&[
        plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "a=b"}})),
        namespace(json!({})),
    ]);
    let mut review = review("shop", &pod(json!({})));
    review["request"]["operation"] = "UPDATE".into();
    assert_eq!(cluster.ask("/mutate--v1-pod", &review).unwrap().patch, None);
}

#[test]
fn an_annotation_that_cannot_be_read_is_a_refusal_that_names_it() {
    // Row 14.
    for (text, part) in
        [("a==b", "\"a==b\": expected key=value"), ("a", "\"a\": expected"), ("-x=1", "the key is no label key")]
    {
        let cluster = Cluster::from_objects(&[
            plugin("n", json!({"plugin": "PodNodeSelector"})),
            namespace(json!({NODE_SELECTOR: text})),
        ]);
        let (code, message) = admitted(&cluster, &pod(json!({}))).unwrap_err();
        assert_eq!(code, Some(403));
        assert!(message.contains(NODE_SELECTOR) && message.contains("\"shop\"") && message.contains(part), "{message}");
    }
}

#[test]
fn pods_of_daemon_sets_are_known_by_who_creates_them_and_left_alone_where_so_configured() {
    // Row 14.
    let user = "system:serviceaccount:kube-system:daemon-set-controller";
    for (setting, user, expected) in [
        ("Skip", user, Value::Null),
        ("Skip", "system:serviceaccount:shop:daemon-set-controller", json!({"a": "b"})),
        ("Apply", user, json!({"a": "b"})),
    ] {
        let section = json!({"clusterDefaultNodeSelector": "a=b", "daemonSetPods": setting});
        let cluster = Cluster::from_objects(&[
            plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": section})),
            namespace(json!({})),
        ]);
        let mut review = review("shop", &pod(json!({})));
        review["request"]["userInfo"] = json!({"username": user});
        let reply = cluster.ask("/mutate--v1-pod", &review).unwrap();
        assert_eq!(reply.pod["spec"]["nodeSelector"], expected, "{setting} {user}");
    }
}

#[test]
fn a_pod_that_lost_the_selector_of_its_namespace_after_us_is_refused() {
    let cluster = Cluster::from_objects(&[
        plugin("n", json!({"plugin": "PodNodeSelector"})),
        namespace(json!({NODE_SELECTOR: "a=b"})),
    ]);
    let reply = cluster.validate(&pod(json!({})));
    assert!(reply.message.contains("pod lacks the node selector a=b of its namespace"), "{}", reply.message);
}

fn t(value: &str) -> Value {
    json!({"key": "testKey", "operator": "Equal", "value": value, "effect": "NoSchedule"})
}

const NOT_TOLERATED: &str = "pod tolerations (possibly merged with namespace default tolerations) conflict with its";

/// Number, default and allow-list of the cluster, and of the namespace, tolerations of the pod, more of its spec, and the result.
type TolerationRow = (u8, [Value; 4], Value, Value, Result<Value, &'static str>);

#[test]
fn pod_toleration_restriction_does_what_the_table_says() {
    let (one, other, two) = (t("testValue"), t("testValue1"), t("2"));
    let pressure = json!({"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"});
    let burstable = json!({"containers": [{"name": "app", "image": "a", "resources": {"requests": {"cpu": "1"}}}]});
    let guaranteed = json!({"containers": [{"name": "app", "image": "a", "resources": {"limits": {"memory": "1Gi"}}}]});
    let none = || Value::Null;
    let rows: Vec<TolerationRow> = vec![
        (1, [json!([one]), none(), none(), none()], json!([]), json!({}), Ok(json!([one]))),
        (2, [json!([one]), none(), json!([]), none()], json!([one]), json!({}), Ok(json!([one]))),
        (3, [none(), none(), json!([one]), none()], json!([one]), json!({}), Ok(json!([one]))),
        (4, [none(), none(), json!([one]), none()], json!([]), json!({}), Ok(json!([one]))),
        (5, [none(), none(), json!([one]), none()], json!([other]), json!({}), Ok(json!([other, one]))),
        (6, [json!([two]), none(), json!([]), none()], json!([other]), json!({}), Ok(json!([other]))),
        (7, [none(), none(), json!([one]), json!([one])], json!([]), json!({}), Ok(json!([one]))),
        (8, [json!([one]), none(), json!([]), none()], json!([]), json!({}), Ok(json!([]))),
        (9, [none(), json!([other]), none(), json!([])], json!([one]), json!({}), Ok(json!([one]))),
        (10, [none(), none(), json!([one]), json!([other])], json!([]), json!({}), Err("namespace whitelist")),
        (10, [json!([one]), json!([other]), none(), none()], json!([]), json!({}), Err("cluster whitelist")),
        (11, [none(), none(), json!([one]), none()], json!([]), burstable, Ok(json!([one, pressure]))),
        (12, [none(), none(), none(), none()], json!([one, other]), json!({}), Ok(json!([one, other]))),
        (13, [none(), none(), json!([one]), none()], json!([]), guaranteed, Ok(json!([one, pressure]))),
    ];
    for (row, [default, whitelist, own_default, own_whitelist], tolerations, spec, expected) in rows {
        let mut annotations = json!({});
        for (key, list) in [(DEFAULTS, own_default), (WHITELIST, own_whitelist)] {
            if !list.is_null() {
                annotations[key] = list.to_string().into();
            }
        }
        let section = json!({"default": default, "whitelist": whitelist, "alwaysAllowBuiltin": false});
        let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
        let cluster = Cluster::from_objects(&[plugin, namespace(annotations)]);
        let mut pod = pod(spec);
        pod["spec"]["tolerations"] = tolerations;
        let found = admitted(&cluster, &pod);
        match expected {
            Ok(list) => assert_eq!(found.unwrap()["spec"]["tolerations"], list, "row {row}"),
            Err(whose) => assert_eq!(found.unwrap_err(), (Some(403), format!("{NOT_TOLERATED} {whose}")), "row {row}"),
        }
    }
}

#[test]
fn what_kubernetes_adds_is_allowed_unless_the_configuration_says_otherwise() {
    let built_in = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
    for (setting, is_allowed) in [(json!({}), true), (json!({"alwaysAllowBuiltin": false}), false)] {
        let mut section = json!({"whitelist": [t("a")]});
        json_patch::merge(&mut section, &setting);
        let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
        let cluster = Cluster::from_objects(&[plugin, namespace(json!({}))]);
        assert_eq!(admitted(&cluster, &pod(json!({"tolerations": built_in}))).is_ok(), is_allowed);
    }
}

#[test]
fn annotations_are_not_read_where_so_configured_and_bad_ones_are_named() {
    for (reads, expected) in [(false, None), (true, Some("defaultTolerations cannot be read: it is no JSON list"))] {
        let section = json!({"annotationsAllowed": reads});
        let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
        let cluster = Cluster::from_objects(&[plugin, namespace(json!({DEFAULTS: "{"}))]);
        let found = admitted(&cluster, &pod(json!({}))).err();
        assert_eq!(found.is_some(), expected.is_some());
        assert!(found.iter().all(|(_, message)| message.contains(expected.unwrap())), "{found:?}");
    }
    let many = format!("[{}]", vec!["{}"; 1001].join(","));
    let cluster = Cluster::from_objects(&[
        plugin("t", json!({"plugin": "PodTolerationRestriction"})),
        namespace(json!({WHITELIST: many})),
    ]);
    let tolerates = pod(json!({"tolerations": [t("a")]}));
    assert!(admitted(&cluster, &tolerates).unwrap_err().1.contains("more than 1000 tolerations"));
}

#[test]
fn keys_of_an_annotation_are_read_as_go_reads_them() {
    let list = json!([{"Key": "dedicated", "OPERATOR": "Exists", "more": 1}]).to_string();
    let section = json!({"alwaysAllowBuiltin": false});
    let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
    let cluster = Cluster::from_objects(&[plugin, namespace(json!({WHITELIST: list}))]);
    for (key, is_allowed) in [("dedicated", true), ("other", false)] {
        let tolerations = json!([{"key": key, "operator": "Exists"}]);
        assert_eq!(admitted(&cluster, &pod(json!({"tolerations": tolerations}))).is_ok(), is_allowed, "{key}");
    }
}

#[test]
fn a_whitelist_that_cannot_be_read_keeps_out_only_pods_with_tolerations() {
    let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction"}));
    let cluster = Cluster::from_objects(&[plugin, namespace(json!({WHITELIST: "{"}))]);
    assert!(admitted(&cluster, &pod(json!({}))).is_ok());
    assert!(admitted(&cluster, &pod(json!({"tolerations": [{"key": "a", "operator": "Exists"}]}))).is_err());
}

#[test]
fn what_only_looks_like_what_kubernetes_adds_is_not_allowed() {
    let section = json!({"whitelist": [t("a")]});
    let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
    let cluster = Cluster::from_objects(&[plugin, namespace(json!({}))]);
    for (key, effect, is_allowed) in [
        ("unschedulable", "NoSchedule", true),
        ("unschedulable", "", false),
        ("not-ready", "NoExecute", true),
        ("not-ready", "NoSchedule", false),
    ] {
        let one = json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": effect});
        assert_eq!(admitted(&cluster, &pod(json!({"tolerations": [one]}))).is_ok(), is_allowed, "{key} {effect}");
    }
}

#[test]
fn a_toleration_of_a_newer_api_keeps_its_fields_when_the_list_is_written_anew() {
    let newer = json!({"key": "a", "operator": "Exists", "newer": {"a": 1}});
    let section = json!({"default": [{"operator": "Exists", "effect": "NoExecute"}]});
    let plugin = plugin("t", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section}));
    let cluster = Cluster::from_objects(&[plugin, namespace(json!({}))]);
    let covered = json!({"key": "b", "operator": "Exists", "effect": "NoExecute"});
    let found = admitted(&cluster, &pod(json!({"tolerations": [covered, newer]}))).unwrap();
    assert_eq!(found["spec"]["tolerations"], json!([newer, {"operator": "Exists", "effect": "NoExecute"}]));
}
