//! The form of an `AdmissionPlugin` that decides.

mod asking;
mod images;
mod quotas;
mod scope;
mod sections;

use std::collections::BTreeSet;

use admission::field::{Error, ErrorList, Path, quote};
use admission::format::selector::{Requirement, Selector};
use admission::registry::FailurePolicy;
use admission::review::UserInfo;

use super::always_pull_images::AlwaysPullImages;
use super::api::{AdmissionPlugin, PluginSpec};
use super::change::PodChange;
use super::default_storage_class::DefaultStorageClass;
use super::default_toleration_seconds::DefaultTolerationSeconds;
use super::deny_service_external_ips::DenyServiceExternalIps;
use super::event_rate_limit::EventRateLimit;
use super::image_policy::ImagePolicy;
use super::limit_pod_hard_anti_affinity_topology::LimitTopology;
use super::namespace_lifecycle::NamespaceLifecycle;
use super::owner_references::OwnerReferences;
use super::placement::Placement;
use super::pod_class::PodClass;
use super::pod_facts::Spec;
use super::pod_node_selector::PodNodeSelector;
use super::pod_security::PodSecurity;
use super::pod_toleration_restriction::PodTolerationRestriction;
use super::pod_topology_labels::PodTopologyLabels;
use super::resource_quota::ResourceQuota;
use super::service_account::ServiceAccountSettings;
use super::{Plugin, catalog, extended_resource_toleration, shortened};
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use crate::suggest::suggest;

/// The most entries of a list.
pub const MAX_ENTRIES: u16 = 256;
/// The most pull secrets that an object gives a pod.
pub const MAX_PULL_SECRETS: u16 = 16;
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
    /// Every mode, the default first.
    pub const ALL: [Self; 4] = [Self::Enforce, Self::Warn, Self::Audit, Self::Off];

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
    /// Of `NamespaceLifecycle`.
    NamespaceLifecycle(NamespaceLifecycle),
    /// Of `PodSecurity`.
    PodSecurity(PodSecurity),
    /// Of `OwnerReferencesPermissionEnforcement`.
    OwnerReferences(OwnerReferences),
    /// Of `EventRateLimit`.
    EventRateLimit(EventRateLimit),
    /// Of `ResourceQuota`.
    ResourceQuota(ResourceQuota),
    /// Of `ImagePolicyWebhook`.
    ImagePolicy(ImagePolicy),
    /// Of `DefaultStorageClass`.
    DefaultStorageClass(DefaultStorageClass),
    /// Of `PodTopologyLabels`.
    PodTopologyLabels(PodTopologyLabels),
    /// Of `Priority`.
    Priority(PodClass),
    /// Of `RuntimeClass`.
    RuntimeClass(PodClass),
    /// Of `StorageObjectInUseProtection`, which has none.
    StorageObjectInUseProtection,
    /// Of `PersistentVolumeClaimResize`, which has none.
    PersistentVolumeClaimResize,
    /// Of `TaintNodesByCondition`, which has none.
    TaintNodesByCondition,
    /// Of `ServiceAccount`.
    ServiceAccount(ServiceAccountSettings),
    /// Of `NodeRestriction`, which has none but that its author knows the risk.
    NodeRestriction,
}

/// An `AdmissionPlugin`, ready to decide.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledPlugin {
    /// Name of the object.
    pub name: String,
    /// Which of the API server's plugins the object turns on.
    pub plugin: Plugin,
    /// What becomes of its decisions.
    pub mode: Mode,
    /// What the section of the spec of that plugin says.
    pub settings: Settings,
    /// What happens to a request if the webhook does not answer; none where the object does not define it.
    pub failure_policy: Option<FailurePolicy>,
    /// How long the API server waits, in seconds.
    pub timeout_seconds: Option<u8>,
    /// Whether every replica is known to have this form. Before, an object that one of them has not changed is no fault. Always where
    /// there is one process alone.
    pub is_settled: bool,
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
        sections::unserved(spec, &path, &mut errors);
        let mode = mode(spec, &path, &mut errors);
        let called = calling(spec, &path, &mut errors);
        let (failure_policy, timeout_seconds) = asking::calling(spec, called, &path, &mut errors);
        let scope_path = path.child("match");
        let namespaces = scope::selector(&spec.scope, &scope_path, &mut errors);
        scope::check(&spec.scope, &scope_path, &mut errors);
        let plugin = plugin(spec, &path, &mut errors);
        if plugin == Some(Plugin::TaintNodesByCondition) {
            scope::refuse_namespaces(&spec.scope, &scope_path, &mut errors);
        }
        let mut excluded_namespaces: BTreeSet<String> = spec.scope.exclude_namespaces.iter().cloned().collect();
        // A backend that is to review its own pods could not start.
        excluded_namespaces.extend(spec.image_policy_webhook.as_ref().and_then(|one| one.backend_namespace.clone()));
        let settings = plugin.map(|plugin| {
            sections::other_sections(plugin, spec, &path, &mut errors);
            sections::settings(plugin, spec, &path.child(plugin.section()), &mut errors)
        });
        match (plugin, settings) {
            (Some(plugin), Some(settings)) if errors.is_empty() => Ok(Self {
                name,
                plugin,
                mode,
                settings,
                failure_policy,
                timeout_seconds,
                is_settled: true,
                namespaces,
                excluded_namespaces,
                users: scope::users(&spec.scope),
                groups: spec.scope.exclude_groups.iter().cloned().collect(),
            }),
            _ => Err(errors),
        }
    }

    /// Whether requests are let through while the webhook does not answer.
    pub fn ignores(&self) -> bool {
        self.failure_policy == Some(FailurePolicy::Ignore)
    }

    /// Whether it leaves any request alone.
    pub fn has_scope(&self) -> bool {
        self.namespaces.is_some()
            || [&self.excluded_namespaces, &self.users, &self.groups].iter().any(|list| !list.is_empty())
    }

    /// Names of namespaces that are left alone.
    pub const fn excluded_namespaces(&self) -> &BTreeSet<String> {
        &self.excluded_namespaces
    }

    /// Names of users who are exempt, those of service accounts among them.
    pub const fn users(&self) -> &BTreeSet<String> {
        &self.users
    }

    /// Groups whose members are exempt.
    pub const fn groups(&self) -> &BTreeSet<String> {
        &self.groups
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

    /// Whether what is about to be stored is judged by what it would have changed: it is done, and by all replicas.
    pub fn judges_changes(&self) -> bool {
        self.mode == Mode::Enforce && self.is_settled
    }

    /// Whether it changes pods.
    pub const fn mutates(&self) -> bool {
        self.plugin.is_of_pods() && !matches!(self.settings, Settings::LimitTopology(_))
    }

    /// The labels, with their values, one of which a namespace must have to be selected.
    pub fn needed_labels(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.namespaces.iter().flat_map(Selector::requirements).filter_map(|requirement| match requirement {
            Requirement::In(key, values) => Some((key.as_str(), values.as_slice())),
            _ => None,
        })
    }

    /// What is to be changed in a new pod.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn change<'a>(&self, spec: &Spec<'a>, at: &At<'_>) -> Result<PodChange<'a>, String> {
        Ok(match &self.settings {
            Settings::AlwaysPullImages(settings) => settings.change(spec),
            Settings::PodNodeSelector(settings) => settings.change(spec, at)?,
            Settings::PodTolerationRestriction(settings) => settings.change(spec, at)?,
            Settings::DefaultTolerationSeconds(settings) if !at.is_mirror => settings.change(spec),
            Settings::ExtendedResourceToleration if !at.is_mirror => extended_resource_toleration::change(spec),
            Settings::Priority(settings) => settings.change_priority(spec, at),
            Settings::RuntimeClass(settings) => settings.change_runtime(spec, at),
            _ => PodChange::default(),
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
            Settings::Priority(settings) => PodClass::check(&settings.change_priority(spec, at), at),
            Settings::RuntimeClass(settings) => PodClass::check(&settings.change_runtime(spec, at), at),
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
                let why = catalog::kind_of(entry.name)
                    .map_or_else(|| "Outrider does not serve it".to_owned(), |kind| format!("create a {kind} instead"));
                Error::invalid(&path, spec.plugin.as_str(), format!("{why}: {}", entry.how()))
            }
            None => {
                let unsupported = Error::not_supported(&path, shortened(&spec.plugin), &names);
                let meant = suggest(&spec.plugin, catalog::ALL.iter().map(|entry| entry.name));
                let hint = meant.map_or_else(String::new, |meant| format!(" (did you mean {}?)", quote(meant)));
                Error { detail: unsupported.detail + &hint, ..unsupported }
            }
        });
    }
    plugin
}

fn mode(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Mode {
    let Some(word) = spec.mode.as_deref() else { return Mode::Enforce };
    Mode::ALL.into_iter().find(|mode| mode.name() == word).unwrap_or_else(|| {
        errors.push(Error::not_supported(&path.child("mode"), shortened(word), &Mode::ALL.map(Mode::name)));
        Mode::Off
    })
}

/// How the API server calls. For pods that is a matter of the installation: all of them share entries.
fn calling(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> (Option<FailurePolicy>, Option<u8>) {
    let (policy, timeout) = (path.child("failurePolicy"), path.child("timeoutSeconds"));
    let is_of_pods = Plugin::named(&spec.plugin).is_some_and(Plugin::is_of_pods);
    let shared =
        "plugins of pods share the webhook entries of pods, whose policy and time-out are those of the installation";
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
