//! The fuzz targets: each check takes bytes and panics where something that must hold does not.
//!
//! `tests/fuzz` of the workspace includes [`checks`] and runs them, without a fuzzer, on the seeds and the regressions.

#[macro_use(api_domain)]
extern crate engine;

pub mod bounds;
mod certs;
pub mod checks;
#[allow(dead_code, unused_imports)]
#[path = "../../src/go_duration.rs"]
mod go_duration;
mod workshop;

/// The modules of the process that checks use. To link the process would link its client and its runtime, with the fuzzer's counters
/// in all of it; these modules need neither, so they are compiled here once more.
mod process {
    pub use crate::certs::{pair, trust_anchor};
    pub use crate::workshop::cronjob::{conversion, schedule};
}
