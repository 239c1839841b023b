//! What a test file may hold: for editors, and for the check of a file, whose faults then have their field.

use std::sync::LazyLock;

use serde_json::{Value, json};

use engine::schema::SchemaType;

use super::file::{API_VERSION, KIND};

/// The shape of a test file.
pub static SHAPE: LazyLock<SchemaType> = LazyLock::new(|| SchemaType::of(&schema()));

/// The file among the schemas of all kinds, and the JSON schema.
pub fn file() -> (String, Value) {
    ("schemas/cli.outrider.dev/test_v1alpha1.json".to_owned(), schema())
}

fn schema() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let texts = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    let result = json!({
        "type": "object",
        "description": "What is expected of a resource.",
        "properties": {
            "name": text("What the case is called. Default: kind and name of the resource."),
            "resource": text("Name of the resource."),
            "kind": text("Kind of the resource, where several have the name."),
            "namespace": text("Namespace of the resource, where several have the name."),
            "result": {
                "type": "string",
                "enum": ["injected", "unchanged", "refused"],
                "description": "injected: sets or plugins change it. unchanged: it stays as it is. refused: it, or its pods, would be refused.",
            },
            "reason": text("A reason code among those that are given for it: docs/reasons.md."),
            "message": text("A part of a message."),
            "fields": {
                "type": "object",
                "additionalProperties": {},
                "description": "Values of fields after the injection, by their paths; null where there is to be nothing.",
            },
        },
        "required": ["resource", "result"],
        "additionalProperties": false,
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": KIND,
        "type": "object",
        "description": "Test cases of outrider test: objects, and the decision that is expected for each.",
        "properties": {
            "apiVersion": {"type": "string", "enum": [API_VERSION]},
            "kind": {"type": "string", "enum": [KIND]},
            "metadata": {"type": "object"},
            "sets": texts("Files and folders with sets and namespaces. Paths are relative to the file."),
            "resources": texts("Files and folders with what is tested. Paths are relative to the file."),
            "namespace": text("Namespace of objects without one. Default: default."),
            "excludedNamespaces": texts("Namespaces that are never changed."),
            "results": {"type": "array", "minItems": 1, "items": result, "description": "What is expected, a case for each resource."},
        },
        "required": ["apiVersion", "kind", "sets", "resources", "results"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::file::TestFile;
    use super::*;

    /// A file that holds every field of the schema.
    fn full() -> Value {
        json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "all"}, "sets": ["s"], "resources": ["r"],
            "namespace": "shop", "excludedNamespaces": ["x"],
            "results": [{
                "name": "case", "resource": "web", "kind": "Pod", "namespace": "shop", "result": "injected", "reason": "Injected",
                "message": "text", "fields": {"spec.a": 1, "spec.b": null},
            }],
        })
    }

    fn keys(value: &Value) -> Vec<&String> {
        value.as_object().unwrap().keys().collect()
    }

    #[test]
    fn an_editor_knows_the_fields_of_a_test_file_and_marks_others() {
        let (file, schema) = file();
        assert_eq!(file, "schemas/cli.outrider.dev/test_v1alpha1.json");
        let (full, result) = (full(), &schema["properties"]["results"]["items"]);
        assert_eq!(keys(&schema["properties"]), keys(&full));
        assert_eq!(keys(&result["properties"]), keys(&full["results"][0]));
        assert_eq!((&schema["additionalProperties"], &result["additionalProperties"]), (&false.into(), &false.into()));
    }

    #[test]
    fn a_file_with_every_field_is_read_and_one_without_a_required_field_is_not() {
        let read = |file: &Value| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("test.yaml");
            std::fs::write(&path, file.to_string()).unwrap();
            TestFile::read(&path).map(|_| ())
        };
        assert_eq!(read(&full()), Ok(()));
        let schema = schema();
        for (pointer, required) in
            [("", &schema["required"]), ("/results/0", &schema["properties"]["results"]["items"]["required"])]
        {
            for field in required.as_array().unwrap() {
                let field = field.as_str().unwrap();
                let mut file = full();
                file.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
                let errors = read(&file).unwrap_err();
                assert!(errors.len() == 1 && errors[0].contains(field), "{field}: {errors:?}");
            }
        }
    }
}
