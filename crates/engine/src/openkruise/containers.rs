//! Containers and init containers.

use admission::field::Path;
use serde_json::Value;

use super::Findings;
use super::spec::remove_empty;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::hot_upgrade::is_hot;
use crate::sidecarset::mark;
use crate::sidecarset::vocabulary::{COLD_UPGRADE, SHARE_ENABLED, UPGRADE_TYPES};

/// A field of a container that only our kind has.
const ONLY_OURS: &str = "shareServiceAccountToken";

/// Of OpenKruise's job sidecar terminator: the container is stopped once the pod's own have ended.
const TERMINATE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";

/// Whether OpenKruise stops the container so that a pod can end.
pub(super) fn is_terminated(container: &RawObject) -> bool {
    let env = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let says = |variable: &Value| {
        let value = variable.get("value").and_then(Value::as_str).unwrap_or_default();
        variable.get("name").is_some_and(|name| name == TERMINATE) && value.eq_ignore_ascii_case("true")
    };
    env.into_iter().any(says)
}

/// Converts a list of containers in its place.
pub(super) fn convert(list: &mut Value, path: &Path, findings: &mut Findings) {
    let containers = list.as_array_mut().into_iter().flatten().enumerate();
    for (index, container) in containers {
        if let Value::Object(container) = container {
            convert_one(container, &path.index(index), findings);
        }
    }
}

/// OpenKruise sorts init containers by name. Ours are injected as they are written.
pub(super) fn sort(list: &mut Value, path: &Path, findings: &mut Findings) {
    let Value::Array(containers) = list else { return };
    let name = |container: &Value| container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !containers.is_sorted_by_key(name) {
        containers.sort_by_key(name);
        findings.note(path, "sorted by name, as OpenKruise injects them; Outrider injects them as they are written");
    }
}

fn convert_one(container: &mut RawObject, path: &Path, findings: &mut Findings) {
    if container.contains_key(ONLY_OURS) {
        let only = RawObject::from_iter([(ONLY_OURS.to_owned(), Value::Null)]);
        findings.refuse_unknown(&only, &[], Some(path));
    }
    upgrade(container, &path.child("upgradeStrategy"), findings);
    unmark(container, &path.child("env"), findings);
    for field in ["upgradeStrategy", "env"] {
        remove_empty(container, field);
    }
    for field in ["shareVolumePolicy", "shareVolumeDevicePolicy"] {
        let type_ = container.get(field).and_then(|policy| policy.get("type"));
        if type_.is_some_and(|type_| type_ == SHARE_ENABLED) {
            findings.note(
                &path.child(field),
                "shares with the pod's native sidecars too; in OpenKruise with its containers only",
            );
        }
    }
    if container.get("transferEnv").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        findings.note(
            &path.child("transferEnv"),
            "takes variables of the pod's native sidecars too; in OpenKruise of its containers only",
        );
    }
    resources(container, &path.child("resourcesPolicy").child("resourcesExpr").child("limits"), findings);
}

/// OpenKruise takes any word but `HotUpgrade` as `ColdUpgrade`, and an idle image that nothing uses.
fn upgrade(container: &mut RawObject, path: &Path, findings: &mut Findings) {
    let is_hot = is_hot(container);
    let Some(Value::Object(upgrade)) = container.get_mut("upgradeStrategy") else { return };
    let type_ = upgrade.get("upgradeType").and_then(Value::as_str).unwrap_or_default();
    if !type_.is_empty() && !UPGRADE_TYPES.contains(&type_) {
        let text = format!("{type_:?} is no type: written as {COLD_UPGRADE}, as OpenKruise takes it");
        findings.note(&path.child("upgradeType"), text);
        upgrade.insert("upgradeType".to_owned(), COLD_UPGRADE.into());
    }
    if is_hot {
        findings.note(
            &path.child("upgradeType"),
            "SIDECARSET_VERSION is one more with each upgrade (2, 3 and so on), in OpenKruise the resourceVersion of the set; the \
             annotations of the pair have outrider.dev in place of kruise.io in their keys",
        );
    }
    let image = upgrade.get("hotUpgradeEmptyImage").and_then(Value::as_str).unwrap_or_default();
    if !is_hot && !image.is_empty() {
        findings.note(&path.child("hotUpgradeEmptyImage"), "left out: it has no effect without a hot upgrade");
        upgrade.remove("hotUpgradeEmptyImage");
    }
}

/// OpenKruise adds its mark behind a variable of that name, and so replaces it.
fn unmark(container: &mut RawObject, path: &Path, findings: &mut Findings) {
    if mark::is_marked(container) {
        return;
    }
    let Some(Value::Array(env)) = container.get_mut("env") else { return };
    let before = env.len();
    env.retain(|variable| mark::says(variable).is_none());
    if env.len() < before {
        findings.note(path, format!("{} left out: injected containers get it with the value \"true\"", mark::NAME));
    }
}

/// A limit that does not depend on the pod's containers.
fn resources(container: &RawObject, path: &Path, findings: &mut Findings) {
    let limits = container.get("resourcesPolicy").and_then(|policy| policy.get("resourcesExpr")?.get("limits"));
    for resource in ["cpu", "memory"] {
        let expression = limits.and_then(|limits| limits.get(resource)?.as_str()).unwrap_or_default();
        if !expression.is_empty() && !expression.to_ascii_lowercase().contains(resource) {
            let text =
                "a constant is set for every pod; OpenKruise leaves it out if a container of the pod has no limit";
            findings.note(&path.child(resource), text);
        }
    }
}
