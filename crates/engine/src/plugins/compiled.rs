//! The form of an `AdmissionPlugin` that decides.

use std::collections::{BTreeMap, BTreeSet};

use admission::field::{Error, ErrorList, Path};
use admission::format::names::{dns1123_label, qualified_name};
use admission::format::selector::Selector;
use admission::registry::FailurePolicy;
use admission::review::UserInfo;

use super::always_pull_images::{AlwaysPullImages, Glob};
use super::api::{AdmissionPlugin, DAEMON_SET_PODS, MODES, PluginSpec, Scope};
use super::change::Change;
use super::default_toleration_seconds::{DEFAULT_SECONDS, DefaultTolerationSeconds};
use super::deny_service_external_ips::{Cidr, DenyServiceExternalIps};
use super::limit_pod_hard_anti_affinity_topology::{HOSTNAME, LimitTopology};
use super::placement::{MAX_TOLERATIONS, Placement, labels};
use super::pod_facts::Spec;
use super::pod_node_selector::PodNodeSelector;
use super::pod_toleration_restriction::PodTolerationRestriction;
use super::toleration::{Toleration, TolerationSpec};
use super::{Plugin, catalog, extended_resource_toleration, shortened};
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;

/// The most entries of a list.
const MAX_ENTRIES: usize = 256;
/// Most seconds that the API server waits.
const MAX_TIMEOUT: i64 = 10;

/// What becomes of what a plugin decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is done.
    Enforce,
    /// The user is warned of what would be done.
    Warn,
    /// The audit log has what would be done.
    Audit,
    /// Nothing.
    Off,
}

impl Mode {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
            Self::Off => "Off",
        }
    }
}

/// The configuration of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    /// Of `AlwaysPullImages`.
    AlwaysPullImages(AlwaysPullImages),
    /// Of `PodNodeSelector`.
    PodNodeSelector(PodNodeSelector),
    /// Of `DefaultTolerationSeconds`.
    DefaultTolerationSeconds(DefaultTolerationSeconds),
    /// Of `PodTolerationRestriction`.
    PodTolerationRestriction(PodTolerationRestriction),
    /// Of `ExtendedResourceToleration`, which has none.
    ExtendedResourceToleration,
    /// Of `LimitPodHardAntiAffinityTopology`.
    LimitTopology(LimitTopology),
    /// Of `DenyServiceExternalIPs`.
    DenyServiceExternalIps(DenyServiceExternalIps),
}

/// An `AdmissionPlugin`, ready to decide.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledPlugin {
    /// Name of the object.
    pub name: String,
    /// The plugin.
    pub plugin: Plugin,
    /// What becomes of its decisions.
    pub mode: Mode,
    /// Its configuration.
    pub settings: Settings,
    /// What happens to a request when nobody answers; none where that is not for the object to say.
    pub failure_policy: Option<FailurePolicy>,
    /// How long the API server waits, in seconds.
    pub timeout_seconds: Option<u8>,
    /// Namespaces, by their labels.
    pub namespaces: Option<Selector>,
    excluded_namespaces: BTreeSet<String>,
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
}

/// Where a decision is taken.
#[derive(Debug, Clone, Copy)]
pub struct At<'r> {
    /// Namespace of the object.
    pub namespace: &'r str,
    /// Name of the object in messages.
    pub name: &'r str,
    /// Who asks.
    pub user: &'r str,
    /// What annotations of the namespace say; none where there are none.
    pub placement: Option<&'r Placement>,
    /// Whether a kubelet creates the object of a static pod.
    pub is_mirror: bool,
}

impl At<'_> {
    /// The refusal for an annotation of the namespace that cannot be read.
    pub fn annotation(&self, key: &str, error: &str) -> String {
        format!("namespace {:?}: annotation {key} cannot be read: {error}", shortened(self.namespace))
    }
}

impl CompiledPlugin {
    /// Makes the form that decides.
    ///
    /// # Errors
    /// Everything that is wrong, with its field.
    pub fn compile(object: &AdmissionPlugin) -> Result<Self, ErrorList> {
        let (path, spec) = (Path::new("spec"), &object.spec);
        let mut errors = ErrorList::default();
        let name = object.metadata.name.clone().unwrap_or_default();
        if name.is_empty() {
            errors.push(Error::required(&Path::new("metadata").child("name"), ""));
        }
        let mode = mode(spec, &path, &mut errors);
        let (failure_policy, timeout_seconds) = calling(spec, &path, &mut errors);
        let scope_path = path.child("match");
        let namespaces = selector(&spec.scope, &scope_path, &mut errors);
        check_scope(&spec.scope, &scope_path, &mut errors);
        let plugin = plugin(spec, &path, &mut errors);
        let settings = plugin.map(|plugin| {
            other_sections(plugin, spec, &path, &mut errors);
            settings(plugin, spec, &path.child(plugin.section()), &mut errors)
        });
        match (plugin, settings) {
            (Some(plugin), Some(settings)) if errors.is_empty() => Ok(Self {
                name,
                plugin,
                mode,
                settings,
                failure_policy,
                timeout_seconds,
                namespaces,
                excluded_namespaces: spec.scope.exclude_namespaces.iter().cloned().collect(),
                users: users(&spec.scope),
                groups: spec.scope.exclude_groups.iter().cloned().collect(),
            }),
            _ => Err(errors),
        }
    }

    /// Whether a namespace is named as one that is left alone.
    pub fn excludes(&self, namespace: &str) -> bool {
        self.excluded_namespaces.contains(namespace)
    }

    /// Whether who asks is exempt.
    pub fn exempts(&self, user: &UserInfo<'_>) -> bool {
        self.users.contains(user.username.as_str()) || self.groups.iter().any(|group| user.groups.contains(group))
    }

    /// Whether the selector can be evaluated by the name of a namespace.
    pub fn is_by_name_alone(&self) -> bool {
        self.namespaces.as_ref().is_none_or(|selector| {
            selector.requirements().iter().all(|requirement| requirement.key() == NAMESPACE_NAME_LABEL)
        })
    }

    /// Whether it reads annotations of the namespace.
    pub const fn reads_annotations(&self) -> bool {
        match &self.settings {
            Settings::PodNodeSelector(_) => true,
            Settings::PodTolerationRestriction(settings) => settings.reads_annotations,
            _ => false,
        }
    }

    /// Whether it changes pods.
    pub const fn mutates(&self) -> bool {
        !matches!(self.settings, Settings::LimitTopology(_) | Settings::DenyServiceExternalIps(_))
    }

    /// What is to be changed in a new pod.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn change<'a>(&self, spec: &Spec<'a>, at: &At<'_>) -> Result<Change<'a>, String> {
        Ok(match &self.settings {
            Settings::AlwaysPullImages(settings) => settings.change(spec),
            Settings::PodNodeSelector(settings) => settings.change(spec, at)?,
            Settings::PodTolerationRestriction(settings) => settings.change(spec, at)?,
            Settings::DefaultTolerationSeconds(settings) if !at.is_mirror => settings.change(spec),
            Settings::ExtendedResourceToleration if !at.is_mirror => extended_resource_toleration::change(spec),
            _ => Change::default(),
        })
    }

    /// Judges a new pod as it is to be stored.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn check(&self, spec: &Spec<'_>, at: &At<'_>) -> Result<(), String> {
        match &self.settings {
            Settings::AlwaysPullImages(settings) => settings.check(spec, at.name),
            Settings::PodNodeSelector(settings) => settings.check(spec, at),
            Settings::PodTolerationRestriction(settings) => settings.check(spec, at),
            Settings::LimitTopology(settings) => settings.check(spec, at.name),
            _ => Ok(()),
        }
    }
}

fn plugin(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Option<Plugin> {
    let path = path.child("plugin");
    let plugin = Plugin::named(&spec.plugin);
    if plugin.is_none() {
        let names = Plugin::ALL.map(Plugin::name);
        errors.push(match catalog::find(&spec.plugin) {
            _ if spec.plugin.is_empty() => Error::required(&path, format!("one of {}", names.join(", "))),
            Some(entry) => {
                Error::invalid(&path, spec.plugin.as_str(), format!("Outrider does not serve it: {}", entry.how()))
            }
            None => Error::not_supported(&path, shortened(&spec.plugin), &names),
        });
    }
    plugin
}

fn mode(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Mode {
    match spec.mode.as_deref() {
        None | Some("Enforce") => Mode::Enforce,
        Some("Warn") => Mode::Warn,
        Some("Audit") => Mode::Audit,
        Some("Off") => Mode::Off,
        Some(other) => {
            errors.push(Error::not_supported(&path.child("mode"), shortened(other), &MODES));
            Mode::Off
        }
    }
}

/// How the API server calls. For pods that is a matter of the installation: all of them share entries.
fn calling(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> (Option<FailurePolicy>, Option<u8>) {
    let (policy, timeout) = (path.child("failurePolicy"), path.child("timeoutSeconds"));
    let is_of_pods = Plugin::named(&spec.plugin).is_some_and(Plugin::is_of_pods);
    let shared = "plugins of pods share the webhook entries of pods, whose policy and time-out whoever installs Outrider chooses";
    let found = match spec.failure_policy.as_deref() {
        None => None,
        Some(_) if is_of_pods => {
            errors.push(Error::forbidden(&policy, shared));
            None
        }
        Some("Fail") => Some(FailurePolicy::Fail),
        Some("Ignore") => Some(FailurePolicy::Ignore),
        Some(other) => {
            errors.push(Error::not_supported(&policy, shortened(other), &["Fail", "Ignore"]));
            None
        }
    };
    let seconds = match spec.timeout_seconds {
        None => None,
        Some(_) if is_of_pods => {
            errors.push(Error::forbidden(&timeout, shared));
            None
        }
        Some(seconds @ 1..=MAX_TIMEOUT) => u8::try_from(seconds).ok(),
        Some(seconds) => {
            errors.push(Error::invalid(&timeout, seconds, format!("must be between 1 and {MAX_TIMEOUT}, inclusive")));
            None
        }
    };
    (found, seconds)
}

fn selector(scope: &Scope, path: &Path, errors: &mut ErrorList) -> Option<Selector> {
    let selector = scope.namespace_selector.as_ref()?;
    let path = path.child("namespaceSelector");
    let before = errors.len();
    selector.validate(&path, errors);
    if errors.len() > before {
        return None;
    }
    selector.compile().ok().filter(|selector| !selector.is_everything())
}

fn check_scope(scope: &Scope, path: &Path, errors: &mut ErrorList) {
    let lists = [
        ("excludeNamespaces", &scope.exclude_namespaces),
        ("excludeUsers", &scope.exclude_users),
        ("excludeGroups", &scope.exclude_groups),
        ("excludeServiceAccounts", &scope.exclude_service_accounts),
    ];
    for (field, list) in lists {
        let path = path.child(field);
        if list.len() > MAX_ENTRIES {
            errors.push(Error::too_many(&path, list.len(), MAX_ENTRIES));
            continue;
        }
        for (index, text) in list.iter().enumerate() {
            let path = path.index(index);
            match field {
                _ if text.is_empty() => errors.push(Error::required(&path, "")),
                "excludeNamespaces" => {
                    dns1123_label(text)
                        .into_iter()
                        .for_each(|fault| errors.push(Error::invalid(&path, text.as_str(), fault)));
                }
                "excludeServiceAccounts" if text.split('/').filter(|part| !part.is_empty()).count() != 2 => {
                    errors.push(Error::invalid(&path, text.as_str(), "must be namespace/name"));
                }
                _ => {}
            }
        }
    }
}

/// Names of users, those of service accounts among them.
fn users(scope: &Scope) -> BTreeSet<String> {
    let accounts = scope.exclude_service_accounts.iter().filter_map(|account| account.split_once('/'));
    let accounts = accounts.map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}"));
    scope.exclude_users.iter().cloned().chain(accounts).collect()
}

fn other_sections(plugin: Plugin, spec: &PluginSpec, path: &Path, errors: &mut ErrorList) {
    let sections = [
        (Plugin::AlwaysPullImages, spec.always_pull_images.is_some()),
        (Plugin::PodNodeSelector, spec.pod_node_selector.is_some()),
        (Plugin::PodTolerationRestriction, spec.pod_toleration_restriction.is_some()),
        (Plugin::DefaultTolerationSeconds, spec.default_toleration_seconds.is_some()),
        (Plugin::ExtendedResourceToleration, spec.extended_resource_toleration.is_some()),
        (Plugin::LimitPodHardAntiAffinityTopology, spec.limit_pod_hard_anti_affinity_topology.is_some()),
        (Plugin::DenyServiceExternalIPs, spec.deny_service_external_ips.is_some()),
    ];
    for (other, _) in sections.into_iter().filter(|(other, is_set)| *is_set && *other != plugin) {
        let detail = format!("only for spec.plugin: {other}; write another AdmissionPlugin for it");
        errors.push(Error::forbidden(&path.child(other.section()), detail));
    }
}

fn settings(plugin: Plugin, spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    match plugin {
        Plugin::AlwaysPullImages => {
            let section = spec.always_pull_images.clone().unwrap_or_default();
            let path = path.child("exemptImages");
            bounded(&section.exempt_images, &path, errors, |text| {
                text.is_empty().then(|| "must not be empty".to_owned())
            });
            Settings::AlwaysPullImages(AlwaysPullImages {
                exempt: section.exempt_images.iter().map(|pattern| Glob::new(pattern)).collect(),
                ephemeral: section.include_ephemeral_containers.unwrap_or_default(),
            })
        }
        Plugin::PodNodeSelector => node_selector(spec, path, errors),
        Plugin::PodTolerationRestriction => {
            let section = spec.pod_toleration_restriction.clone().unwrap_or_default();
            let default = tolerations(section.default, &path.child("default"), errors);
            let allowed = tolerations(section.whitelist, &path.child("whitelist"), errors);
            let allows_built_in = section.always_allow_builtin.unwrap_or(true);
            let reads_annotations = section.annotations_allowed.unwrap_or(true);
            Settings::PodTolerationRestriction(PodTolerationRestriction {
                default,
                allowed,
                allows_built_in,
                reads_annotations,
            })
        }
        Plugin::DefaultTolerationSeconds => {
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
        Plugin::ExtendedResourceToleration => Settings::ExtendedResourceToleration,
        Plugin::LimitPodHardAntiAffinityTopology => {
            let keys = spec.limit_pod_hard_anti_affinity_topology.clone().unwrap_or_default().allowed_topology_keys;
            bounded(&keys, &path.child("allowedTopologyKeys"), errors, |key| qualified_name(key).into_iter().next());
            Settings::LimitTopology(LimitTopology {
                allowed: if keys.is_empty() { vec![HOSTNAME.to_owned()] } else { keys },
            })
        }
        Plugin::DenyServiceExternalIPs => {
            let ranges = spec.deny_service_external_ips.clone().unwrap_or_default().allowed_cidrs;
            let is_range =
                |text: &str| Cidr::parse(text).is_none().then(|| "must be a range such as 192.0.2.0/24".to_owned());
            bounded(&ranges, &path.child("allowedCIDRs"), errors, is_range);
            let allowed = ranges.iter().filter_map(|text| Cidr::parse(text)).collect();
            Settings::DenyServiceExternalIps(DenyServiceExternalIps { allowed })
        }
    }
}

/// Checks the length of a list, and its entries.
fn bounded(list: &[String], path: &Path, errors: &mut ErrorList, fault: impl Fn(&str) -> Option<String>) {
    if list.len() > MAX_ENTRIES {
        return errors.push(Error::too_many(path, list.len(), MAX_ENTRIES));
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
    let allow_lists = section.namespace_allow_lists.iter();
    let allow_lists = allow_lists
        .map(|(name, text)| (name.clone(), read(text, &lists.key(name.as_str()))))
        .collect::<BTreeMap<_, _>>();
    for name in allow_lists.keys() {
        dns1123_label(name).into_iter().for_each(|fault| errors.push(Error::invalid(&lists, shortened(name), fault)));
    }
    let skips_daemon_sets = match section.daemon_set_pods.as_deref() {
        None | Some("Apply") => false,
        Some("Skip") => true,
        Some(other) => {
            errors.push(Error::not_supported(&path.child("daemonSetPods"), shortened(other), &DAEMON_SET_PODS));
            false
        }
    };
    Settings::PodNodeSelector(PodNodeSelector { cluster_default, allow_lists, skips_daemon_sets })
}

/// What the API server's own validation of tolerations says (`ValidateTolerations` of k8s.io/kubernetes/pkg/apis/core/validation).
fn tolerations(list: Vec<TolerationSpec>, path: &Path, errors: &mut ErrorList) -> Vec<Toleration<'static>> {
    if list.len() > MAX_TOLERATIONS {
        errors.push(Error::too_many(path, list.len(), MAX_TOLERATIONS));
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
