use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operation, ParseError, Review, ReviewVersion, Text};

/// The body of a review that creates `object`.
fn body(version: &str, object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/{version}","kind":"AdmissionReview","request":{{"uid":"u-1","operation":"CREATE","object":{object}}}}}"#
    )
}

fn with_request(request: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

fn unreadable(body: &str) -> String {
    match Review::<Value>::parse(body.as_bytes()) {
        Err(ParseError::Unreadable(message)) => message,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn every_field_of_a_request_is_reachable() {
    let full = with_request(&json!({
        "uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816",
        "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subResource": "scale",
        "requestKind": {"group": "autoscaling", "version": "v2", "kind": "Scale"},
        "requestResource": {"group": "apps", "version": "v1beta1", "resource": "deployments"},
        "requestSubResource": "scale",
        "name": "web", "namespace": "shop", "operation": "UPDATE",
        "userInfo": {"username": "jane", "uid": "7", "groups": ["dev", "ops"], "extra": {"scopes": ["a"]}},
        "object": {"spec": {"replicas": 2}},
        "oldObject": {"spec": {"replicas": 1}},
        "dryRun": true,
        "options": {"kind": "UpdateOptions", "fieldManager": "kubectl"},
    }));
    let Review { version, request, .. } = Review::<Value>::parse(full.as_bytes()).unwrap();
    assert_eq!(version, ReviewVersion::V1);
    assert_eq!(request.uid.as_str(), "0df28fbd-5f5f-11e8-bc74-36e6bb280816");
    let kind = &request.kind;
    assert_eq!((&*kind.group, &*kind.version, &*kind.kind), ("autoscaling", "v1", "Scale"));
    let resource = &request.resource;
    assert_eq!((&*resource.group, &*resource.version, &*resource.resource), ("apps", "v1", "deployments"));
    assert_eq!(request.request_kind.as_ref().unwrap().version.as_str(), "v2");
    assert_eq!(request.request_resource.as_ref().unwrap().version.as_str(), "v1beta1");
    assert_eq!((&*request.sub_resource, &*request.request_sub_resource), ("scale", "scale"));
    assert!(request.is_sub_resource());
    assert_eq!((&*request.name, &*request.namespace), ("web", "shop"));
    assert_eq!(request.operation, Operation::Update);
    let user = &request.user_info;
    assert_eq!((&*user.username, &*user.uid), ("jane", "7"));
    assert!(user.groups.contains("dev") && user.groups.contains("ops") && !user.groups.contains("qa"));
    assert_eq!(user.extra.unwrap().get(), r#"{"scopes":["a"]}"#);
    assert_eq!(request.object.unwrap().pointer("/spec/replicas"), Some(&json!(2)));
    assert_eq!(request.old_object.unwrap().pointer("/spec/replicas"), Some(&json!(1)));
    assert!(request.dry_run);
    assert!(request.options.unwrap().get().contains("fieldManager"));
}

#[test]
fn null_and_absent_read_alike_in_every_optional_field() {
    let optional = [
        "kind",
        "resource",
        "subResource",
        "requestKind",
        "requestResource",
        "requestSubResource",
        "name",
        "namespace",
        "userInfo",
        "object",
        "oldObject",
        "dryRun",
        "options",
    ];
    let absent = with_request(&json!({"uid": "u", "operation": "CREATE"}));
    // What was read, without the body, which is another in each case.
    let read = |review: &Review<'_, Value>, body: &str| format!("{review:?}").replace(&format!("{body:?}"), "");
    let expected = read(&Review::<Value>::parse(absent.as_bytes()).unwrap(), &absent);
    for field in optional {
        let mut request = json!({"uid": "u", "operation": "CREATE"});
        request[field] = Value::Null;
        let nulled = with_request(&request);
        let review = Review::<Value>::parse(nulled.as_bytes()).unwrap_or_else(|error| panic!("{field}: {error}"));
        assert_eq!(read(&review, &nulled), expected, "{field}");
    }
    for (parent, fields) in [
        ("kind", &["group", "version", "kind"][..]),
        ("resource", &["group", "version", "resource"]),
        ("userInfo", &["username", "uid", "groups", "extra"]),
    ] {
        for field in fields {
            let nulled = with_request(&json!({"uid": "u", "operation": "CREATE", parent: {*field: null}}));
            let review = Review::<Value>::parse(nulled.as_bytes()).unwrap_or_else(|error| panic!("{field}: {error}"));
            assert_eq!(read(&review, &nulled), expected, "{parent}.{field}");
        }
    }
}

#[test]
fn each_operation_is_read_with_the_objects_that_it_has() {
    let cases = [
        (json!({"operation": "CREATE", "object": {}}), Operation::Create, (true, false)),
        (json!({"operation": "UPDATE", "object": {}, "oldObject": {}}), Operation::Update, (true, true)),
        (json!({"operation": "DELETE", "object": null, "oldObject": {}}), Operation::Delete, (false, true)),
        // PodExecOptions have no metadata.
        (
            json!({"operation": "CONNECT", "subResource": "exec", "oldObject": null, "options": null,
                "object": {"kind": "PodExecOptions", "apiVersion": "v1", "command": ["sh"]}}),
            Operation::Connect,
            (true, false),
        ),
        (
            json!({"operation": "CREATE", "name": "", "object": {"metadata": {"generateName": "web-"}}}),
            Operation::Create,
            (true, false),
        ),
    ];
    for (mut request, operation, objects) in cases {
        request["uid"] = "u".into();
        let text = with_request(&request);
        let review: Review = Review::parse(text.as_bytes()).unwrap();
        assert_eq!(review.request.operation, operation);
        assert_eq!(review.request.operation.as_str(), request["operation"]);
        assert_eq!((review.request.object.is_some(), review.request.old_object.is_some()), objects, "{text}");
        assert!(review.request.name.is_empty());
    }
}

#[test]
fn both_wire_versions_are_read() {
    for (name, version) in [("v1", ReviewVersion::V1), ("v1beta1", ReviewVersion::V1Beta1)] {
        let body = body(name, "{}");
        let review: Review = Review::parse(body.as_bytes()).unwrap();
        assert_eq!(review.version, version);
        assert_eq!(version.as_str(), format!("admission.k8s.io/{name}"));
    }
}

#[test]
fn strings_borrow_from_the_body_unless_they_hold_escapes() {
    let body = r#"{"apiVersion":"admission.k8s.io\/v1","kind":"Admission\u0052eview","request":
        {"uid":"q\"\\\u00e9\ud83d\ude00","operation":"\u0043REATE","name":"plain"}}"#;
    let review: Review = Review::parse(body.as_bytes()).unwrap();
    assert_eq!(review.request.uid.as_str(), "q\"\\é😀");
    assert!(matches!(review.request.uid, Text(Cow::Owned(_))));
    assert!(matches!(review.request.name, Text(Cow::Borrowed("plain"))));
}

#[test]
fn unknown_fields_are_left_alone_at_every_level() {
    let body = r#"{"future":[{}],"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":null,
        "request":{"uid":"u","operation":"CREATE","newer":{"a":1},"kind":{"kind":"Pod","more":true},
        "userInfo":{"username":"x","more":1},"object":{"spec":{"newer":[1]}}}}"#;
    let review: Review = Review::parse(body.as_bytes()).unwrap();
    assert_eq!(review.request.object.unwrap().get(), r#"{"spec":{"newer":[1]}}"#);
}

#[test]
fn what_is_not_a_review_is_unreadable_and_says_what_was_found() {
    let cases = [
        ("", "it is empty, expected an AdmissionReview in JSON"),
        (" \n", "it is empty, expected an AdmissionReview in JSON"),
        ("kind: AdmissionReview", "it is not JSON: expected value at line 1 column 1"),
        ("7", "invalid type: integer `7`, expected an AdmissionReview"),
        (r#"[{"kind":"AdmissionReview"}]"#, "it is a list, expected an AdmissionReview"),
        ("{}", r#"kind is missing, expected "AdmissionReview""#),
        (r#"{"kind":"AdmissionReview"}"#, r#"apiVersion is missing, expected "admission.k8s.io/v1" or"#),
        (
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":7}"#,
            "invalid type: integer `7`, expected a request",
        ),
        (r#"{"kind":"Pod","apiVersion":"v1"}"#, r#"kind is "Pod", expected "AdmissionReview""#),
        (
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}"#,
            r#"apiVersion is "admission.k8s.io/v2", expected "admission.k8s.io/v1" or "admission.k8s.io/v1beta1""#,
        ),
        (r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#, "request is missing"),
        (r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}"#, "request is missing"),
        (&with_request(&json!({"operation": "CREATE"})), "missing field `uid`"),
        (&with_request(&json!({"operation": "CREATE", "uid": ""})), "request.uid is missing"),
        (&with_request(&json!({"operation": "CREATE", "uid": null})), "request.uid is missing"),
        (&with_request(&json!({"operation": "CREATE", "uid": 7})), "invalid type: integer `7`, expected a string"),
        (&with_request(&json!({"uid": "u"})), "missing field `operation`"),
        (&with_request(&json!({"uid": "u", "operation": "PATCH"})), "unknown variant `PATCH`"),
        (&body("v1", r#"{"a":}"#), "it is not JSON: expected value"),
        (&format!("{} x", body("v1", "{}")), "it is not JSON: trailing characters"),
        (r#"{"kind":"AdmissionReview","kind":"AdmissionReview"}"#, "duplicate field `kind`"),
    ];
    for (body, expected) in cases {
        let message = unreadable(body);
        assert!(message.starts_with(expected), "{body}: {message}");
    }
}

#[test]
fn a_body_that_is_not_utf8_is_unreadable_also_where_nothing_is_read_of_it() {
    let mut body = with_request(&json!({"uid": "u", "operation": "CREATE", "options": {"a": "?"}})).into_bytes();
    let place = body.iter().position(|byte| *byte == b'?').unwrap();
    body[place] = 0xff;
    let Err(ParseError::Unreadable(message)) = Review::<Value>::parse(&body) else { panic!("it is read") };
    assert_eq!(message, format!("byte {} of it is not UTF-8, expected an AdmissionReview in JSON", place + 1));
}

#[derive(Debug, Deserialize)]
struct Sized {
    #[serde(rename = "size")]
    _size: u8,
}

fn object_fault<'a, O: Deserialize<'a> + std::fmt::Debug>(body: &'a str) -> (String, ReviewVersion, String) {
    match Review::<O>::parse(body.as_bytes()) {
        Err(ParseError::Object { uid, version, message }) => (uid, version, message),
        other => panic!("{body:.200}: {other:?}"),
    }
}

#[test]
fn an_object_that_does_not_decode_keeps_uid_and_version_and_names_the_object() {
    let update = with_request(&json!({
        "uid": "u-1", "operation": "UPDATE", "object": {"size": 1}, "oldObject": {"size": "big"}
    }));
    let cases = [
        (body("v1", r#"{"size":300}"#), ReviewVersion::V1, "object: invalid value: integer `300`, expected u8"),
        (body("v1beta1", "{}"), ReviewVersion::V1Beta1, "object: missing field `size`"),
        (body("v1", "[]"), ReviewVersion::V1, "object: invalid length 0, expected struct Sized with 1 element"),
        (body("v1", r#"{"size":1,"size":2}"#), ReviewVersion::V1, "object: duplicate field `size`"),
        (update, ReviewVersion::V1, r#"oldObject: invalid type: string "big", expected u8"#),
    ];
    for (body, version, message) in cases {
        assert_eq!(object_fault::<Sized>(&body), ("u-1".to_owned(), version, message.to_owned()));
    }
}

#[test]
fn of_a_repeated_key_in_raw_json_the_last_counts_as_for_the_api_server() {
    let body = body("v1", r#"{"a":1,"a":2}"#);
    let review = Review::<Value>::parse(body.as_bytes()).unwrap();
    assert_eq!(review.request.object, Some(json!({"a": 2})));
}

#[test]
fn deep_nesting_is_refused_without_overflowing_the_stack() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        let body = body("v1", &deep);
        let raw: Review = Review::parse(body.as_bytes()).unwrap();
        assert_eq!(raw.request.object.unwrap().get().len(), deep.len());
        assert_eq!(object_fault::<Value>(&body).2, "object: recursion limit exceeded");
    }
    // Here no single object is too deep, only the review as a whole.
    for (levels, is_refused) in [(125, false), (126, true), (127, true)] {
        let body = body("v1", &format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
        if is_refused {
            assert_eq!(object_fault::<Value>(&body).2, "recursion limit exceeded", "{levels}");
        } else {
            assert!(Review::<Value>::parse(body.as_bytes()).is_ok(), "{levels}");
        }
    }
}

#[test]
fn an_error_becomes_a_reply_only_where_there_is_a_uid() {
    let body = body("v1beta1", r#"{"size":"x"}"#);
    let error = Review::<Sized>::parse(body.as_bytes()).unwrap_err();
    let reply: Value = serde_json::from_slice(&error.into_reply().unwrap()).unwrap();
    assert_eq!(
        reply,
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {
            "uid": "u-1", "allowed": false,
            "status": {"status": "Failure", "code": 400, "reason": "BadRequest", "message":
                r#"the object could not be decoded: object: invalid type: string "x", expected u8"#},
        }})
    );
    let unserved = Review::<Sized>::parse(b"{}").unwrap_err().into_reply().unwrap_err();
    assert_eq!(unserved.status(), 400);
    assert_eq!(
        unserved.to_string(),
        r#"the body is not a readable review: kind is missing, expected "AdmissionReview""#
    );
}
