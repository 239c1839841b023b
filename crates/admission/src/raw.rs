//! JSON objects as text: read and written anew member by member, so that what does not change is copied as it was sent.
//!
//! Nothing is decoded but what is asked for. So neither the depth nor the types of the rest matter, numbers keep their digits,
//! and an object takes no more memory than its text.
//!
//! ```
//! use admission::raw::{ObjectWriter, members, string};
//! use serde_json::value::RawValue;
//!
//! let object: &RawValue = serde_json::from_str(r#"{"name":"a","spec":[1.0,{}],"old":7}"#)?;
//! let mut out = String::new();
//! let mut writer = ObjectWriter::begin(&mut out);
//! members(object, |key, value| match key.name() {
//!     "name" => writer.put("name", &format!("\"{}-1\"", string(value).unwrap_or_default())),
//!     "old" => {}
//!     _ => writer.copy(&key, value),
//! });
//! writer.end();
//! assert_eq!(out, r#"{"name":"a-1","spec":[1.0,{}]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::patch::quoted;
use crate::review::Text;

#[cfg(test)]
mod tests;

/// The key of a member.
#[derive(Debug, Clone)]
pub struct Key<'a> {
    json: &'a str,
    name: Cow<'a, str>,
}

impl<'a> Key<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let json = raw.get();
        // Half of a surrogate pair is JSON and no text; it equals no name that anybody looks for.
        let name = string(raw).unwrap_or(Cow::Borrowed(json));
        Self { json, name }
    }

    /// The key itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key itself, for longer than this.
    pub fn into_name(self) -> Cow<'a, str> {
        self.name
    }

    /// The key as it is written, in quotes.
    pub const fn json(&self) -> &'a str {
        self.json
    }
}

/// Calls `each` with every member of a JSON object, in the order of the text. Returns whether `object` is one.
pub fn members<'a>(object: &'a RawValue, each: impl FnMut(Key<'a>, &'a RawValue)) -> bool {
    struct Members<F>(F);
    impl<'de, F: FnMut(Key<'de>, &'de RawValue)> Visitor<'de> for Members<F> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<&'de RawValue>()? {
                (self.0)(Key::of(key), map.next_value()?);
            }
            Ok(())
        }
    }
    is_object(object) && serde_json::Deserializer::from_str(object.get()).deserialize_map(Members(each)).is_ok()
}

/// Calls `each` with every element of a JSON list. What is no list has no elements.
pub fn each_element<'a>(list: &'a RawValue, mut each: impl FnMut(&'a RawValue)) {
    let Ok(()) = elements(list, |element| {
        each(element);
        Ok::<(), std::convert::Infallible>(())
    });
}

/// Calls `each` with every element of a JSON list, until one is refused. What is no list has no elements.
///
/// # Errors
/// What refused the element.
pub fn elements<'a, E>(list: &'a RawValue, each: impl FnMut(&'a RawValue) -> Result<(), E>) -> Result<(), E> {
    struct Elements<'r, F, E>(F, &'r mut Result<(), E>);
    impl<'de, F: FnMut(&'de RawValue) -> Result<(), E>, E> Visitor<'de> for Elements<'_, F, E> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
            while let Some(element) = list.next_element::<&'de RawValue>()? {
                *self.1 = (self.0)(element);
                if self.1.is_err() {
                    break;
                }
            }
            Ok(())
        }
    }
    let mut result = Ok(());
    // A list that is left before its end is an error of the decoder, which says nothing here: the text was read once already.
    let _ = serde_json::Deserializer::from_str(list.get()).deserialize_seq(Elements(each, &mut result));
    result
}

/// The last member of this name, which is the one that counts where there are two.
pub fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut found = None;
    members(object, |key, value| {
        if key.name() == name {
            found = Some(value);
        }
    });
    found
}

/// Whether the text is a JSON object.
pub fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// The string, if the text is one.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<Text<'_>>(json).ok().map(|text| text.0);
    }
    Some(Cow::Borrowed(inner))
}

/// Writes one JSON object.
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut String,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Writes a member as it was read.
    pub fn copy(&mut self, key: &Key<'_>, value: &RawValue) {
        self.write(key.json(), value.get());
    }

    /// Writes a member with this JSON as its value.
    pub fn put(&mut self, name: &str, json: &str) {
        self.write(&quoted(name), json);
    }

    /// Writes the key of a member whose value the caller appends to what is returned.
    pub fn value_of(&mut self, name: &str) -> &mut String {
        self.write(&quoted(name), "");
        self.out
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push('}');
    }

    fn write(&mut self, key: &str, value: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
        self.out.push_str(key);
        self.out.push(':');
        self.out.push_str(value);
    }
}
