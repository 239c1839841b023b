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
    // Where the parts begin that are too long for a [`Part`], or too far behind, and their lengths.
    far: Box<[(u32, u32)]>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FlatNode {
    // In a map.
    name: Part,
    value: Part,
}

/// What it is, and where: of a text or number its part of the text, of a list or map that of the nodes. In three bits one of the
/// constants below, in 21 the position, in eight the length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Part(u32);

impl Part {
    const NULL: u32 = 0;
    const FALSE: u32 = 1;
    const TRUE: u32 = 2;
    const NUMBER: u32 = 3;
    const TEXT: u32 = 4;
    /// A text of [`COMMON`], by its position there.
    const COMMON: u32 = 5;
    const LIST: u32 = 6;
    const MAP: u32 = 7;

    const POSITIONS: u32 = 1 << 21;
    /// As a length: the position is one in [`Flat::far`].
    const FAR: u32 = 0xFF;

    const fn is(kind: u32) -> Self {
        Self::at(kind, 0, 0)
    }

    const fn at(kind: u32, at: u32, len: u32) -> Self {
        Self(kind << 29 | at << 8 | len)
    }

    const fn kind(self) -> u32 {
        self.0 >> 29
    }

    const fn position(self) -> u32 {
        self.0 >> 8 & (Self::POSITIONS - 1)
    }

    const fn len(self) -> u32 {
        self.0 & Self::FAR
    }
}

/// Puts the parts side by side.
#[derive(Default)]
struct Packer<'v> {
    nodes: Vec<FlatNode>,
    text: String,
    far: Vec<(u32, u32)>,
    known: HashMap<&'v str, Part>,
}

impl<'v> Packer<'v> {
    /// A part beyond 4 GiB, or one of two million that are far, is not found: objects are smaller by far.
    fn part(&mut self, kind: u32, at: usize, len: usize) -> Part {
        let short = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let (at, len) = (short(at), short(len));
        if at < Part::POSITIONS && len < Part::FAR {
            return Part::at(kind, at, len);
        }
        let position = short(self.far.len()).min(Part::POSITIONS - 1);
        self.far.push((at, len));
        Part::at(kind, position, Part::FAR)
    }

    fn text(&mut self, text: &'v str) -> Part {
        if let Some(at) = COMMON_AT.get(text) {
            return Part::at(Part::COMMON, *at, 0);
        }
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let part = self.fresh(Part::TEXT, text);
        self.known.insert(text, part);
        part
    }

    fn fresh(&mut self, kind: u32, text: &str) -> Part {
        let at = self.text.len();
        self.text.push_str(text);
        self.part(kind, at, text.len())
    }

    fn value(&mut self, value: &'v Value) -> Part {
        match value {
            Value::Null => Part::is(Part::NULL),
            Value::Bool(false) => Part::is(Part::FALSE),
            Value::Bool(true) => Part::is(Part::TRUE),
            Value::Number(number) => self.fresh(Part::NUMBER, &number.to_string()),
            Value::String(text) => self.text(text),
            Value::Array(list) => self.members(Part::LIST, list.iter().map(|value| ("", value))),
            Value::Object(map) => self.members(Part::MAP, map.iter().map(|(name, value)| (name.as_str(), value))),
        }
    }

    fn members(&mut self, kind: u32, members: impl ExactSizeIterator<Item = (&'v str, &'v Value)>) -> Part {
        let start = self.nodes.len();
        let part = self.part(kind, start, members.len());
        self.nodes.resize(start + members.len(), FlatNode::default());
        for (position, (name, value)) in members.enumerate() {
            let node = FlatNode { name: self.text(name), value: self.value(value) };
            if let Some(place) = self.nodes.get_mut(start + position) {
                *place = node;
            }
        }
        part
    }
}

impl Flat {
    /// The same value.
    pub fn of(value: &Value) -> Self {
        let mut packer = Packer::default();
        packer.members(Part::LIST, std::iter::once(("", value)));
        Self { nodes: packer.nodes.into(), text: packer.text.into(), far: packer.far.into() }
    }

    /// The value, for reading.
    pub fn value(&self) -> FlatValue<'_> {
        FlatValue { flat: self, part: self.nodes.first().map_or(Part::is(Part::NULL), |node| node.value) }
    }

    fn range(&self, part: Part) -> std::ops::Range<usize> {
        let (at, len) = match part.len() {
            Part::FAR => self.far.get(part.position() as usize).copied().unwrap_or_default(),
            len => (part.position(), len),
        };
        at as usize..(at as usize).saturating_add(len as usize)
    }
}

/// A value in a [`Flat`].
#[derive(Debug, Clone, Copy)]
pub struct FlatValue<'f> {
    flat: &'f Flat,
    part: Part,
}

impl<'f> FlatValue<'f> {
    fn text_of(self, part: Part) -> &'f str {
        if part.kind() == Part::COMMON {
            return COMMON.get(part.position() as usize).copied().unwrap_or_default();
        }
        self.flat.text.get(self.flat.range(part)).unwrap_or_default()
    }

    /// The text, where it is one.
    fn text(self) -> Option<&'f str> {
        matches!(self.part.kind(), Part::TEXT | Part::COMMON).then(|| self.text_of(self.part))
    }

    /// The number as it is written, where it is one.
    fn number(self) -> Option<&'f str> {
        (self.part.kind() == Part::NUMBER).then(|| self.text_of(self.part))
    }

    fn nodes(self) -> impl ExactSizeIterator<Item = (&'f str, Self)> {
        let nodes = self.flat.nodes.get(self.flat.range(self.part)).unwrap_or_default();
        nodes.iter().map(move |node| (self.text_of(node.name), Self { flat: self.flat, part: node.value }))
    }

    /// Whether it is null.
    pub const fn is_null(self) -> bool {
        self.part.kind() == Part::NULL
    }

    /// Whether it is this truth value.
    pub const fn is_bool(self, value: bool) -> bool {
        self.part.kind() == if value { Part::TRUE } else { Part::FALSE }
    }

    /// Whether it is this text.
    pub fn is_text(self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// Whether it is a number that is written like this one.
    pub fn is_number<N: std::str::FromStr + PartialEq>(self, number: &N) -> bool {
        self.number().is_some_and(|text| text.parse().is_ok_and(|stored: N| stored == *number))
    }

    /// What is in a list; `None` where it is none.
    pub fn list(self) -> Option<impl ExactSizeIterator<Item = Self>> {
        (self.part.kind() == Part::LIST).then(|| self.nodes().map(|(_, value)| value))
    }

    /// The members of a map, sorted by name; `None` where it is none.
    pub fn map(self) -> Option<impl ExactSizeIterator<Item = (&'f str, Self)>> {
        (self.part.kind() == Part::MAP).then(|| self.nodes())
    }

    /// A member of a map.
    pub fn get(self, name: &str) -> Option<Self> {
        self.map()?.find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// Whether it is the same as another.
    pub fn is(self, other: &Value) -> bool {
        match other {
            Value::Null => self.is_null(),
            Value::Bool(other) => self.is_bool(*other),
            Value::String(other) => self.is_text(other),
            Value::Number(other) => self.number().is_some_and(|text| text == other.to_string()),
            Value::Array(other) => self
                .list()
                .is_some_and(|own| own.len() == other.len() && own.zip(other).all(|(own, other)| own.is(other))),
            Value::Object(other) => self.map().is_some_and(|mut own| {
                own.len() == other.len() && own.all(|(name, own)| other.get(name).is_some_and(|other| own.is(other)))
            }),
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

    #[test]
    fn long_and_far_parts_are_found() {
        let long = "x".repeat(300);
        let many: Vec<Value> = (0..1000).map(|number| json!(format!("{number}-{}", "y".repeat(3000)))).collect();
        let value = json!({"list": many, "long": long, "map": {"z": long, long.clone(): ["at the end", 7]}});
        let flat = Flat::of(&value);
        assert!(flat.value().is(&value));
        assert!(flat.value().get("map").unwrap().get(&long).unwrap().is(&json!(["at the end", 7])));
        assert!(flat.text.len() > 1 << 21, "parts of the text are far");
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
