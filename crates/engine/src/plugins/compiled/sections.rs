//! The sections of an `AdmissionPlugin`, checked and made what decides.

use std::collections::BTreeMap;

use admission::field::{Error, ErrorList, Path};
use admission::format::names::{dns1123_label, dns1123_subdomain, qualified_name};

use super::{MAX_ENTRIES, MAX_PULL_SECRETS, Settings, asking, images, quotas};
use crate::plugins::always_pull_images::{AlwaysPullImages, Exempt, TextGlob};
use crate::plugins::api::{DAEMON_SET_PODS, PluginSpec, TOPOLOGY_TARGETS};
use crate::plugins::default_storage_class::DefaultStorageClass;
use crate::plugins::default_toleration_seconds::{DEFAULT_SECONDS, DefaultTolerationSeconds};
use crate::plugins::deny_service_external_ips::{AddressRanges, Cidr, DenyServiceExternalIps};
use crate::plugins::limit_pod_hard_anti_affinity_topology::LimitTopology;
use crate::plugins::namespace_lifecycle::NamespaceLifecycle;
use crate::plugins::placement::{MAX_TOLERATIONS, labels};
use crate::plugins::pod_class::PodClass;
use crate::plugins::pod_node_selector::{AllowLists, PodNodeSelector};
use crate::plugins::pod_security::{LEVELS, PodSecurity, is_version};
use crate::plugins::pod_toleration_restriction::PodTolerationRestriction;
use crate::plugins::pod_topology_labels::PodTopologyLabels;
use crate::plugins::service_account::ServiceAccountSettings;
use crate::plugins::toleration::{AllowedTolerations, Toleration, TolerationSpec};
use crate::plugins::{Plugin, shortened};

/// Refuses fields of the design that this build does not serve: to drop them would be to promise what is not done.
pub(super) fn unserved(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) {
    if spec.backend.is_some() {
        errors.push(Error::forbidden(&path.child("backend"), "not served yet: plugins are served by webhooks"));
    }
}

pub(super) fn other_sections(plugin: Plugin, spec: &PluginSpec, path: &Path, errors: &mut ErrorList) {
    let sections = [
        (Plugin::AlwaysPullImages, spec.always_pull_images.is_some()),
        (Plugin::PodNodeSelector, spec.pod_node_selector.is_some()),
        (Plugin::PodTolerationRestriction, spec.pod_toleration_restriction.is_some()),
        (Plugin::DefaultTolerationSeconds, spec.default_toleration_seconds.is_some()),
        (Plugin::ExtendedResourceToleration, spec.extended_resource_toleration.is_some()),
        (Plugin::LimitPodHardAntiAffinityTopology, spec.limit_pod_hard_anti_affinity_topology.is_some()),
        (Plugin::DenyServiceExternalIPs, spec.deny_service_external_ips.is_some()),
        (Plugin::NamespaceLifecycle, spec.namespace_lifecycle.is_some()),
        (Plugin::PodSecurity, spec.pod_security.is_some()),
        (Plugin::OwnerReferencesPermissionEnforcement, spec.owner_references_permission_enforcement.is_some()),
        (Plugin::EventRateLimit, spec.event_rate_limit.is_some()),
        (Plugin::ResourceQuota, spec.resource_quota.is_some()),
        (Plugin::ImagePolicyWebhook, spec.image_policy_webhook.is_some()),
        (Plugin::DefaultStorageClass, spec.default_storage_class.is_some()),
        (Plugin::PodTopologyLabels, spec.pod_topology_labels.is_some()),
        (Plugin::Priority, spec.priority.is_some()),
        (Plugin::RuntimeClass, spec.runtime_class.is_some()),
        (Plugin::StorageObjectInUseProtection, spec.storage_object_in_use_protection.is_some()),
        (Plugin::PersistentVolumeClaimResize, spec.persistent_volume_claim_resize.is_some()),
        (Plugin::TaintNodesByCondition, spec.taint_nodes_by_condition.is_some()),
        (Plugin::ServiceAccount, spec.service_account.is_some()),
        (Plugin::NodeRestriction, spec.node_restriction.is_some()),
    ];
    for (other, _) in sections.into_iter().filter(|(other, is_set)| *is_set && *other != plugin) {
        let detail = format!("only for spec.plugin: {other}; write another AdmissionPlugin for it");
        errors.push(Error::forbidden(&path.child(other.section()), detail));
    }
}

pub(super) fn settings(plugin: Plugin, spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    match plugin {
        Plugin::AlwaysPullImages => always_pull_images(spec, path, errors),
        Plugin::PodNodeSelector => node_selector(spec, path, errors),
        Plugin::PodTolerationRestriction => toleration_restriction(spec, path, errors),
        Plugin::DefaultTolerationSeconds => toleration_seconds(spec, path, errors),
        Plugin::ExtendedResourceToleration => Settings::ExtendedResourceToleration,
        Plugin::LimitPodHardAntiAffinityTopology => limit_topology(spec, path, errors),
        Plugin::DenyServiceExternalIPs => external_ips(spec, path, errors),
        Plugin::NamespaceLifecycle => namespace_lifecycle(spec, path, errors),
        Plugin::PodSecurity => pod_security(spec, path, errors),
        Plugin::OwnerReferencesPermissionEnforcement => asking::owner_references(spec, path, errors),
        Plugin::EventRateLimit => asking::event_rate_limit(spec, path, errors),
        Plugin::ResourceQuota => quotas::resource_quota(spec, path, errors),
        Plugin::ImagePolicyWebhook => images::image_policy(spec, path, errors),
        Plugin::DefaultStorageClass => default_storage_class(spec, path, errors),
        Plugin::PodTopologyLabels => topology_labels(spec, path, errors),
        Plugin::Priority => priority(spec, path, errors),
        Plugin::RuntimeClass => runtime_class(spec, path, errors),
        Plugin::StorageObjectInUseProtection => Settings::StorageObjectInUseProtection,
        Plugin::PersistentVolumeClaimResize => Settings::PersistentVolumeClaimResize,
        Plugin::TaintNodesByCondition => Settings::TaintNodesByCondition,
        Plugin::ServiceAccount => service_account(spec, path, errors),
        Plugin::NodeRestriction => node_restriction(spec, path, errors),
    }
}

fn always_pull_images(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.always_pull_images.clone().unwrap_or_default();
    let path = path.child("exemptImages");
    bounded(&section.exempt_images, &path, errors, |text| text.is_empty().then(|| "must not be empty".to_owned()));
    Settings::AlwaysPullImages(AlwaysPullImages {
        exempt: Exempt::of(&section.exempt_images),
        ephemeral: section.include_ephemeral_containers.unwrap_or_default(),
    })
}

fn toleration_restriction(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.pod_toleration_restriction.clone().unwrap_or_default();
    // More than may be written now: an older build stored up to so many, and what is stored has to count.
    let default = tolerations(section.default, MAX_TOLERATIONS, &path.child("default"), errors);
    let allowed = tolerations(section.whitelist, MAX_TOLERATIONS, &path.child("whitelist"), errors);
    let allowed = AllowedTolerations::of(allowed);
    let allows_built_in = section.always_allow_builtin.unwrap_or(true);
    let reads_annotations = section.annotations_allowed.unwrap_or(true);
    Settings::PodTolerationRestriction(PodTolerationRestriction {
        default,
        allowed,
        allows_built_in,
        reads_annotations,
    })
}

fn toleration_seconds(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.default_toleration_seconds.clone().unwrap_or_default();
    let mut seconds = |field: &'static str, value: Option<i64>| {
        let value = value.unwrap_or(DEFAULT_SECONDS);
        if value < 0 {
            errors.push(Error::invalid(&path.child(field), value, "must not be negative"));
        }
        value
    };
    let not_ready = seconds("notReadySeconds", section.not_ready_seconds);
    let unreachable = seconds("unreachableSeconds", section.unreachable_seconds);
    Settings::DefaultTolerationSeconds(DefaultTolerationSeconds { not_ready, unreachable })
}

fn limit_topology(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let keys = spec.limit_pod_hard_anti_affinity_topology.clone().unwrap_or_default().allowed_topology_keys;
    bounded(&keys, &path.child("allowedTopologyKeys"), errors, |key| qualified_name(key).into_iter().next());
    Settings::LimitTopology(LimitTopology::of(keys))
}

fn external_ips(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let ranges = spec.deny_service_external_ips.clone().unwrap_or_default().allowed_cidrs;
    let is_range = |text: &str| Cidr::parse(text).is_none().then(|| "must be a range such as 192.0.2.0/24".to_owned());
    bounded(&ranges, &path.child("allowedCIDRs"), errors, is_range);
    let allowed = AddressRanges::of(ranges.iter().filter_map(|text| Cidr::parse(text)));
    Settings::DenyServiceExternalIps(DenyServiceExternalIps { allowed })
}

fn priority(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.priority.clone().unwrap_or_default();
    let replaced = path.child("replacedClassNames");
    bounded(&section.replaced_class_names, &replaced, errors, |name| dns1123_subdomain(name).into_iter().next());
    let name = class_name(section.priority_class_name, &path.child("priorityClassName"), errors);
    Settings::Priority(PodClass { name, replaced: section.replaced_class_names.into_iter().collect() })
}

fn runtime_class(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let name = spec.runtime_class.clone().unwrap_or_default().runtime_class_name;
    let name = class_name(name, &path.child("runtimeClassName"), errors);
    Settings::RuntimeClass(PodClass { name, ..PodClass::default() })
}

/// The name of the class that pods get.
fn class_name(name: Option<String>, path: &Path, errors: &mut ErrorList) -> String {
    let name = name.unwrap_or_default();
    if name.is_empty() {
        errors.push(Error::required(path, "the class of pods that name none"));
    } else {
        for fault in dns1123_subdomain(&name) {
            errors.push(Error::invalid(path, shortened(&name), fault));
        }
    }
    name
}

fn node_restriction(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    if spec.node_restriction.clone().unwrap_or_default().i_understand_the_risk != Some(true) {
        let why = "true: kubelets wait for this plugin, and while no replica answers nothing is restricted; `outrider plugins \
                   NodeRestriction` and its page say more";
        errors.push(Error::required(&path.child("iUnderstandTheRisk"), why));
    }
    Settings::NodeRestriction
}

fn service_account(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.service_account.clone().unwrap_or_default();
    let (list, most) = (path.child("imagePullSecrets"), usize::from(MAX_PULL_SECRETS));
    if section.image_pull_secrets.len() > most {
        errors.push(Error::too_many(&list, section.image_pull_secrets.len(), most));
    }
    for (index, secret) in section.image_pull_secrets.iter().take(most).enumerate() {
        let name = list.index(index).child("name");
        if secret.name.is_empty() {
            errors.push(Error::required(&name, "a Secret in the namespace of the pod"));
            continue;
        }
        for fault in dns1123_subdomain(&secret.name) {
            errors.push(Error::invalid(&name, shortened(&secret.name), fault));
        }
    }
    Settings::ServiceAccount(ServiceAccountSettings {
        limits_all: section.limit_secret_references.unwrap_or_default(),
        pull_secrets: section.image_pull_secrets.into_iter().map(|secret| secret.name).collect(),
    })
}

/// Labels of nodes that an object copies: each is a lookup for every pod that is bound.
const MAX_NODE_LABELS: usize = 32;

fn topology_labels(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.pod_topology_labels.clone().unwrap_or_default();
    let keys = path.child("nodeLabels");
    if section.node_labels.is_empty() {
        errors.push(Error::required(&keys, "which labels of nodes pods get, such as node.kubernetes.io/instance-type"));
    } else if section.node_labels.len() > MAX_NODE_LABELS {
        errors.push(Error::too_many(&keys, section.node_labels.len(), MAX_NODE_LABELS));
    } else {
        bounded(&section.node_labels, &keys, errors, |key| qualified_name(key).into_iter().next());
    }
    let target = section.target.as_deref().unwrap_or("Labels");
    if !TOPOLOGY_TARGETS.contains(&target) {
        errors.push(Error::not_supported(&path.child("target"), shortened(target), &TOPOLOGY_TARGETS));
    }
    Settings::PodTopologyLabels(PodTopologyLabels {
        keys: section.node_labels.iter().cloned().collect(),
        labels: target != "Annotations",
        annotations: target != "Labels",
    })
}

fn default_storage_class(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.default_storage_class.clone().unwrap_or_default();
    let name = path.child("storageClassName");
    let replaces_default = section.replace_cluster_default.unwrap_or_default();
    match &section.storage_class_name {
        Some(class) => {
            for fault in dns1123_subdomain(class) {
                errors.push(Error::invalid(&name, shortened(class), fault));
            }
        }
        None if replaces_default => {
            errors.push(Error::required(&name, "what the default of the cluster is replaced by"));
        }
        None => {}
    }
    Settings::DefaultStorageClass(DefaultStorageClass { class: section.storage_class_name, replaces_default })
}

fn namespace_lifecycle(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.namespace_lifecycle.clone().unwrap_or_default();
    let names = path.child("protectedNamespaces");
    bounded(&section.protected_namespaces, &names, errors, |text| {
        text.is_empty().then(|| "must not be empty".to_owned())
    });
    let selector = section.protected_label_selector.as_ref();
    let selector =
        selector.and_then(|selector| super::scope::compiled(selector, &path.child("protectedLabelSelector"), errors));
    if section.protected_namespaces.is_empty() && section.protected_label_selector.is_none() {
        errors.push(Error::required(&names, "or protectedLabelSelector: which namespaces may not be deleted"));
    }
    if let Some(key) = &section.break_glass_annotation {
        let path = path.child("breakGlassAnnotation");
        for fault in qualified_name(key) {
            errors.push(Error::invalid(&path, shortened(key), fault));
        }
    }
    Settings::NamespaceLifecycle(NamespaceLifecycle {
        protected: section.protected_namespaces.iter().map(|name| TextGlob::new(name)).collect(),
        selector,
        break_glass: section.break_glass_annotation,
    })
}

fn pod_security(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let defaults = spec.pod_security.clone().unwrap_or_default().defaults;
    let path = path.child("defaults");
    let fields = [
        ("enforce", "pod-security.kubernetes.io/enforce", defaults.enforce),
        ("enforce-version", "pod-security.kubernetes.io/enforce-version", defaults.enforce_version),
        ("audit", "pod-security.kubernetes.io/audit", defaults.audit),
        ("audit-version", "pod-security.kubernetes.io/audit-version", defaults.audit_version),
        ("warn", "pod-security.kubernetes.io/warn", defaults.warn),
        ("warn-version", "pod-security.kubernetes.io/warn-version", defaults.warn_version),
    ];
    let mut labels = Vec::new();
    for (field, label, value) in fields {
        let Some(value) = value else { continue };
        let path = path.child(field);
        if field.ends_with("-version") {
            if !is_version(&value) {
                errors.push(Error::invalid(&path, shortened(&value), "must be \"latest\" or \"v1.x\""));
            }
        } else if !LEVELS.contains(&value.as_str()) {
            errors.push(Error::not_supported(&path, shortened(&value), &LEVELS));
        }
        labels.push((label, value));
    }
    // What is added would decide which objects select the namespace.
    let selector = spec.scope.namespace_selector.iter();
    let mut keys = selector.flat_map(|selector| {
        selector.match_labels.keys().chain(selector.match_expressions.iter().map(|term| &term.key))
    });
    if keys.any(|key| key.starts_with("pod-security.kubernetes.io/")) {
        let path = Path::new("spec").child("match").child("namespaceSelector");
        errors.push(Error::forbidden(&path, "may not select by the labels that the plugin itself adds"));
    }
    if labels.is_empty() {
        errors.push(Error::required(&path, "at least one level, such as enforce: baseline"));
    }
    Settings::PodSecurity(PodSecurity { labels })
}

/// Checks the length of a list, and its entries.
pub(super) fn bounded(list: &[String], path: &Path, errors: &mut ErrorList, fault: impl Fn(&str) -> Option<String>) {
    if list.len() > usize::from(MAX_ENTRIES) {
        return errors.push(Error::too_many(path, list.len(), usize::from(MAX_ENTRIES)));
    }
    for (index, text) in list.iter().enumerate() {
        if let Some(fault) = fault(text) {
            errors.push(Error::invalid(&path.index(index), shortened(text), fault));
        }
    }
}

fn node_selector(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.pod_node_selector.clone().unwrap_or_default();
    let mut read = |text: &str, path: &Path| {
        labels(text).unwrap_or_else(|fault| {
            errors.push(Error::invalid(path, shortened(text), fault));
            BTreeMap::new()
        })
    };
    let default = section.cluster_default_node_selector.as_deref().unwrap_or_default();
    let cluster_default = read(default, &path.child("clusterDefaultNodeSelector"));
    let lists = path.child("namespaceAllowLists");
    for (name, text) in &section.namespace_allow_lists {
        read(text, &lists.key(name.as_str()));
    }
    for name in section.namespace_allow_lists.keys() {
        for fault in dns1123_label(name) {
            errors.push(Error::invalid(&lists, shortened(name), fault));
        }
    }
    let skips_daemon_sets = match section.daemon_set_pods.as_deref() {
        None | Some("Apply") => false,
        Some("Skip") => true,
        Some(other) => {
            errors.push(Error::not_supported(&path.child("daemonSetPods"), shortened(other), &DAEMON_SET_PODS));
            false
        }
    };
    let allow_lists = AllowLists::of(&section.namespace_allow_lists);
    Settings::PodNodeSelector(PodNodeSelector { cluster_default, allow_lists, skips_daemon_sets })
}

/// What the API server's own validation of tolerations says (`ValidateTolerations` of k8s.io/kubernetes/pkg/apis/core/validation).
fn tolerations(list: Vec<TolerationSpec>, most: u16, path: &Path, errors: &mut ErrorList) -> Vec<Toleration<'static>> {
    if list.len() > usize::from(most) {
        errors.push(Error::too_many(path, list.len(), most.into()));
        return Vec::new();
    }
    for (index, one) in list.iter().enumerate() {
        let path = path.index(index);
        if !one.key.is_empty() {
            let faults = qualified_name(&one.key).into_iter();
            faults.for_each(|fault| errors.push(Error::invalid(&path.child("key"), shortened(&one.key), fault)));
        } else if one.operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(Error::invalid(&path.child("operator"), shortened(&one.operator), detail));
        }
        if !["", "Exists", "Equal"].contains(&one.operator.as_str()) {
            errors.push(Error::not_supported(&path.child("operator"), shortened(&one.operator), &["Equal", "Exists"]));
        } else if one.operator == "Exists" && !one.value.is_empty() {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(Error::invalid(&path.child("value"), shortened(&one.value), detail));
        }
        if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&one.effect.as_str()) {
            let effects = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
            errors.push(Error::not_supported(&path.child("effect"), shortened(&one.effect), &effects));
        } else if one.toleration_seconds.is_some() && one.effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(Error::invalid(&path.child("effect"), one.effect.as_str(), detail));
        }
    }
    list.into_iter().map(TolerationSpec::compile).collect()
}
