//! Words to write structural schemas with. Every one takes its description, so that `kubectl explain` never comes up empty.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The name of a field and its schema.
pub type Field = (&'static str, JSONSchemaProps);

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

/// A point in time, as RFC 3339 writes it.
pub fn moment(description: &str) -> JSONSchemaProps {
    JSONSchemaProps { format: Some("date-time".to_owned()), ..text(description) }
}

/// A string out of a closed vocabulary.
pub fn word(words: &[&str], description: &str) -> JSONSchemaProps {
    JSONSchemaProps { enum_: Some(words.iter().map(|&word| JSON(word.into())).collect()), ..text(description) }
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

/// A number or a string, such as a percentage.
pub fn int_or_string(description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        description: Some(description.to_owned()),
        x_kubernetes_int_or_string: Some(true),
        ..JSONSchemaProps::default()
    }
}

/// A map with known fields.
pub fn object(description: &str, fields: impl IntoIterator<Item = Field>) -> JSONSchemaProps {
    JSONSchemaProps { properties: Some(properties(fields)), ..of_type("object", description) }
}

/// A map with known fields, some of which must be there.
pub fn object_requiring(
    required: &[&str],
    description: &str,
    fields: impl IntoIterator<Item = Field>,
) -> JSONSchemaProps {
    let required = required.iter().map(|&field| field.to_owned()).collect();
    JSONSchemaProps { required: Some(required), ..object(description, fields) }
}

/// A map from strings to strings.
pub fn text_map(description: &str) -> JSONSchemaProps {
    let values = JSONSchemaProps { type_: Some("string".to_owned()), ..JSONSchemaProps::default() };
    JSONSchemaProps {
        additional_properties: Some(JSONSchemaPropsOrBool::Schema(Box::new(values))),
        ..of_type("object", description)
    }
}

/// A list that one field manager owns as a whole.
pub fn atomic_list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { x_kubernetes_list_type: Some("atomic".to_owned()), ..list(items, description) }
}

/// A list in which every item has a name of its own, so that field managers can share it. `items` must require `name`.
pub fn named_list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    keyed_list("name", items, description)
}

/// A list in which no two items have the same value in the field `key`. `items` must require it.
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
    let term = object_requiring(
        &["key", "operator"],
        "A condition on one label.",
        [
            ("key", text("Key of the label.")),
            ("operator", text("In, NotIn, Exists or DoesNotExist.")),
            (
                "values",
                atomic_list(text("A label value."), "Values for In and NotIn; none for Exists and DoesNotExist."),
            ),
        ],
    );
    JSONSchemaProps {
        // As in the API's own types: half a selector from one manager and half from another means neither.
        x_kubernetes_map_type: Some("atomic".to_owned()),
        ..object(
            description,
            [
                ("matchLabels", text_map("Labels that must be there with exactly these values.")),
                ("matchExpressions", atomic_list(term, "Further conditions; all must hold.")),
            ],
        )
    }
}

fn list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { items: Some(JSONSchemaPropsOrArray::Schema(Box::new(items))), ..of_type("array", description) }
}

fn properties(fields: impl IntoIterator<Item = Field>) -> BTreeMap<String, JSONSchemaProps> {
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
