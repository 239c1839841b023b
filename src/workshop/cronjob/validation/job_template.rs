//! The Job template. Without this a fault in it would show only when the first Job cannot be created.

use admission::field::{Error, ErrorList, Path, quote};
use serde_json::Value;

use super::fields::{Fields, required_map, wrong_type};
use crate::workshop::cronjob::vocabulary::RESTART_POLICIES;

/// Checks what every Job must have; the API server checks the rest when a Job is created.
pub fn check(template: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let mut found = required_map(template, path, errors);
    for level in ["spec", "template", "spec"] {
        let Some(outer) = found else { return };
        found = required_map(outer.get(level), &outer.path.child(level), errors);
    }
    let Some(pod) = found else { return };
    check_containers(&pod, errors);
    check_restart_policy(&pod, errors);
}

fn check_containers(pod: &Fields<'_>, errors: &mut ErrorList) {
    let path = pod.path.child("containers");
    match pod.get("containers") {
        Some(Value::Array(containers)) if !containers.is_empty() => {
            for (index, container) in containers.iter().enumerate() {
                if let Some(container) = required_map(Some(container), &path.index(index), errors) {
                    container.check_has_text("name", errors);
                    container.check_has_text("image", errors);
                }
            }
        }
        None | Some(Value::Array(_)) => errors.push(Error::required(&path, "")),
        Some(other) => errors.push(wrong_type(&path, other, "array")),
    }
}

/// A pod's own default is Always, which a Job refuses (`validateJobTemplateSpec` of k8s.io/kubernetes/pkg/apis/batch).
fn check_restart_policy(pod: &Fields<'_>, errors: &mut ErrorList) {
    match pod.get("restartPolicy").map(|policy| policy.as_str()) {
        None | Some(Some("" | "Always")) => {
            let valid = RESTART_POLICIES.map(quote).join(", ");
            errors.push(Error::required(&pod.path.child("restartPolicy"), format!("valid values: {valid}")));
        }
        Some(_) => pod.check_word("restartPolicy", &RESTART_POLICIES, errors),
    }
}
