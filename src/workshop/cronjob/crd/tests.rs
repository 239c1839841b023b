use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::WebhookClientConfig;
use serde_json::{Value, json};

use super::cronjob;
use crate::workshop::cronjob::v2::FIELDS;

fn definition() -> Value {
    serde_json::to_value(cronjob(&WebhookClientConfig::default())).unwrap()
}

fn root(version: usize) -> Value {
    definition().pointer(&format!("/spec/versions/{version}/schema/openAPIV3Schema")).unwrap().clone()
}

/// Calls `visit` with every schema below `schema` and the path to it.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{path}.{name}"), visit);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{path}[]"), visit);
    }
}

fn fields(schema: &Value) -> BTreeSet<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn definition_names_the_resource_and_stores_the_first_version() {
    let crd = definition();
    assert_eq!(crd["metadata"]["name"], "cronjobs.batch.outrider.dev");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(crd["spec"]["names"]["shortNames"], Value::Null);
    assert_eq!(crd["spec"]["conversion"]["strategy"], "Webhook");
    assert_eq!(crd["spec"]["conversion"]["webhook"]["conversionReviewVersions"], json!(["v1"]));
    for (version, (name, storage)) in [("v1", true), ("v2", false)].into_iter().enumerate() {
        let version = &crd["spec"]["versions"][version];
        assert_eq!((&version["name"], &version["storage"]), (&json!(name), &json!(storage)));
        assert_eq!(version["served"], true);
        assert_eq!(version["subresources"], json!({"status": {}}));
    }
}

#[test]
fn columns_tell_the_schedule_and_the_next_run() {
    let crd = definition();
    let columns = |version: usize| -> Vec<String> {
        let columns = crd["spec"]["versions"][version]["additionalPrinterColumns"].as_array().unwrap();
        columns.iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect()
    };
    let common = ["Suspend", "Active", "Last Schedule", "Next Schedule", "Age"];
    assert_eq!(columns(0), [&["Schedule"], common.as_slice()].concat());
    assert_eq!(columns(1), [&["Minute", "Hour", "Day", "Month", "Weekday"], common.as_slice()].concat());
}

#[test]
fn every_field_is_typed_and_described() {
    for version in [0, 1] {
        walk(&root(version), "", &mut |path, schema| {
            assert!(schema.get("type").is_some(), "{path} has no type");
            for word in ["default", "anyOf", "oneOf", "allOf", "not", "nullable", "$ref"] {
                assert!(schema.get(word).is_none(), "{path} has {word}");
            }
            if path != ".metadata" {
                let description = schema["description"].as_str().unwrap_or_default();
                assert!(description.ends_with('.'), "{path}: {description:?}");
            }
        });
    }
}

#[test]
fn versions_differ_in_the_schedule_alone() {
    let (mut one, mut two) = (root(0), root(1));
    let schedule = "/properties/spec/properties/schedule";
    let (string, object) = (one.pointer_mut(schedule).unwrap().take(), two.pointer_mut(schedule).unwrap().take());
    assert_eq!(one, two);
    assert_eq!((&string["type"], &object["type"]), (&json!("string"), &json!("object")));
    assert_eq!(fields(&object), FIELDS.into());
}

#[test]
fn job_template_keeps_unknown_fields_at_every_level_and_nothing_else_does() {
    let mut open = BTreeSet::new();
    walk(&root(0), "", &mut |path, schema| {
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            open.insert(path.trim_start_matches(".spec.jobTemplate").to_owned());
        }
    });
    let expected = ["", ".metadata", ".spec", ".spec.template", ".spec.template.metadata", ".spec.template.spec"];
    assert_eq!(open, expected.map(str::to_owned).into());
}

#[test]
fn schedule_and_template_must_be_there_and_numbers_are_not_negative() {
    let root = root(0);
    assert_eq!(root["required"], json!(["spec"]));
    assert_eq!(root["properties"]["spec"]["required"], json!(["schedule", "jobTemplate"]));
    let mut bounded = BTreeSet::new();
    walk(&root["properties"]["spec"], "", &mut |path, schema| {
        if schema["minimum"] == 0.0 {
            bounded.insert(path.to_owned());
        }
    });
    let expected = [".failedJobsHistoryLimit", ".startingDeadlineSeconds", ".successfulJobsHistoryLimit"];
    assert_eq!(bounded, expected.map(str::to_owned).into());
}
