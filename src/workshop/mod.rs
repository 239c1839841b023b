//! Kinds that make a complete operator of their own on top of `crates/admission`: the proof that the framework is general.
//!
//! A folder a kind. They are off unless they are asked for. To add a kind, write its folder and its row in
//! [`KINDS`](crate::kinds::KINDS).

pub mod collector;
pub mod cronjob;
pub mod name_check;
pub mod object;
pub mod owned;
pub mod projectconfig;
pub mod readiness;
pub mod simpledeployment;
pub mod welcome;
