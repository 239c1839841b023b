use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PatchBuilder, PatchError, PatchWriter, Present, apply, escape, quoted, quoted_len};

fn text(patch: &PatchWriter) -> &str {
    std::str::from_utf8(patch.document()).unwrap()
}

fn applied(document: &Value, patch: &PatchWriter) -> Value {
    let mut document = document.clone();
    apply(&mut document, patch.document()).unwrap_or_else(|error| panic!("{document} {}: {error}", text(patch)));
    document
}

#[test]
fn tokens_are_escaped_tilde_first() {
    let cases = [("", ""), ("a", "a"), ("~", "~0"), ("/", "~1"), ("~1", "~01"), ("a/b~c/", "a~1b~0c~1"), ("é", "é")];
    for (token, expected) in cases {
        assert_eq!(escape(token), expected);
    }
}

#[test]
fn the_writer_writes_one_json_document_in_order() {
    let mut patch = PatchWriter::with_capacity(64);
    assert!(patch.is_empty());
    assert_eq!((patch.len(), text(&patch)), (0, ""));
    patch.add("/a", "1");
    patch.replace("/quote\"d", r#"{"x":[]}"#);
    patch.remove("/back\\slash\n");
    let expected = r#"[{"op":"add","path":"/a","value":1},{"op":"replace","path":"/quote\"d","value":{"x":[]}},{"op":"remove","path":"/back\\slash\n"}]"#;
    assert_eq!(text(&patch), expected);
    assert_eq!(patch.len(), expected.len());
    assert!(!patch.is_empty());
    assert_eq!(quoted("a\"é\\\u{1}"), r#""a\"é\\\u0001""#);
    for text in ["", "a", "a\"é\\\u{1}\n/"] {
        assert_eq!(quoted_len(text), quoted(text).len(), "{text:?}");
    }
}

#[test]
fn surrounding_a_list_puts_elements_in_front_and_behind_in_the_given_order() {
    let cases = [
        (json!({"l": [{"n": 1, "newer": true}, {"n": 2}]}), Present::Len(2)),
        (json!({"l": []}), Present::Len(0)),
        (json!({"l": null}), Present::Absent),
        (json!({}), Present::Absent),
    ];
    for (document, present) in cases {
        let mut patch = PatchWriter::default();
        patch.surround("/l", present, ["\"a\"", "\"b\""], ["\"y\"", "\"z\""]);
        let mut expected = vec![json!("a"), json!("b")];
        expected.extend(document["l"].as_array().cloned().unwrap_or_default());
        expected.extend([json!("y"), json!("z")]);
        assert_eq!(applied(&document, &patch), json!({"l": expected}));
    }
}

#[test]
fn setting_members_escapes_keys_and_makes_the_map() {
    let members = [("outrider.dev/x", "\"1\""), ("til~de", "\"2\""), ("\"q\"", "\"3\""), ("", "\"4\"")];
    for (document, present) in [
        (json!({"m": {"kept": "0"}}), Present::Len(1)),
        (json!({"m": null}), Present::Absent),
        (json!({}), Present::Absent),
    ] {
        let mut patch = PatchWriter::default();
        patch.set_members("/m", present, members);
        let mut expected = document["m"].as_object().cloned().unwrap_or_default();
        for (key, json) in members {
            expected.insert(key.to_owned(), serde_json::from_str(json).unwrap());
        }
        assert_eq!(applied(&document, &patch), json!({"m": expected}));
    }
}

#[test]
fn nothing_to_add_is_no_operation() {
    for present in [Present::Absent, Present::Len(0), Present::Len(3)] {
        let mut patch = PatchWriter::default();
        patch.surround("/l", present, [], []);
        patch.set_members("/m", present, []);
        assert!(patch.is_empty(), "{present:?}");
    }
}

type Edit = fn(&mut PatchBuilder) -> Result<(), PatchError>;

#[test]
fn the_builder_writes_the_least_that_has_the_effect() {
    let cases: [(Value, Edit, &str); 17] = [
        (json!({"a": 1}), |p| p.set("/a", json!(1)), ""),
        (json!({"a": 1}), |p| p.set("/a", json!(2)), r#"[{"op":"add","path":"/a","value":2}]"#),
        (json!({}), |p| p.set("/a", Value::Null), ""),
        (json!({}), |p| p.set("/a/b", Value::Null), ""),
        (json!({"a": 1}), |p| p.set("/a", Value::Null), r#"[{"op":"add","path":"/a","value":null}]"#),
        (json!({"a": 0}), |p| p.default("/a", json!(1)), ""),
        (json!({"a": null}), |p| p.default("/a", json!(1)), r#"[{"op":"add","path":"/a","value":1}]"#),
        (json!({"a": null}), |p| p.default("/a", Value::Null), ""),
        (json!({"a": null}), |p| p.set("/a/b/c", json!(1)), r#"[{"op":"add","path":"/a","value":{"b":{"c":1}}}]"#),
        (json!({"a": {}}), |p| p.set("/a/b~1c/~01", json!(1)), r#"[{"op":"add","path":"/a/b~1c","value":{"~1":1}}]"#),
        (json!({}), |p| p.set("/a//b", json!(1)), r#"[{"op":"add","path":"/a","value":{"":{"b":1}}}]"#),
        (json!({}), |p| p.set("/", json!(1)), r#"[{"op":"add","path":"/","value":1}]"#),
        (json!({"a": {"": {}}}), |p| p.set("/a//", json!(1)), r#"[{"op":"add","path":"/a//","value":1}]"#),
        (json!({"l": [1, 2]}), |p| p.set("/l/0", json!(3)), r#"[{"op":"replace","path":"/l/0","value":3}]"#),
        (json!({"l": [null]}), |p| p.set("/l/0/x", json!(3)), r#"[{"op":"replace","path":"/l/0","value":{"x":3}}]"#),
        (json!({"a": null}), |p| p.insert("/a/l", 7, json!(1)), r#"[{"op":"add","path":"/a","value":{"l":[1]}}]"#),
        (json!({"l": [1]}), |p| p.insert("/l", 7, json!(2)), r#"[{"op":"add","path":"/l/1","value":2}]"#),
    ];
    for (document, edit, expected) in cases {
        let mut builder = PatchBuilder::new(&document);
        edit(&mut builder).unwrap();
        let intended = builder.document().clone();
        let patch = builder.finish();
        assert_eq!(text(&patch), expected, "{document}");
        assert_eq!(applied(&document, &patch), intended);
    }
}

#[test]
fn a_place_is_found_as_the_library_finds_it() {
    let document = json!({"a": {"b~/": 1, "": 2, "~1": 3}, "l": [1, [2]], "s": "text", "n": null});
    let builder = PatchBuilder::new(&document);
    for pointer in [
        "", "/", "/a", "/a/b~0~1", "/a/b~/", "/a/", "/a/~01", "/a/~1", "/l/0", "/l/1/0", "/l/00", "/l/+1", "/l/2",
        "/l/-", "/s/x", "/n", "/n/x", "a", "/none",
    ] {
        assert_eq!(builder.get(pointer), document.pointer(pointer), "{pointer:?}");
    }
}

#[test]
fn removing_takes_only_what_is_there() {
    let document = json!({"a": {"b": 1, "": 2}, "l": [1, 2], "s": "text"});
    let cases = [
        ("/a/b", r#"[{"op":"remove","path":"/a/b"}]"#),
        ("/a/", r#"[{"op":"remove","path":"/a/"}]"#),
        ("/l/1", r#"[{"op":"remove","path":"/l/1"}]"#),
        ("/l/2", ""),
        ("/l/01", ""),
        ("/l/+1", ""),
        ("/l/-", ""),
        ("/s/x", ""),
        ("/none/x", ""),
        ("none", ""),
        ("", ""),
    ];
    for (pointer, expected) in cases {
        let mut builder = PatchBuilder::new(&document);
        builder.remove(pointer);
        let intended = builder.document().clone();
        let patch = builder.finish();
        assert_eq!(text(&patch), expected, "{pointer}");
        assert_eq!(applied(&document, &patch), intended);
    }
}

#[test]
fn a_place_that_cannot_take_the_value_is_named_and_nothing_is_written() {
    let document = json!({"s": "text", "n": 1, "l": [1, true], "m": {}});
    let cases: [(Edit, &str); 11] = [
        (|p| p.set("/s/x", json!(1)), "/s: expected a map, found a string"),
        (|p| p.default("/n/x/y", json!(1)), "/n: expected a map, found a number"),
        (|p| p.set("/l/1/x", json!(1)), "/l/1: expected a map, found a boolean"),
        (|p| p.set("/l/2", json!(1)), "/l/2: expected an element, found nothing"),
        (|p| p.set("/l/-", json!(1)), "/l/-: expected an element, found nothing"),
        (|p| p.set("/l/01", json!(1)), "/l/01: expected an element, found nothing"),
        (|p| p.set("/l/+1", json!(1)), "/l/+1: expected an element, found nothing"),
        (|p| p.set("", json!(1)), ": expected the pointer of a member or element, found the whole document"),
        (
            |p| p.set("m", json!(1)),
            "m: expected the pointer of a member or element, found a pointer that does not start with /",
        ),
        (|p| p.insert("/m", 0, json!(1)), "/m: expected a list, found a map"),
        (|p| p.insert("/s", 0, json!(1)), "/s: expected a list, found a string"),
    ];
    for (edit, expected) in cases {
        let mut builder = PatchBuilder::new(&document);
        assert_eq!(edit(&mut builder).unwrap_err().to_string(), expected);
        assert_eq!(*builder.document(), document);
        assert!(builder.finish().is_empty());
    }
}

#[test]
fn a_patch_that_does_not_fit_or_is_none_is_not_applied() {
    let mut document = json!({"a": 1});
    assert_eq!(apply(&mut document, b""), Ok(()));
    assert!(apply(&mut document, b"{").is_err());
    assert!(apply(&mut document, br#"[{"op":"remove","path":"/b"}]"#).is_err());
    assert_eq!(document, json!({"a": 1}));
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["", "a", "b", "/", "~", "~1", "0", "-", "é\"\\", "a/b"]).prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(keys(), inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

#[derive(Debug, Clone)]
enum Step {
    Set(String, Value),
    Default(String, Value),
    Remove(String),
    Insert(String, usize, Value),
}

fn steps() -> impl Strategy<Value = Step> {
    let token = prop_oneof![keys(), (0..4_usize).prop_map(|index| index.to_string())];
    let pointer = prop::collection::vec(token, 0..4)
        .prop_map(|tokens| tokens.iter().flat_map(|token| ["/".into(), escape(token)]).collect::<String>());
    prop_oneof![
        (pointer.clone(), documents()).prop_map(|(pointer, value)| Step::Set(pointer, value)),
        (pointer.clone(), documents()).prop_map(|(pointer, value)| Step::Default(pointer, value)),
        pointer.clone().prop_map(Step::Remove),
        (pointer, 0..6_usize, documents()).prop_map(|(pointer, index, value)| Step::Insert(pointer, index, value)),
    ]
}

/// What the step promises about its own place, said without the builder's code.
fn check(step: &Step, before: &Value, after: &Value) {
    let old = |pointer: &str| before.pointer(pointer).filter(|value| !value.is_null());
    match step {
        Step::Set(pointer, value) => assert_eq!(after.pointer(pointer).unwrap_or(&Value::Null), value),
        Step::Default(pointer, value) => {
            assert_eq!(after.pointer(pointer).unwrap_or(&Value::Null), old(pointer).unwrap_or(value));
        }
        Step::Remove(_) => {}
        Step::Insert(pointer, index, value) => {
            let mut list = old(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
            list.insert((*index).min(list.len()), value.clone());
            assert_eq!(after.pointer(pointer), Some(&Value::Array(list)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_applied_patch_gives_the_intended_document(
        document in documents(),
        steps in prop::collection::vec(steps(), 0..8),
    ) {
        let mut builder = PatchBuilder::new(&document);
        for step in &steps {
            let before = builder.document().clone();
            let (len, done) = (builder.clone().finish().len(), match step.clone() {
                Step::Set(pointer, value) => builder.set(&pointer, value),
                Step::Default(pointer, value) => builder.default(&pointer, value),
                Step::Remove(pointer) => { builder.remove(&pointer); Ok(()) }
                Step::Insert(pointer, index, value) => builder.insert(&pointer, index, value),
            });
            if done.is_ok() {
                check(step, &before, builder.document());
            } else {
                prop_assert_eq!(builder.document(), &before);
            }
            let written = builder.clone().finish().len() > len;
            prop_assert_eq!(written, builder.document() != &before, "an operation for each change and for nothing else");
        }
        let intended = builder.document().clone();
        prop_assert_eq!(applied(&document, &builder.finish()), intended);
    }

    #[test]
    fn surrounding_never_moves_a_field_between_elements(
        original in prop::collection::vec(documents(), 0..5),
        front in prop::collection::vec(documents(), 0..4),
        back in prop::collection::vec(documents(), 0..4),
    ) {
        let document = json!({"spec": {"containers": original}});
        let texts = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
        let (front_texts, back_texts) = (texts(&front), texts(&back));
        let mut patch = PatchWriter::default();
        patch.surround(
            "/spec/containers",
            Present::Len(original.len()),
            front_texts.iter().map(String::as_str),
            back_texts.iter().map(String::as_str),
        );
        let expected = [front, original, back].concat();
        prop_assert_eq!(applied(&document, &patch), json!({"spec": {"containers": expected}}));
    }

    #[test]
    fn text_is_quoted_as_the_library_quotes_it(text in any::<String>(), ascii in "[\\x00-\\x7f]{0,40}") {
        for text in [text, ascii] {
            prop_assert_eq!(quoted(&text), Value::from(text.as_str()).to_string());
        }
    }

    #[test]
    fn any_key_survives_the_way_through_a_patch(key in keys(), other in keys()) {
        let mut patch = PatchWriter::default();
        patch.set_members("", Present::Len(0), [(key.as_str(), "1")]);
        let mut expected = json!({ other.as_str(): 0 });
        let document = expected.clone();
        expected[key.as_str()] = 1.into();
        prop_assert_eq!(applied(&document, &patch), expected);
    }
}
