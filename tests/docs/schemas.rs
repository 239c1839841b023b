//! The schemas that the engine compares manifests with.

use k8s_openapi::api::core::v1::{Container, Namespace, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::schemars::generate::SchemaSettings;
use outrider::sidecarset::crd;
use serde_json::{Map, Value};

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

#[test]
fn schemas_of_the_engine_are_up_to_date() {
    let schemas = [
        ("AdmissionPlugin", read(&serde_json::to_value(outrider::plugins::crd::object_schema()).unwrap())),
        ("Container", of::<Container>()),
        ("Namespace", of::<Namespace>()),
        ("ObjectMeta", of::<ObjectMeta>()),
        ("SidecarSet", read(&serde_json::to_value(crd::object_schema()).unwrap())),
        ("Volume", of::<Volume>()),
    ];
    // A line for each, so that a difference says which.
    let lines: Vec<String> = schemas.iter().map(|(name, schema)| format!("\"{name}\": {schema}")).collect();
    crate::hold("crates/engine/src/schemas.json", &format!("{{\n{}\n}}\n", lines.join(",\n")));
}
