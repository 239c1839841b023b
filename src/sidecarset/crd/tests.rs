#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sidecarset;
use engine::sidecarset::api::CONTROL_FIELDS;

fn root() -> Value {
    let crd = serde_json::to_value(sidecarset()).unwrap();
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap().clone()
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
fn definition_is_small_enough_for_the_last_applied_annotation() {
    let size = serde_json::to_vec(&sidecarset()).unwrap().len();
    assert!(size < 64 * 1024, "{size} bytes");
}

#[test]
fn every_field_is_typed_and_described() {
    walk(&root(), "", &mut |path, schema| {
        let typed = schema.get("type").is_some() || schema.get("x-kubernetes-int-or-string").is_some();
        assert!(typed, "{path} has no type");
        if path != ".metadata" {
            let description = schema["description"].as_str().unwrap_or_default();
            assert!(description.ends_with(['.', '*']), "{path}: {description:?}");
        }
    });
}

#[test]
fn schema_is_structural_without_defaults_and_unsigned_formats() {
    walk(&root(), "", &mut |path, schema| {
        for word in ["default", "anyOf", "oneOf", "allOf", "not", "nullable", "uniqueItems", "$ref"] {
            assert!(schema.get(word).is_none(), "{path} has {word}");
        }
        if let Some(format) = schema.get("format") {
            assert!(["int32", "int64", "date-time"].iter().any(|known| format == known), "{path}: {format}");
        }
        if schema["type"] == "array" {
            match schema["x-kubernetes-list-type"].as_str() {
                Some("atomic") => {}
                Some("map") => {
                    let required = schema["items"]["required"].as_array().unwrap();
                    let keys = schema["x-kubernetes-list-map-keys"].as_array().unwrap();
                    assert!(keys.iter().all(|key| required.contains(key)), "{path}");
                }
                other => panic!("{path}: {other:?}"),
            }
        }
    });
}

#[test]
fn nothing_of_the_object_and_its_spec_is_required() {
    let root = root();
    assert!(root.get("required").is_none());
    assert!(root["properties"]["spec"].get("required").is_none());
}

#[test]
fn containers_and_volumes_keep_unknown_fields_and_nothing_else_does() {
    let mut open = BTreeSet::new();
    walk(&root(), "", &mut |path, schema| {
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            open.insert(path.to_owned());
        }
    });
    let expected = [
        ".spec.appContainers[].env[]",
        ".spec.appContainers[].volumeMounts[]",
        ".spec.containers[]",
        ".spec.initContainers[]",
        ".spec.volumes[]",
    ];
    assert_eq!(open, expected.map(str::to_owned).into());
}

#[test]
fn steering_fields_of_containers_are_described() {
    let root = root();
    for list in ["containers", "initContainers"] {
        let known = fields(&root["properties"]["spec"]["properties"][list]["items"]);
        let expected: BTreeSet<&str> = CONTROL_FIELDS.into_iter().chain(["name", "image"]).collect();
        assert_eq!(known, expected, "{list}");
    }
}

#[test]
fn definition_names_the_resource_as_users_type_it() {
    let crd = serde_json::to_value(sidecarset()).unwrap();
    assert_eq!(crd["metadata"]["name"], "sidecarsets.apps.outrider.dev");
    assert_eq!(crd["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(crd["kind"], "CustomResourceDefinition");
    assert_eq!(crd["spec"]["scope"], "Cluster");
    assert_eq!(crd["spec"]["versions"][0]["subresources"], json!({"status": {}}));
    let columns: Vec<&str> = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        // The others are shown by -o wide.
        .filter(|column| column.get("priority").is_none())
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Matched", "Updated", "Ready", "Age"]);
}

#[test]
fn fields_say_what_this_build_does() {
    let root = root();
    let description = |field: &str| {
        root.pointer(&format!("/properties/spec/properties/{field}/description")).unwrap().as_str().unwrap().to_owned()
    };
    for what in [
        "Images of containers and of native sidecars are changed in the running pod",
        "a container with upgradeType HotUpgrade",
        "through pods/resize",
    ] {
        assert!(description("updateStrategy").contains(what), "{what}");
    }
    assert!(description("revisionHistoryLimit").contains("as ControllerRevisions in Outrider's namespace"));
}

/// `OpenKruise` has the same plural in another group.
#[test]
fn the_short_name_is_of_this_kind_alone() {
    assert_eq!(sidecarset().spec.names.short_names, Some(vec!["oss".to_owned()]));
    for kind in crate::kinds::workshop() {
        assert!(!kind.definition().spec.names.short_names.unwrap_or_default().contains(&"oss".to_owned()));
    }
}
