//! The kind `PodSecurityProfile` in the process: its definition and its controller. What profiles decide is in
//! [`engine::podsecurityprofile`].

pub mod controller;
pub mod crd;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Family, Kind};
use crate::permissions::{READ, rule};
use crate::plugins::diagnosis::diagnosis;
use engine::podsecurityprofile::api::{GROUP, PLURAL};
use engine::podsecurityprofile::endpoints::{self, PodSecurityProfiles};
use engine::podsecurityprofile::validation::{PodSecurityProfileValidation, RULE};
use engine::snapshot::Snapshot;

/// The kind. Its editor decides about pods in all namespaces, so that role is given by name.
pub const POD_SECURITY_PROFILE: Kind = Kind {
    rules,
    webhooks,
    stages: &[&PodSecurityProfiles],
    demands: endpoints::demands,
    controller: Some(controller::start),
    watches: &[(GROUP, PLURAL), ("", "namespaces")],
    samples: &["policy_v1alpha1_podsecurityprofile.yaml"],
    is_optional: true,
    diagnosis: Some(diagnosis),
    ..Kind::new(controller::NAME, Family::Product, |_| crd::pod_security_profile())
};

fn rules() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &[PLURAL], &[], READ),
        rule(GROUP, &[&format!("{PLURAL}/status")], &[], &["patch"]),
        rule("", &["namespaces"], &[], READ),
        // Who may use a profile.
        rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"]),
    ]
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    endpoints::register(registry.validating(RULE, PodSecurityProfileValidation))
}
