//! `Collector`: the addresses of pods, and a count of what happens to their Deployment.

pub mod address_list;
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

use self::api::CollectorSpec;
use crate::kind::{Editors, Kind};
use crate::permissions::{own_kind, rule};
use crate::workshop::object::{KindSpec as _, row};
use engine::snapshot::Snapshot;

/// The kind.
pub const COLLECTOR: Kind = Kind {
    rules,
    webhooks,
    controller: Some(controller::start),
    editors: Editors::OfNamespaces,
    samples: &["collector.ip_v1_collector.yaml"],
    ..row::<CollectorSpec>(crd::collector)
};

/// It only reads what it reports on. Every Outrider may read pods.
fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(CollectorSpec::GROUP, CollectorSpec::PLURAL);
    rules.push(rule("apps", &["deployments"], &[], &["get", "list", "watch"]));
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::CollectorValidation)
}
