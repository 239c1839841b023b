//! Manifests from files: objects with the place they came from, and what is asked of every object.

mod error;
mod files;
mod identity;
mod load;
mod pod_template;

#[cfg(test)]
mod load_tests;

pub use error::Error;
pub use files::{Fingerprint, fingerprint};
pub use identity::{Identity, IdentityError, group, identity};
pub use load::{load, load_or_stdin, parse};
pub use pod_template::pod_template;

use serde_json::Value;

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// `file:line` of the document that holds the object.
    pub source: String,
    /// The object. It has an `apiVersion` and a `kind`.
    pub value: Value,
}
