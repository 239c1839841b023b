//! YAML and JSON as kubectl reads and prints them.
//!
//! What a manifest means is decided by kubectl: it cuts the text at lines that start with `---`, reads each piece with
//! goyaml v2 (YAML 1.1 scalars: `0644` is 420, `yes` is true) and turns the result into JSON (sigs.k8s.io/yaml).
//! [`read()`] gives the same values, and is stricter in three places where kubectl loses data without a word: a key that
//! is written twice, text after a `...` line, and `!!binary` data that is not UTF-8 are errors.
//!
//! [`write()`] prints what both YAML 1.1 and YAML 1.2 readers understand in the same way.
//!
//! No library: serde-saphyr reads 27 of the 116 scalars in `tests/yaml_like_kubectl.rs` differently from kubectl, such as `08` and `1e3`.

mod build;
mod json;
mod places;
mod read;
mod resolve;
mod write;

#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod write_tests;

pub use places::{Lines, is_path, places, steps, unquoted};
pub use read::read;
pub use write::{Lists, write, write_documents, write_documents_with};

use serde_json::Value;

/// How deep lists and mappings may nest, aliases followed; `serde_json` stops at the same depth when it reads JSON.
pub const MAX_DEPTH: usize = 128;

/// One document of a YAML or JSON stream. Empty documents are not in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The document as JSON, as kubectl would send it.
    pub value: Value,
    /// The line of the text on which the document's content starts, counted from 1.
    pub line: usize,
}

/// Why a text cannot be read, and where. The caller adds the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {}", self.detail())]
pub struct Error {
    /// Line of the text, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The field in which the problem was found, as in `spec.containers[0]`; empty at the top.
    pub path: String,
    /// What is wrong.
    pub problem: Problem,
}

impl Error {
    /// The text without the position: `spec.containers[0]: duplicate key "image"…`.
    pub fn detail(&self) -> String {
        if self.path.is_empty() { self.problem.to_string() } else { format!("{}: {}", self.path, self.problem) }
    }
}

/// What is wrong with a text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The parser's own words.
    #[error("{0}")]
    Syntax(String),
    /// A line that starts with `---` and goes on with something else than a comment.
    #[error("invalid document separator {0:?}: only a comment may follow \"---\" on its line")]
    Separator(String),
    /// Content after a `...` line.
    #[error("content after \"...\": kubectl would ignore it; separate documents with \"---\"")]
    AfterDocumentEnd,
    /// A character that YAML does not allow in a file.
    #[error("character U+{0:04X} is not allowed in YAML; write it as an escape in a double-quoted string")]
    ForbiddenCharacter(u32),
    /// The same key twice in one mapping.
    #[error("duplicate key {key:?}, first given on line {first_line}")]
    DuplicateKey {
        /// The key as a JSON string.
        key: String,
        /// Line of the first one, counted from 1.
        first_line: usize,
    },
    /// A key that has no form as a JSON string.
    #[error("{0} cannot be a key; write the key as a string")]
    UnsupportedKey(&'static str),
    /// `.inf`, `-.inf` or `.nan`.
    #[error("{0} has no form in JSON; quote it if it is meant as a string")]
    NotFinite(String),
    /// An explicit tag that the value does not fit.
    #[error("cannot read {value:?} as {tag}")]
    TagMismatch {
        /// The tag in its short form, as in `!!int`.
        tag: String,
        /// The scalar as written.
        value: String,
    },
    /// `!!binary` data that is not text.
    #[error("!!binary must hold base64 of UTF-8 text; write the base64 as a plain string without the tag")]
    Binary,
    /// A `<<` key with something else than a mapping.
    #[error("\"<<\" takes a mapping, an alias of a mapping, or a list of these")]
    MergeNeedsMapping,
    /// An alias within the value that it refers to.
    #[error("this alias is part of its own value")]
    AliasOfItself,
    /// Aliases that would multiply the document beyond reason.
    #[error("the document grows too large when its aliases are followed; write the values out, or split the file")]
    TooMuchAliasing,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}
