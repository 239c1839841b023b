//! The security context of a container.

use admission::field::{Error, ErrorList};
use serde_json::Value;

use super::paths::check_descending;
use super::{Node, windows};

const SECCOMP_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const PROC_MOUNTS: [&str; 2] = ["Default", "Unmasked"];
const MAX_ID: i64 = i32::MAX as i64;

/// Checks `securityContext` of a container.
pub fn check(context: &Node<'_>, errors: &mut ErrorList) {
    for id in ["runAsUser", "runAsGroup"] {
        if let Some(number) = context.number(id).filter(|number| !(0..=MAX_ID).contains(number)) {
            let detail = format!("must be between 0 and {MAX_ID}, inclusive");
            errors.push(Error::invalid(&context.path.child(id), number, detail));
        }
    }
    context.check_word("procMount", &PROC_MOUNTS, errors);
    if let Some(profile) = context.get("seccompProfile") {
        check_profile(&profile, "seccomp type", "seccompProfile", errors);
        check_descending(&profile, "localhostProfile", errors);
    }
    if let Some(profile) = context.get("appArmorProfile") {
        check_profile(&profile, "AppArmor type", "appArmorProfile", errors);
        let file = profile.text("localhostProfile");
        if profile.text("type") == "Localhost" && file.trim() != file {
            let path = profile.path.child("localhostProfile");
            errors.push(Error::invalid(&path, file, "must not be padded with whitespace"));
        }
    }
    if let Some(options) = context.get("windowsOptions") {
        windows::check(&options, errors);
    }
    check_escalation(context, errors);
}

fn check_profile(profile: &Node<'_>, what: &str, field: &str, errors: &mut ErrorList) {
    let path = profile.path.child("type");
    let type_ = profile.text("type");
    if type_.is_empty() {
        return errors.push(Error::required(&path, format!("type is required when {field} is set")));
    }
    profile.check_word("type", &SECCOMP_TYPES, errors);
    let file = profile.child("localhostProfile");
    // An empty name is a name to the check of seccomp, not to that of AppArmor.
    let is_named = match field {
        "seccompProfile" => file.is_there(),
        _ => !profile.text("localhostProfile").is_empty(),
    };
    if type_ == "Localhost" && !is_named {
        errors.push(Error::required(&file.path, format!("must be set when {what} is Localhost")));
    }
    if type_ != "Localhost" && file.is_there() {
        errors.push(Error::invalid(&file.path, file.value, format!("can only be set when {what} is Localhost")));
    }
}

fn check_escalation(context: &Node<'_>, errors: &mut ErrorList) {
    let forbidden = context.child("allowPrivilegeEscalation").value == &Value::Bool(false);
    if forbidden && context.flag("privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(Error::invalid(&context.path, context.value, detail));
    }
    let adds_admin = context.child("capabilities").child("add").items().any(|added| added.value == "CAP_SYS_ADMIN");
    if forbidden && adds_admin {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(Error::invalid(&context.path, context.value, detail));
    }
}
