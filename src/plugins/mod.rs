//! The kind `AdmissionPlugin` in the process: its definition and its controller. What plugins decide is in [`engine::plugins`].

pub mod conditions;
pub mod controller;
pub mod crd;
pub mod diagnosis;
mod entries;
pub mod statuses;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::kind::{Family, Kind};
use crate::names::IMAGE_POLICY_SECRET;
use crate::permissions::{READ, rule};
use engine::plugins::api::{GROUP, PLURAL};
use engine::plugins::endpoints;
use engine::plugins::validation::{AdmissionPluginValidation, RULE};
use engine::snapshot::Snapshot;

/// The kind. Its editor decides about pods in all namespaces, so that role is given by name.
pub const ADMISSION_PLUGIN: Kind = Kind {
    rules,
    namespace_rules: || vec![rule("", &["secrets"], &[IMAGE_POLICY_SECRET], &["list", "watch"])],
    webhooks,
    demands: endpoints::demands,
    controller: Some(controller::start),
    watches: &[
        (GROUP, PLURAL),
        ("", "namespaces"),
        ("", "resourcequotas"),
        ("", "nodes"),
        ("storage.k8s.io", "storageclasses"),
        ("", "serviceaccounts"),
    ],
    samples: &[
        "policy_v1alpha1_alwayspullimages.yaml",
        "policy_v1alpha1_podnodeselector.yaml",
        "policy_v1alpha1_defaulttolerationseconds.yaml",
        "policy_v1alpha1_podtolerationrestriction.yaml",
        "policy_v1alpha1_extendedresourcetoleration.yaml",
        "policy_v1alpha1_limitpodhardantiaffinitytopology.yaml",
        "policy_v1alpha1_denyserviceexternalips.yaml",
        "policy_v1alpha1_namespacelifecycle.yaml",
        "policy_v1alpha1_podsecurity.yaml",
        "policy_v1alpha1_ownerreferencespermissionenforcement.yaml",
        "policy_v1alpha1_eventratelimit.yaml",
        "policy_v1alpha1_resourcequota.yaml",
        "policy_v1alpha1_imagepolicywebhook.yaml",
        "policy_v1alpha1_defaultstorageclass.yaml",
        "policy_v1alpha1_podtopologylabels.yaml",
        "policy_v1alpha1_priority.yaml",
        "policy_v1alpha1_runtimeclass.yaml",
        "policy_v1alpha1_storageobjectinuseprotection.yaml",
        "policy_v1alpha1_persistentvolumeclaimresize.yaml",
        "policy_v1alpha1_taintnodesbycondition.yaml",
        "policy_v1alpha1_serviceaccount.yaml",
        "policy_v1alpha1_noderestriction.yaml",
    ],
    is_optional: true,
    diagnosis: Some(diagnosis::diagnosis),
    ..Kind::new(controller::NAME, Family::Product, |_| crd::admission_plugin())
};

/// Every process may read the webhook configurations, which tell whether the API server calls.
fn rules() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &[PLURAL], &[], READ),
        rule(GROUP, &[&format!("{PLURAL}/status")], &[], &["patch"]),
        rule("", &["namespaces"], &[], READ),
        // Watched only while an object reads them.
        rule("", &["resourcequotas"], &[], &["list", "watch"]),
        rule("", &["nodes"], &[], &["list", "watch"]),
        rule("storage.k8s.io", &["storageclasses"], &[], &["list", "watch"]),
        // One that has not been seen yet is asked for.
        rule("", &["serviceaccounts"], &[], READ),
        // What the author of owner references may do.
        rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"]),
    ]
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    endpoints::register(registry.validating(RULE, AdmissionPluginValidation))
}
