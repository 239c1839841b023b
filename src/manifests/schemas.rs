//! JSON schemas for editors, from the definitions: what an API server calls unknown, an editor marks.

use engine::schema::SCHEMAS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

/// The schema of each version by its file, `schemas/<group>/<kind>_<version>.json`.
///
/// # Errors
/// When a definition cannot be written as JSON, which never happens.
pub fn of(definition: &CustomResourceDefinition) -> Result<Vec<(String, Value)>, serde_json::Error> {
    let (group, kind) = (&definition.spec.group, &definition.spec.names.kind);
    let mut files = Vec::new();
    for version in &definition.spec.versions {
        let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
            continue;
        };
        let mut schema = serde_json::to_value(schema)?;
        add_pods_own(&mut schema)?;
        let mut schema = converted(&schema);
        schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
        schema["title"] = kind.as_str().into();
        schema["properties"]["apiVersion"] = json!({"const": format!("{group}/{}", version.name)});
        schema["properties"]["kind"] = json!({"const": kind});
        schema["properties"]["metadata"] = json!({"type": "object"});
        schema["required"] = json!(["apiVersion", "kind", "metadata"]);
        files.push((format!("schemas/{group}/{}_{}.json", kind.to_lowercase(), version.name), schema));
    }
    Ok(files)
}

/// A container or volume of a set has the pod's fields beside its own; the definition only says that it keeps what it is given.
fn add_pods_own(schema: &mut Value) -> Result<(), serde_json::Error> {
    let known: Value = serde_json::from_str(SCHEMAS)?;
    for (list, type_) in [("containers", "Container"), ("initContainers", "Container"), ("volumes", "Volume")] {
        let pointer = format!("/properties/spec/properties/{list}/items");
        let Some(Value::Object(item)) = schema.pointer_mut(&pointer) else { continue };
        if item.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(true)) {
            continue;
        }
        let own = item.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let (Some(own), Some(of_pod)) = (own.as_object_mut(), known[type_]["properties"].as_object()) else { continue };
        for (field, schema) in of_pod {
            own.entry(field.clone()).or_insert_with(|| schema.clone());
        }
    }
    Ok(())
}

/// A structural schema as a JSON schema: without the API server's own keywords, and closed where it drops what it does not know.
fn converted(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut found = Map::new();
    for (keyword, value) in
        schema.iter().filter(|(keyword, _)| !keyword.starts_with("x-kubernetes-") && *keyword != "nullable")
    {
        let value = match keyword.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                fields.map(|(name, field)| (name.clone(), converted(field))).collect::<Map<_, _>>().into()
            }
            "items" | "additionalProperties" => converted(value),
            _ => value.clone(),
        };
        found.insert(keyword.clone(), value);
    }
    let is = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    if is("x-kubernetes-int-or-string") {
        found.insert("type".to_owned(), json!(["number", "string"]));
    }
    if found.contains_key("properties") && !is("x-kubernetes-preserve-unknown-fields") {
        found.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecarset::crd::sidecarset;

    #[test]
    fn an_editor_knows_fields_of_sets_and_of_containers_and_marks_others() {
        let files = of(&sidecarset()).unwrap();
        let [(file, schema)] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(file, "schemas/apps.outrider.dev/sidecarset_v1alpha1.json");
        let spec = &schema["properties"]["spec"];
        assert_eq!(spec["additionalProperties"], false);
        let container = &spec["properties"]["containers"]["items"]["properties"];
        assert!(
            container["podInjectPolicy"]["enum"].is_array() && container["livenessProbe"].is_object(),
            "{container}"
        );
        assert_eq!(schema["properties"]["apiVersion"]["const"], "apps.outrider.dev/v1alpha1");
        assert!(!schema.to_string().contains("x-kubernetes"));
    }
}
