#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Lists, read, write, write_documents, write_documents_with};

fn read_back(text: &str) -> Value {
    match read(text) {
        Ok(mut documents) if documents.len() == 1 => documents.remove(0).value,
        Ok(documents) if documents.is_empty() => Value::Null,
        other => panic!("{text}\n{other:?}"),
    }
}

#[test]
fn manifests_look_as_kubectl_prints_them() {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"annotations": {"a": "true", "b": "", "c": "line 1\nline 2\n"}, "labels": {}, "name": "web"},
        "spec": {
            "containers": [
                {"args": ["-c", "--flag=x", "a: b", "8080"], "env": [], "image": "nginx:1.27", "name": "web"},
                {"command": [["nested", 1], []], "name": "b", "ready": true, "weight": 0.5, "nothing": null}
            ]
        }
    });
    let expected = "\
apiVersion: v1
kind: Pod
metadata:
  annotations:
    a: \"true\"
    b: \"\"
    c: |
      line 1
      line 2
  labels: {}
  name: web
spec:
  containers:
  - args:
    - -c
    - --flag=x
    - \"a: b\"
    - \"8080\"
    env: []
    image: nginx:1.27
    name: web
  - command:
    - - nested
      - 1
    - []
    name: b
    nothing: null
    ready: true
    weight: 0.5
";
    assert_eq!(write(&pod), expected);
}

#[test]
fn strings_that_a_reader_could_take_for_something_else_are_quoted() {
    for text in [
        "yes",
        "On",
        "NO",
        "y",
        "N",
        "tRuE",
        "null",
        "~",
        "",
        "0644",
        "0o17",
        "1e3",
        "1_000",
        "0x1F",
        "0b1",
        ".5",
        "5.",
        "+1",
        "-.inf",
        ".NaN",
        ".",
        "2001-01-01",
        "2001-01-01T10:00:00Z",
        "190:20:30",
        "1.2.3",
        " a",
        "a ",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "- a",
        "-",
        "? a",
        ": a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "@a",
        "`a",
        "%a",
        "'a",
        "\"a",
        "{a",
        "[a",
        "}",
        "]",
        ",a",
        "=",
        "<<",
        "---",
        "--- a",
        "...",
        "\u{85}",
        "a\u{2028}b",
        "\u{feff}a",
        "a\tb",
        "\u{7f}",
    ] {
        let written = write(&json!([text]));
        assert!(written.starts_with("- \"") && written.ends_with("\"\n"), "{text:?} -> {written}");
        assert_eq!(read_back(&written), json!([text]));
    }
    for text in ["a", "nginx:1.27", "-c", "--flag", "a#b", "a:b", "500m", "1Gi", "http://x:80/y", "é", "a b", "😀"] {
        assert_eq!(write(&json!([text])), format!("- {text}\n"));
    }
}

#[test]
fn lines_become_block_scalars_where_these_are_exact() {
    let table = [
        ("a\nb", "- |-\n  a\n  b\n"),
        ("a\nb\n", "- |\n  a\n  b\n"),
        ("a\n\n\n", "- |+\n  a\n\n\n"),
        (" a\nb\n", "- |2\n   a\n  b\n"),
        ("\na\n", "- |2\n\n  a\n"),
        ("\ta\n", "- |2\n  \ta\n"),
        ("a \n\tb: c\n# d\n", "- |\n  a \n  \tb: c\n  # d\n"),
        ("\n", "- \"\\n\"\n"),
        ("a\n  \nb", "- \"a\\n  \\nb\"\n"),
        ("a\r\nb", "- \"a\\r\\nb\"\n"),
    ];
    for (text, expected) in table {
        assert_eq!(write(&json!([text])), expected, "{text:?}");
        assert_eq!(read_back(expected), json!([text]));
    }
}

#[test]
fn numbers_are_floats_for_readers_of_yaml_1_1_too() {
    for (number, expected) in [
        (json!(1e21), "1.0e+21\n"),
        (json!(1.5e-9), "1.5e-9\n"),
        (json!(0.1), "0.1\n"),
        (json!(-7), "-7\n"),
        (json!(2.0), "2\n"),
    ] {
        assert_eq!(write(&number), expected);
    }
}

#[test]
fn documents_are_separated() {
    assert_eq!(write_documents(&[json!({"a": 1}), json!({"b": 2})]), "a: 1\n---\nb: 2\n");
    assert_eq!(write_documents(&[]), "");
}

#[test]
fn long_keys_are_written_so_that_they_can_be_read() {
    let value = json!({"k".repeat(5000): {"a": ["b", "c\nd\n"]}, "z": 1});
    assert_eq!(read_back(&write(&value)), value);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \\-:#'\"|>&*!%@`{}\\[\\],?=~a0-9_.eExob+\n\t]{0,12}",
        "( {0,3}[a#:-]{0,3}\t{0,1} {0,2}\n{0,3}){0,5}",
        proptest::sample::select(vec![
            "yes",
            "no",
            "on",
            "null",
            "~",
            "0644",
            "1e3",
            ".inf",
            "2001-01-01",
            "<<",
            "---"
        ])
        .prop_map(str::to_owned),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // What `read` makes of a float, which is an integer where there is no fraction.
        any::<f64>().prop_filter_map("not finite", |float| super::resolve::number_of_float(float).map(Value::Number)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..6).prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_the_same(value in json_value()) {
        let written = write(&value);
        prop_assert_eq!(read_back(&written), value, "{}", written);
    }

    #[test]
    fn streams_read_back_the_same(values in proptest::collection::vec(json_value().prop_filter("empty", |value| !value.is_null()), 0..4)) {
        for lists in [Lists::AtKey, Lists::Indented] {
        let written = write_documents_with(&values, lists);
        let back: Vec<Value> = read(&written).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?.into_iter().map(|document| document.value).collect();
        prop_assert_eq!(&back, &values, "{}", written);
        }
    }
}
