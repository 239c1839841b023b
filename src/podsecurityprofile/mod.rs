//! The kind `PodSecurityProfile` in the process: its definition and its controller. What profiles decide is in
//! [`engine::podsecurityprofile`].

pub mod controller;
pub mod crd;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Editors, Family, Kind, Reader, Watched, no_rules};
use crate::permissions::{READ, rule};
use engine::podsecurityprofile::api::{GROUP, PLURAL};
use engine::podsecurityprofile::endpoints::{self, PodSecurityProfiles};
use engine::podsecurityprofile::validation::{PodSecurityProfileValidation, RULE};
use engine::snapshot::Snapshot;

/// The kind. Its editor decides about pods in all namespaces, so that role is given by name.
pub const POD_SECURITY_PROFILE: Kind = Kind {
    name: controller::NAME,
    family: Family::Product,
    crd: |_| crd::pod_security_profile(),
    rules,
    namespace_rules: no_rules,
    webhooks,
    stages: &[&PodSecurityProfiles],
    demands: endpoints::demands,
    controller: Some(controller::start),
    watches: &[
        Watched { group: GROUP, plural: PLURAL, reader: Reader::Decisions },
        Watched { group: "", plural: "namespaces", reader: Reader::Decisions },
    ],
    editors: Editors::Named,
    samples: &["policy_v1alpha1_podsecurityprofile.yaml"],
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
