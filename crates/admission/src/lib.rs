//! x
pub mod field;
