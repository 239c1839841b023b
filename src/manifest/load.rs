//! From paths to objects. One broken file does not hide what is wrong in the others.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files::{files, unreadable};
use super::identity::{IdentityError, article, identity};
use super::{Error, Manifest};
use crate::yaml;

/// Lists in lists: nobody writes them, and each level is a call on the stack.
const MAX_LIST_DEPTH: usize = 8;

/// Reads all objects of all paths: files whatever their names, folders with all .yaml, .yml and .json files in them
/// in the order of their paths. Lists (`kind: List`, `PodList`, …) are taken apart.
///
/// # Errors
///
/// All that is wrong in all files.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Manifest>, Vec<Error>> {
    load_from(paths, None)
}

/// As [`load`], and the path `-` stands for `stdin`, which is read to its end when it comes up first.
///
/// # Errors
///
/// All that is wrong in all files.
pub fn load_or_stdin(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Manifest>, Vec<Error>> {
    load_from(paths, Some(stdin))
}

/// Reads the objects of a text; `file` is what errors and sources call it.
///
/// # Errors
///
/// All that is wrong in the text.
pub fn parse(file: &str, text: &str) -> Result<Vec<Manifest>, Vec<Error>> {
    let mut loaded = Loaded::default();
    loaded.text(file, text);
    loaded.into_result()
}

fn load_from(paths: &[PathBuf], mut stdin: Option<&mut dyn Read>) -> Result<Vec<Manifest>, Vec<Error>> {
    let mut loaded = Loaded::default();
    for path in paths {
        match &mut stdin {
            Some(stdin) if path.as_os_str() == "-" => loaded.stdin(stdin),
            _ => loaded.path(path),
        }
    }
    loaded.into_result()
}

#[derive(Default)]
struct Loaded {
    manifests: Vec<Manifest>,
    errors: Vec<Error>,
}

impl Loaded {
    fn into_result(self) -> Result<Vec<Manifest>, Vec<Error>> {
        if self.errors.is_empty() { Ok(self.manifests) } else { Err(self.errors) }
    }

    fn stdin(&mut self, stdin: &mut dyn Read) {
        let mut bytes = Vec::new();
        match stdin.read_to_end(&mut bytes) {
            Ok(_) => self.bytes("stdin", bytes),
            Err(error) => self.errors.push(unreadable(Path::new("stdin"), error)),
        }
    }

    fn path(&mut self, path: &Path) {
        let found = files(path);
        self.errors.extend(found.errors);
        for file in found.files {
            match fs::read(&file) {
                Ok(bytes) => self.bytes(&file.display().to_string(), bytes),
                Err(error) => self.errors.push(unreadable(&file, error)),
            }
        }
    }

    fn bytes(&mut self, file: &str, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.text(file, &text),
            Err(error) => {
                let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
                let line = valid.split(|byte| *byte == b'\n').count();
                let problem = io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8 text");
                self.errors.push(unreadable(Path::new(&format!("{file}:{line}")), problem));
            }
        }
    }

    fn text(&mut self, file: &str, text: &str) {
        match yaml::read(text) {
            Ok(documents) => {
                for document in documents {
                    self.object(&format!("{file}:{}", document.line), document.value, 0);
                }
            }
            Err(error) => {
                let is_template = text.contains("{{") && text.contains("}}");
                self.errors.push(Error::Syntax { file: file.to_owned(), error, is_template });
            }
        }
    }

    fn object(&mut self, origin: &str, mut value: Value, depth: usize) {
        let origin = origin.to_owned();
        if !value.is_object() {
            return self.errors.push(Error::NotAnObject { origin, found: article(&value) });
        }
        let identity = match identity(&value) {
            Ok(identity) => identity,
            // Only the type is asked for here; whether the rest is right is for those who use the object.
            Err(IdentityError::NotAString { field: "metadata.name" | "metadata.namespace", .. }) => {
                return self.manifests.push(Manifest { source: origin, value });
            }
            Err(error) => return self.errors.push(Error::Unidentified { origin, error }),
        };
        let Some(item_kind) = identity.kind.strip_suffix("List") else {
            return self.manifests.push(Manifest { source: origin, value });
        };
        let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) else {
            return self.manifests.push(Manifest { source: origin, value });
        };
        if depth == MAX_LIST_DEPTH {
            return self.errors.push(Error::ListsTooDeep { origin });
        }
        for mut item in items {
            if !item_kind.is_empty() {
                name_type(&mut item, &identity.api_version, item_kind);
            }
            self.object(&origin, item, depth + 1);
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
