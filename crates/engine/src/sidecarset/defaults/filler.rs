//! Fills fields of an object that may have any shape: where the shape is wrong, nothing is filled and validation says why.

use admission::patch::{PatchBuilder, PatchError, child};
use serde_json::{Map, Value};

/// What a filled field may hold and still count as absent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Nothing or `null`: a pointer in the API's Go types.
    Missing,
    /// Also the empty value of the type that is filled in, `""` or `0`: a plain string or number in the API's Go types. One of
    /// the other type is a fault, which validation names.
    Zero,
}

/// A patch under construction, and places in its document.
pub struct Filler<'p>(pub &'p mut PatchBuilder);

impl Filler<'_> {
    /// The value at a pointer; `null` is nothing.
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        self.0.get(pointer).filter(|value| !value.is_null())
    }

    /// Whether a map is at the pointer.
    pub fn is_map(&self, pointer: &str) -> bool {
        self.get(pointer).is_some_and(Value::is_object)
    }

    /// Which of these fields the map at the pointer has, in this order.
    pub fn present<const N: usize>(&self, pointer: &str, fields: [&'static str; N]) -> Vec<&'static str> {
        self.get(pointer).and_then(Value::as_object).map(|map| present(map, fields)).unwrap_or_default()
    }

    /// The string at a pointer, empty for anything else.
    pub fn text(&self, pointer: &str) -> &str {
        self.get(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Pointers to the maps in the list at `pointer`.
    pub fn maps_in(&self, pointer: &str) -> Vec<String> {
        let items = self.get(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let maps = items.iter().enumerate().filter(|(_, item)| item.is_object());
        maps.map(|(index, _)| format!("{pointer}/{index}")).collect()
    }

    /// Gives the field a value if it has none. Missing maps above it are made.
    ///
    /// # Errors
    /// Never in practice: a shape without room for the field is left alone.
    pub fn fill(&mut self, map: &str, field: &str, absent: Absent, value: impl Into<Value>) -> Result<(), PatchError> {
        if !self.has_room(map) {
            return Ok(());
        }
        let pointer = format!("{map}/{field}");
        let value = value.into();
        let there = match (self.get(&pointer), &value) {
            (None, _) => false,
            (Some(Value::String(text)), Value::String(_)) if text.is_empty() => absent == Absent::Missing,
            (Some(Value::Number(number)), Value::Number(_)) if number.as_i64() == Some(0) => absent == Absent::Missing,
            (Some(_), _) => true,
        };
        if there { Ok(()) } else { self.0.set(&pointer, value) }
    }

    /// Gives the map at the pointer these fields, each where it has none or, of a text, the empty one. The map is searched for once.
    pub fn fill_zeros<const N: usize>(&mut self, map: &str, fields: [(&'static str, Value); N]) {
        self.0.fill(map, fields, |present, value| value.is_string() && present.as_str() == Some(""));
    }

    /// Whether everything on the way down to `map` is a map or not there.
    fn has_room(&self, map: &str) -> bool {
        let mut place = self.0.document();
        for token in map.split('/').skip(1) {
            let is_list = match place {
                Value::Object(_) => false,
                Value::Array(_) => true,
                _ => return false,
            };
            match child(place, token) {
                None | Some(Value::Null) => return !is_list,
                Some(below) => place = below,
            }
        }
        place.is_object()
    }
}

/// Which of these fields the map has, in this order.
pub fn present<const N: usize>(map: &Map<String, Value>, fields: [&'static str; N]) -> Vec<&'static str> {
    fields.into_iter().filter(|field| map.get(*field).is_some_and(|value| !value.is_null())).collect()
}
