//! JSON patches (RFC 6902) that touch only what they add.
//!
//! [`PatchWriter`] writes operations for a caller that already knows the shape of the document. [`PatchBuilder`] reads the
//! document itself: it makes missing parents and leaves out what would change nothing.

use std::fmt::Write as _;

use serde_json::Value;

mod builder;
#[cfg(test)]
mod tests;

pub use builder::{PatchBuilder, PatchError, child};

/// Escapes one token of a JSON pointer (RFC 6901): `~` first, then `/`.
///
/// ```
/// assert_eq!(admission::patch::escape("outrider.dev/a~b"), "outrider.dev~1a~0b");
/// ```
pub fn escape(token: &str) -> std::borrow::Cow<'_, str> {
    if token.contains(['~', '/']) { token.replace('~', "~0").replace('/', "~1").into() } else { token.into() }
}

/// What is at a place of the document before the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// Nothing, or `null`, which the API server treats alike.
    Absent,
    /// A list or map of this length.
    Len(usize),
}

/// Writes patch operations, in order, as one JSON document.
///
/// The caller answers for the paths: every parent must exist.
///
/// ```
/// use admission::patch::{PatchWriter, Present};
/// let mut patch = PatchWriter::default();
/// patch.surround("/spec/containers", Present::Len(1), [r#"{"name":"first"}"#], [r#"{"name":"last"}"#]);
/// patch.remove("/spec/paused");
/// assert_eq!(
///     String::from_utf8_lossy(patch.document()),
///     concat!(
///         r#"[{"op":"add","path":"/spec/containers/0","value":{"name":"first"}},"#,
///         r#"{"op":"add","path":"/spec/containers/-","value":{"name":"last"}},"#,
///         r#"{"op":"remove","path":"/spec/paused"}]"#,
///     )
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchWriter {
    // Empty, or a complete JSON list.
    buffer: String,
}

impl PatchWriter {
    /// A writer with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buffer: String::with_capacity(bytes) }
    }

    /// Whether no operation was written.
    pub const fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Length of [`Self::document`] in bytes.
    pub const fn len(&self) -> usize {
        self.buffer.len()
    }

    /// The JSON document; empty when there is no operation.
    pub fn document(&self) -> &[u8] {
        self.buffer.as_bytes()
    }

    /// Adds the operations of another patch after those of this one.
    pub fn append(&mut self, other: &Self) {
        let Some(rest) = other.buffer.strip_prefix('[') else { return };
        if self.buffer.pop().is_some() {
            self.buffer.push(',');
        } else {
            self.buffer.push('[');
        }
        self.buffer.push_str(rest);
    }

    /// `add`: sets a member, or inserts in front of a list's element. `json` is written as it is.
    pub fn add(&mut self, pointer: &str, json: &str) {
        self.operation("add", pointer, |out| out.push_str(json));
    }

    /// The same with a value.
    fn add_value(&mut self, pointer: &str, value: &Value) {
        self.operation("add", pointer, |out| push_value(out, value));
    }

    /// `replace`: the target must exist. `json` is written as it is.
    pub fn replace(&mut self, pointer: &str, json: &str) {
        self.operation("replace", pointer, |out| out.push_str(json));
    }

    /// `remove`: the target must exist.
    pub fn remove(&mut self, pointer: &str) {
        self.begin("remove", pointer);
        self.buffer.push_str("}]");
    }

    /// Puts elements in front of and behind what the list at `pointer` holds, in the order given.
    ///
    /// Every original element keeps its fields: elements are inserted whole, never merged by index.
    pub fn surround<'j>(
        &mut self,
        pointer: &str,
        present: Present,
        front: impl IntoIterator<Item = &'j str>,
        back: impl IntoIterator<Item = &'j str>,
    ) {
        match present {
            Present::Absent => {
                let mut list = String::from("[");
                for json in front.into_iter().chain(back) {
                    if list.len() > 1 {
                        list.push(',');
                    }
                    list.push_str(json);
                }
                list.push(']');
                if list.len() > 2 {
                    self.add(pointer, &list);
                }
            }
            Present::Len(_) => {
                let mut place = String::with_capacity(pointer.len() + 4);
                for (index, json) in front.into_iter().enumerate() {
                    place.clear();
                    // Writing to a String cannot fail.
                    let _ = write!(place, "{pointer}/{index}");
                    self.add(&place, json);
                }
                place.clear();
                let _ = write!(place, "{pointer}/-");
                for json in back {
                    self.add(&place, json);
                }
            }
        }
    }

    /// The same as [`Self::set_members`] with texts.
    pub fn set_texts<'t>(
        &mut self,
        pointer: &str,
        present: Present,
        members: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) {
        let members: Vec<(&str, String)> = members.into_iter().map(|(key, text)| (key, quoted(text))).collect();
        self.set_members(pointer, present, members.iter().map(|(key, json)| (*key, json.as_str())));
    }

    /// Sets members of the map at `pointer`, creating the map where it is absent. Values are written as they are.
    pub fn set_members<'j>(
        &mut self,
        pointer: &str,
        present: Present,
        members: impl IntoIterator<Item = (&'j str, &'j str)>,
    ) {
        match present {
            Present::Absent => {
                let mut map = String::from("{");
                for (key, json) in members {
                    if map.len() > 1 {
                        map.push(',');
                    }
                    map.push_str(&quoted(key));
                    map.push(':');
                    map.push_str(json);
                }
                map.push('}');
                if map.len() > 2 {
                    self.add(pointer, &map);
                }
            }
            Present::Len(_) => {
                for (key, json) in members {
                    self.add(&format!("{pointer}/{}", escape(key)), json);
                }
            }
        }
    }

    fn operation(&mut self, op: &str, pointer: &str, json: impl FnOnce(&mut String)) {
        self.begin(op, pointer);
        self.buffer.push_str(",\"value\":");
        json(&mut self.buffer);
        self.buffer.push_str("}]");
    }

    /// Writes an operation up to its pointer.
    fn begin(&mut self, op: &str, pointer: &str) {
        if self.buffer.pop().is_some() {
            self.buffer.push(',');
        } else {
            self.buffer.push('[');
        }
        self.buffer.push_str("{\"op\":\"");
        self.buffer.push_str(op);
        self.buffer.push_str("\",\"path\":");
        push_quoted(&mut self.buffer, pointer);
    }
}

/// Appends a value as JSON, as `serde_json` writes it.
fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_quoted(out, text),
        // Writing to a String cannot fail.
        _ => drop(write!(out, "{value}")),
    }
}

/// Appends `text` as a JSON string.
pub fn push_quoted(buffer: &mut String, text: &str) {
    buffer.push('"');
    // Writing to a String cannot fail.
    let _ = write_escaped(buffer, text);
    buffer.push('"');
}

/// Writes `text` as the inside of a JSON string, as `serde_json` does.
///
/// # Errors
/// What `out` says.
pub fn write_escaped(out: &mut impl std::fmt::Write, text: &str) -> std::fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (plain, special) = rest.split_at(at);
        out.write_str(plain)?;
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => out.write_str("\\\"")?,
            Some('\\') => out.write_str("\\\\")?,
            Some('\n') => out.write_str("\\n")?,
            Some('\r') => out.write_str("\\r")?,
            Some('\t') => out.write_str("\\t")?,
            Some('\u{8}') => out.write_str("\\b")?,
            Some('\u{c}') => out.write_str("\\f")?,
            Some(control) => write!(out, "\\u{:04x}", u32::from(control))?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_str(rest)
}

/// The bytes of a JSON string literal.
pub fn quoted_len(text: &str) -> usize {
    struct Count(usize);
    impl std::fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(2);
    // Counting cannot fail.
    let _ = write_escaped(&mut count, text);
    count.0
}

/// A JSON string literal.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Applies a patch document, for command lines and tests. A server only writes patches.
///
/// # Errors
/// When the patch is not a JSON patch, or does not fit the document.
#[cfg(any(test, feature = "apply"))]
pub fn apply(document: &mut serde_json::Value, patch: &[u8]) -> Result<(), String> {
    if patch.is_empty() {
        return Ok(());
    }
    let patch: json_patch::Patch = serde_json::from_slice(patch).map_err(|error| error.to_string())?;
    json_patch::patch(document, &patch).map_err(|error| error.to_string())
}
