//! A JSON value that is kept for long, in two blocks of memory. In the form of `serde_json` each map takes 600 bytes, whatever is in it:
//! a container would take ten times its text, in each of thousands of sets.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

/// Names and words that most containers have, of all sets together once. The order means nothing.
const COMMON: [&str; 48] = [
    "Always",
    "Exec",
    "File",
    "HTTP",
    "IS_INJECTED",
    "IfNotPresent",
    "TCP",
    "apiVersion",
    "args",
    "command",
    "containerPort",
    "cpu",
    "env",
    "failureThreshold",
    "fieldPath",
    "fieldRef",
    "host",
    "hostPort",
    "httpGet",
    "image",
    "imagePullPolicy",
    "initialDelaySeconds",
    "lifecycle",
    "limits",
    "livenessProbe",
    "memory",
    "mountPath",
    "name",
    "path",
    "periodSeconds",
    "port",
    "ports",
    "privileged",
    "protocol",
    "readOnly",
    "readinessProbe",
    "requests",
    "resources",
    "restartPolicy",
    "scheme",
    "securityContext",
    "successThreshold",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "timeoutSeconds",
    "value",
    "valueFrom",
    "volumeMounts",
];

static COMMON_AT: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| COMMON.into_iter().zip(0..).collect());

/// A value that does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flat {
    // The value itself first; what is in a list or map is side by side.
    nodes: Box<[FlatNode]>,
    // Names, texts and numbers, each once.
    text: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FlatNode {
    // In a map.
    name: Span,
    value: Stored,
}

/// A part of the text, or of the nodes; of a text also one of [`COMMON`], by its position and with [`Span::COMMON`] as its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    at: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Null,
    Bool(bool),
    Number(Span),
    Text(Span),
    List(Span),
    Map(Span),
}

impl Span {
    const COMMON: u32 = u32::MAX;

    /// A part beyond 4 GiB is not found: objects are smaller by far.
    fn new(at: usize, len: usize) -> Self {
        let short = |number| u32::try_from(number).map_or(Self::COMMON - 1, |number| number.min(Self::COMMON - 1));
        Self { at: short(at), len: short(len) }
    }

    const fn range(self) -> std::ops::Range<usize> {
        self.at as usize..(self.at as usize).saturating_add(self.len as usize)
    }
}

/// Puts the parts side by side.
#[derive(Default)]
struct Packer<'v> {
    nodes: Vec<FlatNode>,
    text: String,
    known: HashMap<&'v str, Span>,
}

impl<'v> Packer<'v> {
    fn text(&mut self, text: &'v str) -> Span {
        if let Some(at) = COMMON_AT.get(text) {
            return Span { at: *at, len: Span::COMMON };
        }
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let span = self.fresh(text);
        self.known.insert(text, span);
        span
    }

    fn fresh(&mut self, text: &str) -> Span {
        let span = Span::new(self.text.len(), text.len());
        self.text.push_str(text);
        span
    }

    fn value(&mut self, value: &'v Value) -> Stored {
        match value {
            Value::Null => Stored::Null,
            Value::Bool(value) => Stored::Bool(*value),
            Value::Number(number) => Stored::Number(self.fresh(&number.to_string())),
            Value::String(text) => Stored::Text(self.text(text)),
            Value::Array(list) => Stored::List(self.members(list.iter().map(|value| ("", value)))),
            Value::Object(map) => Stored::Map(self.members(map.iter().map(|(name, value)| (name.as_str(), value)))),
        }
    }

    fn members(&mut self, members: impl ExactSizeIterator<Item = (&'v str, &'v Value)>) -> Span {
        let start = self.nodes.len();
        let span = Span::new(start, members.len());
        self.nodes.resize(start + members.len(), FlatNode { name: Span::default(), value: Stored::Null });
        for (position, (name, value)) in members.enumerate() {
            let node = FlatNode { name: self.text(name), value: self.value(value) };
            if let Some(place) = self.nodes.get_mut(start + position) {
                *place = node;
            }
        }
        span
    }
}

impl Flat {
    /// The same value.
    pub fn of(value: &Value) -> Self {
        let mut packer = Packer::default();
        packer.members(std::iter::once(("", value)));
        Self { nodes: packer.nodes.into(), text: packer.text.into() }
    }

    /// The value, for reading.
    pub fn value(&self) -> FlatValue<'_> {
        FlatValue { flat: self, stored: self.nodes.first().map_or(Stored::Null, |node| node.value) }
    }
}

/// A value in a [`Flat`].
#[derive(Debug, Clone, Copy)]
pub struct FlatValue<'f> {
    flat: &'f Flat,
    stored: Stored,
}

impl<'f> FlatValue<'f> {
    fn text(self, span: Span) -> &'f str {
        if span.len == Span::COMMON {
            return COMMON.get(span.at as usize).copied().unwrap_or_default();
        }
        self.flat.text.get(span.range()).unwrap_or_default()
    }

    fn nodes(self, span: Span) -> impl ExactSizeIterator<Item = (&'f str, Self)> {
        let nodes = self.flat.nodes.get(span.range()).unwrap_or_default();
        nodes.iter().map(move |node| (self.text(node.name), Self { flat: self.flat, stored: node.value }))
    }

    /// Whether it is null.
    pub const fn is_null(self) -> bool {
        matches!(self.stored, Stored::Null)
    }

    /// Whether it is this truth value.
    pub const fn is_bool(self, value: bool) -> bool {
        matches!(self.stored, Stored::Bool(stored) if stored == value)
    }

    /// Whether it is this text.
    pub fn is_text(self, text: &str) -> bool {
        matches!(self.stored, Stored::Text(span) if self.text(span) == text)
    }

    /// Whether it is a number that is written like this one.
    pub fn is_number<N: std::str::FromStr + PartialEq>(self, number: &N) -> bool {
        matches!(self.stored, Stored::Number(span) if self.text(span).parse().is_ok_and(|stored: N| stored == *number))
    }

    /// What is in a list; `None` where it is none.
    pub fn list(self) -> Option<impl ExactSizeIterator<Item = Self>> {
        let Stored::List(span) = self.stored else { return None };
        Some(self.nodes(span).map(|(_, value)| value))
    }

    /// The members of a map, sorted by name; `None` where it is none.
    pub fn map(self) -> Option<impl ExactSizeIterator<Item = (&'f str, Self)>> {
        let Stored::Map(span) = self.stored else { return None };
        Some(self.nodes(span))
    }

    /// A member of a map.
    pub fn get(self, name: &str) -> Option<Self> {
        self.map()?.find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// Whether it is the same as another.
    pub fn is(self, other: &Value) -> bool {
        match (self.stored, other) {
            (Stored::Null, Value::Null) => true,
            (Stored::Bool(_), Value::Bool(other)) => self.is_bool(*other),
            (Stored::Text(_), Value::String(other)) => self.is_text(other),
            (Stored::Number(span), Value::Number(other)) => self.text(span) == other.to_string(),
            (Stored::List(span), Value::Array(other)) => {
                let own = self.nodes(span);
                own.len() == other.len() && own.zip(other).all(|((_, own), other)| own.is(other))
            }
            (Stored::Map(span), Value::Object(other)) => {
                let mut own = self.nodes(span);
                own.len() == other.len() && own.all(|(name, own)| other.get(name).is_some_and(|other| own.is(other)))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::sidecarset::test_objects::arbitrary_json;

    #[test]
    fn members_are_found_by_name_and_position() {
        let flat = Flat::of(&json!({"a": [1, -2, 1.5, "x", true, null], "b": {"c": "x"}}));
        let value = flat.value();
        let list: Vec<FlatValue<'_>> = value.get("a").unwrap().list().unwrap().collect();
        assert!(list[0].is_number(&1_i64) && list[1].is_number(&-2_i64) && list[2].is_number(&1.5_f64));
        assert!(!list[0].is_number(&2_i64) && !list[1].is_number(&2_u64));
        assert!(list[3].is_text("x") && list[4].is_bool(true) && list[5].is_null());
        assert!(value.get("b").unwrap().get("c").unwrap().is_text("x"));
        assert!(value.get("c").is_none() && value.get("a").unwrap().map().is_none());
        assert_eq!(value.map().unwrap().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn a_flat_value_is_what_it_was_made_of_and_nothing_else(one in arbitrary_json(), other in arbitrary_json()) {
            prop_assert!(Flat::of(&one).value().is(&one));
            prop_assert_eq!(Flat::of(&one).value().is(&other), one == other);
            prop_assert_eq!(Flat::of(&one) == Flat::of(&other), one == other);
        }
    }
}
