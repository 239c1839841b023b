//! `upgradeStrategy`: containers that are upgraded by a second one.

use admission::field::{Error, ErrorList};

use super::node::Node;
use super::pod::containers::check_image;
use crate::sidecarset::hot_upgrade::is_hot;
use crate::sidecarset::vocabulary::HOT_UPGRADE;

/// Checks the pairs of a set. Their names are checked with all others.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            check_container(&container, list == "initContainers", errors);
        }
    }
}

fn check_container(container: &Node<'_>, is_init: bool, errors: &mut ErrorList) {
    let upgrade = container.child("upgradeStrategy");
    let empty_image = upgrade.text("hotUpgradeEmptyImage");
    let path = upgrade.path.child("hotUpgradeEmptyImage");
    if !container.value.as_object().is_some_and(is_hot) {
        if !empty_image.is_empty() {
            errors.push(Error::forbidden(&path, format!("may only be specified with upgradeType {HOT_UPGRADE}")));
        }
        return;
    }
    if is_init && container.text("restartPolicy") != "Always" {
        let detail = "an init container that ends before the others start has nothing to hand over";
        errors.push(Error::forbidden(&upgrade.path.child("upgradeType"), detail));
    }
    if empty_image.is_empty() {
        errors.push(Error::required(&path, "the container that waits needs an image"));
    } else if empty_image == container.text("image") {
        errors.push(Error::invalid(&path, empty_image, "must be another image than the container's"));
    } else {
        check_image(&path, empty_image, errors);
    }
    for port in container.child("ports").items().filter(|port| port.number("hostPort").unwrap_or_default() != 0) {
        let detail = "a container with a hot upgrade is there twice, and both cannot take one port of the node";
        errors.push(Error::forbidden(&port.path.child("hostPort"), detail));
    }
}
