//! Objects of manifests with the place they came from, and what is asked of every object.

mod error;
mod identity;
mod parse;
mod pod_template;

pub use error::Error;
pub use identity::{Identity, IdentityError, group, identity};
pub use parse::{Parsed, is_template, parse};
pub use pod_template::pod_template;

use serde_json::Value;

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// `file:line` of the object: where its document starts, or the item of a list.
    pub source: String,
    /// The object. It has an `apiVersion` and a `kind`.
    pub value: Value,
    /// Whether it is from a cluster, whose API server stored it. A file is not, whatever its metadata says.
    pub is_stored: bool,
}
