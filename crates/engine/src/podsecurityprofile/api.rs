//! The `PodSecurityProfile` type, `policy.outrider.dev/v1alpha1`: the fields of `PodSecurityPolicy`, `policy/v1beta1`.

use admission::format::LabelSelector;
use admission::review::null_as_default;
use serde::{Deserialize, Serialize};

use crate::sidecarset::api::Metadata;

pub use crate::plugins::api::{API_VERSION, GROUP, PluginStatus, VERSION};

/// `kind` in manifests and in reviews.
pub const KIND: &str = "PodSecurityProfile";
/// Resource: the plural in URLs, and what the verb `use` is about.
pub const PLURAL: &str = "podsecurityprofiles";

/// Any rule of an identity.
pub const RUN_AS_ANY: &str = "RunAsAny";
/// The rule of ranges that must be used.
pub const MUST_RUN_AS: &str = "MustRunAs";
/// The rule of ranges that may be used.
pub const MAY_RUN_AS: &str = "MayRunAs";
/// The rule of users: not root.
pub const MUST_RUN_AS_NON_ROOT: &str = "MustRunAsNonRoot";

/// What pods must have and may have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodSecurityProfile {
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ProfileSpec,
    /// What the controller found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PluginStatus>,
}

/// A list of texts.
pub type Texts = Vec<String>;

/// What a profile asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools)] // the fields of PodSecurityPolicy
pub struct ProfileSpec {
    /// Namespaces by their labels; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Whether containers may be privileged.
    #[serde(deserialize_with = "null_as_default")]
    pub privileged: bool,
    /// Capabilities that containers get unless they drop them.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub default_add_capabilities: Texts,
    /// Capabilities that containers must drop.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub required_drop_capabilities: Texts,
    /// Capabilities that containers may add; `*` is any.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_capabilities: Texts,
    /// Types of volumes; `*` is any.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub volumes: Texts,
    /// Whether pods may use the network of the node.
    #[serde(deserialize_with = "null_as_default")]
    pub host_network: bool,
    /// Host ports that containers may use.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub host_ports: Vec<IdRange>,
    /// Whether pods may see the processes of the node.
    #[serde(rename = "hostPID", deserialize_with = "null_as_default")]
    pub host_pid: bool,
    /// Whether pods may use the IPC namespace of the node.
    #[serde(rename = "hostIPC", deserialize_with = "null_as_default")]
    pub host_ipc: bool,
    /// Labels of SELinux.
    #[serde(deserialize_with = "null_as_default")]
    pub se_linux: SeLinuxStrategy,
    /// Users of containers.
    #[serde(deserialize_with = "null_as_default")]
    pub run_as_user: IdStrategy,
    /// Primary groups of containers; any where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<IdStrategy>,
    /// Further groups of the pod.
    #[serde(deserialize_with = "null_as_default")]
    pub supplemental_groups: IdStrategy,
    /// The group of volumes.
    #[serde(deserialize_with = "null_as_default")]
    pub fs_group: IdStrategy,
    /// Whether the root file systems of containers must be read-only.
    #[serde(deserialize_with = "null_as_default")]
    pub read_only_root_filesystem: bool,
    /// Whether containers that do not say may gain more privileges than their parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_allow_privilege_escalation: Option<bool>,
    /// Whether containers may gain more privileges than their parent; they may where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<bool>,
    /// Paths of nodes; any where empty.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_host_paths: Vec<HostPath>,
    /// Drivers of Flex volumes; any where empty.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_flex_volumes: Vec<FlexVolume>,
    /// Drivers of inline CSI volumes; any where empty.
    #[serde(rename = "allowedCSIDrivers", deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_csi_drivers: Vec<CsiDriver>,
    /// Unsafe sysctls that pods may set; a name may end with `*`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_unsafe_sysctls: Texts,
    /// Sysctls that pods may not set; a name may end with `*`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub forbidden_sysctls: Texts,
    /// Kinds of `/proc`; `Default` where empty.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_proc_mount_types: Texts,
    /// Classes of runtimes; any where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<RuntimeClassStrategy>,
    /// seccomp profiles of pods and containers; `*` is any. In a `PodSecurityPolicy` it is an annotation.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_seccomp_profiles: Texts,
    /// The seccomp profile of pods that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_seccomp_profile: Option<String>,
    /// AppArmor profiles of containers; any, or none, where absent. In a `PodSecurityPolicy` it is an annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_app_armor_profiles: Option<Texts>,
    /// The AppArmor profile of containers that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_app_armor_profile: Option<String>,
}

/// Numbers from one to another, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdRange {
    /// The least.
    #[serde(deserialize_with = "null_as_default")]
    pub min: i64,
    /// The most.
    #[serde(deserialize_with = "null_as_default")]
    pub max: i64,
}

/// How ids of users or groups are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdStrategy {
    /// `RunAsAny` or `MustRunAs`; of users also `MustRunAsNonRoot`, of groups also `MayRunAs`.
    #[serde(deserialize_with = "null_as_default")]
    pub rule: String,
    /// Ids that are allowed. `MustRunAs` fills in the first of them.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<IdRange>,
}

/// How labels of SELinux are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SeLinuxStrategy {
    /// `RunAsAny` or `MustRunAs`.
    #[serde(deserialize_with = "null_as_default")]
    pub rule: String,
    /// The label that `MustRunAs` requires and fills in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se_linux_options: Option<SeLinuxOptions>,
}

/// A label of SELinux.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeLinuxOptions {
    /// The level, such as `s0:c123,c456`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub level: String,
    /// The role, such as `object_r`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Type.
    #[serde(rename = "type", deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// The user, such as `system_u`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub user: String,
}

/// A path of a node, and everything below.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostPath {
    /// The path; `/foo` allows `/foo` and `/foo/bar`, not `/food`.
    #[serde(deserialize_with = "null_as_default")]
    pub path_prefix: String,
    /// Whether mounts of it must be read-only.
    #[serde(deserialize_with = "null_as_default")]
    pub read_only: bool,
}

/// A driver of Flex volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlexVolume {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub driver: String,
}

/// A driver of inline CSI volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiDriver {
    /// `spec.volumes[].csi.driver` of pods.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

/// Which classes of runtimes pods may have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeClassStrategy {
    /// Names; `*` is any.
    #[serde(deserialize_with = "null_as_default")]
    pub allowed_runtime_class_names: Texts,
    /// The class of pods that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_runtime_class_name: Option<String>,
}
