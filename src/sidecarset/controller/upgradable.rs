//! The condition of a pod that says which sets cannot be updated in it, and why.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controller::conditions::{since, whole_seconds};
use crate::names::UPGRADABLE;

/// Sets that the condition of one pod names.
const NAMED_MAX: usize = 16;
/// Why one set cannot be updated, in characters.
const WHY_MAX: usize = 256;

/// The pod's condition where it has to change. Its message is JSON: why, by set.
pub fn condition(pod: &Value, set: &str, why: Option<&str>, now: Timestamp) -> Option<Value> {
    let conditions = pod.get("status").and_then(|status| status.get("conditions")?.as_array());
    let before = conditions.into_iter().flatten().find(|condition| condition.get("type") == Some(&json!(UPGRADABLE)));
    let message = before.and_then(|condition| condition.get("message")?.as_str());
    let mut sets: BTreeMap<String, String> =
        message.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match why {
        Some(why) => {
            let why: String = why.chars().take(WHY_MAX).collect();
            if sets.get(set) == Some(&why) || (sets.len() >= NAMED_MAX && !sets.contains_key(set)) {
                return None;
            }
            sets.insert(set.to_owned(), why);
        }
        None => {
            sets.remove(set)?;
        }
    }
    let (status, reason) = if sets.is_empty() { ("True", "Updatable") } else { ("False", "NewPodOnly") };
    let before = before
        .and_then(|condition| Some((condition.get("status")?.as_str()?, condition.get("lastTransitionTime")?.clone())));
    Some(json!({
        "type": UPGRADABLE, "status": status, "reason": reason,
        "message": if sets.is_empty() { String::new() } else { json!(sets).to_string() },
        "lastTransitionTime": since(before, status, json!(whole_seconds(now))),
    }))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests {
    use super::*;

    fn pod(conditions: Value) -> Value {
        json!({"metadata": {"name": "p", "uid": "u"}, "status": {"conditions": conditions}})
    }

    fn at() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    /// Cases 93 and 94: two sets, of which one cannot be updated.
    #[test]
    fn case_94_the_condition_names_each_set_that_cannot_be_updated_and_is_written_on_change_only() {
        let with = |condition: &Value| pod(json!([{"type": "Ready"}, condition]));
        assert_eq!(condition(&pod(json!([])), "a", None, at()), None);
        let first = condition(&pod(json!([])), "a", Some("env"), at()).unwrap();
        assert_eq!((first["status"].as_str(), first["message"].as_str()), (Some("False"), Some(r#"{"a":"env"}"#)));
        assert_eq!(condition(&with(&first), "a", Some("env"), at()), None);
        let later = "2026-02-01T00:00:00Z".parse().unwrap();
        let both = condition(&with(&first), "b", Some("a volume"), later).unwrap();
        assert_eq!(both["message"], r#"{"a":"env","b":"a volume"}"#);
        assert_eq!(both["lastTransitionTime"], first["lastTransitionTime"]);
        let one = condition(&with(&both), "a", None, later).unwrap();
        assert_eq!(one["message"], r#"{"b":"a volume"}"#);
        let none = condition(&with(&one), "b", None, later).unwrap();
        assert_eq!((none["status"].as_str(), none["message"].as_str()), (Some("True"), Some("")));
    }

    #[test]
    fn a_condition_that_another_client_wrote_is_replaced_and_bounded() {
        let mut forged = json!({"type": UPGRADABLE, "status": "False", "message": "{"});
        assert!(condition(&pod(json!([forged])), "a", Some("env"), at()).is_some());
        let many: BTreeMap<String, String> = (0..20).map(|n| (format!("s{n}"), "x".to_owned())).collect();
        forged["message"] = json!(many).to_string().into();
        assert_eq!(condition(&pod(json!([forged])), "a", Some("env"), at()), None);
    }
}
