//! `resourcesPolicy` of containers, and `spec.resourceDefaults`.

use admission::field::{Error, ErrorList};

use super::node::Node;
use super::pod;
use crate::sidecarset::canonical::is_empty;
use crate::sidecarset::resources::{ResourcesPolicy, WITH_DEFAULTS};

/// Checks both.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    for list in ["initContainers", "containers"] {
        for container in spec.child(list).items() {
            let policy = container.child("resourcesPolicy");
            if !is_empty(policy.value) && policy.value.is_object() {
                check_policy(&container, &policy, list == "initContainers", errors);
            }
        }
    }
    check_defaults(&spec.child("resourceDefaults"), errors);
}

fn check_policy(container: &Node<'_>, policy: &Node<'_>, is_init: bool, errors: &mut ErrorList) {
    if is_init && container.text("restartPolicy") != "Always" {
        let detail = "may not be set for init containers without restartPolicy=Always";
        return errors.push(Error::forbidden(&policy.path, detail));
    }
    let resources = container.child("resources");
    if ["limits", "requests"].iter().any(|list| !is_empty(resources.child(list).value)) {
        let detail = "may not be set together with resources.limits or resources.requests; choose one";
        return errors.push(Error::forbidden(&policy.path, detail));
    }
    ResourcesPolicy::read(policy.value, &policy.path, errors);
}

fn check_defaults(defaults: &Node<'_>, errors: &mut ErrorList) {
    for list in ["limits", "requests"] {
        for (name, amount) in defaults.child(list).entries() {
            if !WITH_DEFAULTS.contains(&name) {
                errors.push(Error::not_supported(&amount.path, name, &WITH_DEFAULTS));
            }
        }
    }
    pod::check_resources(defaults, errors);
}
