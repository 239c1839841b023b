//! The test that holds each served admission plugin against the API server's own, or against what its page says.

use std::fs;

use engine::plugins::catalog::{ALL, Service};

use crate::book::root;
use crate::list_sources;

/// By name of the plugin.
const TESTS: [(&str, &str); 14] = [
    ("NamespaceLifecycle", "namespaces_are_labelled_and_protected_and_exemptions_hold_while_no_replica_answers"),
    ("LimitPodHardAntiAffinityTopology", OF_PODS),
    ("LimitRanger", "a_cluster_limit_range_does_what_a_limit_range_does_and_nothing_more_beside_one"),
    ("AlwaysPullImages", OF_PODS),
    ("ImagePolicyWebhook", "images_are_reviewed_as_by_the_plugin_of_the_api_server"),
    ("PodSecurity", "namespaces_are_labelled_and_protected_and_exemptions_hold_while_no_replica_answers"),
    ("PodNodeSelector", OF_PODS),
    ("DefaultTolerationSeconds", OF_PODS),
    ("PodTolerationRestriction", OF_PODS),
    ("EventRateLimit", "events_are_limited_as_by_the_plugin_of_the_api_server"),
    ("ExtendedResourceToleration", OF_PODS),
    ("OwnerReferencesPermissionEnforcement", "owner_references_are_judged_as_by_the_plugin_of_the_api_server"),
    ("DenyServiceExternalIPs", OF_PODS),
    ("ResourceQuota", "limited_resources_need_a_quota_as_in_the_plugin_of_the_api_server"),
];

const OF_PODS: &str = "pods_and_services_come_out_as_from_the_plugins_of_the_api_server";

/// The cell of a plugin in the table.
pub fn cell(plugin: &str) -> String {
    let test = TESTS.iter().find(|(name, _)| *name == plugin);
    test.map(|(_, test)| format!("`{test}`")).unwrap_or_default()
}

#[test]
fn every_admission_plugin_that_is_served_names_a_test_on_a_real_api_server() {
    let mut files = Vec::new();
    list_sources(&root().join("tests/e2e"), &mut files);
    let sources: String = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    for (plugin, test) in TESTS {
        assert!(sources.contains(&format!("fn {test}(")), "{plugin}: {test} is no test");
    }
    let named: Vec<&str> = TESTS.iter().map(|(plugin, _)| *plugin).collect();
    let served: Vec<&str> =
        ALL.iter().filter(|entry| entry.service == Service::Served).map(|entry| entry.name).collect();
    assert_eq!(named, served);
}
