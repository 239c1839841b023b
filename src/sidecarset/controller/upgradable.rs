//! The condition of a pod that says which sets cannot be updated in it, and why; and why it is not evicted for them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controller::conditions::{since, whole_seconds};
use crate::names::UPGRADABLE;
use crate::sidecarset::controller::bar::Bar;

/// Sets that the condition of one pod names.
const NAMED_MAX: usize = 16;
/// Why one set cannot be updated, in characters.
const WHY_MAX: usize = 256;

/// What comes before the reason that a pod is not evicted.
const KEPT: &str = "not evicted: ";
const OUTDATED: &str = "new pods of its workload lack ";
const NOT_REPLACED: &str = "its workload has not replaced a pod since ";

/// Why the pod cannot be updated, and why it is not evicted either. That comes first: the text has an end.
pub fn kept(reason: &str, why: &str) -> String {
    format!("{KEPT}{reason}; {why}")
}

/// The same where no more pods of its workload are evicted for this form. A later leader reads it ([`bar_of`]).
pub fn barred(bar: Bar, hash: &str, why: &str) -> String {
    match bar {
        Bar::Outdated => kept(&format!("{OUTDATED}{hash}"), why),
        Bar::NotReplaced(since) => {
            let since = Timestamp::from_second(since.into()).unwrap_or(Timestamp::UNIX_EPOCH);
            kept(&format!("{NOT_REPLACED}{since}"), why)
        }
    }
}

/// Why no more pods of the pod's workload are evicted for this form, as its condition says.
pub fn bar_of(pod: &Value, set: &str, hash: &str) -> Option<Bar> {
    let said = texts(found(pod)?).remove(set)?;
    let (reason, _) = said.strip_prefix(KEPT)?.split_once(';')?;
    if let Some(of) = reason.strip_prefix(OUTDATED) {
        return (of == hash).then_some(Bar::Outdated);
    }
    let since: Timestamp = reason.strip_prefix(NOT_REPLACED)?.parse().ok()?;
    Some(Bar::NotReplaced(u32::try_from(since.as_second()).ok()?))
}

fn found(pod: &Value) -> Option<&Value> {
    let conditions = pod.get("status").and_then(|status| status.get("conditions")?.as_array());
    conditions.into_iter().flatten().find(|condition| condition.get("type") == Some(&json!(UPGRADABLE)))
}

fn texts(condition: &Value) -> BTreeMap<String, String> {
    let message = condition.get("message").and_then(Value::as_str);
    message.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The pod's condition where it has to change. Its message is JSON: why, by set.
pub fn condition(pod: &Value, set: &str, why: Option<&str>, now: Timestamp) -> Option<Value> {
    let before = found(pod);
    let mut sets = before.map(texts).unwrap_or_default();
    match why {
        Some(why) => {
            let why = admission::bounded::first_chars(why, WHY_MAX).to_owned();
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
    fn why_a_pod_is_not_evicted_is_read_again_by_the_next_leader() {
        for (bar, expected) in [
            (Bar::Outdated, "not evicted: new pods of its workload lack v1:0123456789abcdef; env"),
            (Bar::NotReplaced(60), "not evicted: its workload has not replaced a pod since 1970-01-01T00:01:00Z; env"),
        ] {
            let text = barred(bar, "v1:0123456789abcdef", "env");
            assert_eq!(text, expected);
            let long = barred(bar, "v1:0123456789abcdef", &"x".repeat(WHY_MAX));
            for text in [text, long] {
                let pod = pod(json!([condition(&pod(json!([])), "a", Some(&text), at()).unwrap()]));
                assert_eq!(bar_of(&pod, "a", "v1:0123456789abcdef"), Some(bar));
                assert_eq!(bar_of(&pod, "b", "v1:0123456789abcdef"), None);
                let of_another_form = bar_of(&pod, "a", "v1:0");
                assert_eq!(of_another_form.is_some(), bar != Bar::Outdated, "a workload replaces its pods or not");
            }
        }
        let no_help = pod(json!([condition(&pod(json!([])), "a", Some(&kept("no controller", "env")), at()).unwrap()]));
        assert_eq!(bar_of(&no_help, "a", "v1:0"), None);
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
