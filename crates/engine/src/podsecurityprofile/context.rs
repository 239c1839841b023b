//! The security context of a pod or a container: what is written, and what a profile fills in.

use serde_json::{Map, Value};

/// The member of a map; `null` counts as absent.
pub fn member<'v>(value: Option<&'v Value>, key: &str) -> Option<&'v Value> {
    value?.get(key).filter(|value| !value.is_null())
}

/// A text of a map.
pub fn text<'v>(value: Option<&'v Value>, key: &str) -> Option<&'v str> {
    member(value, key)?.as_str()
}

/// The elements of a list of a map; none where it is absent.
pub fn elements<'v>(value: Option<&'v Value>, key: &str) -> &'v [Value] {
    member(value, key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A security context.
#[derive(Debug, Default)]
pub struct Context<'v> {
    written: Option<&'v Value>,
    filled: Vec<(&'static str, Value)>,
}

impl<'v> Context<'v> {
    /// What is written.
    pub const fn of(written: Option<&'v Value>) -> Self {
        Self { written, filled: Vec::new() }
    }

    /// A field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let filled = self.filled.iter().find(|(filled, _)| *filled == key).map(|(_, value)| value);
        filled.or_else(|| member(self.written, key))
    }

    /// Fills a field in.
    pub fn fill(&mut self, key: &'static str, value: impl Into<Value>) {
        self.filled.push((key, value.into()));
    }

    /// What was filled in.
    pub fn into_filled(self) -> Vec<(&'static str, Value)> {
        self.filled
    }
}

/// A field of a container, or else of its pod.
pub fn effective<'c>(container: &'c Context<'_>, pod: &'c Context<'_>, key: &str) -> Option<&'c Value> {
    container.get(key).or_else(|| pod.get(key))
}

/// A map of these members.
pub fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}
