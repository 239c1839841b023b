//! x
pub mod field;
pub mod format;
