//! `spec.patchPodMetadata`: annotations that a set gives to pods, in the form that decisions read.

use std::collections::BTreeMap;

use admission::patch::quoted;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::sidecarset::api::SidecarSetSpec;
use crate::sidecarset::canonical::sorted_json;
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
fn merge(target: &mut Value, patch: &Value) {
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

/// The text of a value with patches merged into it. What they leave alone stays as it is written: numbers may have more digits than are
/// read of them, and none may become longer.
pub fn merged_text(target: &str, patches: &[&Value]) -> String {
    let mut part = Part::Written(target.to_owned());
    for patch in patches {
        part.merge(patch);
    }
    let mut text = String::new();
    part.write(&mut text);
    text
}

/// A part of a value, read as far as patches change it.
enum Part {
    Written(String),
    Members(BTreeMap<String, Self>),
}

impl Part {
    fn merge(&mut self, patch: &Value) {
        let Value::Object(patch) = patch else {
            *self = Self::Written(sorted_json(patch));
            return;
        };
        if let Self::Written(text) = self {
            let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
            let written = members.into_iter().map(|(key, raw)| (key, Self::Written(raw.get().to_owned())));
            *self = Self::Members(written.collect());
        }
        let Self::Members(members) = self else { return };
        for (key, value) in patch {
            if value.is_null() {
                members.remove(key);
            } else {
                members.entry(key.clone()).or_insert_with(|| Self::Members(BTreeMap::new())).merge(value);
            }
        }
    }

    fn write(&self, text: &mut String) {
        let members = match self {
            Self::Written(written) => return text.push_str(written),
            Self::Members(members) => members,
        };
        text.push('{');
        for (index, (key, member)) in members.iter().enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            text.push_str(&quoted(key));
            text.push(':');
            member.write(text);
        }
        text.push('}');
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

    use super::{changes, merge, merged_text};
    use crate::sidecarset::canonical::sorted_json;

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
            assert_eq!(merged_text(&target.to_string(), &[&patch]), sorted_json(&expected), "{target} {patch}");
            assert_eq!(changes(&target, &patch), merged != target, "{target} {patch}");
            let once = merged.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, once, "{target} {patch}");
        }
    }

    #[test]
    fn what_patches_leave_alone_stays_as_it_is_written() {
        let target = r#"{"z":123456789012345678901234567890,"b":{"y":1e9,"x":[1E5, 0.10]},"a\u0062":"\u0061"}"#;
        let patches = [json!({"b": {"w": {"v": 1, "u": null}}}), json!({"b": {"w": {"t": [2]}}, "c": "d"})];
        let expected = r#"{"ab":"\u0061","b":{"w":{"t":[2],"v":1},"x":[1E5, 0.10],"y":1e9},"c":"d","z":123456789012345678901234567890}"#;
        assert_eq!(merged_text(target, &[&patches[0], &patches[1]]), expected);
    }
}
