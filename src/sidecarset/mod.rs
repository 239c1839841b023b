//! The kind `SidecarSet` in the process: its definition and its controller. What a set is and does is in
//! [`engine::sidecarset`].

pub mod controller;
pub mod crd;
pub mod rollout;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Family, Kind};
use crate::permissions::{READ, rule};
use engine::pod;
use engine::sidecarset::api::{GROUP, PLURAL};
use engine::sidecarset::defaults::SidecarSetDefaults;
use engine::sidecarset::validation::SidecarSetValidation;
use engine::sidecarset::{mutating_rule, validating_rule};
use engine::snapshot::Snapshot;

/// The kind. The editor of a set runs code in every pod that it selects, in all namespaces, so that role is given by name.
pub const SIDECAR_SET: Kind = Kind {
    rules,
    namespace_rules,
    webhooks,
    demands: pod::after_creation::demands,
    controller: Some(controller::start),
    watches: &[(GROUP, PLURAL), ("", "namespaces")],
    samples: &["apps_v1alpha1_sidecarset.yaml"],
    ..Kind::new(controller::NAME, Family::Product, |_| crd::sidecarset())
};

fn rules() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &[PLURAL], &[], READ),
        rule(GROUP, &[&format!("{PLURAL}/status")], &[], &["patch"]),
        rule("", &["namespaces"], &[], READ),
        // Rollouts: images and annotations, and the condition that says what they cannot change.
        rule("", &["pods"], &[], &["get", "list", "watch", "patch"]),
        rule("", &["pods/status"], &[], &["patch"]),
        // Requests and limits.
        rule("", &["pods/resize"], &[], &["patch"]),
        // `spec.updateStrategy.recreate` and `repair`.
        rule("", &["pods/eviction"], &[], &["create"]),
        rule("policy", &["poddisruptionbudgets"], &[], &["list"]),
        // Namespaces that refuse new pods with a set. Watched only while there are sets.
        rule("", &["limitranges"], &[], &["list", "watch"]),
        rule("", &["resourcequotas"], &[], &["list", "watch"]),
    ]
}

fn namespace_rules() -> Vec<PolicyRule> {
    vec![
        rule("apps", &["controllerrevisions"], &[], &["get", "list", "watch", "create", "patch", "delete"]),
        // Of our Service: who has to know a set for it to be Ready.
        rule("discovery.k8s.io", &["endpointslices"], &[], &["list"]),
    ]
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.defaulting(mutating_rule(), SidecarSetDefaults).validating(validating_rule(), SidecarSetValidation)
}
