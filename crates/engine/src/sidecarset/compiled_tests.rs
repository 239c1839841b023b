//! Sets that cannot be used, and what a set becomes.

use serde_json::{Value, json};

use super::{CompiledSet, NamespaceScope};
use crate::testing::compile;

fn error(spec: Value) -> String {
    let set = json!({"metadata": {"name": "s"}, "spec": spec});
    CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap_err().to_string()
}

const EVERYWHERE: &str =
    "spec.selector: Required value: an empty selector needs a namespace or a namespaceSelector beside it";

#[test]
fn a_pair_for_a_hot_upgrade_has_names_and_images_of_its_own() {
    let hot = |empty: &str| json!({"name": "s", "image": "s:1", "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": empty}});
    for (containers, expected) in [
        (json!([hot("e:1")]), ""),
        (json!([hot("e:1"), {"name": "s-1", "image": "x:1"}]), r#"spec.containers[1].name: Duplicate value: "s-1""#),
        (json!([hot("")]), "spec.containers[0].upgradeStrategy.hotUpgradeEmptyImage: Required value"),
    ] {
        let object = crate::testing::set("s", json!({"containers": containers}));
        let set = serde_json::from_value(object).unwrap();
        let found = CompiledSet::compile(&set).map_or_else(|error| error.errors.to_string(), |_| String::new());
        assert_eq!(found, expected, "{containers}");
    }
}

#[test]
fn what_validation_would_have_refused_is_not_used() {
    let app = json!({"matchLabels": {"app": "web"}});
    for (spec, text) in [
        (json!({}), EVERYWHERE),
        (json!({"selector": {}}), EVERYWHERE),
        (json!({"selector": {}, "namespace": ""}), EVERYWHERE),
        (json!({"selector": {}, "namespaceSelector": {}}), EVERYWHERE),
        (json!({"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}}), EVERYWHERE),
        (
            json!({"selector": app, "namespace": "shop", "namespaceSelector": {}}),
            "spec.namespace: Forbidden: may not be specified together with namespaceSelector",
        ),
        (json!({"selector": app, "containers": [{}]}), "spec.containers[0].name: Required value"),
        (json!({"selector": app, "initContainers": [{"name": null}]}), "spec.initContainers[0].name: Required value"),
        (
            json!({"selector": app, "initContainers": [{"name": "a"}], "containers": [{"name": "b"}, {"name": "a"}]}),
            "spec.containers[1].name: Duplicate value: \"a\"",
        ),
    ] {
        assert_eq!(error(spec.clone()), format!("SidecarSet \"s\" cannot be used: {text}"), "{spec}");
    }
    let set = json!({"spec": {"selector": app}});
    let error = CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "SidecarSet \"\" cannot be used: metadata.name: Required value");
}

#[test]
fn all_faults_are_told_at_once() {
    let bad_term = json!({"matchExpressions": [{"key": "a b", "operator": "Is"}]});
    let text = error(json!({"selector": bad_term, "containers": [{}]}));
    assert!(text.contains("operator") && text.contains("containers[0].name"), "{text}");
}

#[test]
fn an_empty_selector_beside_a_namespace_selector_selects_all_pods_there() {
    let set = compile(&json!({"metadata": {"name": "s"}, "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}));
    assert!(set.selector.is_everything());
}

#[test]
fn an_empty_selector_beside_a_namespace_selects_all_pods_there() {
    for selector in [json!({}), json!({"matchLabels": {}}), Value::Null] {
        let set = compile(&json!({"metadata": {"name": "s"}, "spec": {"selector": selector, "namespace": "shop"}}));
        assert!(set.selector.is_everything());
        assert_eq!(set.scope, NamespaceScope::Named("shop".to_owned()));
    }
}

#[test]
fn the_record_entry_is_sorted_json() {
    let spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "containers": [{"name": "b", "podInjectPolicy": "AfterAppContainer"}, {"name": "a"}],
        "initContainers": [{"name": "i"}],
    });
    let set = compile(&json!({"metadata": {"name": "s"}, "spec": spec}));
    let digits = set.hash.strip_prefix("v1:").unwrap();
    assert_eq!(
        set.entry(),
        format!(r#"{{"containers":["a","b"],"hash":"v1:{digits}","initContainers":["i"],"revision":"s-{digits}"}}"#)
    );
    assert_eq!((digits.len(), digits.chars().all(|digit| digit.is_ascii_hexdigit())), (16, true));
    // Stored while the webhook was away.
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "a\"\n"}]});
    let entry: Value =
        serde_json::from_str(&compile(&json!({"metadata": {"name": "s"}, "spec": spec})).entry()).unwrap();
    assert_eq!(entry["containers"], json!(["a\"\n"]));
}
