//! Outrider decides what enters a Kubernetes cluster: one engine behind a webhook server, a command line and controllers.

#[macro_use(api_domain)]
extern crate engine;

pub use engine::API_DOMAIN;

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
pub mod registry;
pub mod server;
pub mod sidecarset;
pub mod standalone;
pub mod workshop;
pub mod world;
