//! `SimpleDeployment`: a Deployment that always has the number of replicas asked for.

pub mod api;
pub mod controller;
mod crd;
mod objects;
pub mod validation;

use admission::Registry;

use self::api::SimpleDeploymentSpec;
use crate::kind::{Editors, Kind};
use crate::workshop::object::row;
use engine::snapshot::Snapshot;

/// The kind.
pub const SIMPLE_DEPLOYMENT: Kind = Kind {
    webhooks,
    controller: Some(controller::start),
    keeps: &[("apps", "deployments")],
    editors: Editors::OfNamespaces,
    samples: &["apps_v1_simpledeployment.yaml"],
    ..row::<SimpleDeploymentSpec>(crd::simpledeployment)
};

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::NAME_CHECK)
}
