//! The same text through kubectl and through `engine::yaml` must give the same object.
//!
//! `kubectl label --local` reads a manifest of any kind and prints it, without a server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use cluster::{Tools, progress_on_stderr};
use engine::yaml;
use serde_json::{Value, json};

/// What kubectl makes of a text: the objects, or its error.
fn kubectl(text: &str) -> Result<Vec<Value>, String> {
    static TOOLS: LazyLock<Tools> = LazyLock::new(|| Tools::locate(&progress_on_stderr).unwrap());
    let mut child = Command::new(TOOLS.program("kubectl"))
        .args(["label", "--local", "--output=json", "--filename=-", "no-such-label-"])
        .env("KUBECONFIG", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // JSON goes past everything that is tested here, but for large integers, which kubectl prints as it stores them.
    let objects = yaml::read(std::str::from_utf8(&output.stdout).unwrap()).unwrap();
    Ok(objects.into_iter().map(|document| document.value).collect())
}

fn object(spec: &str) -> String {
    format!("apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: thing\nspec:\n{spec}")
}

fn specs(objects: &[Value]) -> Vec<&Value> {
    objects.iter().map(|object| &object["spec"]).collect()
}

/// Compares the specs of all documents.
fn assert_same(text: &str) {
    let theirs = kubectl(text).unwrap_or_else(|error| panic!("kubectl refuses\n{text}\n{error}"));
    let ours: Vec<Value> = yaml::read(text)
        .unwrap_or_else(|error| panic!("we refuse\n{text}\n{error}"))
        .into_iter()
        .map(|document| document.value)
        .collect();
    assert_eq!(specs(&ours), specs(&theirs), "{text}");
}

const SCALARS: &[&str] = &[
    "0644",
    "0o644",
    "0O17",
    "0777L",
    "08",
    "089",
    "00",
    "0",
    "-0",
    "+0",
    "+12",
    "-12",
    "0x1F",
    "0X1f",
    "-0x1F",
    "0x",
    "0b11",
    "0B11",
    "0b-1",
    "0b+1",
    "0b2",
    "1_000",
    "1__0",
    "_1",
    "1_",
    "-_",
    "+",
    "1_000.5",
    "1e3",
    "1E+3",
    "1e-3",
    "1e400",
    "1.",
    ".5",
    "-.5",
    "+.5",
    ".",
    ".e3",
    ".5e3",
    ".1_0",
    "._1",
    ".5_",
    "190:20:30",
    "12:30",
    "1,000",
    "0x7FFFFFFFFFFFFFFF",
    "0xFFFFFFFFFFFFFFFF",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "1.0",
    "1.5",
    "1e20",
    "1e21",
    "1e-7",
    "123456789.123",
    "4611686018427387904.0",
    "y",
    "Y",
    "yes",
    "Yes",
    "yEs",
    "n",
    "N",
    "no",
    "on",
    "ON",
    "oN",
    "off",
    "Off",
    "true",
    "TRUE",
    "tRue",
    "false",
    "null",
    "Null",
    "nUll",
    "~",
    "\"\"",
    "",
    "inf",
    "nan",
    ".iNf",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "2001-1-1 10:00:00",
    "10.0.0.1",
    "1.2.3",
    "500m",
    "1Gi",
    "0x1p-2",
    "<<",
    "=",
    "\"0644\"",
    "'yes'",
    "!!str 12",
    "!!str",
    "! 12",
    "!custom 12",
    "!!int \"12\"",
    "!!float 1",
    "!!bool yes",
    "!!null ''",
    "!!binary aGk=",
    "!!timestamp 2001-01-01",
    "!<tag:yaml.org,2002:int> 7",
    "a:b",
    "a#b",
    "a b # c",
    "http://x:80/y",
    "\"\\x41\\u00e9\\n\\t\\0\"",
    "'it''s'",
    "é😀",
];

#[test]
#[ignore = "needs kubectl: make test runs it"]
fn scalars_are_the_same() {
    let fields: Vec<String> =
        SCALARS.iter().enumerate().map(|(index, scalar)| format!("  v{index}: {scalar}\n")).collect();
    assert_same(&object(&fields.concat()));
    let items: Vec<String> = SCALARS.iter().map(|scalar| format!("  - {scalar}\n")).collect();
    assert_same(&object(&items.concat()));
}

/// The reason for a reader of our own, which is the same as kubectl by the test before this one. With the options that come closest.
#[test]
fn serde_saphyr_reads_27_of_these_scalars_differently() {
    let options = || serde_saphyr::options! { legacy_octal_numbers: true };
    let differs = |scalar: &&&str| {
        let document = format!("v: {scalar}\n");
        let theirs: Option<Value> = serde_saphyr::from_str_with_options(&document, options()).ok();
        theirs.as_ref() != Some(&yaml::read(&document).unwrap()[0].value)
    };
    let differing: Vec<&&str> = SCALARS.iter().filter(differs).collect();
    assert_eq!((differing.len(), SCALARS.len()), (27, 116), "{differing:?}");
    assert!(["08", "1_", "0B11", "tRue", "1e3"].iter().all(|named| differing.contains(&named)), "{differing:?}");
}

#[test]
#[ignore = "needs kubectl: make test runs it"]
fn keys_are_the_same() {
    let keys = [
        "1",
        "0644",
        "true",
        "yes",
        "1.5",
        "0.1",
        "1e6",
        "123456.7",
        "1234567.5",
        "0.00001",
        "1e100",
        ".inf",
        "-.inf",
        ".nan",
        "2001-01-01",
        "''",
        "a b",
        "? c\n  ",
        "!!str 7",
    ];
    for key in keys {
        assert_same(&object(&format!("  {key}: v\n")));
    }
}

#[test]
#[ignore = "needs kubectl: make test runs it"]
fn structures_are_the_same() {
    let specs = [
        "  a: &x {b: 1}\n  c: {<<: *x, d: 2}\n  e: {b: 3, <<: *x}\n  f: {<<: *x, b: 3}\n  g: *x\n",
        "  a:\n    <<: [{b: 1}, {b: 2, z: 3}]\n",
        "  a: |\n    x\n     y\n\n    z\n  b: |-\n    x\n\n  c: |+\n    x\n\n\n  d: >\n    x\n    y\n\n    z\n     w\n  e: |2\n      x\n    y\n",
        "  a: \"x\n    y\n\n    z\"\n  b: x\n    y\n  c: 'x\n\n    y'\n",
        "  a:\n  - b\n  -\n    c: 1\n  - - d\n    - e\n  f: [g, {h: 1}, ]\n  i: {j, k: }\n",
        "  a: # c\n    b\n  # c\n  d: e\n",
        "  a: |\r\n    x\r\n    y\r\n  b: c\r\n",
        "  a: |\n    x",
    ];
    for spec in specs {
        assert_same(&object(spec));
    }
    let streams = [
        format!("{}---\n# nothing\n--- # comment\n{}", object("  a: 1\n"), object("  b: 2\n")),
        r#"{"apiVersion":"v1","kind":"A","metadata":{},"spec":{"a":1.0}}{"apiVersion":"v1","kind":"B","metadata":{},"spec":{"b":-0}}"#.to_owned(),
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{{}},\"spec\":1}}\n---\n{}", object("  b: 2\n")),
        format!("\u{feff}{}...\n", object("  a: 1\n")),
    ];
    for stream in streams {
        assert_same(&stream);
    }
}

#[test]
#[ignore = "needs kubectl: make test runs it"]
fn what_kubectl_refuses_is_refused() {
    let specs = [
        "  a: .inf\n",
        "  a: .nan\n",
        "  ~: a\n",
        "  ? [a]\n  : b\n",
        "  18446744073709551615: a\n",
        "  a: !!int x\n",
        "  a: !!bool 1\n",
        "  a: !!float x\n",
        "  a: *x\n",
        "  a: &x [*x]\n",
        "  <<: 1\n",
        "  a: &x [{b: 1}]\n  <<: *x\n",
        "  a: @x\n",
        "  a: [b\n",
        "  a: 'b\n",
        "  a: b: c\n",
        "  a: \"\u{1}\"\n",
        "--- x\n",
        "----\n",
    ];
    for spec in specs {
        let text = object(spec);
        assert!(kubectl(&text).is_err(), "kubectl takes {text}");
        assert!(yaml::read(&text).is_err(), "we take {text}");
    }
}

#[test]
#[ignore = "needs kubectl: make test runs it"]
fn kubectl_reads_back_what_we_write() {
    let strings = [
        "yes",
        "0644",
        "1e3",
        "null",
        "",
        " a",
        "a ",
        "a: b",
        "a #b",
        "-c",
        "- a",
        "---",
        "a\nb",
        "a\nb\n",
        "a\n\n\n",
        " a\nb\n",
        "\na\n",
        "\ta\n",
        "a \n\tb: c\n# d\n",
        "\n",
        "a\n  \nb",
        "a\r\nb",
        "\u{1}\u{7f}\u{85}\u{2028}\u{feff}\u{ffff}",
        "é😀",
        "2001-01-01",
        "<<",
        "=",
        "\"a\"",
        "'a'",
        "a\\b",
    ];
    let keys: Value = strings
        .iter()
        .enumerate()
        .map(|(index, key)| ((*key).to_owned(), json!(index)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let spec = json!({
        "strings": strings, "nested": [[strings, []], [{}]], "keys": keys, "numbers": [0.1, 1e21, 1.5e-9, -7, i64::MAX],
        "fields": {"a": "x\n y\n", "b": "\n z", "k".repeat(2000): {"c": "d\n"}},
    });
    let value = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}, "spec": spec});
    let written = yaml::write(&value);
    let read = kubectl(&written).unwrap_or_else(|error| panic!("{written}\n{error}"));
    assert_eq!(specs(&read), vec![&value["spec"]], "{written}");
}
