//! Kinds that make a complete operator of their own on top of `crates/admission`: the proof that the framework is general.
//!
//! A folder a kind. They are off unless they are asked for.

pub mod cronjob;
mod schema;
