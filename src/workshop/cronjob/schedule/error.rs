//! What is wrong with a schedule, in the words of robfig/cron v1.2.0.

use admission::field::quote;

use crate::go_duration::DurationError;

/// What is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Nothing there.
    #[error("Empty spec string")]
    Empty,
    /// Too few or too many fields.
    #[error("Expected exactly 5 fields, found {found}: {text}")]
    FieldCount {
        /// How many there are.
        found: usize,
        /// The whole schedule.
        text: String,
    },
    /// An `@` with another word behind it than the known ones.
    #[error("Unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every` with something else than a duration.
    #[error("Failed to parse duration {text}: {source}")]
    Every {
        /// The whole schedule.
        text: String,
        /// What is wrong with the duration.
        source: DurationError,
    },
    /// Neither a number nor a known name.
    #[error("Failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", quote(.text))]
    NotANumber {
        /// What is there.
        text: String,
        /// `invalid syntax` or `value out of range`.
        why: &'static str,
    },
    /// A number below 0.
    #[error("Negative number ({number}) not allowed: {text}")]
    Negative {
        /// The number.
        number: i64,
        /// As it is written.
        text: String,
    },
    /// More than one `-`.
    #[error("Too many hyphens: {0}")]
    Hyphens(String),
    /// More than one `/`.
    #[error("Too many slashes: {0}")]
    Slashes(String),
    /// A range that begins too early.
    #[error("Beginning of range ({start}) below minimum ({minimum}): {expression}")]
    BelowMinimum {
        /// Where it begins.
        start: u64,
        /// The least allowed.
        minimum: u8,
        /// The whole range.
        expression: String,
    },
    /// A range that ends too late.
    #[error("End of range ({end}) above maximum ({maximum}): {expression}")]
    AboveMaximum {
        /// Where it ends.
        end: u64,
        /// The most allowed.
        maximum: u8,
        /// The whole range.
        expression: String,
    },
    /// A range that ends before it begins.
    #[error("Beginning of range ({start}) beyond end of range ({end}): {expression}")]
    Reversed {
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// The whole range.
        expression: String,
    },
    /// A step of 0.
    #[error("Step of range should be a positive number: {0}")]
    ZeroStep(String),
}
