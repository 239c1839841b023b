//! The index against looking at every set.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::format::Selector;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::{SetIndex, parts};
use crate::sidecarset::compiled::{CompiledSet, NamespaceScope};
use crate::testing::compile;

const KEYS: [&str; 4] = ["a", "b", "c", "kubernetes.io/metadata.name"];
const VALUES: [&str; 4] = ["1", "2", "3", "shop"];

type Labels = BTreeMap<String, String>;

fn labels() -> impl Strategy<Value = Labels> {
    prop::collection::btree_map(select(&KEYS[..]), select(&VALUES[..]), 0..4)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

fn selector() -> impl Strategy<Value = Value> {
    let term =
        (select(&KEYS[..]), select(vec!["In", "NotIn", "Exists", "DoesNotExist"]), subsequence(VALUES.to_vec(), 1..3))
            .prop_map(|(key, operator, values)| {
                let values = if operator.ends_with("In") { json!(values) } else { json!(null) };
                json!({"key": key, "operator": operator, "values": values})
            });
    (labels(), prop::collection::vec(term, 0..3))
        .prop_map(|(labels, terms)| json!({"matchLabels": labels, "matchExpressions": terms}))
}

/// Every namespace, in a form that the compiler takes beside an empty selector.
fn everywhere() -> Value {
    json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]})
}

fn is_empty(selector: &Value) -> bool {
    selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && selector["matchExpressions"].as_array().is_none_or(Vec::is_empty)
}

fn spec() -> impl Strategy<Value = Value> {
    (selector(), selector(), 0..3).prop_map(|(selector, of_namespaces, scope)| match scope {
        0 if !is_empty(&of_namespaces) => json!({"selector": selector, "namespaceSelector": of_namespaces}),
        0 | 1 => json!({"selector": selector, "namespaceSelector": everywhere()}),
        _ => json!({"selector": {"matchLabels": {"a": "1"}, "matchExpressions": selector["matchExpressions"]}, "namespace": "shop"}),
    })
}

fn may_select(set: &CompiledSet, pod: &Labels, namespace: &str, namespace_labels: Option<&Labels>) -> bool {
    let reached = match (&set.scope, namespace_labels) {
        (NamespaceScope::All, _) => true,
        (NamespaceScope::Named(name), _) => name == namespace,
        (NamespaceScope::Selected { selector, .. }, Some(labels)) => selector.matches(labels),
        // Whatever its labels, its name is known.
        (NamespaceScope::Selected { selector, .. }, None) => possible(selector, namespace),
    };
    reached && set.selector.matches(pod)
}

fn possible(selector: &Selector, namespace: &str) -> bool {
    let name: Labels = [("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())].into();
    selector.requirements().iter().all(|term| term.key() != "kubernetes.io/metadata.name" || term.matches(&name))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_set_that_selects_the_pod_is_missed(
        specs in prop::collection::vec(spec(), 0..12),
        pod in labels(),
        namespace in select(vec!["shop", "1"]),
        namespace_labels in prop_oneof![labels().prop_map(Some), Just(None)],
    ) {
        let namespace_labels = namespace_labels.map(|mut labels| {
            labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
            labels
        });
        let object = |(index, spec): (usize, &Value)| json!({"metadata": {"name": format!("s{index}")}, "spec": spec});
        let sets: Vec<_> = specs.iter().enumerate().map(|it| Arc::new(compile(&object(it)))).collect();
        let index = SetIndex::build(sets.clone());
        let pairs = pod.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let found = index.candidates(pairs, namespace, namespace_labels.as_ref());
        for set in &sets {
            let is_found = found.iter().any(|candidate| candidate.name == set.name);
            prop_assert!(is_found || !may_select(set, &pod, namespace, namespace_labels.as_ref()), "{} is missed", set.name);
        }
        let order: Vec<_> = found.iter().map(|set| (set.order, &set.name)).collect();
        prop_assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn no_set_whose_selector_overlaps_is_missed(
        specs in prop::collection::vec(spec(), 0..12),
        selector in selector().prop_map(|selector| json!({"selector": selector, "namespaceSelector": everywhere()})),
    ) {
        let object = |(index, spec): (usize, &Value)| {
            let mut spec = spec.clone();
            spec["containers"] = json!([{"name": "log"}]);
            json!({"metadata": {"name": format!("s{index}")}, "spec": spec})
        };
        let sets: Vec<_> = specs.iter().enumerate().map(|it| Arc::new(compile(&object(it)))).collect();
        let selector = compile(&object((99, &selector))).selector;
        let index = SetIndex::build(sets.clone());
        let names = sets.iter().flat_map(|set| parts(set));
        let found: Vec<&str> = index.rivals(names, std::iter::empty(), &selector).map(|set| set.name.as_str()).collect();
        for set in &sets {
            let is_found = found.contains(&set.name.as_str());
            prop_assert!(is_found || !selector.overlaps(&set.selector), "{} is missed", set.name);
        }
    }
}

#[test]
fn sets_of_other_pods_are_not_candidates() {
    let selecting = |name: &str, app: &str| {
        Arc::new(compile(&json!({"metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"app": app, "all": "x"}},
            "containers": [{"name": "log"}],
        }})))
    };
    let mut sets: Vec<_> = (0..100).map(|i| selecting(&format!("s{i}"), &format!("app{i}"))).collect();
    sets.push(selecting("mine", "web"));
    let index = SetIndex::build(sets);
    let found = index.candidates([("app", "web"), ("all", "x")].into_iter(), "shop", None);
    assert_eq!(found.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(), ["mine"]);
    assert_eq!(index.len(), 101);
    let own = selecting("other", "web");
    let rivals = |name| {
        index
            .rivals(std::iter::once(name), std::iter::empty(), &own.selector)
            .map(|set| set.name.as_str())
            .collect::<Vec<_>>()
    };
    let shared = parts(&own).next().unwrap();
    assert_eq!(rivals(shared), ["mine"]);
    assert!(rivals("of-nobody").is_empty());
}

#[test]
fn case_9_sets_of_named_namespaces_are_candidates_there_alone() {
    let name_of_namespace = "kubernetes.io/metadata.name";
    let term = |operator: &str, values: Value| json!({"namespaceSelector": {"matchExpressions": [{"key": name_of_namespace, "operator": operator, "values": values}]}});
    let set = |name: &str, scope: Value| {
        let mut spec = json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}});
        json_patch::merge(&mut spec, &scope);
        Arc::new(compile(&json!({"metadata": {"name": name}, "spec": spec})))
    };
    let index = SetIndex::build([
        set("by-label", json!({"namespaceSelector": {"matchLabels": {name_of_namespace: "n1"}}})),
        set("by-list", term("In", json!(["n1", "n2"]))),
        set("by-field", json!({"namespace": "n2"})),
        set("all-but-one", term("NotIn", json!(["n1"]))),
        set("everywhere", json!({})),
        set("of-a-team", json!({"namespaceSelector": {"matchLabels": {"team": "blue"}}})),
    ]);
    for (namespace, labels, expected) in [
        ("n1", None, &["by-label", "by-list", "everywhere", "of-a-team"][..]),
        ("n2", None, &["all-but-one", "by-field", "by-list", "everywhere", "of-a-team"]),
        ("n3", None, &["all-but-one", "everywhere", "of-a-team"]),
        ("n3", Some(Labels::new()), &["all-but-one", "everywhere"]),
    ] {
        let found = index.candidates(std::iter::empty(), namespace, labels.as_ref());
        // A condition that is not looked up is decided by the selector.
        let found = found.iter().filter(|set| may_select(set, &Labels::new(), namespace, labels.as_ref()));
        assert_eq!(found.map(|set| set.name.as_str()).collect::<Vec<_>>(), expected, "{namespace} {labels:?}");
    }
    let looked_up = index.candidates(std::iter::empty(), "n3", Some(&Labels::new()));
    assert!(looked_up.iter().all(|set| !set.name.starts_with("by-l")), "{looked_up:?}");
}

#[test]
fn of_two_sets_with_one_name_the_later_counts() {
    let with_order = |order: i32| {
        Arc::new(compile(
            &json!({"metadata": {"name": "s"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "order": order}}),
        ))
    };
    let index = SetIndex::build([with_order(1), with_order(2)]);
    assert_eq!(index.iter().map(|set| set.order).collect::<Vec<_>>(), [2]);
}

#[test]
fn sets_that_exclude_a_label_are_no_candidates_for_pods_that_have_it() {
    let set = |name: &str, expressions: Value| {
        let spec = json!({"selector": {"matchExpressions": expressions}, "containers": [{"name": name, "image": "i"}]});
        Arc::new(compile(&json!({"metadata": {"name": name}, "spec": spec})))
    };
    let sets = [
        set("absent", json!([{"key": "tier", "operator": "DoesNotExist"}])),
        set("other", json!([{"key": "tier", "operator": "NotIn", "values": ["back", "back", "side"]}])),
        set(
            "both",
            json!([{"key": "zone", "operator": "NotIn", "values": ["a"]}, {"key": "tier", "operator": "DoesNotExist"}]),
        ),
    ];
    let index = SetIndex::build(sets);
    for (labels, expected) in [
        (&[][..], vec!["absent", "both", "other"]),
        (&[("tier", "front")][..], vec!["other"]),
        (&[("tier", "back")][..], vec![]),
        // Of a repeated key the last value counts.
        (&[("tier", "back"), ("tier", "front")][..], vec!["other"]),
        (&[("tier", "front"), ("tier", "back")][..], vec![]),
    ] {
        let found = index.candidates(labels.iter().copied(), "shop", None);
        assert_eq!(found.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(), expected, "{labels:?}");
    }
}
