//! `Collector`: the addresses of pods, and a count of what happens to their Deployment.

mod addresses;
pub mod api;
pub mod controller;
mod crd;
mod ledger;
mod tally;
pub mod validation;
pub mod watched;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::permissions::{own_kind, rule};
use crate::workshop::kind::Kind;
use engine::snapshot::Snapshot;

/// Name of the kind in flags, logs and metrics.
const NAME: &str = "collector";

/// The kind.
pub const COLLECTOR: Kind =
    Kind { name: NAME, crd: crd::collector, rules, webhooks, controller: Some(controller::start) };

/// It only looks at what it reports on. Pods may be read by every Outrider.
fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(api::GROUP, api::PLURAL);
    rules.push(rule("apps", &["deployments"], &[], &["get", "list", "watch"]));
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::CollectorValidation)
}
