//! The shape of a kind of ours.

use admission::field::{Error, ErrorList, Path};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{SchemaType, UnknownField};

/// The shape of a kind, with the metadata that all objects have.
#[derive(Debug)]
pub struct KindShape(SchemaType);

impl KindShape {
    /// Of a kind, by its name.
    pub fn of(kind: &str) -> Self {
        let mut shape = SchemaType::of_kind(kind);
        if let SchemaType::Object { fields, .. } = &mut shape {
            fields.insert("metadata".to_owned(), SchemaType::of_kind("ObjectMeta"));
        }
        Self(shape)
    }

    /// Every field of an object that is not known, in words.
    pub fn unknown_fields<'s>(&'s self, object: &Value, word: impl Fn(&UnknownField<'s>) -> String) -> Vec<String> {
        self.0.unknown_fields(object).iter().map(word).collect()
    }

    /// An object whose spec has the types of the shape.
    ///
    /// # Errors
    /// Every value of another type, with its field.
    pub fn decode<T: DeserializeOwned>(&self, object: &Value) -> Result<T, ErrorList> {
        let (path, mut errors) = (Path::new("spec"), ErrorList::default());
        if let Some(shape) = self.0.field("spec") {
            shape.check(object.get("spec").unwrap_or(&Value::Null), &path, &mut errors, &mut Vec::new());
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        T::deserialize(object).map_err(|error| {
            errors.push(Error::type_invalid(&path, "", error.to_string()));
            errors
        })
    }
}
