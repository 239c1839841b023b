//! Conversion reviews, and `CronJobs` on their way to the other version and back.

use admission::Registry;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::process::conversion::cronjob;

/// Checks the reply to a body, and each object in it on its way there and back.
pub fn check(body: &[u8]) {
    let registry = Registry::<()>::default().converting(cronjob());
    let reply = registry.convert(body);
    // What conversion does not read is passed on as it is, half a surrogate pair too, which no API server sends.
    let Ok(review) = serde_json::from_slice::<Value>(body) else { return };
    if let Ok(reply) = reply {
        let reply: Value = serde_json::from_slice(&reply).expect("a reply is JSON");
        assert!(reply["response"]["uid"].is_string());
        assert!(matches!(reply["response"]["result"]["status"].as_str(), Some("Success" | "Failure")));
    }
    for object in review["request"]["objects"].as_array().into_iter().flatten() {
        there_and_back(object);
    }
}

fn there_and_back(object: &Value) {
    for (home, abroad) in [("v1", "v2"), ("v2", "v1")] {
        let mut object = object.clone();
        let Some(fields) = object.as_object_mut() else { return };
        fields.insert("apiVersion".to_owned(), json!(format!("batch.outrider.dev/{home}")));
        fields.insert("kind".to_owned(), json!("CronJob"));
        // What the definition lets through: anything else is never stored.
        if !is_stored(&object, home) {
            continue;
        }
        let there = convert(&object, abroad);
        let back = convert(&there, home);
        assert_eq!(without_memory(&back), without_memory(&object), "was {there} in between");
    }
}

fn convert(object: &Value, version: &str) -> Value {
    let raw = RawValue::from_string(object.to_string()).expect("JSON");
    let mut out = String::new();
    cronjob().convert(&raw, version, &mut out).unwrap_or_else(|error| panic!("{error}: {object}"));
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn is_stored(object: &Value, version: &str) -> bool {
    let schedule = &object["spec"]["schedule"];
    let is_schedule = match version {
        "v1" => schedule.as_str().is_some_and(|text| text.len() <= 1024),
        _ => schedule.as_object().is_some_and(|fields| {
            const FIELDS: [&str; 5] = ["minute", "hour", "dayOfMonth", "month", "dayOfWeek"];
            fields.iter().all(|(name, part)| {
                FIELDS.contains(&name.as_str()) && part.as_str().is_some_and(|part| part.len() <= 200)
            })
        }),
    };
    let annotations = object["metadata"].get("annotations");
    let are_texts = |map: &Value| map.as_object().is_some_and(|map| map.values().all(Value::is_string));
    is_schedule && object["metadata"].is_object() && annotations.is_none_or(are_texts)
}

/// The object without the annotations that conversion keeps for itself; an object without annotations may have an empty map.
fn without_memory(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(annotations)) = object["metadata"].get_mut("annotations") {
        annotations.retain(|key, _| !key.starts_with("batch.outrider.dev/v"));
        if annotations.is_empty() {
            object["metadata"].as_object_mut().expect("it has annotations").remove("annotations");
        }
    }
    object
}
