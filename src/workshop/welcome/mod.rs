//! `Welcome`: a Deployment that greets somebody, and a Service in front of it.

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
const NAME: &str = "welcome";

/// The kind.
pub const WELCOME: Kind = Kind { name: NAME, crd: crd::welcome, rules, webhooks, controller: Some(controller::start) };

fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(api::GROUP, api::PLURAL);
    rules.extend([applied("apps", "deployments"), applied("", "services")]);
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::WelcomeValidation)
}
