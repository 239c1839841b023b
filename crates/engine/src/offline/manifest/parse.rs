//! From texts to objects. One broken text does not hide what is wrong in the others.

use serde_json::Value;

use super::identity::{IdentityError, article, identity};
use super::{Error, Manifest};
use crate::yaml::{self, Lines};

/// Lists in lists: real manifests have none, and each level is a call on the stack.
const MAX_LIST_DEPTH: usize = 8;

/// Where an object is in its file.
#[derive(Clone, Copy)]
struct Origin<'p> {
    line: usize,
    /// With its content, where a caller may want it.
    place: Option<&'p Lines>,
}

/// Reads the objects of a text; `file` is what errors and sources call it.
///
/// # Errors
///
/// All that is wrong in the text.
pub fn parse(file: &str, text: &str) -> Result<Vec<Manifest>, Vec<Error>> {
    let mut parsed = Parsed::default();
    parsed.text(file, text);
    parsed.into_result()
}

/// Objects of texts that are read one after the other, and what is wrong with them.
#[derive(Debug, Default)]
pub struct Parsed {
    manifests: Vec<Manifest>,
    errors: Vec<Error>,
}

impl Parsed {
    /// The objects, where nothing is wrong.
    ///
    /// # Errors
    ///
    /// All that is wrong in all texts.
    pub fn into_result(self) -> Result<Vec<Manifest>, Vec<Error>> {
        if self.errors.is_empty() { Ok(self.manifests) } else { Err(self.errors) }
    }

    /// The objects of what can be read, and what is wrong with the rest.
    pub fn into_parts(self) -> (Vec<Manifest>, Vec<Error>) {
        (self.manifests, self.errors)
    }

    /// Takes note of what kept a text from being read at all.
    pub fn error(&mut self, error: Error) {
        self.errors.push(error);
    }

    /// Reads the objects of the bytes of a file, which must be UTF-8.
    pub fn bytes(&mut self, file: &str, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.text(file, &text),
            Err(error) => {
                let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
                let line = valid.split(|byte| *byte == b'\n').count();
                let error = "the file is not UTF-8 text".to_owned();
                self.errors.push(Error::Unreadable { path: format!("{file}:{line}"), error });
            }
        }
    }

    /// Reads the objects of a text; `file` is what errors and sources call it.
    pub fn text(&mut self, file: &str, text: &str) {
        match yaml::read(text) {
            Ok(documents) => {
                // Items of a list each have a line of their own.
                let has_list = documents.iter().any(|document| document.value.get("items").is_some());
                let places = if has_list { yaml::places(text) } else { Vec::new() };
                for document in documents {
                    let place = places.iter().find(|place| place.line == document.line);
                    self.object(file, Origin { line: document.line, place }, document.value, 0);
                }
            }
            Err(error) => {
                let is_template = is_template(text);
                self.errors.push(Error::Syntax { file: file.to_owned(), error, is_template });
            }
        }
    }

    fn object(&mut self, file: &str, at: Origin<'_>, mut value: Value, depth: usize) {
        let origin = format!("{file}:{}", at.line);
        if !value.is_object() {
            return self.errors.push(Error::NotAnObject { origin, found: article(&value) });
        }
        let identity = match identity(&value) {
            Ok(identity) => identity,
            // Only the type is asked for here; whether the rest is right is for those who use the object.
            Err(IdentityError::NotAString { field: "metadata.name" | "metadata.namespace", .. }) => {
                return self.manifests.push(Manifest { source: origin, value, is_stored: false });
            }
            Err(error) => return self.errors.push(Error::Unidentified { origin, error }),
        };
        let Some(item_kind) = identity.kind.strip_suffix("List") else {
            return self.manifests.push(Manifest { source: origin, value, is_stored: false });
        };
        let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) else {
            return self.manifests.push(Manifest { source: origin, value, is_stored: false });
        };
        if depth == MAX_LIST_DEPTH {
            return self.errors.push(Error::ListsTooDeep { origin });
        }
        let places = at.place.and_then(|place| place.step("items")).map(Lines::items).unwrap_or_default();
        for (index, mut item) in items.into_iter().enumerate() {
            if !item_kind.is_empty() {
                name_type(&mut item, &identity.api_version, item_kind);
            }
            let place = places.get(index);
            let line = place.map_or(at.line, |place| place.line);
            self.object(file, Origin { line, place }, item, depth + 1);
        }
    }
}

/// The API server leaves apiVersion and kind out of the items of a typed list.
fn name_type(item: &mut Value, api_version: &str, kind: &str) {
    if let Value::Object(fields) = item {
        fields.entry("apiVersion").or_insert_with(|| api_version.into());
        fields.entry("kind").or_insert_with(|| kind.into());
    }
}
/// Whether a text has something that Helm would fill in.
pub fn is_template(text: &str) -> bool {
    text.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}"))
}
