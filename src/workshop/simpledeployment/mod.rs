//! `SimpleDeployment`: a Deployment that always has the number of replicas asked for.

pub mod api;
pub mod controller;
mod crd;
mod objects;
pub mod validation;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Editors, Family, Kind, Reader, Watched, no_demands, no_rules};
use crate::permissions::{applied, own_kind};
use engine::snapshot::Snapshot;

/// Name of the kind in flags, logs and metrics.
const NAME: &str = "simpledeployment";

/// The kind.
pub const SIMPLE_DEPLOYMENT: Kind = Kind {
    name: NAME,
    family: Family::Workshop,
    crd: crd::simpledeployment,
    rules,
    webhooks,
    stages: &[],
    namespace_rules: no_rules,
    demands: no_demands,
    controller: Some(controller::start),
    watches: &[
        Watched { group: api::GROUP, plural: api::PLURAL, reader: Reader::Controller },
        Watched { group: "apps", plural: "deployments", reader: Reader::Controller },
    ],
    editors: Editors::OfNamespaces,
    samples: &["apps_v1_simpledeployment.yaml"],
};

fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(api::GROUP, api::PLURAL);
    rules.push(applied("apps", "deployments"));
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::NAME_CHECK)
}
