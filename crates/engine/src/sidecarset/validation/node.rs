//! A value inside the object under validation, with the path to it.
//!
//! The object is read as it was sent, so one wrong field costs only the checks on that field. A field of the wrong type counts as
//! absent for every check but [`Node::require_text`]: the schema walk has already named it.

use admission::field::{Error, ErrorList, Path};
use admission::review::EMPTY;
use serde_json::Value;

const NULL: &Value = &Value::Null;

/// A value and the path to it. A missing value is `null`.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// `null` where the object has no such field.
    pub value: &'a Value,
    /// For messages.
    pub path: Path,
}

impl<'a> Node<'a> {
    /// The top-level field `name` of `object`.
    pub fn root(object: &'a Value, name: &'static str) -> Self {
        Self { value: object.get(name).unwrap_or(NULL), path: Path::new(name) }
    }

    /// The field `name`, which may be missing.
    pub fn child(&self, name: &'static str) -> Self {
        Self { value: self.value.get(name).unwrap_or(NULL), path: self.path.child(name) }
    }

    /// The field `name`, if it is there and not `null`.
    pub fn get(&self, name: &'static str) -> Option<Self> {
        self.value.get(name).filter(|value| !value.is_null()).map(|value| Self { value, path: self.path.child(name) })
    }

    /// Whether there is anything but `null`.
    pub fn is_there(&self) -> bool {
        !self.value.is_null()
    }

    /// The items, none when it is no list.
    pub fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().enumerate().map(|(index, value)| Self { value, path: self.path.index(index) })
    }

    /// The entries, none when it is no map.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Self { value, path: self.path.key(key.as_str()) }))
    }

    /// The string at field `name`, empty when it is missing or none.
    pub fn text(&self, name: &'static str) -> &'a str {
        self.value.get(name).and_then(Value::as_str).unwrap_or(EMPTY)
    }

    /// The number at field `name`.
    pub fn number(&self, name: &'static str) -> Option<i64> {
        self.value.get(name).and_then(Value::as_i64)
    }

    /// The truth value at field `name`, false when it is missing or none.
    pub fn flag(&self, name: &'static str) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Adds an error when the string at field `name` is missing or empty; the string otherwise.
    pub fn require_text(&self, name: &'static str, errors: &mut ErrorList) -> Option<&'a str> {
        match self.child(name).value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => return Some(text),
            _ => return None,
        }
        errors.push(Error::required(&self.path.child(name), ""));
        None
    }

    /// Adds an error for each thing that `check` finds wrong with the string at field `name`, if it is there and not empty.
    pub fn check_text(&self, name: &'static str, check: impl Fn(&str) -> Vec<String>, errors: &mut ErrorList) {
        let text = self.text(name);
        if !text.is_empty() {
            let path = self.path.child(name);
            errors.extend(check(text).into_iter().map(|message| Error::invalid(&path, text, message)));
        }
    }

    /// Adds an error when the string at field `name`, if it is there, is none of `words`.
    pub fn check_word(&self, name: &'static str, words: &[&str], errors: &mut ErrorList) {
        if let Value::String(text) = self.child(name).value
            && !words.contains(&text.as_str())
        {
            errors.push(Error::not_supported(&self.path.child(name), text, words));
        }
    }

    /// Adds an error when the number at field `name` is below 0.
    pub fn check_not_negative(&self, name: &'static str, errors: &mut ErrorList) {
        if let Some(number @ ..0) = self.number(name) {
            errors.push(Error::invalid(&self.path.child(name), number, "must be greater than or equal to 0"));
        }
    }
}
