//! `spec.patchPodMetadata`: annotations that a set gives to pods, in the form that decisions read.

use serde_json::Value;

use crate::sidecarset::api::SidecarSetSpec;
use crate::sidecarset::vocabulary::{MERGE_PATCH_JSON, OVERWRITE};

/// An annotation that a set gives to a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotationPiece {
    /// Key.
    pub key: String,
    /// Value. Of a patch: what a pod without the annotation gets.
    pub value: String,
    /// What happens to one that the pod has.
    pub policy: PatchPolicy,
}

/// What happens to an annotation that the pod has.
#[derive(Debug, Clone, PartialEq)]
pub enum PatchPolicy {
    /// It stays.
    Retain,
    /// It is replaced.
    Overwrite,
    /// This JSON is merged into it (RFC 7386).
    Merge(Value),
}

/// The annotations of a set, as it is written. A patch that is no JSON, which validation refuses, is left out.
pub fn annotations(spec: &SidecarSetSpec) -> Vec<AnnotationPiece> {
    let entries = spec.patch_pod_metadata.iter().flatten();
    let all = entries.flat_map(|entry| {
        let policy = entry.patch_policy.as_deref().unwrap_or_default();
        entry.annotations.iter().flatten().map(move |(key, value)| (policy, key, value))
    });
    let piece = |(policy, key, value): (&str, &String, &String)| {
        let (policy, value) = match policy {
            OVERWRITE => (PatchPolicy::Overwrite, value.clone()),
            MERGE_PATCH_JSON => {
                let patch: Value = serde_json::from_str(value).ok()?;
                let alone = alone(&patch).unwrap_or_else(|| value.clone());
                (PatchPolicy::Merge(patch), alone)
            }
            _ => (PatchPolicy::Retain, value.clone()),
        };
        Some(AnnotationPiece { key: key.clone(), value, policy })
    };
    all.filter_map(piece).collect()
}

/// What a patch makes of nothing, where that is not the patch itself: a null in it takes away. Were it written into a pod as it is, the
/// next pass would take it out.
fn alone(patch: &Value) -> Option<String> {
    let mut merged = Value::Null;
    merge(&mut merged, patch);
    (merged != *patch).then(|| merged.to_string())
}

/// Merges a patch into a value as RFC 7386 says.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// Whether merging the patch would change the value. Takes time by the patch alone, however long the value is.
pub fn changes(target: &Value, patch: &Value) -> bool {
    match (target, patch) {
        (Value::Object(members), Value::Object(patch)) => patch.iter().any(|(key, value)| match members.get(key) {
            Some(_) if value.is_null() => true,
            Some(member) => changes(member, value),
            None => !value.is_null(),
        }),
        (_, Value::Object(_)) => true,
        _ => target != patch,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::{changes, merge};

    /// The examples of RFC 7386, appendix A.
    #[test]
    fn patches_merge_as_the_rfc_says() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged: Value = target.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, expected, "{target} {patch}");
            assert_eq!(changes(&target, &patch), merged != target, "{target} {patch}");
            let once = merged.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, once, "{target} {patch}");
        }
    }
}
