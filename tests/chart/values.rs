//! values.yaml, values.schema.json and Chart.yaml fit together and to the code.

use std::fs;
use std::path::Path;

use engine::yaml;
use outrider::kinds::workshop;
use serde_json::{Map, Value, json};

use crate::helm::CHART;

fn read(name: &str) -> Value {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(CHART).join(name)).unwrap();
    yaml::read(&text).unwrap().remove(0).value
}

/// Where schema and values have different keys, for as deep as the schema lists them.
fn differences(path: &str, schema: &Value, values: &Value) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    // What all charts share may hold values of others.
    assert!(path == ".global" || schema["additionalProperties"] == false, "{path:?} takes typos");
    // A selector that is empty by default has keys that everybody knows.
    let Some(values) = values.as_object().filter(|values| !values.is_empty()) else { return Vec::new() };
    let mut found: Vec<String> = values
        .keys()
        .filter(|key| !properties.contains_key(*key))
        .map(|key| format!("{path}.{key}: no schema"))
        .collect();
    for (key, schema) in properties {
        match values.get(key) {
            Some(value) => found.extend(differences(&format!("{path}.{key}"), schema, value)),
            None => found.push(format!("{path}.{key}: no value")),
        }
    }
    found
}

/// Null in place of every value that the schema requires, or of the others; in place of maps, or of what they hold.
pub fn nulls(required: bool, whole_maps: bool) -> Value {
    nulls_of(&read("values.schema.json"), &read("values.yaml"), required, whole_maps)
}

fn nulls_of(schema: &Value, values: &Value, required: bool, whole_maps: bool) -> Value {
    let listed = schema["required"].as_array();
    let is_required = |key: &str| listed.is_some_and(|list| list.iter().any(|found| found == key));
    let mut found = Map::new();
    for (key, schema) in schema["properties"].as_object().unwrap() {
        // A selector that is empty by default has keys that everybody knows.
        let Some(values) = values.get(key) else { continue };
        let inner = schema["properties"].is_object();
        let value = if is_required(key) == required && (whole_maps || !inner) {
            Value::Null
        } else if inner {
            nulls_of(schema, values, required, whole_maps)
        } else {
            continue;
        };
        found.insert(key.clone(), value);
    }
    json!(found)
}

#[test]
fn schema_and_values_have_the_same_keys() {
    assert_eq!(differences("", &read("values.schema.json"), &read("values.yaml")), Vec::<String>::new());
}

#[test]
fn every_kind_of_the_workshop_has_a_value_and_is_off() {
    let values = read("values.yaml");
    let kinds = values["kinds"].as_object().unwrap();
    assert_eq!(kinds.len(), workshop().count());
    for kind in workshop() {
        assert_eq!(kinds[kind.name]["enabled"], false, "{}", kind.name);
    }
}

#[test]
fn the_chart_has_the_version_of_the_code() {
    let chart = read("Chart.yaml");
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}
