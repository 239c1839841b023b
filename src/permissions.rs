//! Rules of RBAC, as controllers of kinds need them.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// What a watch needs.
pub const READ: &[&str] = &["get", "list", "watch"];

/// The rights that a controller needs on a kind of ours: reading it, writing its status, and owner references that hold up
/// its deletion, which `OwnerReferencesPermissionEnforcement` allows to those who may update its finalizers.
pub fn own_kind(group: &str, plural: &str) -> Vec<PolicyRule> {
    vec![
        rule(group, &[plural], &[], READ),
        rule(group, &[&format!("{plural}/status")], &[], &["patch"]),
        rule(group, &[&format!("{plural}/finalizers")], &[], &["update"]),
    ]
}

/// What a controller needs on the objects that it keeps by server-side apply. Garbage collection deletes them.
pub fn applied(group: &str, plural: &str) -> PolicyRule {
    rule(group, &[plural], &[], &["get", "list", "watch", "create", "patch"])
}

/// A rule about all objects of these resources, or about those of these names.
pub fn rule(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(texts(&[group])),
        resources: Some(texts(resources)),
        resource_names: Some(texts(names)).filter(|names| !names.is_empty()),
        verbs: texts(verbs),
        non_resource_urls: None,
    }
}

/// Owned strings of constants.
pub fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}
