//! Outrider decides what enters a Kubernetes cluster: one engine behind a webhook server, a command line and controllers.

#[macro_use(api_domain)]
extern crate engine;

pub use engine::API_DOMAIN;

pub mod answers;
pub mod certs;
pub mod cli;
pub mod config;
pub mod controller;
pub mod crd;
pub mod doctor;
pub mod events;
mod field_managers;
pub mod go_duration;
pub mod image_policy;
pub mod input;
pub mod kind;
pub mod kinds;
pub mod limitrange;
pub mod logging;
pub mod manager;
pub mod manifests;
pub mod metrics;
pub mod names;
pub mod permissions;
pub mod plugins;
pub mod podsecurityprofile;
pub mod readiness;
pub mod registry;
mod selection;
pub mod server;
pub mod sidecarset;
pub mod standalone;
mod validate;
mod visible;
pub mod watch;
pub mod workshop;

/// The example of the page on adding a kind compiles.
#[cfg(doctest)]
#[doc = include_str!("../docs/workshop.md")]
struct Workshop;
