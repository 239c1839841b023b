//! Outrider decides what enters a Kubernetes cluster: one engine behind a webhook server, a command line and controllers.

/// [`API_DOMAIN`] as a literal, for constants that are put together at compile time.
macro_rules! api_domain {
    () => {
        "outrider.dev"
    };
}

/// The domain of every API group, annotation and label of ours.
pub const API_DOMAIN: &str = api_domain!();

pub mod admit;
pub mod certs;
mod choice;
pub mod cli;
pub mod config;
pub mod crd;
pub mod doctor;
pub mod logging;
pub mod manager;
pub mod manifest;
pub mod manifests;
mod nearest;
pub mod pod;
pub mod registry;
pub mod server;
mod shape;
pub mod sidecarset;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod testing;
mod visible;
pub mod workshop;
pub mod world;
pub mod yaml;
