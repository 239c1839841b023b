use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Conversion, Hub, Spoke};
use crate::deadline::Deadline;
use crate::registry::Registry;
use crate::unserved::Unserved;

const GROUP: &str = "acme.example";

/// v1 says when in seconds, v2 in minutes and seconds, v1alpha1 in minutes alone, with the rest in an annotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct V1 {
    #[serde(default)]
    metadata: Metadata,
    seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct V2 {
    #[serde(default)]
    metadata: Metadata,
    minutes: u64,
    seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct V1Alpha1 {
    #[serde(default)]
    metadata: Metadata,
    minutes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

impl Hub for V1 {
    const VERSION: &'static str = "v1";
}

impl Spoke<V1> for V2 {
    const VERSION: &'static str = "v2";
    fn into_hub(self) -> Result<V1, String> {
        if self.seconds >= 60 {
            return Err(format!("seconds is {}, must be below 60", self.seconds));
        }
        Ok(V1 { metadata: self.metadata, seconds: self.minutes * 60 + self.seconds })
    }
    fn from_hub(hub: V1) -> Result<Self, String> {
        Ok(Self { metadata: hub.metadata, minutes: hub.seconds / 60, seconds: hub.seconds % 60 })
    }
}

const REST: &str = "acme.example/seconds";

impl Spoke<V1> for V1Alpha1 {
    const VERSION: &'static str = "v1alpha1";
    fn into_hub(mut self) -> Result<V1, String> {
        let rest = self.metadata.annotations.remove(REST).map_or(Ok(0), |rest| rest.parse::<u64>());
        let rest = rest.map_err(|error| format!("annotation {REST}: {error}"))?;
        Ok(V1 { metadata: self.metadata, seconds: self.minutes * 60 + rest })
    }
    fn from_hub(mut hub: V1) -> Result<Self, String> {
        if !hub.seconds.is_multiple_of(60) {
            hub.metadata.annotations.insert(REST.to_owned(), (hub.seconds % 60).to_string());
        }
        Ok(Self { metadata: hub.metadata, minutes: hub.seconds / 60 })
    }
}

fn registry() -> Registry<()> {
    let backup = Conversion::new::<V1>(GROUP, "Backup").spoke::<V1, V2>().spoke::<V1, V1Alpha1>();
    Registry::default().converting(backup)
}

fn object(version: &str, name: &str, fields: Value) -> Value {
    let mut object = fields;
    object["apiVersion"] = format!("{GROUP}/{version}").into();
    object["kind"] = "Backup".into();
    object["metadata"] = json!({
        "name": name, "namespace": "shop", "uid": "o-1", "labels": {"team": "a"}, "annotations": {"kept": "yes"},
        "managedFields": [{"manager": "kubectl"}],
    });
    object
}

fn convert(desired: &str, objects: &[Value]) -> Value {
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "c-1\"", "desiredAPIVersion": desired, "objects": objects,
    }});
    let reply = registry().convert(body.to_string().as_bytes()).unwrap();
    let mut reply: Value = serde_json::from_slice(&reply).unwrap();
    assert_eq!(
        (&reply["apiVersion"], &reply["kind"], &reply["response"]["uid"]),
        (&body["apiVersion"], &body["kind"], &body["request"]["uid"])
    );
    reply["response"].take()
}

#[test]
fn objects_of_mixed_versions_come_back_in_order_and_in_one_version() {
    let response = convert(
        "acme.example/v2",
        &[
            object("v1", "a", json!({"seconds": 61})),
            object("v2", "b", json!({"minutes": 2, "seconds": 3})),
            object("v1alpha1", "c", json!({"minutes": 4})),
        ],
    );
    assert_eq!(response["result"], json!({"status": "Success"}));
    let expected = [
        object("v2", "a", json!({"minutes": 1, "seconds": 1})),
        object("v2", "b", json!({"minutes": 2, "seconds": 3})),
        object("v2", "c", json!({"minutes": 4, "seconds": 0})),
    ];
    assert_eq!(response["convertedObjects"], json!(expected));
}

#[test]
fn labels_and_annotations_follow_the_types_and_other_metadata_stays() {
    let response = convert("acme.example/v1alpha1", &[object("v1", "a", json!({"seconds": 61}))]);
    let mut expected = object("v1alpha1", "a", json!({"minutes": 1}));
    expected["metadata"]["annotations"][REST] = "1".into();
    assert_eq!(response["convertedObjects"], json!([expected]));

    let through_the_hub = convert("acme.example/v2", &[expected]);
    let expected = object("v2", "a", json!({"minutes": 1, "seconds": 1}));
    assert_eq!(through_the_hub["convertedObjects"], json!([expected]));
}

#[test]
fn an_object_that_cannot_be_converted_fails_the_review_and_is_named() {
    let one = |object: Value| (json!([object]), "acme.example/v1");
    let mut foreign = object("v1", "a", json!({}));
    foreign["apiVersion"] = "other.example/v1".into();
    let mut unnamed = object("v9", "a", json!({}));
    unnamed["metadata"] = Value::Null;
    let cases = [
        (
            one(object("v2", "a", json!({"minutes": 1, "seconds": 60}))),
            r#"Backup "a": seconds is 60, must be below 60"#,
        ),
        (one(object("v2", "a", json!({"minutes": 1}))), r#"Backup "a": missing field `seconds`"#),
        (
            one(object("v3", "a", json!({}))),
            r#"Backup "a": Backup.acme.example has no version "v3"; known: v1, v1alpha1, v2"#,
        ),
        (one(unnamed), r#"Backup "": Backup.acme.example has no version "v9"; known: v1, v1alpha1, v2"#),
        (one(foreign), r#"Backup "a": apiVersion of the object is not in group acme.example"#),
        (one(json!(7)), r#" "": no conversion to acme.example/v1 is served"#),
        (
            (json!([object("v1", "a", json!({"seconds": 1}))]), "acme.example/v3"),
            r#"Backup "a": Backup.acme.example has no version "v3"; known: v1, v1alpha1, v2"#,
        ),
        (
            (json!([object("v3", "a", json!({}))]), "acme.example/v3"),
            r#"Backup "a": Backup.acme.example has no version "v3"; known: v1, v1alpha1, v2"#,
        ),
        ((json!([object("v1", "a", json!({"seconds": 1}))]), "v1"), r#"Backup "a": no conversion to v1 is served"#),
        (
            (json!([object("v1", "good", json!({"seconds": 1})), {"kind": "Other"}]), "acme.example/v2"),
            r#"Other "": no conversion to acme.example/v2 is served"#,
        ),
    ];
    for ((objects, desired), message) in cases {
        let response = convert(desired, objects.as_array().unwrap());
        assert_eq!(response["result"], json!({"status": "Failure", "message": message}));
        assert!(response.get("convertedObjects").is_none());
    }
}

#[test]
fn a_deeply_nested_object_fails_the_review_and_keeps_its_uid() {
    let body = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"c","desiredAPIVersion":"acme.example/v1","objects":[{{}},{}{}]}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000),
    );
    let registry = registry();
    let reply: Value = serde_json::from_slice(&registry.convert(body.as_bytes()).unwrap()).unwrap();
    assert_eq!(reply["response"]["uid"], "c");
    assert_eq!(reply["response"]["result"]["status"], "Failure");
}

#[test]
fn conversion_ends_when_nobody_waits_for_it() {
    let asked = Cell::new(0);
    let is_over = || asked.replace(asked.get() + 1) == 2;
    let objects: Vec<Value> = (0..10).map(|i| object("v1", &format!("o{i}"), json!({"seconds": i}))).collect();
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "c", "desiredAPIVersion": "acme.example/v2", "objects": objects,
    }});
    let converted = registry().convert_within(body.to_string().as_bytes(), Deadline::until(&is_over));
    assert!(matches!(converted, Err(Unserved::OutOfTime)), "{converted:?}");
    assert_eq!(asked.get(), 3);
}

#[test]
fn no_objects_convert_to_no_objects() {
    for objects in ["[]", "null"] {
        let body = format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{{"uid":"c","desiredAPIVersion":"acme.example/v1","objects":{objects}}}}}"#
        );
        let reply: Value = serde_json::from_slice(&registry().convert(body.as_bytes()).unwrap()).unwrap();
        assert_eq!(reply["apiVersion"], "apiextensions.k8s.io/v1beta1");
        assert_eq!(reply["response"], json!({"uid": "c", "result": {"status": "Success"}, "convertedObjects": []}));
    }
}

#[test]
fn what_is_not_a_conversion_review_is_unreadable() {
    let cases = [
        ("", "it is empty, expected a ConversionReview in JSON"),
        ("a: b", "it is not JSON: expected value"),
        ("{}", r#"kind is missing, expected "ConversionReview""#),
        (r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#, "request is missing"),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","desiredAPIVersion":"v1"}}"#,
            r#"kind is "AdmissionReview", expected "ConversionReview""#,
        ),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v2","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"v1"}}"#,
            r#"apiVersion is "apiextensions.k8s.io/v2", expected "apiextensions.k8s.io/v1""#,
        ),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":null,"desiredAPIVersion":"v1"}}"#,
            "request.uid is missing",
        ),
    ];
    for (body, expected) in cases {
        let unserved = registry().convert(body.as_bytes()).unwrap_err();
        assert_eq!(unserved.status(), 400);
        let message = unserved.to_string();
        assert!(message.starts_with(&format!("the body is not a readable review: {expected}")), "{message}");
    }
}

fn one(registry: &Registry<()>, object: &Value, version: &str) -> Value {
    let mut out = String::new();
    let object = serde_json::value::to_raw_value(object).unwrap();
    registry.conversions()[0].convert(&object, version, &mut out).unwrap();
    serde_json::from_str(&out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn from_spoke_to_hub_and_back_is_the_same_object(minutes in 0..u64::MAX / 120, seconds in 0..60_u64) {
        let mut annotated = object("v1alpha1", "a", json!({"minutes": minutes}));
        if seconds > 0 {
            annotated["metadata"]["annotations"][REST] = seconds.to_string().into();
        }
        let registry = registry();
        for (version, spoke) in [
            ("v2", object("v2", "a", json!({"minutes": minutes, "seconds": seconds}))),
            ("v1alpha1", annotated),
        ] {
            let hub = one(&registry, &spoke, "v1");
            prop_assert_eq!(&hub["seconds"], &json!(minutes * 60 + seconds));
            prop_assert_eq!(one(&registry, &hub, version), spoke);
        }
    }
}
