//! Values that would change the injected pod in a way that this build cannot: refused by name, never ignored.

use admission::field::{Error, ErrorList, Path};

use super::node::Node;
use crate::sidecarset::canonical::is_empty;
use crate::sidecarset::vocabulary as words;

/// Refuses what is asked for and not served. Defaults and values that turn a thing off are accepted.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            check_container(&container, errors);
        }
    }
    let metadata = spec.child("patchPodMetadata");
    if !is_empty(metadata.value) {
        forbid(&metadata.path, "patchPodMetadata", errors);
    }
    let revision = spec.child("injectionStrategy").child("revision");
    for field in ["revisionName", "customVersion"] {
        if !revision.text(field).is_empty() {
            forbid(&revision.path.child(field), "injection of an older revision", errors);
        }
    }
}

fn check_container(container: &Node<'_>, errors: &mut ErrorList) {
    let upgrade = container.child("upgradeStrategy");
    if upgrade.text("upgradeType") == words::HOT_UPGRADE {
        forbid(&upgrade.path.child("upgradeType"), words::HOT_UPGRADE, errors);
    }
    if !upgrade.text("hotUpgradeEmptyImage").is_empty() {
        forbid(&upgrade.path.child("hotUpgradeEmptyImage"), words::HOT_UPGRADE, errors);
    }
    for (policy, what) in [
        ("shareVolumePolicy", "sharing the volume mounts of the pod's containers"),
        ("shareVolumeDevicePolicy", "sharing the volume devices of the pod's containers"),
    ] {
        let policy = container.child(policy);
        if policy.text("type") == words::SHARE_ENABLED {
            forbid(&policy.path.child("type"), what, errors);
        }
    }
    let transferred = container.child("transferEnv");
    if !is_empty(transferred.value) {
        forbid(&transferred.path, "transferEnv", errors);
    }
}

fn forbid(path: &Path, what: &str, errors: &mut ErrorList) {
    errors.push(Error::forbidden(path, format!("{what} is not served by this build; remove it")));
}
