//! Words to write structural schemas with. Every one takes its description, so that `kubectl explain` never comes up empty.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// The name of a field and its schema.
pub type FieldSchema = (&'static str, JSONSchemaProps);

fn of_type(type_: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some(type_.to_owned()),
        description: Some(description.to_owned()),
        ..JSONSchemaProps::default()
    }
}

/// A string.
pub fn text(description: &str) -> JSONSchemaProps {
    of_type("string", description)
}

/// A string of limited length.
pub fn short_text(max_length: usize, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { max_length: i64::try_from(max_length).ok(), ..text(description) }
}

/// A string out of a closed vocabulary.
pub fn word(words: &[&str], description: &str) -> JSONSchemaProps {
    JSONSchemaProps { enum_: Some(words.iter().map(|&word| JSON(word.into())).collect()), ..text(description) }
}

/// A time in RFC 3339.
pub fn time(description: &str) -> JSONSchemaProps {
    JSONSchemaProps { format: Some("date-time".to_owned()), ..text(description) }
}

/// A truth value.
pub fn flag(description: &str) -> JSONSchemaProps {
    of_type("boolean", description)
}

/// A 32-bit number.
pub fn int32(description: &str) -> JSONSchemaProps {
    JSONSchemaProps { format: Some("int32".to_owned()), ..of_type("integer", description) }
}

/// A 64-bit number.
pub fn int64(description: &str) -> JSONSchemaProps {
    JSONSchemaProps { format: Some("int64".to_owned()), ..of_type("integer", description) }
}

/// The same schema for numbers that are not negative.
pub fn not_negative(schema: JSONSchemaProps) -> JSONSchemaProps {
    JSONSchemaProps { minimum: Some(0.0), ..schema }
}

/// The same schema for numbers in a range, both ends included.
pub fn between(least: i64, most: i64, schema: JSONSchemaProps) -> JSONSchemaProps {
    // The API server reads the bounds as floats too.
    #[allow(clippy::cast_precision_loss)]
    let (minimum, maximum) = (Some(least as f64), (most < i64::MAX).then_some(most as f64));
    JSONSchemaProps { minimum, maximum, ..schema }
}

/// The same schema with a value that the API server writes where there is none.
pub fn default(value: Value, schema: JSONSchemaProps) -> JSONSchemaProps {
    JSONSchemaProps { default: Some(JSON(value)), ..schema }
}

/// A number or a string, such as a percentage.
pub fn int_or_string(description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        description: Some(description.to_owned()),
        x_kubernetes_int_or_string: Some(true),
        ..JSONSchemaProps::default()
    }
}

/// A map with known fields.
pub fn object(description: &str, fields: impl IntoIterator<Item = FieldSchema>) -> JSONSchemaProps {
    // One by one: `collect` sorts, and brings a sort of its own into the binary for each number of fields.
    let mut properties = BTreeMap::new();
    properties.extend(fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
    // The API server drops an empty map, and who compares would find a difference for ever.
    let properties = Some(properties).filter(|properties| !properties.is_empty());
    JSONSchemaProps { properties, ..of_type("object", description) }
}

/// The same map, in which some fields must be there.
pub fn requiring(required: &[&str], schema: JSONSchemaProps) -> JSONSchemaProps {
    JSONSchemaProps { required: Some(required.iter().map(|&field| field.to_owned()).collect()), ..schema }
}

/// A map from strings to strings.
pub fn text_map(description: &str) -> JSONSchemaProps {
    map_of(JSONSchemaProps { type_: Some("string".to_owned()), ..JSONSchemaProps::default() }, description)
}

/// A map from strings to these values.
pub fn map_of(values: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        additional_properties: Some(JSONSchemaPropsOrBool::Schema(Box::new(values))),
        ..of_type("object", description)
    }
}

/// A list that one field manager owns as a whole.
pub fn atomic_list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { x_kubernetes_list_type: Some("atomic".to_owned()), ..list(items, description) }
}

/// A list in which no two items have the same `key`. `items` must require it.
pub fn keyed_list(key: &str, items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        x_kubernetes_list_type: Some("map".to_owned()),
        x_kubernetes_list_map_keys: Some(vec![key.to_owned()]),
        ..list(items, description)
    }
}

/// The same schema, which keeps fields that it does not name.
pub fn open(schema: JSONSchemaProps) -> JSONSchemaProps {
    JSONSchemaProps { x_kubernetes_preserve_unknown_fields: Some(true), ..schema }
}

/// A label selector.
pub fn label_selector(description: &str) -> JSONSchemaProps {
    let values = atomic_list(text("A label value."), "Values for In and NotIn; none for Exists and DoesNotExist.");
    let term = object(
        "A condition on one label.",
        [
            ("key", text("Key of the label.")),
            ("operator", text("In, NotIn, Exists or DoesNotExist.")),
            ("values", values),
        ],
    );
    let terms = atomic_list(requiring(&["key", "operator"], term), "Further conditions; all must hold.");
    let fields = [
        ("matchLabels", text_map("Labels that must be there with exactly these values.")),
        ("matchExpressions", terms),
    ];
    // As in the API's own types: half a selector from one manager and half from another means neither.
    JSONSchemaProps { x_kubernetes_map_type: Some("atomic".to_owned()), ..object(description, fields) }
}

/// The conditions of a status.
pub fn conditions(description: &str) -> JSONSchemaProps {
    let condition = object(
        "One statement about the object.",
        [
            ("type", text("What it is about.")),
            ("status", word(&["True", "False", "Unknown"], "Whether it holds.")),
            ("reason", text("Why, in one word.")),
            ("message", text("Why, in a sentence.")),
            ("lastTransitionTime", time("When the status changed last.")),
            ("observedGeneration", int64("The generation of the object that it is about.")),
        ],
    );
    let required = ["type", "status", "reason", "message", "lastTransitionTime"];
    keyed_list("type", requiring(&required, condition), description)
}

/// A status of these conditions.
pub fn status_of_conditions(description: &str) -> JSONSchemaProps {
    object(
        "What the controller found.",
        [
            ("observedGeneration", int64("The generation of the object that the rest is about.")),
            ("conditions", conditions(description)),
        ],
    )
}

/// A column with the status of a condition.
pub fn condition_column(name: &str, description: &str) -> CustomResourceColumnDefinition {
    column(name, "string", &format!(".status.conditions[?(@.type==\"{name}\")].status"), description)
}

/// The whole object.
pub fn root(description: &str, spec: JSONSchemaProps, status: JSONSchemaProps) -> JSONSchemaProps {
    object(
        description,
        [
            ("apiVersion", text("Version of the API that the object is written in.")),
            ("kind", text("Kind of the object.")),
            (
                "metadata",
                // The API server knows the rest, and refuses any other schema here.
                JSONSchemaProps { type_: Some("object".to_owned()), ..JSONSchemaProps::default() },
            ),
            ("spec", spec),
            ("status", status),
        ],
    )
}

/// A column of `kubectl get`.
pub fn column(name: &str, type_: &str, json_path: &str, description: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        description: Some(description.to_owned()),
        ..CustomResourceColumnDefinition::default()
    }
}

/// A column that only `kubectl get -o wide` shows.
pub fn wide(name: &str, type_: &str, json_path: &str, description: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition { priority: Some(1), ..column(name, type_, json_path, description) }
}

fn list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { items: Some(JSONSchemaPropsOrArray::Schema(Box::new(items))), ..of_type("array", description) }
}
