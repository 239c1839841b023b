//! Expected values were taken from kubectl's own reader (k8s.io/apimachinery 0.36, sigs.k8s.io/yaml 1.6);
//! `tests/yaml_like_kubectl.rs` asks kubectl again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;

fn values(text: &str) -> Vec<Value> {
    read(text).unwrap_or_else(|error| panic!("{text:?}: {error}")).into_iter().map(|document| document.value).collect()
}

fn value(text: &str) -> Value {
    let mut values = values(text);
    assert_eq!(values.len(), 1, "{text:?}");
    values.remove(0)
}

fn error(text: &str) -> String {
    read(text).map(|documents| panic!("{text:?} gives {documents:?}")).unwrap_err().to_string()
}

#[test]
fn scalars_mean_what_goyaml_makes_of_them() {
    let table = [
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("0O17", json!(15)),
        ("089", json!(89)),
        ("-0777", json!(-511)),
        ("0x1F", json!(31)),
        ("-0x1F", json!(-31)),
        ("0x", json!("0x")),
        ("0b11", json!(3)),
        ("0b-1", json!(-1)),
        ("0b2", json!("0b2")),
        ("1_000", json!(1000)),
        ("1__0", json!(10)),
        ("1_", json!(1)),
        ("_1", json!("_1")),
        ("-_", json!("-_")),
        ("+12", json!(12)),
        ("-0", json!(0)),
        ("--1", json!("--1")),
        ("1.0", json!(1)),
        ("1.5", json!(1.5)),
        ("1.", json!(1)),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        (".1_0", json!(0.1)),
        ("._1", json!("._1")),
        (".5_", json!(".5_")),
        ("1e3", json!(1000)),
        ("1e21", json!(1e21)),
        ("1e400", json!("1e400")),
        ("4611686018427387904.0", json!(4_611_686_018_427_388_000_i64)),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615.0)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("190:20:30", json!("190:20:30")),
        ("10.0.0.1", json!("10.0.0.1")),
        ("500m", json!("500m")),
        ("inf", json!("inf")),
        (".iNf", json!(".iNf")),
        ("0x1p-2", json!("0x1p-2")),
        ("y", json!(true)),
        ("Yes", json!(true)),
        ("yEs", json!("yEs")),
        ("ON", json!(true)),
        ("n", json!(false)),
        ("off", json!(false)),
        ("oFF", json!("oFF")),
        ("TRUE", json!(true)),
        ("False", json!(false)),
        ("~", json!(null)),
        ("NULL", json!(null)),
        ("nUll", json!("nUll")),
        ("", json!(null)),
        ("2001-01-01", json!("2001-01-01")),
        ("2001-01-01T00:00:00Z", json!("2001-01-01T00:00:00Z")),
        ("'yes'", json!("yes")),
        ("\"0644\"", json!("0644")),
        ("!!str 12", json!("12")),
        ("! 12", json!("12")),
        ("!custom 12", json!("12")),
        ("!!int \"12\"", json!(12)),
        ("!!float 1", json!(1)),
        ("!!bool yes", json!(true)),
        ("!!null ''", json!(null)),
        ("!!binary aGk=", json!("hi")),
        ("!!timestamp 2001-01-01", json!("2001-01-01")),
        ("!<tag:yaml.org,2002:int> 7", json!(7)),
    ];
    for (text, expected) in table {
        assert_eq!(value(&format!("a: {text}\n")), json!({ "a": expected }), "{text}");
    }
}

#[test]
fn keys_become_strings_as_sigs_yaml_makes_them() {
    let table = [
        ("1", "1"),
        ("0644", "420"),
        ("true", "true"),
        ("yes", "true"),
        ("1.5", "1.5"),
        ("0.1", "0.1"),
        ("1e6", "1e+06"),
        ("123456.7", "123456.7"),
        ("1234567.5", "1.2345675e+06"),
        ("0.00001", "1e-05"),
        (".inf", ".inf"),
        ("-.inf", "-.inf"),
        (".nan", ".nan"),
        ("2001-01-01", "2001-01-01"),
        ("''", ""),
    ];
    for (key, expected) in table {
        assert_eq!(value(&format!("{key}: v\n")), json!({ expected: "v" }), "{key}");
    }
}

#[test]
fn streams_are_cut_where_kubectl_cuts_them() {
    let table = [
        ("a: 1\n---\nb: 2\n", vec![json!({"a": 1}), json!({"b": 2})]),
        ("---\na: 1\n---\n---\n# c\n--- # comment\nb: 2", vec![json!({"a": 1}), json!({"b": 2})]),
        ("", vec![]),
        ("# nothing\n---\nnull\n---\n~\n", vec![]),
        ("\u{feff}a: 1", vec![json!({"a": 1})]),
        ("a: 1\r\nb: |\r\n  x\r\n  y\r\n", vec![json!({"a": 1, "b": "x\ny\n"})]),
        ("a: 1\n...\n---\nb: 2\n", vec![json!({"a": 1}), json!({"b": 2})]),
        ("a: |\n  x", vec![json!({"a": "x\n"})]),
        (r#"{"a":1}{"b":2}"#, vec![json!({"a": 1}), json!({"b": 2})]),
        ("{\"a\":1}\n{\"b\":2}\n{\"c\":3}", vec![json!({"a": 1}), json!({"b": 2}), json!({"c": 3})]),
        ("{\"a\":1}\n---\nb: 2\n", vec![json!({"a": 1}), json!({"b": 2})]),
        ("{\"a\":1,}", vec![json!({"a": 1})]),
        ("{a: b}\n---\nc: d", vec![json!({"a": "b"}), json!({"c": "d"})]),
        (r#"{"a":31364499707.614914}"#, vec![json!({"a": 31_364_499_707.614_914})]),
        (r#"{"a":1.0,"b":1e3,"c":-0}"#, vec![json!({"a": 1, "b": 1000, "c": 0})]),
        (r#"{"a":"\u00e9\ud83d\ude00\/"}"#, vec![json!({"a": "é😀/"})]),
    ];
    for (text, expected) in table {
        assert_eq!(values(text), expected, "{text:?}");
    }
}

#[test]
fn documents_know_the_line_their_content_starts_on() {
    let table = [
        ("a: 1\n---\n\n# c\nb: 2\n---\nc: 3\n", vec![1, 5, 7]),
        ("{\"a\":1}\n\n{\"b\":\n2} {\"c\":3}\n", vec![1, 3, 4]),
        ("\n{\"a\":1}\n---\nb: 2\n", vec![2, 4]),
    ];
    for (text, expected) in table {
        let lines: Vec<usize> = read(text).unwrap().iter().map(|document| document.line).collect();
        assert_eq!(lines, expected, "{text:?}");
    }
}

#[test]
fn merge_keys_and_aliases_follow_goyaml() {
    let table = [
        ("a: &x {b: 1}\nc: *x\n", json!({"a": {"b": 1}, "c": {"b": 1}})),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", json!({"a": {"b": 1}, "c": {"b": 1, "d": 2}})),
        ("a: &x {b: 1}\nc: {b: 3, <<: *x}\n", json!({"a": {"b": 1}, "c": {"b": 1}})),
        ("a: &x {b: 1}\nc: {<<: *x, b: 3}\n", json!({"a": {"b": 1}, "c": {"b": 3}})),
        ("c:\n  <<: [{b: 1}, {b: 2, z: 3}]\n", json!({"c": {"b": 1, "z": 3}})),
        ("<<: {a: 1}\n<<: {a: 2, b: 1}\n", json!({"a": 2, "b": 1})),
        ("'<<': 1\n", json!({"<<": 1})),
        ("&k a: *k\n", json!({"a": "a"})),
        ("a: &x 1\n*x : b\n", json!({"a": 1, "1": "b"})),
    ];
    for (text, expected) in table {
        assert_eq!(value(text), expected, "{text:?}");
    }
}

#[test]
fn errors_say_where_and_what() {
    let table = [
        (
            "spec:\n  containers:\n  - image: a\n    image: b\n",
            "line 4, column 5: spec.containers[0]: duplicate key \"image\", first given on line 3",
        ),
        ("1: a\n'1': b\n", "line 2, column 1: duplicate key \"1\", first given on line 1"),
        ("{\"a\": 1,\n \"a\": 2}", "line 2, column 4: duplicate key \"a\""),
        (
            "a: 1\n---\nb: [.inf]\n",
            "line 3, column 5: b[0]: .inf has no form in JSON; quote it if it is meant as a string",
        ),
        ("a: !!int x\n", "line 1, column 10: a: cannot read \"x\" as !!int"),
        (
            "a: !!binary //8=\n",
            "line 1, column 13: a: !!binary must hold base64 of UTF-8 text; write the base64 as a plain string without the tag",
        ),
        (
            "a: 1\n--- x\n",
            "line 2, column 1: invalid document separator \"--- x\": only a comment may follow \"---\" on its line",
        ),
        (
            "a: 1\n...\nb: 1\n",
            "line 3, column 1: content after \"...\": kubectl would ignore it; separate documents with \"---\"",
        ),
        (
            "a: \"\u{1}\"\n",
            "line 1, column 5: character U+0001 is not allowed in YAML; write it as an escape in a double-quoted string",
        ),
        ("~: a\n", "line 1, column 1: null cannot be a key; write the key as a string"),
        ("? [a]\n: b\n", "line 1, column 3: a list cannot be a key; write the key as a string"),
        ("<<: 1\n", "line 1, column 5: \"<<\" takes a mapping, an alias of a mapping, or a list of these"),
        (
            "a: &x [{b: 1}]\nc:\n  <<: *x\n",
            "line 3, column 7: c: \"<<\" takes a mapping, an alias of a mapping, or a list of these",
        ),
        ("a: &x [*x]\n", "line 1, column 8: a[0]: this alias is part of its own value"),
    ];
    for (text, expected) in table {
        assert_eq!(error(text), expected, "{text:?}");
    }
}

#[test]
fn syntax_errors_carry_the_line_of_the_file() {
    for (text, line) in [
        ("a: 1\n---\nb: [\n", 3..=4),
        ("a: 1\n\nb: *unknown\n", 3..=3),
        ("a: @x\n", 1..=1),
        ("{\"a\":1}{\"b\":1}\n{c}", 2..=2),
    ] {
        let found = read(text).unwrap_err().line;
        assert!(line.contains(&found), "{text:?}: line {found}");
    }
}

#[test]
fn nesting_is_bounded_however_it_is_written() {
    let flow = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
    let json = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let dashes = "- ".repeat(200);
    let mut aliases = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        writeln!(aliases, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    for text in [flow, json, dashes, aliases] {
        assert!(error(&text).ends_with("nested deeper than 128 levels"), "{}", error(&text));
    }
}

#[test]
fn alias_bombs_are_refused() {
    let mut wide = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(wide, "a{level}: &a{level} [{inner}]").unwrap();
    }
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    for text in [wide, long] {
        assert!(error(&text).contains("grows too large when its aliases are followed"), "{}", error(&text));
    }
}

/// Pieces that mean something to a YAML reader, in any order.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "1",
        ": ",
        ":",
        "\n",
        "\n  ",
        "- ",
        "-",
        " ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "'",
        "|",
        ">",
        "|-",
        "&x ",
        "*x",
        "!!str ",
        "!!int ",
        "!!binary ",
        "#",
        "~",
        "yes",
        "0644",
        "<<: ",
        "---",
        "...",
        "\t",
        "? ",
        "!",
        "%",
        "@",
        "\\",
        "é",
        "\n\n",
        "key: ",
        "\r",
        "\r\n",
        "\u{feff}",
        "\u{0}",
        "\u{2028}",
        "\\u",
        "\\ud800",
        ".inf",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn no_mixture_of_yaml_makes_it_panic_and_errors_lie_within_the_text(text in fragments()) {
        if let Err(error) = read(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.matches(['\n', '\r']).count() + 2, "{error} in {text:?}");
        }
    }
}
