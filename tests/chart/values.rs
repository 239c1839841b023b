//! values.yaml, values.schema.json and Chart.yaml fit together and to the code.

use std::fs;
use std::path::Path;

use outrider::workshop::KINDS;
use outrider::yaml;
use serde_json::Value;

use crate::helm::CHART;

fn read(name: &str) -> Value {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(CHART).join(name)).unwrap();
    yaml::read(&text).unwrap().remove(0).value
}

/// Where schema and values have different keys, for as deep as the schema lists them.
fn differences(path: &str, schema: &Value, values: &Value) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    assert_eq!(schema["additionalProperties"], false, "{path:?} takes typos");
    // A selector that is empty by default has keys that everybody knows.
    let Some(values) = values.as_object().filter(|values| !values.is_empty()) else { return Vec::new() };
    let mut found: Vec<String> = values
        .keys()
        .filter(|key| !properties.contains_key(*key))
        .map(|key| format!("{path}.{key}: no schema"))
        .collect();
    for (key, schema) in properties.iter().filter(|(key, _)| *key != "global") {
        match values.get(key) {
            Some(value) => found.extend(differences(&format!("{path}.{key}"), schema, value)),
            None => found.push(format!("{path}.{key}: no value")),
        }
    }
    found
}

#[test]
fn schema_and_values_have_the_same_keys() {
    assert_eq!(differences("", &read("values.schema.json"), &read("values.yaml")), Vec::<String>::new());
}

#[test]
fn every_kind_of_the_workshop_has_a_value_and_is_off() {
    let values = read("values.yaml");
    let kinds = values["kinds"].as_object().unwrap();
    assert_eq!(kinds.len(), KINDS.len());
    for kind in KINDS {
        assert_eq!(kinds[kind.name]["enabled"], false, "{}", kind.name);
    }
}

#[test]
fn the_chart_has_the_version_of_the_code() {
    let chart = read("Chart.yaml");
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}
