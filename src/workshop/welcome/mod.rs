//! `Welcome`: a Deployment of a web server that shows a greeting, and a Service for it.

pub mod api;
pub mod controller;
mod crd;
mod objects;
pub mod validation;

use admission::Registry;

use self::api::WelcomeSpec;
use crate::kind::{Editors, Kind};
use crate::workshop::object::row;
use engine::snapshot::Snapshot;

/// The kind.
pub const WELCOME: Kind = Kind {
    webhooks,
    controller: Some(controller::start),
    keeps: &[("apps", "deployments"), ("", "services")],
    editors: Editors::OfNamespaces,
    samples: &["webapp_v1_welcome.yaml"],
    ..row::<WelcomeSpec>(crd::welcome)
};

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::NAME_CHECK)
}
