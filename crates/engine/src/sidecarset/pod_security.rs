//! `spec.podSecurity: Complete`: what the level restricted of the Pod Security Standards demands of a container, where the set leaves
//! it open (`k8s.io/pod-security-admission/policy`, versions 1.25 and later, which leave Linux' fields to Linux).

use serde_json::{Value, json};

use crate::sidecarset::api::RawObject;
use crate::sidecarset::platform::Platform;

/// With these a container cannot give up the escalation of privileges: the API server refuses both together.
const ESCALATING: [&str; 2] = ["SYS_ADMIN", "CAP_SYS_ADMIN"];

/// Fills in the security context of a container.
pub fn complete(container: &mut RawObject, platform: Platform) {
    let Some(context) = map(container, "securityContext") else { return };
    // The kubelet starts no container that is both.
    if context.get("runAsUser").and_then(Value::as_i64) != Some(0) {
        fill(context, "runAsNonRoot", json!(true));
    }
    if platform == Platform::Windows {
        return;
    }
    let is_privileged = context.get("privileged").and_then(Value::as_bool) == Some(true);
    let added = context.get("capabilities").and_then(|capabilities| capabilities.get("add")).and_then(Value::as_array);
    let escalates = added.into_iter().flatten().any(|added| added.as_str().is_some_and(|it| ESCALATING.contains(&it)));
    if !is_privileged && !escalates {
        fill(context, "allowPrivilegeEscalation", json!(false));
    }
    fill(context, "seccompProfile", json!({"type": "RuntimeDefault"}));
    if let Some(capabilities) = map(context, "capabilities") {
        fill(capabilities, "drop", json!(["ALL"]));
    }
}

fn fill(map: &mut RawObject, field: &str, value: Value) {
    let present = map.entry(field).or_insert(Value::Null);
    if present.is_null() {
        *present = value;
    }
}

/// The map at a field, made where there is nothing; none where there is something else.
fn map<'m>(object: &'m mut RawObject, field: &str) -> Option<&'m mut RawObject> {
    fill(object, field, json!({}));
    object.get_mut(field)?.as_object_mut()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn completed(context: &Value, platform: Platform) -> Value {
        let mut container = json!({"name": "a", "securityContext": context}).as_object().unwrap().clone();
        complete(&mut container, platform);
        container["securityContext"].clone()
    }

    #[test]
    fn what_is_open_is_filled_in_and_what_is_written_stays() {
        let (all, seccomp) = (json!({"drop": ["ALL"]}), json!({"type": "RuntimeDefault"}));
        let whole = json!({
            "runAsNonRoot": true, "allowPrivilegeEscalation": false, "seccompProfile": seccomp, "capabilities": all,
        });
        assert_eq!(completed(&Value::Null, Platform::Linux), whole);
        assert_eq!(completed(&json!({"capabilities": {"drop": null}, "runAsNonRoot": null}), Platform::Linux), whole);
        assert_eq!(completed(&whole, Platform::Linux), whole);
        assert_eq!(completed(&json!({}), Platform::Windows), json!({"runAsNonRoot": true}));
        let written = json!({
            "runAsNonRoot": false, "allowPrivilegeEscalation": true, "seccompProfile": {"type": "Unconfined"},
            "capabilities": {"drop": ["NET_RAW"], "add": ["CHOWN"]},
        });
        assert_eq!(completed(&written, Platform::Linux), written);
    }

    #[test]
    fn nothing_is_filled_in_that_the_api_server_or_the_kubelet_refuses_beside_the_rest() {
        let seccomp = json!({"type": "RuntimeDefault"});
        for (context, expected) in [
            (
                json!({"privileged": true}),
                json!({"privileged": true, "runAsNonRoot": true, "seccompProfile": seccomp, "capabilities": {"drop": ["ALL"]}}),
            ),
            (
                json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
                json!({"runAsNonRoot": true, "seccompProfile": seccomp, "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}),
            ),
            (
                json!({"runAsUser": 0}),
                json!({
                    "runAsUser": 0, "allowPrivilegeEscalation": false, "seccompProfile": seccomp,
                    "capabilities": {"drop": ["ALL"]},
                }),
            ),
        ] {
            assert_eq!(completed(&context, Platform::Linux), expected, "{context}");
        }
    }
}
