//! Laws that hold for every pod and every collection of sets.

use std::collections::BTreeSet;

use admission::Decision;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use crate::testing::{Cluster, Reply, names};

const LISTS: [&str; 4] = ["containers", "initContainers", "volumes", "imagePullSecrets"];
// Sets share names with each other more often than with the pod.
const CONTAINERS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const OWN_CONTAINERS: [&str; 6] = ["a", "app", "b", "db", "web", "x"];
const VOLUMES: [&str; 3] = ["v", "w", "x"];
const SETS: [&str; 4] = ["s0", "s1", "s2", "s3"];
const LABELS: [&str; 3] = ["k", "l", "m"];
const VALUES: [&str; 2] = ["1", "2"];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\"/~é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// An object with unknown fields.
fn strange(object: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (object, prop::collection::btree_map("x[a-z~/]{1,3}", any_json(), 0..3)).prop_map(|(mut object, unknown)| {
        object.as_object_mut().unwrap().extend(unknown);
        object
    })
}

/// A list, or what means none.
fn list_of<S: Strategy<Value = Value>>(element: S, max: usize) -> impl Strategy<Value = Option<Value>>
where
    S::Value: Clone,
{
    prop_oneof![
        1 => Just(None),
        1 => Just(Some(Value::Null)),
        4 => prop::collection::vec(element, 0..max).prop_map(|list| Some(Value::from(list))),
    ]
}

fn port() -> impl Strategy<Value = Value> {
    strange((1..4, select(vec![0, 0, 1, 2])).prop_map(|(port, host)| json!({"containerPort": port, "hostPort": host})))
}

fn container(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let ports = list_of(port(), 3);
    strange((select(names), select(vec!["", "i:1"]), ports, select(vec![None, Some("Always")])).prop_map(
        |(name, image, ports, policy)| {
            object(
                json!({"name": name, "image": image}),
                [("ports", ports), ("restartPolicy", policy.map(Value::from))],
            )
        },
    ))
}

fn volume() -> impl Strategy<Value = Value> {
    let sources = vec![
        json!({}),
        json!({"emptyDir": {}}),
        json!({"hostPath": {"path": "/x"}}),
        json!({"hostPath": {"path": "/x", "type": ""}}),
    ];
    (select(&VOLUMES[..]), select(sources)).prop_map(|(name, mut volume)| {
        volume["name"] = json!(name);
        volume
    })
}

fn object<const N: usize>(mut base: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (field, value) in fields {
        if let Some(value) = value {
            base[field] = value;
        }
    }
    base
}

fn labels() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(select(&LABELS[..]), select(&VALUES[..]), 0..3)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect())
}

fn annotations() -> impl Strategy<Value = Option<Value>> {
    let record = prop_oneof![
        Just("{".to_owned()),
        Just(r#"{"s1":7,"zz":[]}"#.to_owned()),
        (select(&SETS[..]), subsequence(CONTAINERS.to_vec(), 0..3))
            .prop_map(|(set, names)| json!({set: {"containers": names, "initContainers": names}}).to_string()),
    ];
    let skip = select(vec!["true", "s0,s2", "x"]);
    (0..6, record, skip, "[a-z~/]{1,3}", any::<String>()).prop_map(|(which, record, skip, key, value)| match which {
        0 => None,
        1 => Some(Value::Null),
        2 => Some(json!({"outrider.dev/injected": record, key: value})),
        3 => Some(json!({"outrider.dev/skip": skip})),
        4 => Some(json!({"kruise.io/sidecarset-injected-list": "s0,s1"})),
        _ => Some(json!({key: value})),
    })
}

pub(super) fn pod() -> impl Strategy<Value = Value> {
    let secret = strange(select(vec!["p", "q"]).prop_map(|name| json!({"name": name})));
    let lists = (
        list_of(container(&OWN_CONTAINERS), 3),
        list_of(container(&OWN_CONTAINERS), 3),
        list_of(strange(volume()), 3),
        list_of(secret, 3),
    );
    let resources = select(vec![None, Some(json!({"requests": {"cpu": "3"}}))]);
    let spec = strange((lists, any::<bool>(), resources).prop_map(
        |((containers, inits, volumes, secrets), host_network, resources)| {
            let lists = [
                ("containers", containers),
                ("initContainers", inits),
                ("volumes", volumes),
                ("imagePullSecrets", secrets),
            ];
            let spec = object(json!({"hostNetwork": host_network}), lists);
            object(spec, [("resources", resources)])
        },
    ));
    let metadata = strange((labels(), annotations()).prop_map(|(mut labels, annotations)| {
        labels["all"] = json!("pods");
        object(json!({"name": "p", "labels": labels}), [("annotations", annotations)])
    }));
    strange((metadata, spec).prop_map(|(metadata, spec)| json!({"metadata": metadata, "spec": spec})))
}

/// Most sets select most pods, or nothing would be tested.
fn often(usual: Value, otherwise: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop_oneof![5 => Just(usual), 1 => otherwise]
}

fn selector() -> impl Strategy<Value = Value> {
    let term = (select(&LABELS[..]), 0..4, subsequence(VALUES.to_vec(), 1..=2)).prop_map(|(key, operator, values)| {
        match operator {
            0 => json!({"key": key, "operator": "In", "values": values}),
            1 => json!({"key": key, "operator": "NotIn", "values": values}),
            2 => json!({"key": key, "operator": "Exists"}),
            _ => json!({"key": key, "operator": "DoesNotExist"}),
        }
    });
    (labels(), prop::collection::vec(term, 0..3))
        .prop_map(|(labels, terms)| json!({"matchLabels": labels, "matchExpressions": terms}))
}

fn scope() -> impl Strategy<Value = Map<String, Value>> {
    (0..12, selector()).prop_map(|(which, mut selector)| {
        let by_name = json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}});
        let scope = match which {
            0 => json!({"namespace": "shop"}),
            1 => json!({"namespaceSelector": selector}),
            2 => json!({"namespaceSelector": by_name}),
            3 => {
                selector["matchLabels"]["kubernetes.io/metadata.name"] = json!("shop");
                json!({"namespaceSelector": selector})
            }
            _ => json!({}),
        };
        scope.as_object().unwrap().clone()
    })
}

fn injected_container() -> impl Strategy<Value = Value> {
    let mounts = subsequence(VOLUMES.to_vec(), 0..=2).prop_map(|names| {
        names.into_iter().map(|name| json!({"name": name, "mountPath": format!("/{name}")})).collect::<Value>()
    });
    let side = select(vec!["", "BeforeAppContainer", "AfterAppContainer"]);
    let resources = select(vec![json!({}), json!({"requests": {"cpu": "1"}}), json!({"limits": {"cpu": "2"}})]);
    (container(&CONTAINERS), mounts, side, resources).prop_map(|(container, mounts, side, resources)| {
        let fields =
            [("volumeMounts", Some(mounts)), ("podInjectPolicy", Some(json!(side))), ("resources", Some(resources))];
        object(container, fields)
    })
}

/// The spec of a set, of which no two containers share a name.
fn set_spec() -> impl Strategy<Value = Value> {
    let containers =
        (prop::collection::vec(injected_container(), 0..3), prop::collection::vec(injected_container(), 0..2));
    let choices = (-1..2, select(vec!["Refuse", "Skip"]), select(vec!["Allowed", "Denied"]));
    let secrets = subsequence(vec![json!({"name": "p"}), json!({"name": "r"})], 0..=2);
    let selector = often(json!({"matchLabels": {"all": "pods"}}), selector());
    (selector, scope(), containers, prop::collection::vec(volume(), 3), choices, secrets).prop_map(
        |(selector, scope, (containers, inits), mut volumes, (order, clash, opt_out), secrets)| {
            let mut seen: Vec<String> = Vec::new();
            let mut unique = |list: Vec<Value>| -> Value {
                let fresh = |container: &Value| {
                    let name = container["name"].as_str().unwrap().to_owned();
                    let is_fresh = !seen.contains(&name);
                    seen.push(name);
                    is_fresh
                };
                let mut fresh = fresh;
                list.into_iter().filter(|container| fresh(container)).collect()
            };
            let (containers, inits) = (unique(containers), unique(inits));
            for (volume, name) in volumes.iter_mut().zip(VOLUMES) {
                volume["name"] = json!(name);
            }
            let mut spec = json!({
                "selector": selector, "containers": containers, "initContainers": inits, "volumes": volumes, "order": order,
                "clashPolicy": clash, "optOut": opt_out, "imagePullSecrets": secrets,
            });
            spec.as_object_mut().unwrap().extend(scope);
            if spec["selector"] == json!({"matchLabels": {}, "matchExpressions": []}) {
                spec["selector"]["matchLabels"] = json!({"k": "1"});
            }
            spec
        },
    )
}

fn objects(specs: Vec<Value>) -> Vec<Value> {
    let sets = specs
        .into_iter()
        .zip(SETS)
        .map(|(spec, name)| json!({"kind": "SidecarSet", "metadata": {"name": name}, "spec": spec}));
    sets.collect()
}

pub(super) fn cluster_objects() -> impl Strategy<Value = Vec<Value>> {
    (prop::collection::vec(set_spec(), 1..=4), prop_oneof![labels().prop_map(Some), Just(None)]).prop_map(
        |(specs, labels)| {
            let namespace =
                labels.map(|labels| json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}));
            objects(specs).into_iter().chain(namespace).collect()
        },
    )
}

fn skipped(reply: &Reply) -> BTreeSet<String> {
    let list = reply.audit.get("skipped").map(String::as_str).unwrap_or_default();
    list.split(',').filter_map(|item| item.split_once('=')).map(|(set, _)| set.to_owned()).collect()
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The pod after the patch, with what was added taken out again.
fn without_added(original: &Value, patched: &Value) -> Value {
    let mut rest = patched.clone();
    for list in LISTS {
        let (own, all) = (elements(&original["spec"][list]), elements(&patched["spec"][list]));
        let unbroken = own.is_empty() || all.windows(own.len()).any(|window| window == own);
        assert!(unbroken, "{list}: {own:?} is not in {all:?} as it was");
        restore(&mut rest["spec"], &original["spec"], list);
    }
    let (own, all) = (&original["metadata"]["annotations"], &patched["metadata"]["annotations"]);
    for (key, value) in own.as_object().into_iter().flatten().filter(|(key, _)| *key != "outrider.dev/injected") {
        assert_eq!(all.get(key), Some(value));
    }
    restore(&mut rest["metadata"], &original["metadata"], "annotations");
    rest
}

fn restore(rest: &mut Value, original: &Value, field: &str) {
    let rest = rest.as_object_mut().unwrap();
    match original.get(field) {
        Some(value) => rest.insert(field.to_owned(), value.clone()),
        None => rest.remove(field),
    };
}

pub(super) fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_patch_only_adds(objects in cluster_objects(), pod in pod()) {
        let reply = Cluster::from_objects(&objects).mutate(&pod);
        prop_assert_eq!(without_added(&pod, &reply.pod), pod);
        prop_assert_eq!(reply.patch.is_some(), reply.decision == Decision::Patched);
    }

    #[test]
    fn a_patch_brings_no_name_twice(objects in cluster_objects(), pod in pod()) {
        let reply = Cluster::from_objects(&objects).mutate(&pod);
        for list in ["containers", "initContainers", "volumes"] {
            let mut added = reply.names(list);
            for own in names(&pod, list) {
                let at = added.iter().position(|name| *name == own).unwrap();
                added.remove(at);
            }
            let mut seen = names(&pod, list);
            if list != "volumes" {
                seen = [names(&pod, "containers"), names(&pod, "initContainers")].concat();
            }
            for name in added {
                prop_assert!(!seen.contains(&name), "{} twice in {}", name, list);
                seen.push(name);
            }
        }
    }

    #[test]
    fn a_second_pass_changes_nothing(objects in cluster_objects(), pod in pod()) {
        let cluster = Cluster::from_objects(&objects);
        let first = cluster.mutate(&pod);
        prop_assume!(first.decision != Decision::Denied);
        let second = cluster.mutate(&first.pod);
        prop_assert!(second.patch.is_none(), "{:?}", second.patch);
        // A must without containers leaves its record as the pod's author wrote it. Where that names what another set has added
        // meanwhile, the pod is refused.
        let is_empty = |object: &Value| {
            object["kind"] == "SidecarSet"
                && ["containers", "initContainers"].iter().all(|list| object["spec"][list].as_array().is_none_or(Vec::is_empty))
        };
        let is_recorded = !pod["metadata"]["annotations"]["outrider.dev/injected"].is_null();
        prop_assume!(!(is_recorded && second.decision == Decision::Denied && objects.iter().any(is_empty)));
        prop_assert_eq!(second.decision, Decision::Allowed, "{}", second.message);
        // A record that came with the pod may claim for one set what another adds now.
        if pod["metadata"]["annotations"].get("outrider.dev/injected").is_none() {
            prop_assert_eq!(skipped(&first), skipped(&second));
        }
        let twin = cluster.validate(&first.pod);
        prop_assert_eq!(twin.decision, Decision::Allowed, "{}", twin.message);
    }

    #[test]
    fn what_is_dropped_between_passes_comes_back_once(objects in cluster_objects(), pod in pod(), keep in any::<[bool; 16]>()) {
        let cluster = Cluster::from_objects(&objects);
        let mut changed = cluster.mutate(&pod).pod;
        let mut keep = keep.into_iter().cycle();
        for list in ["containers", "initContainers"] {
            if let Value::Array(list) = &mut changed["spec"][list] {
                list.retain(|_| keep.next().unwrap());
            }
        }
        let second = cluster.mutate(&changed);
        prop_assert_eq!(without_added(&changed, &second.pod), changed);
        prop_assume!(second.decision != Decision::Denied);
        let third = cluster.mutate(&second.pod);
        prop_assert!(third.patch.is_none() && third.decision == Decision::Allowed, "{:?} {}", third.patch, third.message);
    }

    #[test]
    fn the_same_bytes_come_out_in_whatever_order_sets_come(objects in cluster_objects(), pod in pod(), turn in 0_usize..4) {
        let expected = Cluster::from_objects(&objects).mutate(&pod).body;
        let mut turned = objects.clone();
        turned.rotate_left(turn % objects.len());
        prop_assert_eq!(&Cluster::from_objects(&turned).mutate(&pod).body, &expected);
        turned.reverse();
        prop_assert_eq!(&Cluster::from_objects(&turned).mutate(&pod).body, &expected);
    }
}
