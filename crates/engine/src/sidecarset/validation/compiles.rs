//! Whether the set can be used: by the compiler itself, which decides what pods get.
//!
//! The checks beside this one name every fault with its field. This one is the last word, so that no set is accepted that the watch
//! cannot take over.

use admission::field::{Error, ErrorList, Path};
use serde::Deserialize as _;
use serde_json::Value;

use crate::sidecarset::api::SidecarSet;
use crate::sidecarset::compiled::CompiledSet;

/// In place of the name that the API server makes from `generateName` after admission.
const GENERATED: &str = "generated";

/// Adds an error for whatever keeps a set without other faults from being compiled.
pub fn check(object: &Value, errors: &mut ErrorList) {
    // The status is the controllers', and is no part of what is compiled.
    let mut set = serde_json::Map::new();
    for field in ["metadata", "spec"] {
        set.insert(field.to_owned(), object.get(field).cloned().unwrap_or_default());
    }
    let mut set = match SidecarSet::deserialize(Value::Object(set)) {
        Ok(set) => set,
        Err(error) => {
            let detail = format!("the object cannot be decoded: {error}");
            return errors.push(Error::invalid(&Path::new("spec"), "object", detail));
        }
    };
    if set.metadata.name.as_ref().is_none_or(String::is_empty) {
        set.metadata.name = Some(GENERATED.to_owned());
    }
    if let Err(error) = CompiledSet::compile(&set) {
        errors.extend(error.errors);
    }
}
