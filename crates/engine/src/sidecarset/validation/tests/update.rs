//! Changes, and sets on their way out.

use admission::{Findings, Reason};
use serde_json::{Value, json};

use super::super::{FieldValidation, create, update};
use super::{cluster, container, defaulted, set};

fn changed(old: &Value, new: &Value) -> (String, Vec<String>) {
    let mut findings = Findings::default();
    update(&defaulted(new), &defaulted(old), FieldValidation::Warn, &cluster(&[]), &mut findings);
    (findings.errors.to_string(), findings.warnings)
}

fn bad(count: usize) -> Vec<Value> {
    (0..count).map(|index| container(&json!({"name": format!("c{index}"), "image": ""}))).collect()
}

#[test]
fn containers_may_be_added_removed_and_renamed() {
    let one = set(&json!({}));
    let two = set(&json!({"containers": [container(&json!({})), container(&json!({"name": "more"}))]}));
    let renamed = set(&json!({"containers": [container(&json!({"name": "renamed"}))]}));
    for (old, new) in [(&one, &two), (&two, &one), (&one, &renamed)] {
        assert_eq!(changed(old, new), (String::new(), vec![]));
    }
}

/// There, another way of upgrading and one container more are refused, since the controller cannot deal with pods of both kinds.
#[test]
fn case_78_every_part_of_a_set_may_change() {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    let one = set(&json!({}));
    for new in [
        set(&json!({"containers": [container(&json!({"upgradeStrategy": upgrade}))]})),
        set(&json!({"containers": [container(&json!({})), container(&json!({"name": "more"}))]})),
        set(&json!({"containers": [container(&json!({"name": "another"}))]})),
        set(&json!({"initContainers": [container(&json!({"name": "init"}))]})),
        set(&json!({"selector": {"matchLabels": {"app": "db"}}})),
    ] {
        assert_eq!(changed(&one, &new).0, "", "{}", new["spec"]);
        assert_eq!(changed(&new, &one).0, "", "back from {}", new["spec"]);
    }
}

#[test]
fn old_fault_is_a_warning_and_a_new_one_an_error() {
    let faulty = set(&json!({"containers": bad(1)}));
    let mut relabelled = faulty.clone();
    relabelled["metadata"]["labels"] = json!({"a": "b"});
    let old = "spec.containers[0].image: Required value (allowed, as it was so before)".to_owned();
    assert_eq!(changed(&faulty, &relabelled), (String::new(), vec![old.clone()]));

    let worse = set(&json!({"containers": bad(1), "clashPolicy": "Foo"}));
    let new = r#"spec.clashPolicy: Unsupported value: "Foo": supported values: "Refuse", "Skip""#.to_owned();
    assert_eq!(changed(&faulty, &worse), (new, vec![old.clone()]));

    let twice = set(&json!({"containers": bad(2)}));
    assert_eq!(changed(&faulty, &twice), ("spec.containers[1].image: Required value".to_owned(), vec![old]));

    let fixed = set(&json!({}));
    assert_eq!(changed(&faulty, &fixed), (String::new(), vec![]));
    assert_eq!(changed(&fixed, &faulty), ("spec.containers[0].image: Required value".to_owned(), vec![]));
}

#[test]
fn old_fault_stays_old_when_its_place_in_the_list_changes() {
    let old = set(
        &json!({"containers": [container(&json!({"name": "good"})), container(&json!({"name": "bad", "image": ""}))]}),
    );
    let new = set(&json!({"containers": [container(&json!({"name": "bad", "image": ""}))]}));
    let warning = "spec.containers[0].image: Required value (allowed, as it was so before)".to_owned();
    assert_eq!(changed(&old, &new), (String::new(), vec![warning]));
}

#[test]
fn set_that_is_being_deleted_is_never_refused() {
    let leaving = json!({"metadata": {"name": "A.B", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": "x"});
    let staying = json!({"metadata": {"name": "A.B"}, "spec": "x"});
    // Who replaces an object may leave the time out; the API server keeps it.
    for object in [&leaving, &staying] {
        let mut findings = Findings::default();
        update(object, &leaving, FieldValidation::Warn, &cluster(&[]), &mut findings);
        assert!(findings.errors.is_empty() && findings.warnings.is_empty());
        assert_eq!(findings.reason, Reason::TERMINATING);
    }
    // What the author writes into the field is not what the API server has written.
    let mut findings = Findings::default();
    update(&leaving, &json!({}), FieldValidation::Warn, &cluster(&[]), &mut findings);
    assert!(!findings.errors.is_empty());
    for object in [&leaving, &staying] {
        let mut findings = Findings::default();
        create(object, FieldValidation::Warn, &cluster(&[]), &mut findings);
        assert!(!findings.errors.is_empty());
    }
}

#[test]
fn an_unknown_field_is_an_error_where_field_validation_is_strict_unless_it_was_there() {
    let misspelt = set(&json!({"containers": [container(&json!({"comand": ["sh"]}))]}));
    let strictly = |old: &Value| {
        let mut findings = Findings::default();
        update(&defaulted(&misspelt), &defaulted(old), FieldValidation::Strict, &cluster(&[]), &mut findings);
        (findings.errors.to_string(), findings.warnings)
    };
    let detail = r#"unknown field (did you mean "command"?); --validate=warn keeps a field of a newer Kubernetes"#;
    let error = format!("spec.containers[0].comand: Forbidden: {detail}");
    assert_eq!(strictly(&set(&json!({}))), (error.clone(), vec![]));
    assert_eq!(strictly(&misspelt), (String::new(), vec![format!("{error} (allowed, as it was so before)")]));
    let (errors, warnings) = changed(&set(&json!({})), &misspelt);
    assert!(errors.is_empty() && warnings[0].contains("spec.containers[0].comand"), "{errors} {warnings:?}");
}
