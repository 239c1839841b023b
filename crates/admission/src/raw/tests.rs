use super::*;

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

fn copied(json: &str) -> String {
    let mut out = String::new();
    let mut writer = ObjectWriter::begin(&mut out);
    assert!(members(raw(json), |key, value| writer.copy(&key, value)));
    writer.end();
    out
}

#[test]
fn members_are_copied_as_they_were_written() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for json in [
        "{}",
        r#"{"a":1.0,"a":1e999,"\u0061":"\ud800","\ud800":null}"#,
        r#"{"":[ 1 , 2 ],"\"":{"b" : false}}"#,
        deep.as_str(),
    ] {
        assert_eq!(copied(json), json);
    }
    assert_eq!(copied("{ \"a\" : 1 ,\n\"b\":\t2 }"), r#"{"a":1,"b":2}"#);
}

#[test]
fn keys_are_compared_without_their_escapes_and_the_last_of_a_name_counts() {
    let object = raw(r#"{"spec":1,"\u0073pec":2,"\ud800":3}"#);
    assert_eq!(member(object, "spec").map(RawValue::get), Some("2"));
    assert!(member(object, "kind").is_none());
}

#[test]
fn what_is_no_object_has_no_members() {
    for json in ["[]", "null", "7", r#""{}""#] {
        assert!(!members(raw(json), |_, _| panic!("{json}")));
    }
}

#[test]
fn strings_are_strings_alone() {
    for (json, text) in
        [(r#""""#, Some("")), (r#""a\"b""#, Some("a\"b")), ("1", None), ("null", None), (r#""\ud800""#, None)]
    {
        assert_eq!(string(raw(json)).as_deref(), text, "{json}");
    }
}

#[test]
fn elements_are_read_until_one_is_refused() {
    let mut read = Vec::new();
    let refused = elements(raw("[1,[2],3,4]"), |element| {
        read.push(element.get());
        if element.get() == "3" { Err("three") } else { Ok(()) }
    });
    assert_eq!((refused, read), (Err("three"), vec!["1", "[2]", "3"]));
    assert_eq!(elements::<()>(raw("{}"), |_| Err(())), Ok(()));
}
