//! What Outrider decides, for three fronts: the webhook server, the command line and the fuzzers.
//!
//! Pure by its dependencies: no runtime, no HTTP, no Kubernetes client, no clock, no file system; a test of the workspace reads
//! `cargo metadata` and says so. Bytes and a [`snapshot`] go in, bytes come out.

/// [`API_DOMAIN`] as a literal, for constants that are put together at compile time.
#[macro_export]
macro_rules! api_domain {
    () => {
        "outrider.dev"
    };
}

/// The domain of every API group, annotation and label of ours.
pub const API_DOMAIN: &str = api_domain!();

pub mod demand;
pub mod findings;
pub mod hidden;
pub mod limitrange;
pub mod offline;
pub mod openkruise;
mod outcome;
pub mod plugins;
pub mod pod;
pub mod podsecurityprofile;
pub mod reasons;
mod resource_name;
pub mod schema;
pub mod sidecarset;
pub mod snapshot;
pub mod suggest;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod testing;
pub mod yaml;

pub use schema::SCHEMAS;
