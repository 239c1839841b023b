//! What of a set a namespace refuses that enforces a level of the Pod Security Standards
//! (`k8s.io/pod-security-admission/policy`).
//!
//! What a pod may settle for all of its containers, as `runAsNonRoot`, counts only where the set settles it otherwise.

use std::collections::BTreeMap;

use admission::bounded::ellipsis;
use serde_json::Value;

use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::platform::Platform;

/// The label by which a namespace refuses pods.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
/// The label that says by which version of the standards.
const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";
/// From this minor version on the levels ask for what is checked here; a later one counts as this.
const NEWEST: u8 = 25;
/// The first minor versions that ask for something of containers.
const ESCALATION_SINCE: u8 = 8;
const SECCOMP_SINCE: u8 = 19;
const CAPABILITIES_SINCE: u8 = 22;
const USER_SINCE: u8 = 23;
/// Characters of a word of the set in a message.
const SHOWN: usize = 64;

/// Capabilities that may be added at the level baseline.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Types of SELinux that are no more than those of any container.
const SELINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
/// Sources of volumes at the level restricted. Whether images are among them differs between versions.
const RESTRICTED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// A level that refuses pods, and the version of the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    is_restricted: bool,
    minor: u8,
}

impl Level {
    /// The one that a namespace with these labels enforces. A word that is no level counts as restricted, and one that is no version as
    /// the latest, as with the API server.
    pub fn enforced(labels: &BTreeMap<String, String>) -> Option<Self> {
        let is_restricted = match labels.get(ENFORCE)?.as_str() {
            "privileged" => return None,
            "baseline" => false,
            _ => true,
        };
        let minor = labels.get(ENFORCE_VERSION).and_then(|version| version.strip_prefix("v1.")?.parse().ok());
        Some(Self { is_restricted, minor: minor.unwrap_or(NEWEST).min(NEWEST) })
    }

    /// The level as the label of a namespace writes it.
    pub const fn name(self) -> &'static str {
        if self.is_restricted { "restricted" } else { "baseline" }
    }
}

/// The first part of the set that a namespace with this level refuses, such as `container proxy: privileged is true`.
pub fn refused(set: &CompiledSet, level: Level) -> Option<String> {
    let of_containers = set.pieces().find_map(|piece| {
        let container = piece.object();
        let nothing = RawObject::new();
        let context = container.get("securityContext").and_then(Value::as_object).unwrap_or(&nothing);
        let of_restricted = || if level.is_restricted { restricted(context, level.minor, set.platform) } else { None };
        let why = baseline(&container, context, level.minor).or_else(of_restricted)?;
        Some(format!("container {}: {why}", piece.name))
    });
    of_containers.or_else(|| {
        set.volumes.iter().find_map(|volume| {
            let object: RawObject = serde_json::from_str(&volume.json).ok()?;
            let (source, _) = object.iter().find(|(key, source)| *key != "name" && !source.is_null())?;
            let is_allowed =
                if level.is_restricted { RESTRICTED_VOLUMES.contains(&source.as_str()) } else { source != "hostPath" };
            (!is_allowed).then(|| format!("volume {}: {}", volume.name, shown(source)))
        })
    })
}

fn baseline(container: &RawObject, context: &RawObject, minor: u8) -> Option<String> {
    let of = |part: &str, field: &str| context.get(part).and_then(|part| part.get(field)).unwrap_or(&Value::Null);
    let is_true = |value: &Value| value.as_bool() == Some(true);
    let has_host_port = |port: &Value| port.get("hostPort").and_then(Value::as_i64).is_some_and(|port| port != 0);
    let ports = container.get("ports").and_then(Value::as_array);
    if context.get("privileged").is_some_and(is_true) {
        return Some("privileged is true".to_owned());
    }
    if let Some(added) = adds_beyond(context, &BASELINE_CAPABILITIES) {
        return Some(format!("capabilities.add contains {added}"));
    }
    if ports.into_iter().flatten().any(has_host_port) {
        return Some("a port has a hostPort".to_owned());
    }
    for (field, allowed) in [("type", &SELINUX_TYPES[..]), ("user", &[""]), ("role", &[""])] {
        if let Some(found) = of("seLinuxOptions", field).as_str().filter(|found| !allowed.contains(found)) {
            return Some(format!("seLinuxOptions.{field} is {}", shown(found)));
        }
    }
    if minor >= SECCOMP_SINCE && of("seccompProfile", "type") == "Unconfined" {
        return Some("seccompProfile.type is Unconfined".to_owned());
    }
    if of("appArmorProfile", "type") == "Unconfined" {
        return Some("appArmorProfile.type is Unconfined".to_owned());
    }
    is_true(of("windowsOptions", "hostProcess")).then(|| "windowsOptions.hostProcess is true".to_owned())
}

fn restricted(context: &RawObject, minor: u8, platform: Platform) -> Option<String> {
    let drops = context.get("capabilities").and_then(|capabilities| capabilities.get("drop")?.as_array());
    let flag = |field: &str| context.get(field).and_then(Value::as_bool);
    // A set for Windows gets into pods that name their operating system, of which nothing is asked that Linux alone has.
    let is_asked = |since: u8| platform == Platform::Linux && minor >= since;
    if is_asked(ESCALATION_SINCE) && flag("allowPrivilegeEscalation") != Some(false) {
        return Some("allowPrivilegeEscalation is not false".to_owned());
    }
    if is_asked(CAPABILITIES_SINCE) {
        if !drops.is_some_and(|drops| drops.iter().any(|dropped| dropped == "ALL")) {
            return Some("capabilities.drop does not contain ALL".to_owned());
        }
        if let Some(added) = adds_beyond(context, &["NET_BIND_SERVICE"]) {
            return Some(format!("capabilities.add contains {added}"));
        }
    }
    if flag("runAsNonRoot") == Some(false) {
        return Some("runAsNonRoot is false".to_owned());
    }
    let is_root = minor >= USER_SINCE && context.get("runAsUser").and_then(Value::as_i64) == Some(0);
    is_root.then(|| "runAsUser is 0".to_owned())
}

/// The first capability that is added and is not among these.
fn adds_beyond(context: &RawObject, allowed: &[&str]) -> Option<String> {
    let added = context.get("capabilities").and_then(|capabilities| capabilities.get("add")?.as_array());
    let mut names = added.into_iter().flatten().filter_map(Value::as_str);
    names.find(|name| !allowed.contains(name)).map(shown)
}

fn shown(word: &str) -> String {
    ellipsis(word, SHOWN)
}
