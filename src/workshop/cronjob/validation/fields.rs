//! The fields of a map that may have any shape, checked in the words of the API server's schema validation.

use admission::field::{Error, ErrorList, Path, quote};
use serde_json::Value;

/// A map and where it is. What is no map has no fields.
pub struct Fields<'a> {
    value: &'a Value,
    pub path: Path,
}

impl<'a> Fields<'a> {
    pub fn new(value: Option<&'a Value>, path: Path) -> Self {
        Self { value: value.unwrap_or(&Value::Null), path }
    }

    /// The value of a field; `null` is nothing.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    /// The string in a field, empty for anything else.
    pub fn text(&self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Adds an error when the string is missing or empty.
    pub fn check_has_text(&self, name: &'static str, errors: &mut ErrorList) {
        match self.get(name) {
            None => errors.push(Error::required(&self.path.child(name), "")),
            Some(Value::String(text)) if text.is_empty() => errors.push(Error::required(&self.path.child(name), "")),
            Some(Value::String(_)) => {}
            Some(other) => errors.push(wrong_type(&self.path.child(name), other, "string")),
        }
    }

    /// Adds an error when there is something else than one of `words`.
    pub fn check_word(&self, name: &'static str, words: &[&str], errors: &mut ErrorList) {
        match self.get(name) {
            None => {}
            Some(Value::String(word)) if words.contains(&word.as_str()) => {}
            Some(Value::String(word)) => {
                errors.push(Error::not_supported(&self.path.child(name), word, words));
            }
            Some(other) => errors.push(wrong_type(&self.path.child(name), other, "string")),
        }
    }

    /// Adds an error when there is something else than a truth value.
    pub fn check_flag(&self, name: &'static str, errors: &mut ErrorList) {
        match self.get(name) {
            None | Some(Value::Bool(_)) => {}
            Some(other) => errors.push(wrong_type(&self.path.child(name), other, "boolean")),
        }
    }

    /// Adds an error when there is something else than a whole number from 0 to `maximum`.
    pub fn check_number(&self, name: &'static str, maximum: i64, errors: &mut ErrorList) {
        let Some(value) = self.get(name) else { return };
        let path = self.path.child(name);
        match value.as_i64() {
            Some(number @ ..0) => {
                let detail = format!("{path} in body should be greater than or equal to 0");
                errors.push(Error::invalid(&path, number, detail));
            }
            Some(number) if number > maximum => {
                let detail = format!("{path} in body should be less than or equal to {maximum}");
                errors.push(Error::invalid(&path, number, detail));
            }
            Some(_) => {}
            None => errors.push(wrong_type(&path, value, "integer")),
        }
    }
}

/// The fields of the map at `path`; an error when it is missing or no map.
pub fn required_map<'a>(value: Option<&'a Value>, path: &Path, errors: &mut ErrorList) -> Option<Fields<'a>> {
    match value {
        Some(Value::Object(_)) => Some(Fields::new(value, path.clone())),
        None | Some(Value::Null) => {
            errors.push(Error::required(path, ""));
            None
        }
        Some(other) => {
            errors.push(wrong_type(path, other, "object"));
            None
        }
    }
}

/// A value of another JSON type than the schema wants.
pub fn wrong_type(path: &Path, found: &Value, expected: &str) -> Error {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Error::type_invalid(path, found, format!("{path} in body must be of type {expected}: {}", quote(found)))
}
