//! Is a reply what the row expects? Asked before anything is measured, so that no row times an error path.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::reviews;

/// What a reply must contain.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Allowed, without a patch.
    Unchanged,
    /// Allowed, with a patch that adds this many containers.
    Containers(usize),
}

/// Checks a reply to `body`; the object as it is after the reply's patch.
///
/// # Errors
/// What was found instead.
pub fn check(body: &str, reply: &[u8], expected: Expected) -> Result<Value, String> {
    let (uid, mut object) = reviews::uid_and_object(body).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(reply);
    let review: Value = serde_json::from_slice(reply).map_err(|error| format!("{error} in {text}"))?;
    for (pointer, wanted) in [
        ("/apiVersion", Value::from("admission.k8s.io/v1")),
        ("/kind", Value::from("AdmissionReview")),
        ("/response/uid", Value::from(uid)),
        ("/response/allowed", Value::from(true)),
    ] {
        if review.pointer(pointer) != Some(&wanted) {
            return Err(format!("{pointer} is not {wanted} in {text}"));
        }
    }
    let patch = review.pointer("/response/patch");
    match (expected, patch) {
        (Expected::Unchanged, None) => Ok(object),
        (Expected::Unchanged, Some(_)) => Err(format!("there is a patch: {text}")),
        (Expected::Containers(_), None) => Err(format!("there is no patch: {text}")),
        (Expected::Containers(wanted), Some(patch)) => {
            let before = containers(&object)?;
            apply(patch, &review, &mut object)?;
            let added = containers(&object)?.saturating_sub(before);
            if added == wanted { Ok(object) } else { Err(format!("the patch adds {added} containers, not {wanted}")) }
        }
    }
}

fn containers(pod: &Value) -> Result<usize, String> {
    pod.pointer("/spec/containers")
        .and_then(Value::as_array)
        .map(Vec::len)
        .ok_or_else(|| "the pod has no spec.containers".into())
}

fn apply(patch: &Value, review: &Value, object: &mut Value) -> Result<(), String> {
    let kind = review.pointer("/response/patchType");
    if kind != Some(&Value::from("JSONPatch")) {
        return Err(format!("/response/patchType is {kind:?}, not JSONPatch"));
    }
    let bytes = STANDARD
        .decode(patch.as_str().unwrap_or_default())
        .map_err(|error| format!("the patch is not base64: {error}"))?;
    let operations: json_patch::Patch =
        serde_json::from_slice(&bytes).map_err(|error| format!("the patch is not RFC 6902: {error}"))?;
    json_patch::patch(object, &operations).map_err(|error| format!("the patch does not apply: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    const BODY: &str = r#"{"request":{"uid":"u","object":{"spec":{"containers":[{"name":"app"}]}}}}"#;

    fn reply(response: &Value) -> Vec<u8> {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        serde_json::to_vec(&review).unwrap()
    }

    fn patched(operations: &Value) -> Vec<u8> {
        reply(&json!({
            "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string()),
        }))
    }

    #[test]
    fn a_reply_is_accepted_only_if_it_is_what_the_row_expects() {
        let yes = reply(&json!({"uid": "u", "allowed": true}));
        let add = patched(&json!([{"op": "add", "path": "/spec/containers/0", "value": {"name": "s"}}]));
        let unapplicable = patched(&json!([{"op": "remove", "path": "/spec/volumes"}]));
        let (unchanged, one, two) = (Expected::Unchanged, Expected::Containers(1), Expected::Containers(2));
        for (name, reply, expected, error) in [
            ("allowed", yes.clone(), unchanged, None),
            ("injected", add.clone(), one, None),
            ("patch not wanted", add.clone(), unchanged, Some("there is a patch")),
            ("patch missing", yes, one, Some("there is no patch")),
            ("too few", add, two, Some("adds 1 containers, not 2")),
            ("bad patch", unapplicable, one, Some("does not apply")),
            ("denied", reply(&json!({"uid": "u", "allowed": false})), unchanged, Some("/response/allowed")),
            ("other uid", reply(&json!({"uid": "v", "allowed": true})), unchanged, Some("/response/uid")),
            ("no review", b"ok".to_vec(), unchanged, Some("in ok")),
        ] {
            match (check(BODY, &reply, expected), error) {
                (Ok(_), None) => {}
                (Err(found), Some(part)) => assert!(found.contains(part), "{name}: {found}"),
                (found, _) => unreachable!("{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_object_after_the_patch_is_returned_for_the_second_pass() {
        let add = patched(&json!([{"op": "add", "path": "/spec/containers/0", "value": {"name": "s"}}]));
        let object = check(BODY, &add, Expected::Containers(1)).unwrap();
        assert_eq!(object, json!({"spec": {"containers": [{"name": "s"}, {"name": "app"}]}}));
    }
}
