//! Probes and lifecycle hooks: what is called, and when.

use admission::field::{Error, ErrorList};
use admission::format::names::{http_header_name, port_name, port_number};
use serde_json::Value;

use super::Node;

const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];
const PROBE_NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];

/// Checks the three probes of a container.
pub fn check_probes(container: &Node<'_>, errors: &mut ErrorList) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(kind).filter(|probe| probe.value.is_object()) else { continue };
        check_handler(&probe, &PROBE_HANDLERS, errors);
        for number in PROBE_NUMBERS {
            probe.check_not_negative(number, errors);
        }
        let success = probe.child("successThreshold");
        if kind != "readinessProbe" && !matches!(success.value.as_i64(), None | Some(0 | 1)) {
            errors.push(Error::invalid(&success.path, success.value, "must be 1"));
        }
        if let Some(grace) = probe.get("terminationGracePeriodSeconds") {
            if kind == "readinessProbe" {
                errors.push(Error::invalid(&grace.path, grace.value, "must not be set for readinessProbes"));
            } else if grace.value.as_i64().is_some_and(|seconds| seconds <= 0) {
                errors.push(Error::invalid(&grace.path, grace.value, "must be greater than 0"));
            }
        }
    }
}

/// Checks `lifecycle` of a container.
pub fn check_lifecycle(container: &Node<'_>, errors: &mut ErrorList) {
    let lifecycle = container.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = lifecycle.get(hook).filter(|hook| hook.value.is_object()) {
            check_handler(&hook, &HOOK_HANDLERS, errors);
        }
    }
}

fn check_handler(node: &Node<'_>, kinds: &[&'static str], errors: &mut ErrorList) {
    let mut handlers = kinds.iter().filter_map(|&kind| Some((kind, node.get(kind)?)));
    match handlers.next() {
        None => errors.push(Error::required(&node.path, "must specify a handler type")),
        Some((kind, handler)) => check_action(kind, &handler, errors),
    }
    for (_, handler) in handlers {
        errors.push(Error::forbidden(&handler.path, "may not specify more than 1 handler type"));
    }
}

fn check_action(kind: &str, action: &Node<'_>, errors: &mut ErrorList) {
    match kind {
        "exec" => {
            let command = action.child("command");
            if command.value.as_array().map_or_else(|| !command.is_there(), Vec::is_empty) {
                errors.push(Error::required(&command.path, ""));
            }
        }
        "httpGet" => {
            action.require_text("path", errors);
            check_port(&action.child("port"), errors);
            action.check_word("scheme", &SCHEMES, errors);
            for header in action.child("httpHeaders").items() {
                let name = header.text("name");
                let path = header.path.child("name");
                errors.extend(http_header_name(name).into_iter().map(|message| Error::invalid(&path, name, message)));
            }
        }
        "sleep" => action.check_not_negative("seconds", errors),
        _ => check_port(&action.child("port"), errors),
    }
}

/// A port by number or by name; a missing one is 0 to the API server.
fn check_port(port: &Node<'_>, errors: &mut ErrorList) {
    let wrong = match port.value {
        Value::String(name) => port_name(name),
        Value::Null => port_number(0),
        value => value.as_i64().map_or_else(Vec::new, port_number),
    };
    let shown = if port.is_there() { port.value.clone() } else { Value::from(0) };
    errors.extend(wrong.into_iter().map(|message| Error::invalid(&port.path, &shown, message)));
}
