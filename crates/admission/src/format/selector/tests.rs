#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{LabelSelector, LabelSelectorRequirement, Requirement, Selector};
use crate::field::{ErrorList, Path};

fn read(json: &str) -> LabelSelector {
    serde_json::from_str(json).unwrap()
}

fn compile(json: &str) -> Selector {
    read(json).compile().unwrap()
}

/// `{"matchExpressions": [...]}` of short terms such as `a In h,i` or `a Exists`.
fn terms(terms: &[&str]) -> LabelSelector {
    let read_term = |term: &&str| {
        let mut words = term.split(' ').map(str::to_owned);
        let (key, operator) = (words.next().unwrap(), words.next().unwrap());
        let values = words.next().iter().flat_map(|values| values.split(',')).map(str::to_owned).collect();
        LabelSelectorRequirement { key, operator, values }
    };
    LabelSelector { match_expressions: terms.iter().map(read_term).collect(), ..LabelSelector::default() }
}

#[test]
fn null_is_absent_and_unset_fields_are_not_written() {
    let cases = [
        ("{}", "{}"),
        (r#"{"matchLabels":null,"matchExpressions":null}"#, "{}"),
        (r#"{"matchLabels":{},"matchExpressions":[]}"#, "{}"),
        (
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists","values":null}]}"#,
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}"#,
        ),
    ];
    for (json, expected) in cases {
        assert_eq!(serde_json::to_string(&read(json)).unwrap(), expected);
    }
}

#[test]
fn wrong_selectors_are_explained_as_the_api_server_explains_them() {
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                 start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
                 for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let empty_key = "name part must be non-empty";
    let key_form = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let cases = [
        ("{}", vec![]),
        (r#"{"matchLabels":{"a":"-"}}"#, vec![format!(r#"spec.selector.matchLabels: Invalid value: "-": {value}"#)]),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"In"},{"key":"a","operator":"NotIn","values":[]}]}"#,
            [0, 1]
                .map(|index| {
                    format!(
                        "spec.selector.matchExpressions[{index}].values: Required value: must be specified when \
                         `operator` is 'In' or 'NotIn'"
                    )
                })
                .to_vec(),
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]}"#,
            vec![
                "spec.selector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' \
                 or 'DoesNotExist'"
                    .to_owned(),
            ],
        ),
        (
            r#"{"matchExpressions":[{"operator":"in","values":["ok","app-risk-"]}]}"#,
            vec![
                r#"spec.selector.matchExpressions[0].operator: Invalid value: "in": not a valid selector operator"#
                    .to_owned(),
                format!(r#"spec.selector.matchExpressions[0].key: Invalid value: "": {empty_key}"#),
                format!(r#"spec.selector.matchExpressions[0].key: Invalid value: "": {key_form}"#),
                format!(r#"spec.selector.matchExpressions[0].values[1]: Invalid value: "app-risk-": {value}"#),
            ],
        ),
    ];
    for (json, expected) in cases {
        let mut errors = ErrorList::new();
        read(json).validate(&Path::new("spec").child("selector"), &mut errors);
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected, "{json}");
        assert_eq!(read(json).compile().is_err(), !expected.is_empty(), "{json}");
    }
}

#[test]
fn selectors_match_as_in_the_api_server() {
    let labels: BTreeMap<String, String> = [("a", "h"), ("empty", "")].map(|(k, v)| (k.into(), v.into())).into();
    let cases: &[(&[&str], bool)] = &[
        (&[], true),
        (&["a In h"], true),
        (&["a In i,h"], true),
        (&["a In i"], false),
        (&["b In h"], false),
        (&["a NotIn i"], true),
        (&["a NotIn h,i"], false),
        (&["b NotIn h"], true),
        (&["a Exists"], true),
        (&["empty Exists"], true),
        (&["b Exists"], false),
        (&["a DoesNotExist"], false),
        (&["b DoesNotExist"], true),
        (&["a In h", "b DoesNotExist"], true),
        (&["a In h", "b Exists"], false),
    ];
    for (expressions, expected) in cases {
        let selector = terms(expressions).compile().unwrap();
        assert_eq!(selector.matches(&labels), *expected, "{expressions:?}");
        let pairs: Vec<(&str, &str)> = labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(selector.matches(pairs.as_slice()), *expected, "{expressions:?}");
    }
}

#[test]
fn the_last_of_repeated_labels_counts() {
    let selector = compile(r#"{"matchLabels":{"a":"new"}}"#);
    assert!(selector.matches(&vec![("a", "old"), ("a", "new")]));
    assert!(!selector.matches(&vec![("a", "new"), ("a", "old")]));
}

#[test]
fn requirements_are_normalised_for_an_index() {
    let selector = compile(
        r#"{"matchLabels":{"b":"2","a":"1"},"matchExpressions":[{"key":"c","operator":"In","values":["y","x","y"]}]}"#,
    );
    let expected = [
        Requirement::In("a".into(), vec!["1".into()]),
        Requirement::In("b".into(), vec!["2".into()]),
        Requirement::In("c".into(), vec!["x".into(), "y".into()]),
    ];
    assert_eq!(selector.requirements(), expected);
    assert!(!selector.is_everything() && compile("{}").is_everything());
}

#[test]
fn selectors_are_written_as_kubectl_takes_them() {
    let selector = terms(&["a In h", "b In j,i", "c NotIn h", "d NotIn h,i", "e Exists", "f DoesNotExist"]);
    assert_eq!(selector.compile().unwrap().to_string(), "a=h,b in (i,j),c!=h,d notin (h,i),e,!f");
    assert_eq!(compile("{}").to_string(), "");
}

#[test]
fn overlap_is_decided_exactly() {
    let cases: &[(&[&str], &[&str], bool)] = &[
        (&["a In h"], &["a In h"], true),
        (&["a In h"], &["a In i"], false),
        (&["a In h"], &["b In i"], true),
        (&["a In h", "b In i", "c In j"], &["a In h", "b In x", "c In j"], false),
        (&["a In h"], &["a In h,i,j"], true),
        (&["a In h"], &["a In i,j"], false),
        (&["a NotIn h,i"], &["a In h"], false),
        (&["a In h"], &["a Exists"], true),
        (&["a DoesNotExist"], &["a In h"], false),
        (&["a In b"], &["c Exists"], true),
        (&["a Exists"], &["b Exists"], true),
        (&["a Exists"], &["a NotIn x"], true),
        (&["a DoesNotExist"], &["a NotIn x"], true),
        (&["a DoesNotExist"], &["a Exists"], false),
        (&["a In h,i"], &["a In i,j", "a NotIn i"], false),
        (&["a In h", "a In i"], &[], false),
        (&[], &[], true),
    ];
    for (left, right, expected) in cases {
        let (one, other) = (terms(left).compile().unwrap(), terms(right).compile().unwrap());
        assert_eq!(one.overlaps(&other), *expected, "{left:?} {right:?}");
        assert_eq!(other.overlaps(&one), *expected, "{right:?} {left:?}");
    }
}

const KEYS: [&str; 3] = ["a", "b", "c"];
const VALUES: [&str; 3] = ["x", "y", ""];

fn any_term() -> impl Strategy<Value = LabelSelectorRequirement> {
    let values = proptest::sample::subsequence(VALUES.to_vec(), 1..=VALUES.len());
    let operator = proptest::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
    (proptest::sample::select(KEYS.to_vec()), operator, values).prop_map(|(key, operator, values)| {
        let values = if operator.ends_with("In") { values } else { Vec::new() };
        LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.into_iter().map(str::to_owned).collect(),
        }
    })
}

fn any_selector() -> impl Strategy<Value = LabelSelector> {
    proptest::collection::vec(any_term(), 0..5)
        .prop_map(|match_expressions| LabelSelector { match_expressions, ..LabelSelector::default() })
}

/// Every set of labels over the keys and values above and one value that no selector names.
fn all_label_sets() -> Vec<BTreeMap<&'static str, &'static str>> {
    KEYS.iter().fold(vec![BTreeMap::new()], |sets, key| {
        let mut longer = sets.clone();
        for value in VALUES.iter().chain(&["unnamed"]) {
            longer.extend(sets.iter().map(|set| {
                let mut set = set.clone();
                set.insert(*key, *value);
                set
            }));
        }
        longer
    })
}

proptest! {
    #[test]
    fn overlap_means_that_some_labels_match_both(one in any_selector(), other in any_selector()) {
        let (one, other) = (one.compile().unwrap(), other.compile().unwrap());
        let witness = all_label_sets().into_iter().find(|labels| one.matches(labels) && other.matches(labels));
        prop_assert_eq!(one.overlaps(&other), witness.is_some(), "{:?}", witness);
    }
}
