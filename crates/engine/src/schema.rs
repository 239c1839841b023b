//! What a value of the Kubernetes API may look like: which fields an object has, and of which types they are.

mod kind_shape;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use admission::field::{Error, ErrorList, Path, quote};
use serde_json::Value;

pub use self::kind_shape::KindShape;
use crate::suggest::suggest;

/// Schemas by the name of their type, as far as a [`SchemaType`] reads them. Written by `make manifests`, from k8s-openapi and from the
/// definition of `SidecarSet`; a test of the workspace fails where they lag behind. In this form neither is a dependency: the API's
/// types need a library for dates, and their schemas much code that would run once.
pub const SCHEMAS: &str = include_str!("schemas.json");

/// What a value may look like.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaType {
    /// Whatever it is.
    Anything,
    /// A string.
    Text,
    /// A string out of a closed vocabulary.
    Word(Vec<String>),
    /// True or false.
    Flag,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A number, whole or not.
    Number,
    /// A whole number of 32 bits or a string: a port, a percentage.
    Int32OrText,
    /// A number or a string: a quantity.
    NumberOrText,
    /// A list of items of one shape.
    List(Box<Self>),
    /// Any keys, values of one shape.
    Map(Box<Self>),
    /// An object with fields of its own.
    Object {
        /// The fields, by name.
        fields: BTreeMap<String, Self>,
        /// The API server keeps fields that it does not know.
        is_open: bool,
    },
}

/// A field that its object does not have, as `unknown field "spec.imgae" (did you mean "image"?)`.
#[derive(Debug)]
pub struct UnknownField<'s> {
    key: String,
    path: Path,
    known: &'s BTreeMap<String, SchemaType>,
    is_kept: bool,
}

impl fmt::Display for UnknownField<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "unknown field {}{}", quote(&self.path.to_string()), self.suggestion())
    }
}

impl UnknownField<'_> {
    /// Where in the object it is, with its own name at the end.
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// The field of its object that may have been meant, as ` (did you mean "image"?)`; empty where no name is near. In a selector it
    /// is a label, as the selector of a Service has it.
    pub fn suggestion(&self) -> String {
        let near = suggest(&self.key, self.known.keys().map(String::as_str)).map(str::to_owned);
        let label = || self.known.contains_key(LABELS).then(|| Path::new(LABELS).key(self.key.as_str()).to_string());
        near.or_else(label).map_or_else(String::new, |meant| format!(" (did you mean {}?)", quote(&meant)))
    }

    /// The same, and what becomes of the field.
    pub fn warning(&self) -> String {
        let fate = if self.is_kept {
            "it is kept, but an API server that does not know it drops it from the pods"
        } else {
            "an API server drops it"
        };
        format!("{self}; {fate}")
    }
}

/// The field of a selector that has labels.
const LABELS: &str = "matchLabels";

/// Fields that are an `IntOrString`. A schema calls quantities, which may be any number, the same; the API has them under other names.
const INT_OR_STRING: [&str; 6] = ["maxSurge", "maxUnavailable", "minAvailable", "partition", "port", "targetPort"];

impl SchemaType {
    /// What a structural schema of the API server's says, and where it refers to one of [`SCHEMAS`], what that says.
    pub fn of(schema: &Value) -> Self {
        if let Some(name) = schema["$ref"].as_str() {
            return Self::of_kind(name);
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::NumberOrText;
        }
        let words =
            schema["enum"].as_array().map(|words| words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        match (schema["type"].as_str(), words) {
            (Some("string"), Some(words)) => Self::Word(words),
            (Some("string"), None) => Self::Text,
            (Some("boolean"), _) => Self::Flag,
            (Some("integer"), _) if schema["format"] == "int32" => Self::Int32,
            (Some("integer"), _) => Self::Int64,
            (Some("number"), _) => Self::Number,
            (Some("array"), _) => Self::List(Box::new(Self::of(&schema["items"]))),
            (Some("object"), _) => match (schema["properties"].as_object(), &schema["additionalProperties"]) {
                (Some(fields), _) => Self::Object {
                    fields: fields.iter().map(|(name, field)| (name.clone(), Self::of_field(name, field))).collect(),
                    is_open: schema["x-kubernetes-preserve-unknown-fields"] == true,
                },
                (None, values @ Value::Object(_)) => Self::Map(Box::new(Self::of(values))),
                (None, _) => Self::Anything,
            },
            _ => Self::Anything,
        }
    }

    fn of_field(name: &str, schema: &Value) -> Self {
        match Self::of(schema) {
            Self::NumberOrText if INT_OR_STRING.contains(&name) => Self::Int32OrText,
            shape => shape,
        }
    }

    /// A type of the Kubernetes API, or the kind `SidecarSet`, by its name in [`SCHEMAS`]; anything where it is not there.
    pub fn of_kind(name: &str) -> Self {
        static PARSED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(SCHEMAS).unwrap_or_default());
        PARSED.get(name).map_or(Self::Anything, Self::of)
    }

    /// The same, where the API server keeps what it does not know at every depth.
    #[must_use]
    pub fn open(self) -> Self {
        match self {
            Self::List(item) => Self::List(Box::new(item.open())),
            Self::Map(values) => Self::Map(Box::new(values.open())),
            Self::Object { fields, .. } => {
                let fields = fields.into_iter().map(|(name, field)| (name, field.open())).collect();
                Self::Object { fields, is_open: true }
            }
            other => other,
        }
    }

    /// What the API server's decoder makes of `null` in a list or a map: the empty value of the type.
    pub fn empty(&self) -> Value {
        match self {
            Self::Anything => Value::Null,
            Self::Text | Self::Word(_) => Value::from(""),
            Self::Flag => Value::from(false),
            Self::Int32 | Self::Int64 | Self::Number | Self::Int32OrText => Value::from(0),
            Self::NumberOrText => Value::from("0"),
            Self::List(_) => Value::Array(Vec::new()),
            Self::Map(_) | Self::Object { .. } => Value::Object(serde_json::Map::new()),
        }
    }

    /// The shape of a field of an object.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object { fields, .. } => fields.get(name),
            _ => None,
        }
    }

    /// Every field that the object and what is in it have and the shape has not.
    pub fn unknown_fields(&self, object: &Value) -> Vec<UnknownField<'_>> {
        // What else is wrong is for validation to say.
        self.compared(object).1
    }

    /// Compares a whole object: values of the wrong type, and unknown fields.
    pub fn compared(&self, object: &Value) -> (ErrorList, Vec<UnknownField<'_>>) {
        let (mut errors, mut unknown) = (ErrorList::new(), Vec::new());
        let (Self::Object { fields, is_open }, Value::Object(map)) = (self, object) else { return (errors, unknown) };
        for (key, value) in map {
            let path = Path::new(key.clone());
            match fields.get(key) {
                Some(field) => field.check(value, &path, &mut errors, &mut unknown),
                None => unknown.push(UnknownField { key: key.clone(), path, known: fields, is_kept: *is_open }),
            }
        }
        (errors, unknown)
    }

    /// Compares a value with the shape.
    pub fn check<'s>(
        &'s self,
        value: &Value,
        path: &Path,
        errors: &mut ErrorList,
        unknown: &mut Vec<UnknownField<'s>>,
    ) {
        match (self, value) {
            (Self::Anything, _)
            | (_, Value::Null)
            | (Self::Text | Self::Int32OrText | Self::NumberOrText, Value::String(_))
            | (Self::Flag, Value::Bool(_))
            | (Self::Number | Self::NumberOrText, Value::Number(_)) => {}
            (Self::Int32 | Self::Int32OrText, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {}
            (Self::Int64, Value::Number(number)) if number.as_i64().is_some() => {}
            (Self::Word(words), Value::String(text)) => {
                if !words.contains(text) {
                    errors.push(Error::not_supported(path, text, words));
                }
            }
            (Self::List(item), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    item.check_there(value, &path.index(index), errors, unknown);
                }
            }
            (Self::Map(item), Value::Object(map)) => {
                for (key, value) in map {
                    item.check_there(value, &path.key(key.as_str()), errors, unknown);
                }
            }
            (Self::Object { fields, is_open }, Value::Object(map)) => {
                for (key, value) in map {
                    let path = path.child(key.clone());
                    match fields.get(key) {
                        Some(field) => field.check(value, &path, errors, unknown),
                        None => unknown.push(UnknownField { key: key.clone(), path, known: fields, is_kept: *is_open }),
                    }
                }
            }
            (wanted, _) => errors.push(Error::type_invalid(path, value, wanted.demand(value))),
        }
    }

    /// A field may be `null`, which is the same as to leave it out. An item may not.
    fn check_there<'s>(
        &'s self,
        value: &Value,
        path: &Path,
        errors: &mut ErrorList,
        unknown: &mut Vec<UnknownField<'s>>,
    ) {
        if value.is_null() && *self != Self::Anything {
            errors.push(Error::type_invalid(path, value, self.demand(value)));
        } else {
            self.check(value, path, errors, unknown);
        }
    }

    /// What is wanted in place of `value`.
    fn demand(&self, value: &Value) -> &'static str {
        match (self, value) {
            // The usual slip: `value: 8080`, `value: true`.
            (Self::Text | Self::Word(_), Value::Number(_) | Value::Bool(_)) => "must be a string; put it in quotes",
            (Self::Text | Self::Word(_), _) => "must be a string",
            (Self::Flag, _) => "must be true or false",
            (Self::Int32, _) => "must be a whole number from -2147483648 to 2147483647",
            (Self::Int64, _) => "must be a whole number of at most 64 bits",
            (Self::Number, _) => "must be a number",
            (Self::Int32OrText, _) => "must be a whole number from -2147483648 to 2147483647, or a string",
            (Self::NumberOrText, _) => "must be a number or a string",
            (Self::List(_), _) => "must be a list",
            (Self::Map(_) | Self::Object { .. } | Self::Anything, _) => "must be a map",
        }
    }
}
