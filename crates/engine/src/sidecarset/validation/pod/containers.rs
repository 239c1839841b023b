//! Containers and init containers.

use std::collections::HashSet;

use admission::field::{Error, ErrorList, Path};
use admission::format::names::{dns1123_label, port_name, port_number};

use super::{Node, Volumes, env, handlers, mounts, resources, security};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const TERMINATION_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RESTART_ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const RESIZE_POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];

/// Checks `spec.containers`.
pub fn check(list: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    let mut host_ports = HashSet::new();
    for container in list.items().filter(|container| container.value.is_object()) {
        check_common(&container, volumes, errors);
        handlers::check_lifecycle(&container, errors);
        handlers::check_probes(&container, errors);
        check_host_ports(&container, &mut host_ports, errors);
    }
}

/// Checks `spec.initContainers`.
pub fn check_init(list: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    for container in list.items().filter(|container| container.value.is_object()) {
        check_common(&container, volumes, errors);
        // Init containers run one after another, so they share no ports.
        check_host_ports(&container, &mut HashSet::new(), errors);
        if container.text("restartPolicy") == "Always" {
            handlers::check_lifecycle(&container, errors);
            handlers::check_probes(&container, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if let Some(field) = container.get(field) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(Error::forbidden(&field.path, detail));
            }
        }
        for policy in container.child("resizePolicy").items() {
            if policy.text("restartPolicy") == "RestartContainer" {
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.push(Error::invalid(&policy.path.child("restartPolicy"), "RestartContainer", detail));
            }
        }
    }
}

/// Checks the name of an image, which is there (`validateContainerCommon` of k8s.io/kubernetes/pkg/apis/core/validation).
pub fn check_image(path: &Path, image: &str, errors: &mut ErrorList) {
    if image.trim().len() != image.len() {
        errors.push(Error::invalid(path, image, "must not have leading or trailing whitespace"));
    }
}

fn check_common(container: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    container.require_text("name", errors);
    container.check_text("name", dns1123_label, errors);
    if let Some(image) = container.require_text("image", errors) {
        check_image(&container.path.child("image"), image, errors);
    }
    container.check_word("terminationMessagePolicy", &TERMINATION_POLICIES, errors);
    check_ports(&container.child("ports"), errors);
    env::check_env(&container.child("env"), volumes, errors);
    env::check_env_from(&container.child("envFrom"), errors);
    mounts::check(container, volumes, errors);
    container.check_word("imagePullPolicy", &PULL_POLICIES, errors);
    resources::check(&container.child("resources"), errors);
    check_resize_policy(&container.child("resizePolicy"), errors);
    security::check(&container.child("securityContext"), errors);
    container.check_word("restartPolicy", &RESTART_POLICIES, errors);
    check_restart_rules(container, errors);
}

/// `validateContainerRestartPolicy`.
fn check_restart_rules(container: &Node<'_>, errors: &mut ErrorList) {
    const RULES_MAX: usize = 20;
    const CODES_MAX: usize = 255;
    let list = container.child("restartPolicyRules");
    let count = list.items().count();
    if count > 0 && container.get("restartPolicy").is_none() {
        let detail = "must specify restartPolicy when restart rules are used";
        errors.push(Error::required(&container.path.child("restartPolicy"), detail));
    }
    if count > RULES_MAX {
        errors.push(Error::too_many(&list.path, count, RULES_MAX));
    }
    for rule in list.items().filter(|rule| rule.value.is_object()) {
        if rule.require_text("action", errors).is_some() {
            rule.check_word("action", &RESTART_ACTIONS, errors);
        }
        let Some(codes) = rule.get("exitCodes") else {
            errors.push(Error::required(&rule.path.child("exitCodes"), "must be specified"));
            continue;
        };
        if codes.require_text("operator", errors).is_some() {
            codes.check_word("operator", &["In", "NotIn"], errors);
        }
        let values = codes.child("values");
        let count = values.items().count();
        if count > CODES_MAX {
            errors.push(Error::too_many(&values.path, count, CODES_MAX));
        }
    }
}

fn check_ports(list: &Node<'_>, errors: &mut ErrorList) {
    let mut names = HashSet::new();
    for port in list.items().filter(|port| port.value.is_object()) {
        port.check_text("name", port_name, errors);
        let name = port.text("name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(Error::duplicate(&port.path.child("name"), name));
        }
        let number = port.child("containerPort");
        match number.value.as_i64() {
            None if number.is_there() => {}
            None | Some(0) => errors.push(Error::required(&number.path, "")),
            Some(value) => {
                errors
                    .extend(port_number(value).into_iter().map(|message| Error::invalid(&number.path, value, message)));
            }
        }
        if let Some(value) = port.number("hostPort").filter(|&value| value != 0) {
            let path = port.path.child("hostPort");
            errors.extend(port_number(value).into_iter().map(|message| Error::invalid(&path, value, message)));
        }
        port.check_word("protocol", &PROTOCOLS, errors);
    }
}

fn check_host_ports(container: &Node<'_>, taken: &mut HashSet<String>, errors: &mut ErrorList) {
    for port in container.child("ports").items() {
        let Some(number) = port.number("hostPort").filter(|&number| number != 0) else { continue };
        let protocol = Some(port.text("protocol")).filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let place = format!("{protocol}/{}/{number}", port.text("hostIP"));
        if taken.contains(&place) {
            errors.push(Error::duplicate(&port.path.child("hostPort"), &place));
        }
        taken.insert(place);
    }
}

fn check_resize_policy(list: &Node<'_>, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for policy in list.items().filter(|policy| policy.value.is_object()) {
        if let Some(resource) = policy.require_text("resourceName", errors) {
            policy.check_word("resourceName", &RESIZABLE, errors);
            if !seen.insert(resource) {
                errors.push(Error::duplicate(&policy.path.child("resourceName"), resource));
            }
        }
        if policy.require_text("restartPolicy", errors).is_some() {
            policy.check_word("restartPolicy", &RESIZE_POLICIES, errors);
        }
    }
}
