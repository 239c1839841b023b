//! `SimpleDeployment`: a Deployment that always has the number of replicas asked for.

pub mod api;
pub mod controller;
mod crd;
mod objects;
pub mod validation;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::permissions::{applied, own_kind};
use crate::workshop::kind::Kind;
use engine::snapshot::Snapshot;

/// Name of the kind in flags, logs and metrics.
const NAME: &str = "simpledeployment";

/// The kind.
pub const SIMPLE_DEPLOYMENT: Kind =
    Kind { name: NAME, crd: crd::simpledeployment, rules, webhooks, controller: Some(controller::start) };

fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(api::GROUP, api::PLURAL);
    rules.push(applied("apps", "deployments"));
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::SimpleDeploymentValidation)
}
