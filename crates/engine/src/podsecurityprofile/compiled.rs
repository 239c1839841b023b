//! A profile in the form that decides, and what makes one wrong: the rules of `PodSecurityPolicy` (`ValidatePodSecurityPolicy` of
//! k8s.io/kubernetes/pkg/apis/policy/validation), and bounds of its lists, each of which costs every container of every pod.

use admission::field::{Error, ErrorList, Path};
use admission::format::selector::Selector;

use super::api::{IdStrategy, PodSecurityProfile, ProfileSpec, RUN_AS_ANY, SeLinuxOptions};
use super::capabilities::Capabilities;
use super::ids::{IdRanges, IdRule};
use super::kernel::{ProcMounts, RuntimeClasses, Sysctls};
use super::profiles::{AppArmor, Seccomp};
use super::selinux;
use super::volumes::VolumeRule;
use crate::limitrange::compiled::selecting;

/// Items of each list of a profile.
pub const MAX_ITEMS: usize = 64;
/// Bytes of each text in one.
pub const MAX_BYTES: usize = 512;

/// What the items of a list must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    /// Nothing.
    None,
    /// A character, of texts.
    OneCharacter,
}

/// A text of an item, if it is one.
pub trait Item {
    /// `None` for an item that is a structure.
    fn as_text(&self) -> Option<&str> {
        None
    }
}

impl Item for String {
    fn as_text(&self) -> Option<&str> {
        Some(self)
    }
}

impl Item for super::api::IdRange {}

impl Item for super::api::HostPath {
    fn as_text(&self) -> Option<&str> {
        Some(&self.path_prefix)
    }
}

/// The items of a list that are looked into, and whether it, or one of them, is too long.
pub fn bounded<'l, T: Item>(list: &'l [T], path: &Path, least: Least, errors: &mut ErrorList) -> &'l [T] {
    if list.len() > MAX_ITEMS {
        errors.push(Error::too_many(path, list.len(), MAX_ITEMS));
        return &[];
    }
    for (index, text) in list.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_text()?))) {
        if text.len() > MAX_BYTES {
            errors.push(Error::too_long(&path.index(index), MAX_BYTES));
        } else if text.is_empty() && least == Least::OneCharacter {
            errors.push(Error::required(&path.index(index), ""));
        }
    }
    list
}

/// A profile that can be used.
#[derive(Debug, Default, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
pub struct CompiledProfile {
    /// Name of the `PodSecurityProfile`: of those that allow a pod, the first by name is taken.
    pub name: String,
    /// The namespaces; all where there is none.
    pub namespaces: Option<Selector>,
    /// Whether containers may be privileged.
    pub privileged: bool,
    /// Whether pods may use the network of the node.
    pub host_network: bool,
    /// Whether pods may see the processes of the node.
    pub host_pid: bool,
    /// Whether pods may use the IPC namespace of the node.
    pub host_ipc: bool,
    /// Ports of the node.
    pub host_ports: IdRanges,
    /// Capabilities that containers may add, must drop, and are given.
    pub capabilities: Capabilities,
    /// Kinds of volumes that pods may have, and of some of them which.
    pub volumes: VolumeRule,
    /// The label of SELinux that must be there.
    pub se_linux: Option<SeLinuxOptions>,
    /// Users that containers may run as.
    pub run_as_user: IdRule,
    /// Primary groups.
    pub run_as_group: IdRule,
    /// Further groups.
    pub supplemental_groups: IdRule,
    /// The group of volumes.
    pub fs_group: IdRule,
    /// Whether root file systems must be read-only.
    pub read_only_root_filesystem: bool,
    /// Whether containers that do not say may gain privileges.
    pub default_allow_privilege_escalation: Option<bool>,
    /// Whether containers may gain privileges.
    pub allow_privilege_escalation: bool,
    /// Sysctls that pods may set.
    pub sysctls: Sysctls,
    /// Kinds of `/proc`.
    pub proc_mounts: ProcMounts,
    /// Classes of runtimes; any where there is none.
    pub runtime_class: Option<RuntimeClasses>,
    /// seccomp profiles.
    pub seccomp: Seccomp,
    /// AppArmor profiles.
    pub app_armor: AppArmor,
}

impl CompiledProfile {
    /// Makes the form that decides.
    ///
    /// # Errors
    /// Everything that is wrong, with its field.
    pub fn compile(object: &PodSecurityProfile) -> Result<Self, ErrorList> {
        let (spec, path, mut errors) = (&object.spec, Path::new("spec"), ErrorList::default());
        let mut profile = Self::of(spec, &path, &mut errors);
        profile.name = object.metadata.name.clone().unwrap_or_default();
        if let Some(selector) = &spec.namespace_selector {
            profile.namespaces = selecting(selector, &path.child("namespaceSelector"), &mut errors);
        }
        let (default, allowed) = (profile.default_allow_privilege_escalation, profile.allow_privilege_escalation);
        if default == Some(true) && !allowed {
            errors.push(Error::invalid(
                &path.child("defaultAllowPrivilegeEscalation"),
                true,
                "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true",
            ));
        }
        errors.into_result().map(|()| profile)
    }

    fn of(spec: &ProfileSpec, path: &Path, errors: &mut ErrorList) -> Self {
        let any = IdStrategy { rule: RUN_AS_ANY.to_owned(), ..IdStrategy::default() };
        Self {
            name: String::new(),
            namespaces: None,
            privileged: spec.privileged,
            host_network: spec.host_network,
            host_pid: spec.host_pid,
            host_ipc: spec.host_ipc,
            host_ports: IdRanges::read(&spec.host_ports, &path.child("hostPorts"), errors),
            capabilities: Capabilities::read(spec, path, errors),
            volumes: VolumeRule::read(spec, path, errors),
            se_linux: selinux::read(&spec.se_linux, &path.child("seLinux"), errors),
            run_as_user: IdRule::of_users(&spec.run_as_user, &path.child("runAsUser"), errors),
            run_as_group: IdRule::of_groups(
                spec.run_as_group.as_ref().unwrap_or(&any),
                &path.child("runAsGroup"),
                errors,
            ),
            supplemental_groups: IdRule::of_groups(
                &spec.supplemental_groups,
                &path.child("supplementalGroups"),
                errors,
            ),
            fs_group: IdRule::of_groups(&spec.fs_group, &path.child("fsGroup"), errors),
            read_only_root_filesystem: spec.read_only_root_filesystem,
            default_allow_privilege_escalation: spec.default_allow_privilege_escalation,
            allow_privilege_escalation: spec.allow_privilege_escalation.unwrap_or(true),
            sysctls: Sysctls::read(spec, path, errors),
            proc_mounts: ProcMounts::read(spec, &path.child("allowedProcMountTypes"), errors),
            runtime_class: RuntimeClasses::read(spec, &path.child("runtimeClass"), errors),
            seccomp: Seccomp::read(
                &spec.allowed_seccomp_profiles,
                spec.default_seccomp_profile.as_deref(),
                path,
                errors,
            ),
            app_armor: AppArmor::read(
                spec.allowed_app_armor_profiles.as_deref(),
                spec.default_app_armor_profile.as_deref(),
                path,
                errors,
            ),
        }
    }
}
