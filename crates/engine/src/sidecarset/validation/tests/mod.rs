#![allow(clippy::unwrap_used, clippy::panic)]

mod app_containers;
mod canary;
mod conflicts;
mod containers;
mod data;
mod endpoints;
mod golden;
mod metadata;
mod older;
mod properties;
mod rare;
mod resources;
mod revision;
mod sources;
mod spec;
mod stored;
mod transfer;
mod update;

use std::sync::Arc;

use admission::Findings;
use admission::patch::PatchBuilder;
use serde_json::{Map, Value, json};

use crate::sidecarset::api::SidecarSet;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::defaults;
use crate::sidecarset::index::SetIndex;
use crate::snapshot::Exclusion;
use crate::snapshot::Snapshot;

/// A valid set, with these fields of `spec` in place of its own; `null` takes one away.
fn set(fields: &Value) -> Value {
    named_set("log-agent", fields)
}

fn named_set(name: &str, fields: &Value) -> Value {
    let mut spec =
        json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "log", "image": "log:1"}]});
    overlay(&mut spec, fields);
    json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": spec})
}

/// A set with one container, which has these fields beside a name and an image.
fn with_container(fields: &Value) -> Value {
    set(&json!({"containers": [container(fields)], "volumes": [{"name": "data"}]}))
}

fn container(fields: &Value) -> Value {
    let mut container = json!({"name": "log", "image": "log:1"});
    overlay(&mut container, fields);
    container
}

fn overlay(base: &mut Value, fields: &Value) {
    let base: &mut Map<String, Value> = base.as_object_mut().unwrap();
    for (key, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => drop(base.remove(key)),
            value => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

fn defaulted(object: &Value) -> Value {
    let mut patch = PatchBuilder::new(object);
    defaults::fill(&mut patch).unwrap();
    patch.document().clone()
}

/// The read model with these sets.
fn cluster(sets: &[Value]) -> Snapshot {
    let compile = |set: &Value| {
        let set: SidecarSet = serde_json::from_value(defaulted(set)).unwrap();
        Arc::new(CompiledSet::compile(&set).unwrap())
    };
    Snapshot {
        sets: Arc::new(SetIndex::build(sets.iter().map(compile))),
        exclusion: Arc::new(Exclusion::new("outrider-system", [])),
        ..Snapshot::default()
    }
}

/// What is said about a new set once it has its defaults: errors in one text, and warnings.
fn judged(object: &Value, cluster: &Snapshot) -> (String, Vec<String>) {
    let mut findings = Findings::default();
    super::create(&defaulted(object), super::FieldValidation::Warn, cluster, &mut findings);
    (findings.errors.to_string(), findings.warnings)
}

fn errors(object: &Value) -> String {
    judged(object, &cluster(&[])).0
}

/// Each set has exactly the errors beside it.
fn assert_errors(cases: &[(Value, &str)]) {
    for (object, expected) in cases {
        assert_eq!(errors(object), *expected, "{}", object["spec"]);
    }
}

/// Each container, alone in a set with a volume `data`, has exactly the errors beside it, at `spec.containers[0]`.
fn assert_container_errors(cases: &[(Value, &[&str])]) {
    for (fields, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|text| format!("spec.containers[0].{text}")).collect();
        let expected = match expected.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        assert_eq!(errors(&with_container(fields)), expected, "{fields}");
    }
}
