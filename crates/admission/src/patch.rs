//! JSON patches (RFC 6902) that touch only what they add.
//!
//! [`PatchWriter`] writes operations for a caller that already knows the shape of the document. [`PatchBuilder`] looks at the
//! document itself: it makes missing parents and leaves out what would change nothing.

use std::fmt::Write as _;

use serde_json::{Map, Value};

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

    /// `add`: sets a member, or inserts in front of a list's element. `json` is written as it is.
    pub fn add(&mut self, pointer: &str, json: &str) {
        self.operation("add", pointer, Some(json));
    }

    /// `replace`: the target must exist. `json` is written as it is.
    pub fn replace(&mut self, pointer: &str, json: &str) {
        self.operation("replace", pointer, Some(json));
    }

    /// `remove`: the target must exist.
    pub fn remove(&mut self, pointer: &str) {
        self.operation("remove", pointer, None);
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

    fn operation(&mut self, op: &str, pointer: &str, json: Option<&str>) {
        if self.buffer.pop().is_some() {
            self.buffer.push(',');
        } else {
            self.buffer.push('[');
        }
        self.buffer.push_str("{\"op\":\"");
        self.buffer.push_str(op);
        self.buffer.push_str("\",\"path\":");
        push_quoted(&mut self.buffer, pointer);
        if let Some(json) = json {
            self.buffer.push_str(",\"value\":");
            self.buffer.push_str(json);
        }
        self.buffer.push_str("}]");
    }
}

fn push_quoted(buffer: &mut String, text: &str) {
    let plain = text.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\');
    if plain {
        buffer.push('"');
        buffer.push_str(text);
        buffer.push('"');
    } else {
        buffer.push_str(&Value::from(text).to_string());
    }
}

/// A JSON string literal.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// A place that cannot take what the patch would put there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: expected {expected}, found {found}")]
pub struct PatchError {
    /// JSON pointer of the place.
    pub pointer: String,
    /// What would have to be there.
    pub expected: &'static str,
    /// What is there.
    pub found: &'static str,
}

/// Builds a patch while looking at the document, for defaulting.
///
/// It keeps a copy of the document up to date, so that later operations see the effect of earlier ones.
///
/// ```
/// use admission::PatchBuilder;
/// use serde_json::json;
/// let mut patch = PatchBuilder::new(&json!({"spec": {"type": null}}));
/// patch.default("/spec/type", json!("RollingUpdate"))?;
/// patch.default("/spec/update/partition", json!(0))?;
/// patch.default("/spec/type", json!("Other"))?;
/// assert_eq!(
///     String::from_utf8_lossy(patch.finish().document()),
///     r#"[{"op":"add","path":"/spec/type","value":"RollingUpdate"},{"op":"add","path":"/spec/update","value":{"partition":0}}]"#
/// );
/// # Ok::<(), admission::patch::PatchError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PatchBuilder {
    document: Value,
    writer: PatchWriter,
}

impl PatchBuilder {
    /// A builder over a copy of `document`.
    pub fn new(document: &Value) -> Self {
        Self { document: document.clone(), writer: PatchWriter::default() }
    }

    /// The document as patched so far.
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// The patch.
    pub fn finish(self) -> PatchWriter {
        self.writer
    }

    /// Sets the value at `pointer`, making missing or null parents. Writes nothing where the value is already there.
    ///
    /// # Errors
    /// When a parent is neither a map nor absent.
    pub fn set(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        if self.document.pointer(pointer) == Some(&value) {
            return Ok(());
        }
        self.put(pointer, value)
    }

    /// Sets the value at `pointer` only where nothing or `null` is there.
    ///
    /// # Errors
    /// When a parent is neither a map nor absent.
    pub fn default(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        match self.document.pointer(pointer) {
            None | Some(Value::Null) => self.put(pointer, value),
            Some(_) => Ok(()),
        }
    }

    /// Removes the value at `pointer`, if there is one.
    pub fn remove(&mut self, pointer: &str) {
        let Some((parent, token)) = pointer.rsplit_once('/') else { return };
        let removed = match self.document.pointer_mut(parent) {
            Some(Value::Object(map)) => map.remove(unescape(token).as_str()).is_some(),
            Some(Value::Array(list)) => match token.parse::<usize>() {
                Ok(index) if index < list.len() => {
                    list.remove(index);
                    true
                }
                _ => false,
            },
            _ => false,
        };
        if removed {
            self.writer.remove(pointer);
        }
    }

    /// Inserts `value` in front of element `index` of the list at `pointer`; an index past the end appends.
    /// A missing or null list, and its parents, are made.
    ///
    /// # Errors
    /// When something else than a list is there.
    pub fn insert(&mut self, pointer: &str, index: usize, value: Value) -> Result<(), PatchError> {
        match self.document.pointer_mut(pointer) {
            Some(Value::Array(list)) => {
                let index = index.min(list.len());
                list.insert(index, value.clone());
                self.writer.add(&format!("{pointer}/{index}"), &value.to_string());
                Ok(())
            }
            None | Some(Value::Null) => self.put(pointer, Value::Array(vec![value])),
            Some(other) => Err(PatchError { pointer: pointer.to_owned(), expected: "a list", found: type_name(other) }),
        }
    }

    fn put(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        // The shortest prefix at which nothing is there takes the whole new branch in one operation.
        let mut end = 0;
        while let Some(next) =
            pointer.get(end + 1..).map(|rest| rest.find('/').map_or(pointer.len(), |at| end + 1 + at))
        {
            let prefix = pointer.get(..next).unwrap_or(pointer);
            let last = next >= pointer.len();
            match self.document.pointer(prefix) {
                Some(Value::Object(_) | Value::Array(_)) if !last => end = next,
                None | Some(Value::Null) => {
                    let branch = nest(pointer.get(next..).unwrap_or_default(), value);
                    return self.write(prefix, branch);
                }
                Some(_) if last => return self.write(pointer, value),
                Some(other) => {
                    return Err(PatchError { pointer: prefix.to_owned(), expected: "a map", found: type_name(other) });
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        let (parent, token) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let json = value.to_string();
        match self.document.pointer_mut(parent) {
            Some(Value::Object(map)) => {
                map.insert(unescape(token), value);
            }
            Some(Value::Array(list)) => {
                let element = token.parse::<usize>().ok().and_then(|index| list.get_mut(index));
                let Some(element) = element else {
                    return Err(PatchError { pointer: pointer.to_owned(), expected: "an element", found: "nothing" });
                };
                *element = value;
                // `add` would insert in front of the element.
                self.writer.replace(pointer, &json);
                return Ok(());
            }
            Some(other) => {
                return Err(PatchError { pointer: parent.to_owned(), expected: "a map", found: type_name(other) });
            }
            None => return Err(PatchError { pointer: parent.to_owned(), expected: "a map", found: "nothing" }),
        }
        self.writer.add(pointer, &json);
        Ok(())
    }
}

fn nest(tokens: &str, value: Value) -> Value {
    tokens.rsplit('/').filter(|token| !token.is_empty()).fold(value, |inner, token| {
        let mut map = Map::new();
        map.insert(unescape(token), inner);
        Value::Object(map)
    })
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Applies a patch document, for command lines and tests. A server only writes patches.
///
/// # Errors
/// When the patch is not a JSON patch, or does not fit the document.
#[cfg(feature = "apply")]
pub fn apply(document: &mut Value, patch: &[u8]) -> Result<(), String> {
    if patch.is_empty() {
        return Ok(());
    }
    let patch: json_patch::Patch = serde_json::from_slice(patch).map_err(|error| error.to_string())?;
    json_patch::patch(document, &patch).map_err(|error| error.to_string())
}
