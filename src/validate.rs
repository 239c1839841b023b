//! How strictly manifests and files are read, as flags take it.

use clap::ValueEnum;
use engine::offline::model;

/// How unknown fields are treated, as by kubectl's flag of that name.
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
