//! The kind `ClusterLimitRange` in the process: its definition and its controller. What ranges decide is in [`engine::limitrange`].

pub mod controller;
pub mod crd;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Family, Kind};
use crate::permissions::{READ, rule};
use crate::plugins::diagnosis::diagnosis;
use engine::limitrange::api::{GROUP, PLURAL};
use engine::limitrange::endpoints;
use engine::limitrange::validation::{ClusterLimitRangeValidation, RULE};
use engine::snapshot::Snapshot;

/// The kind. Its editor decides about pods in all namespaces, so that role is given by name.
pub const CLUSTER_LIMIT_RANGE: Kind = Kind {
    rules,
    webhooks,
    demands: endpoints::demands,
    controller: Some(controller::start),
    watches: &[(GROUP, PLURAL), ("", "namespaces")],
    samples: &["policy_v1alpha1_clusterlimitrange.yaml"],
    is_optional: true,
    diagnosis: Some(diagnosis),
    ..Kind::new(controller::NAME, Family::Product, |_| crd::cluster_limit_range())
};

fn rules() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &[PLURAL], &[], READ),
        rule(GROUP, &[&format!("{PLURAL}/status")], &[], &["patch"]),
        rule("", &["namespaces"], &[], READ),
    ]
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    endpoints::register(registry.validating(RULE, ClusterLimitRangeValidation))
}
