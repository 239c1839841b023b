//! What is wrong with manifests as a read model.

use admission::field::quote;

use crate::offline::admit::{AdmitError, Status};
use crate::offline::manifest;
use crate::sidecarset::api::API_VERSION;
use crate::sidecarset::compiled::CompileError;

/// Why manifests give no read model. Each text starts with the file and, where there is one, the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files that cannot be read as manifests.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// A set that the webhooks refuse, as they would in a cluster.
    #[error("{origin}: {}", told(.kind, .name, .status))]
    Refused {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the user of a cluster would see.
        status: Box<Status>,
    },
    /// A set that the webhooks cannot decide on.
    #[error("{origin}: {name:?}: {error}")]
    Undecided {
        /// `file:line`.
        origin: String,
        /// Name of the set.
        name: String,
        /// Why.
        error: AdmitError,
    },
    /// An object whose fields have the wrong shape.
    #[error("{origin}: {kind} cannot be read: {error}")]
    Undecodable {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
        /// What the decoder found.
        error: serde_json::Error,
    },
    /// An object with values of the wrong type.
    #[error("{origin}: {kind} {name:?}: {faults}")]
    WrongShape {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Every fault with its path.
        faults: String,
    },
    /// A set that cannot be injected.
    #[error("{origin}: {error}")]
    Uncompilable {
        /// `file:line`.
        origin: String,
        /// What is wrong.
        error: CompileError,
    },
    /// An object without a name.
    #[error("{origin}: {kind} has no name: write metadata.name")]
    Nameless {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The same object twice; a cluster would keep one of them.
    #[error("{origin}: {kind} {name:?} is defined twice, first at {first}: remove one, or give it another name")]
    Twice {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// `file:line` of the first.
        first: String,
    },
    /// A version that no build serves, or not this one, or a group that does not exist.
    #[error("{origin}: {api_version} SidecarSet is not served: write apiVersion: {API_VERSION}")]
    Version {
        /// `file:line`.
        origin: String,
        /// The `apiVersion` as written.
        api_version: String,
    },
    /// A kind in a group of ours that is not there, at least not in that version.
    #[error("{origin}: there is no {kind} in {api_version}{}", meant(.near.as_deref()))]
    NoSuchKind {
        /// `file:line`.
        origin: String,
        /// The `apiVersion` as written.
        api_version: String,
        /// The `kind` as written.
        kind: String,
        /// What was meant, as in `apps.outrider.dev/v1alpha1 SidecarSet`.
        near: Option<String>,
    },
    /// Fields that an API server would not know either.
    #[error("{origin}: {kind} {name:?}: {field}")]
    UnknownField {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Which, and what was meant; or how many more there are.
        field: String,
    },
}

/// The message, with a line for each fault where there are several. The message about an object that is too large to be read names
/// no object.
fn told(kind: &str, name: &str, status: &Status) -> String {
    let causes = &status.details.causes;
    if causes.len() < 2 {
        let message = status.message.as_str();
        return if message.contains(&quote(name)) { message.to_owned() } else { format!("{kind} {name:?}: {message}") };
    }
    // The message of an invalid object is its name and all faults in brackets; here each gets a line.
    let head = status.message.split(": [").next().unwrap_or_default();
    let lines = causes.iter().map(|cause| format!("\n  {}: {}", cause.field, cause.message));
    std::iter::once(format!("{head}:")).chain(lines).collect()
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean {}?)", quote(near))).unwrap_or_default()
}

/// Manifests that give no read model.
#[derive(Debug)]
pub struct Unusable {
    /// All that is wrong in all files. Of an object with unknown fields only these: the rest may follow from them.
    pub errors: Vec<Error>,
    /// What a user should know beside that.
    pub warnings: Vec<String>,
}
