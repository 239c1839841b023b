//! What an injected container asks of the pod around it: everything that the API server checks for a pod as a whole.

use std::borrow::Cow;
use std::collections::BTreeMap;

use admission::format::Quantity;
use serde_json::Value;

use crate::pod::view::Port;
use crate::sidecarset::api::{RawObject, list, text};

/// What a container asks of its pod.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent demands, not a state")]
pub struct Needs {
    /// Ports of the container.
    pub ports: Box<[PortNeed]>,
    /// Volumes that it mounts, has as devices or reads variables from.
    pub volumes: Box<[Box<str>]>,
    /// Of these, volumes that variables are read from (`fileKeyRef`), which must be `emptyDir`.
    pub variable_volumes: Box<[Box<str>]>,
    /// A resource resize restarts the container, which a pod that never restarts does not allow.
    pub restarts_on_resize: bool,
    /// Has raw block devices, which need the host's user namespace.
    pub has_devices: bool,
    /// `procMount: Unmasked` needs a user namespace of the pod's own.
    pub unmasked_proc: bool,
    /// A stop signal is legal only where the pod names its operating system.
    pub stop_signal: Option<Box<str>>,
    /// `resources.claims` name entries of the pod's `resourceClaims`.
    pub claims: Box<[Box<str>]>,
    /// Seconds of the longest `sleep` hook, at most the pod's grace period.
    pub longest_sleep: Option<i64>,
    /// The seccomp profile, which an annotation of the pod may contradict.
    pub seccomp: Option<Box<SeccompProfile>>,
    /// The first field of the security context that a pod which says it is a Windows pod may not have.
    pub linux_field: Option<&'static str>,
    /// `windowsOptions.hostProcess`: all containers of a pod or none.
    pub host_process: Option<bool>,
    /// Resource requests; a missing one is the limit, as the API server defaults it.
    pub requests: NamedAmounts,
    /// Resource limits.
    pub limits: NamedAmounts,
    /// Keeps running though it is an init container.
    pub is_native_sidecar: bool,
}

/// Amounts by the name of the resource: of few, and kept in each of thousands of sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedAmounts(Box<[(ResourceName, Quantity)]>);

/// The two that nearly all containers name take no memory of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ResourceName {
    Cpu,
    Memory,
    Other(Box<str>),
}

impl ResourceName {
    fn of(name: String) -> Self {
        match name.as_str() {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            _ => Self::Other(name.into()),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Other(name) => name,
        }
    }
}

impl NamedAmounts {
    /// The amount of a resource.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.iter().find(|(own, _)| *own == name).map(|(_, amount)| amount)
    }

    /// Names and amounts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), amount))
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }
}

impl From<BTreeMap<String, Quantity>> for NamedAmounts {
    fn from(amounts: BTreeMap<String, Quantity>) -> Self {
        Self(amounts.into_iter().map(|(name, amount)| (ResourceName::of(name), amount)).collect())
    }
}

/// The seccomp profile that a container asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProfile {
    /// `Unconfined`, `RuntimeDefault` or `Localhost`.
    pub kind: String,
    /// The profile's file, for `Localhost`.
    pub file: String,
}

/// A port of an injected container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortNeed {
    /// Port in the container.
    pub container_port: i64,
    /// Port on the node; 0 for none.
    pub host_port: i64,
    /// Address on the node; empty for all.
    pub host_ip: Box<str>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Cow<'static, str>,
}

/// A port of any container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortView<'a> {
    /// Port in the container.
    pub container_port: i64,
    /// Port on the node; 0 for none.
    pub host_port: i64,
    /// Address on the node; empty for all.
    pub host_ip: &'a str,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: &'a str,
}

impl Needs {
    /// Reads the needs of a container.
    pub fn of(container: &RawObject) -> Self {
        let at = |pointer: &[&str]| {
            let mut steps = pointer.iter();
            let first = container.get(*steps.next()?)?;
            steps.try_fold(first, |value, step| value.get(step))
        };
        let limits = quantities(at(&["resources", "limits"]));
        let mut requests = limits.clone();
        requests.extend(quantities(at(&["resources", "requests"])));
        Self {
            ports: list(at(&["ports"])).map(PortNeed::of).collect(),
            volumes: volume_names(container).map(Into::into).collect(),
            variable_volumes: variable_volumes(container).map(Into::into).collect(),
            restarts_on_resize: list(at(&["resizePolicy"]))
                .any(|policy| policy.get("restartPolicy").is_some_and(|word| word == "RestartContainer")),
            has_devices: list(at(&["volumeDevices"])).next().is_some(),
            unmasked_proc: at(&["securityContext", "procMount"]).is_some_and(|word| word == "Unmasked"),
            stop_signal: at(&["lifecycle", "stopSignal"]).and_then(Value::as_str).map(Into::into),
            claims: list(at(&["resources", "claims"])).map(|claim| text(claim, "name").into()).collect(),
            longest_sleep: ["postStart", "preStop"]
                .into_iter()
                .filter_map(|hook| at(&["lifecycle", hook, "sleep"]))
                .map(|sleep| sleep.get("seconds").and_then(Value::as_i64).unwrap_or_default())
                .max(),
            seccomp: at(&["securityContext", "seccompProfile"])
                .filter(|profile| profile.is_object())
                .map(|profile| Box::new(SeccompProfile::of(profile))),
            linux_field: LINUX_FIELDS
                .into_iter()
                .find(|field| at(&["securityContext", field]).is_some_and(|value| !value.is_null())),
            host_process: at(&["securityContext", "windowsOptions", "hostProcess"]).and_then(Value::as_bool),
            requests: requests.into(),
            limits: limits.into(),
            is_native_sidecar: at(&["restartPolicy"]).is_some_and(|word| word == "Always"),
        }
    }
}

/// Names of the volumes that a container's mounts, devices and variables refer to, as written.
pub fn volume_names(container: &RawObject) -> impl Iterator<Item = &str> {
    let lists = ["volumeMounts", "volumeDevices"].into_iter().flat_map(|field| list(container.get(field)));
    lists.map(|mount| text(mount, "name")).filter(|name| !name.is_empty()).chain(variable_volumes(container))
}

fn variable_volumes(container: &RawObject) -> impl Iterator<Item = &str> {
    list(container.get("env"))
        .filter_map(|variable| variable.get("valueFrom")?.get("fileKeyRef"))
        .map(|file| text(file, "volumeName"))
}

/// What `validateWindows` in `k8s.io/kubernetes/pkg/apis/core/validation` forbids in a container's security context.
const LINUX_FIELDS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

impl SeccompProfile {
    fn of(profile: &Value) -> Self {
        Self { kind: text(profile, "type").to_owned(), file: text(profile, "localhostProfile").to_owned() }
    }

    /// Whether the value of an old seccomp annotation says the same
    /// (`validateSeccompAnnotationsAndFieldsMatch` in `k8s.io/kubernetes/pkg/apis/core/validation`).
    pub fn agrees_with(&self, annotation: &str) -> bool {
        match self.kind.as_str() {
            "Unconfined" => annotation == "unconfined",
            "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
            "Localhost" => annotation.strip_prefix("localhost/") == Some(self.file.as_str()),
            _ => true,
        }
    }
}

impl PortNeed {
    /// Reads a port of a container as written in a set.
    pub fn of(port: &Value) -> Self {
        let number = |field| port.get(field).and_then(Value::as_i64).unwrap_or_default();
        Self {
            container_port: number("containerPort"),
            host_port: number("hostPort"),
            host_ip: text(port, "hostIP").into(),
            protocol: match text(port, "protocol") {
                "" | "TCP" => "TCP".into(),
                "UDP" => "UDP".into(),
                "SCTP" => "SCTP".into(),
                other => other.to_owned().into(),
            },
        }
    }

    /// The port without its own memory.
    pub fn view(&self) -> PortView<'_> {
        PortView {
            container_port: self.container_port,
            host_port: self.host_port,
            host_ip: &self.host_ip,
            protocol: &self.protocol,
        }
    }
}

impl<'a> PortView<'a> {
    /// Whether the port takes a port of the node. With the node's own network every container port does.
    pub const fn on_host(&self, host_network: bool) -> bool {
        self.host_port != 0 || host_network
    }

    /// Whether the port is taken on every address of the node.
    pub fn is_everywhere(&self) -> bool {
        matches!(self.host_ip, "" | "0.0.0.0" | "::")
    }

    /// Number and protocol on the node: two host ports that cannot both be had have the same, on addresses that meet.
    pub const fn on_node(&self) -> (i64, &'a str) {
        (if self.host_port == 0 { self.container_port } else { self.host_port }, self.protocol)
    }

    /// Number and protocol in the pod's network.
    pub const fn in_pod(&self) -> (i64, &'a str) {
        (self.container_port, self.protocol)
    }

    /// The host port for a message.
    pub fn described(&self, host_network: bool) -> String {
        let network = if host_network && self.host_port == 0 { " (the pod uses the node's network)" } else { "" };
        let (number, protocol) = self.on_node();
        format!("{number}/{protocol}{network}")
    }
}

impl<'a> From<&Port<'a>> for PortView<'a> {
    fn from(port: &Port<'a>) -> Self {
        // The API server writes neither with escapes. A body that does is taken to want the port everywhere.
        let host_ip = match &port.host_ip.0 {
            Cow::Borrowed(text) => text,
            Cow::Owned(_) => "",
        };
        let protocol = match port.protocol.as_str() {
            "UDP" => "UDP",
            "SCTP" => "SCTP",
            _ => "TCP",
        };
        Self { container_port: port.container_port.into(), host_port: port.host_port.into(), host_ip, protocol }
    }
}

/// Names and amounts of a `requests` or `limits` map. What does not parse is left out: validation has said so.
pub fn quantities(map: Option<&Value>) -> BTreeMap<String, Quantity> {
    map.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, amount)| {
            let amount = match amount {
                Value::String(text) => text.parse().ok()?,
                Value::Number(number) => number.to_string().parse().ok()?,
                _ => return None,
            };
            Some((name.clone(), amount))
        })
        .collect()
}
