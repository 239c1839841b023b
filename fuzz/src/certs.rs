//! Modules of the process, under the path that they name each other by.

#![allow(dead_code, unused_imports)]

#[path = "../../src/certs/pair.rs"]
pub mod pair;
#[path = "../../src/certs/trust_anchor.rs"]
pub mod trust_anchor;
