use crate::yaml;

use super::IdentityError;

const fn helm(is_template: bool) -> &'static str {
    if is_template { "; it looks like a Helm template: run `helm template` first" } else { "" }
}

/// Why manifests cannot be used. Each text starts with the file and, where there is one, the line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder that cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The path as given, or as found in a folder.
        path: String,
        /// What the operating system says.
        error: String,
    },
    /// A file that is neither YAML nor JSON.
    #[error("{file}:{}:{}: {}{}", error.line, error.column, error.detail(), helm(*.is_template))]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong, and where in the file.
        error: yaml::Error,
        /// Whether there are `{{` and `}}` in the text.
        is_template: bool,
    },
    /// A document that is a list or a scalar.
    #[error("{origin}: a manifest must be an object with apiVersion and kind, found {found}")]
    NotAnObject {
        /// `file:line`.
        origin: String,
        /// What the document is, with its article.
        found: &'static str,
    },
    /// An object that does not say what it is.
    #[error("{origin}: {error}")]
    Unidentified {
        /// `file:line`.
        origin: String,
        /// What is missing.
        error: IdentityError,
    },
    /// A `List` within `List`s, deeper than is read.
    #[error("{origin}: lists nested too deep")]
    ListsTooDeep {
        /// `file:line`.
        origin: String,
    },
}
