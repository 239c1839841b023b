//! How strictly manifests and files are read, as flags take it.

use clap::ValueEnum;
use engine::offline::model;

/// What is done about fields that nobody knows, as kubectl's flag of that name has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Validate {
    /// An unknown field is an error.
    #[default]
    Strict,
    /// An unknown field is a warning: it may be newer than this build.
    Warn,
}

impl From<Validate> for model::Validate {
    fn from(validate: Validate) -> Self {
        match validate {
            Validate::Strict => Self::Strict,
            Validate::Warn => Self::Warn,
        }
    }
}
