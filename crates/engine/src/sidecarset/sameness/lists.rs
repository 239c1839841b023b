//! Lists of a container in which something may be added.

use admission::bounded::first_chars;
use serde_json::Value;

use super::CompiledAllowedChanges;
use super::identities::{Identities, MountOf};
use super::taken::Expected;
use crate::sidecarset::api::text;

/// Longest part of a name that a message repeats, in characters: the author of the pod wrote it.
const NAME_MAX: usize = 120;

/// The first variable that differs.
pub(super) fn env(
    ours: Option<&Value>,
    found: Option<&Value>,
    allowed: &CompiledAllowedChanges,
    identities: Identities,
    taken: &mut Expected<'_>,
) -> Option<String> {
    let mut identities = identities.variables();
    difference("env", "name", ours, found, |variable, position| {
        let name = text(variable, "name");
        let mut is_expected = |at| taken.take("env", at, variable);
        allowed.variable(name) || position.is_some_and(|at| is_expected(at) || identities.take(name, variable))
    })
}

/// The first mount that differs.
pub(super) fn mounts(
    ours: Option<&Value>,
    found: Option<&Value>,
    allowed: &CompiledAllowedChanges,
    mut identities: Identities,
    taken: &mut Expected<'_>,
) -> Option<String> {
    difference("volumeMounts", "mountPath", ours, found, |mount, position| {
        let path = text(mount, "mountPath");
        let mut is_expected = |at| taken.take("volumeMounts", at, mount);
        let mut is_identity = || MountOf::path(path).is_some_and(|of| identities.take_mount(of));
        allowed.mount_path(path) || position.is_some_and(|at| is_expected(at) || is_identity())
    })
}

/// The first block device that differs.
pub(super) fn devices(ours: Option<&Value>, found: Option<&Value>, taken: &mut Expected<'_>) -> Option<String> {
    difference("volumeDevices", "devicePath", ours, found, |device, position| {
        position.is_some_and(|at| taken.take("volumeDevices", at, device))
    })
}

/// With the network of the node the API server writes the port of the node beside each port of a container.
pub(super) fn host_network_ports(ours: Option<&Value>, found: Option<&Value>) -> Option<String> {
    let without_host_port = |value: Option<&Value>| {
        let mut value = value?.clone();
        for port in value.as_array_mut()?.iter_mut().filter_map(Value::as_object_mut) {
            if port.get("hostPort") == port.get("containerPort") {
                port.remove("hostPort");
            }
        }
        Some(value)
    };
    (without_host_port(ours) != without_host_port(found)).then(|| "ports".to_owned())
}

/// The first element that differs, by its key; `may_differ` says which elements need not be there, or may be: of the found ones it
/// gets the position too.
fn difference(
    field: &str,
    key: &str,
    ours: Option<&Value>,
    found: Option<&Value>,
    mut may_differ: impl FnMut(&Value, Option<usize>) -> bool,
) -> Option<String> {
    let (Some(ours), Some(found)) = (elements(ours), elements(found)) else { return Some(field.to_owned()) };
    let (mut ours, mut found) = (ours.iter(), found.iter().enumerate());
    loop {
        let our = ours.by_ref().find(|element| !may_differ(element, None));
        let their = found.by_ref().find(|(at, element)| !may_differ(element, Some(*at))).map(|(_, element)| element);
        match (our, their) {
            (None, None) => return None,
            (our, their) if our == their => {}
            (our, their) => {
                let name = our.or(their).map(|element| text(element, key)).unwrap_or_default();
                return Some(format!("{field}[{}]", first_chars(name, NAME_MAX)));
            }
        }
    }
}

fn elements(list: Option<&Value>) -> Option<&[Value]> {
    match list {
        None => Some(&[]),
        Some(list) => list.as_array().map(Vec::as_slice),
    }
}
