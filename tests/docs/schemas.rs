//! The schemas that the engine compares manifests with.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    Container, Namespace, PersistentVolumeClaim, Pod, PodSpec, PodTemplate, PodTemplateSpec, ReplicationController,
    Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::schemars::generate::SchemaSettings;
use outrider::sidecarset::crd;
use serde_json::{Map, Value, json};

/// Keywords that the engine reads.
const KEYWORDS: [&str; 8] = [
    "type",
    "format",
    "enum",
    "items",
    "properties",
    "additionalProperties",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];

/// The schema of a type as the API of this build's k8s-openapi has it.
fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    read(settings.into_generator().into_root_schema_for::<T>().as_value())
}

/// Of a schema what the engine reads.
fn read(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in schema.iter().filter(|(keyword, _)| KEYWORDS.contains(&keyword.as_str())) {
        let value = match keyword.as_str() {
            "items" | "additionalProperties" => read(value),
            "properties" => {
                let fields = value.as_object().unwrap().iter();
                fields.map(|(name, field)| (name.clone(), read(field))).collect::<Map<_, _>>().into()
            }
            _ => value.clone(),
        };
        kept.insert(keyword.clone(), value);
    }
    kept.into()
}

/// The schema with a reference where a part of it is the schema of that name.
fn referring(schema: &Value, named: &[(&str, Value)]) -> Value {
    if let Some((name, _)) = named.iter().find(|(_, of_name)| of_name == schema) {
        return json!({"$ref": name});
    }
    match schema {
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), referring(field, named))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// The kinds of Kubernetes that make pods. Each would have the schema of a pod in itself.
fn workloads() -> Vec<(&'static str, Value)> {
    let named = [
        ("ObjectMeta", of::<ObjectMeta>()),
        ("Container", of::<Container>()),
        ("Volume", of::<Volume>()),
        ("PodSpec", of::<PodSpec>()),
        ("PodTemplateSpec", of::<PodTemplateSpec>()),
        ("PersistentVolumeClaim", of::<PersistentVolumeClaim>()),
    ];
    let referring = |(name, schema): (&'static str, Value)| {
        let others: Vec<_> = named.iter().filter(|(other, _)| *other != name).cloned().collect();
        (name, referring(&schema, &others))
    };
    let kinds = [
        ("CronJob", of::<CronJob>()),
        ("DaemonSet", of::<DaemonSet>()),
        ("Deployment", of::<Deployment>()),
        ("Job", of::<Job>()),
        ("Pod", of::<Pod>()),
        ("PodTemplate", of::<PodTemplate>()),
        ("ReplicaSet", of::<ReplicaSet>()),
        ("ReplicationController", of::<ReplicationController>()),
        ("StatefulSet", of::<StatefulSet>()),
    ];
    kinds.into_iter().chain(named.clone().into_iter().skip(3)).map(referring).collect()
}

#[test]
fn schemas_of_the_engine_are_up_to_date() {
    let mut schemas = vec![
        ("AdmissionPlugin", read(&serde_json::to_value(outrider::plugins::crd::object_schema()).unwrap())),
        ("ClusterLimitRange", read(&serde_json::to_value(outrider::limitrange::crd::object_schema()).unwrap())),
        ("Container", of::<Container>()),
        ("Namespace", of::<Namespace>()),
        ("ObjectMeta", of::<ObjectMeta>()),
        (
            "PodSecurityProfile",
            read(&serde_json::to_value(outrider::podsecurityprofile::crd::object_schema()).unwrap()),
        ),
        ("SidecarSet", read(&serde_json::to_value(crd::object_schema()).unwrap())),
        ("Volume", of::<Volume>()),
    ];
    schemas.extend(workloads());
    schemas.sort_unstable_by_key(|(name, _)| *name);
    // A line for each, so that a difference says which.
    let lines: Vec<String> = schemas.iter().map(|(name, schema)| format!("\"{name}\": {schema}")).collect();
    crate::hold("crates/engine/src/schemas.json", &format!("{{\n{}\n}}\n", lines.join(",\n")));
}
