//! `Collector`: the addresses of pods, and a count of what happens to their Deployment.

mod addresses;
pub mod api;
pub mod controller;
mod crd;
mod event_counter;
mod event_store;
pub mod validation;
pub mod watched;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Editors, Family, Kind, Reader, Watched, no_demands, no_rules};
use crate::permissions::{own_kind, rule};
use engine::snapshot::Snapshot;

/// Name of the kind in flags, logs and metrics.
const NAME: &str = "collector";

/// The kind.
pub const COLLECTOR: Kind = Kind {
    name: NAME,
    family: Family::Workshop,
    crd: crd::collector,
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
    samples: &["collector.ip_v1_collector.yaml"],
};

/// It only reads what it reports on. Every Outrider may read pods.
fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(api::GROUP, api::PLURAL);
    rules.push(rule("apps", &["deployments"], &[], &["get", "list", "watch"]));
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::CollectorValidation)
}
