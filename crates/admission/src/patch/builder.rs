//! A patch that is built while looking at the document.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::PatchWriter;

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
/// Pointers are JSON pointers (RFC 6901); [`escape`](super::escape) the tokens that come from data.
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
/// # Ok::<(), admission::PatchError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PatchBuilder {
    document: Value,
    writer: PatchWriter,
}

impl PatchBuilder {
    /// A builder over a copy of `document`.
    pub fn new(document: &Value) -> Self {
        Self::of(document.clone())
    }

    /// A builder over `document`.
    pub fn of(document: Value) -> Self {
        Self { document, writer: PatchWriter::default() }
    }

    /// The document as patched so far.
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// The value at `pointer`. As `Value::pointer`, which copies every token.
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        if pointer.is_empty() {
            return Some(&self.document);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(&self.document, child)
    }

    /// The patch.
    pub fn finish(self) -> PatchWriter {
        self.writer
    }

    /// Sets the value at `pointer`, making missing or null parents. Writes nothing where the value is already there;
    /// `null` is already there where nothing is. An element of a list is replaced.
    ///
    /// # Errors
    /// When a parent is neither a map nor absent, when a list has no such element, and when `pointer` is the whole
    /// document or does not start with `/`.
    pub fn set(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        match self.get(pointer) {
            Some(present) if *present == value => Ok(()),
            None if value.is_null() => Ok(()),
            _ => self.put(pointer, value),
        }
    }

    /// Sets the value at `pointer` only where nothing or `null` is there.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn default(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        match self.get(pointer) {
            None | Some(Value::Null) => self.set(pointer, value),
            Some(_) => Ok(()),
        }
    }

    /// Gives the map at `pointer` these members, each where nothing, `null` or what `is_absent` is there; the keys need no escaping. The map
    /// is searched for once, so that this costs less than to set each. Nothing happens where no map is there.
    pub fn fill<const N: usize>(
        &mut self,
        pointer: &str,
        members: [(&'static str, Value); N],
        is_absent: impl Fn(&Value, &Value) -> bool,
    ) {
        let Some(Value::Object(map)) = at_mut(&mut self.document, pointer) else { return };
        let mut place = String::with_capacity(pointer.len() + 32);
        place.push_str(pointer);
        place.push('/');
        for (key, value) in members {
            if map.get(key).is_none_or(|present| present.is_null() || is_absent(present, &value)) {
                place.truncate(pointer.len() + 1);
                place.push_str(key);
                self.writer.add_value(&place, &value);
                map.insert(key.to_owned(), value);
            }
        }
    }

    /// Removes the value at `pointer`, if there is one.
    pub fn remove(&mut self, pointer: &str) {
        let Some((parent, token)) = pointer.rsplit_once('/') else { return };
        let removed = match at_mut(&mut self.document, parent) {
            Some(Value::Object(map)) => map.remove(unescape(token).as_ref()).is_some(),
            Some(Value::Array(list)) => match element_index(token) {
                Some(index) if index < list.len() => {
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
    /// When something else than a list is there, and as [`Self::set`].
    pub fn insert(&mut self, pointer: &str, index: usize, value: Value) -> Result<(), PatchError> {
        match at_mut(&mut self.document, pointer) {
            Some(Value::Array(list)) => {
                let index = index.min(list.len());
                self.writer.add(&format!("{pointer}/{index}"), &value.to_string());
                list.insert(index, value);
                Ok(())
            }
            None | Some(Value::Null) => self.put(pointer, Value::Array(vec![value])),
            Some(other) => Err(mismatch(pointer, "a list", other)),
        }
    }

    fn put(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        if !pointer.starts_with('/') {
            // The API server's library (evanphx/json-patch v4, `findObject`) cannot add at the root either.
            let found = if pointer.is_empty() { "the whole document" } else { "a pointer that does not start with /" };
            return Err(PatchError {
                pointer: pointer.to_owned(),
                expected: "the pointer of a member or element",
                found,
            });
        }
        // The shortest prefix at which nothing is there takes the whole new branch in one operation.
        let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
        let (mut place, mut begin) = (&self.document, 1);
        for end in ends {
            let (prefix, rest) = pointer.split_at(end);
            match child(place, prefix.get(begin..).unwrap_or_default()) {
                None | Some(Value::Null) => return self.write(prefix, nest(rest, value)),
                Some(_) if rest.is_empty() => return self.write(prefix, value),
                Some(below @ (Value::Object(_) | Value::Array(_))) => place = below,
                Some(other) => return Err(mismatch(prefix, "a map", other)),
            }
            begin = end + 1;
        }
        Ok(())
    }

    fn write(&mut self, pointer: &str, value: Value) -> Result<(), PatchError> {
        let (parent, token) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        match at_mut(&mut self.document, parent) {
            Some(Value::Object(map)) => {
                self.writer.add_value(pointer, &value);
                map.insert(unescape(token).into_owned(), value);
            }
            Some(Value::Array(list)) => {
                let Some(element) = element_index(token).and_then(|index| list.get_mut(index)) else {
                    return Err(PatchError { pointer: pointer.to_owned(), expected: "an element", found: "nothing" });
                };
                // `add` would insert in front of the element.
                self.writer.replace(pointer, &value.to_string());
                *element = value;
            }
            Some(other) => return Err(mismatch(parent, "a map", other)),
            None => return Err(PatchError { pointer: parent.to_owned(), expected: "a map", found: "nothing" }),
        }
        Ok(())
    }
}

/// `value` under the tokens of `rest`, which is empty or starts with `/`.
fn nest(rest: &str, value: Value) -> Value {
    rest.rsplit('/').take(rest.matches('/').count()).fold(value, |inner, token| {
        let mut map = Map::new();
        map.insert(unescape(token).into_owned(), inner);
        Value::Object(map)
    })
}

/// The member or element of a value that a token of a pointer names.
pub fn child<'v>(value: &'v Value, token: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(unescape(token).as_ref()),
        Value::Array(list) => list.get(element_index(token)?),
        _ => None,
    }
}

/// As `Value::pointer_mut`, which copies every token.
fn at_mut<'v>(document: &'v mut Value, pointer: &str) -> Option<&'v mut Value> {
    if pointer.is_empty() {
        return Some(document);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(document, |value, token| match value {
        Value::Object(map) => map.get_mut(unescape(token).as_ref()),
        Value::Array(list) => list.get_mut(element_index(token)?),
        _ => None,
    })
}

/// RFC 6901 section 4: digits without a sign or a leading zero.
fn element_index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with(['0', '+']);
    if canonical { token.parse().ok() } else { None }
}

fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

fn mismatch(pointer: &str, expected: &'static str, found: &Value) -> PatchError {
    PatchError { pointer: pointer.to_owned(), expected, found: type_name(found) }
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
