//! Outrider decides what enters a Kubernetes cluster: one engine behind a webhook server, a command line and controllers.

pub mod sidecarset;
pub mod world;
