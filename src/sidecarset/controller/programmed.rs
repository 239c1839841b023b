//! The condition `Programmed`: whether the API server calls the webhook for the pods of a set.

use jiff::Timestamp;

use crate::controller::conditions::{since, whole_seconds};
use crate::watch::coverage::Coverage;
use engine::sidecarset::api::{Condition, SidecarSetStatus};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::narrowing::NarrowingRule;

/// Type of the condition.
pub const PROGRAMMED: &str = "Programmed";

/// Whether the API server calls Outrider for the pods of the set. `None` if it calls for all pods, or if that is not known.
pub fn covered(set: &CompiledSet, coverage: &Coverage) -> Option<bool> {
    match coverage {
        Coverage::Unknown | Coverage::Off => None,
        Coverage::Known(rule) => Some(rule.covers(&NarrowingRule::of([set]))),
    }
}

/// The condition. `None` if the API server calls Outrider for all pods. While that is not known, the condition stays as it was.
pub fn condition(
    set: &CompiledSet,
    generation: i64,
    coverage: &Coverage,
    stored: Option<&SidecarSetStatus>,
    now: Timestamp,
) -> Option<Condition> {
    let stored = stored.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let before = stored.iter().find(|condition| condition.type_ == PROGRAMMED);
    if *coverage == Coverage::Unknown {
        return before.cloned();
    }
    let mut wanted = statement(covered(set, coverage)?, generation);
    let before = before.map(|before| (before.status.as_str(), before.last_transition_time.clone()));
    wanted.last_transition_time = since(before, &wanted.status, whole_seconds(now).0.to_string());
    Some(wanted)
}

fn statement(covered: bool, generation: i64) -> Condition {
    let (status, reason, message) = if covered {
        ("True", "Covered", "The API server sends the pods that the set selects to Outrider.")
    } else {
        (
            "False",
            "Pending",
            "The webhook configuration does not cover the set yet; pods that are created until then go without it.",
        )
    };
    Condition {
        type_: PROGRAMMED.to_owned(),
        status: status.to_owned(),
        observed_generation: Some(generation),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set() -> CompiledSet {
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "i"}]});
        CompiledSet::compile(&serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap())
            .unwrap()
    }

    fn status(conditions: &Value) -> SidecarSetStatus {
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn it_is_true_once_the_rule_covers_the_set_and_keeps_the_time_of_the_change() {
        let set = set();
        let (first, later) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:01:00Z"));
        let none = Coverage::Known(NarrowingRule::of([]));
        let pending = condition(&set, 1, &none, None, first).unwrap();
        assert_eq!(pending.status, "False");

        let stored = status(&json!([pending]));
        assert_eq!(condition(&set, 1, &none, Some(&stored), later), Some(pending));
        let known = Coverage::Known(NarrowingRule::of([&set]));
        let covered = condition(&set, 1, &known, Some(&stored), later).unwrap();
        assert_eq!((covered.status.as_str(), covered.last_transition_time.as_str()), ("True", "2026-01-01T00:01:00Z"));

        let stored = status(&json!([covered]));
        let again = condition(&set, 2, &known, Some(&stored), first).unwrap();
        assert_eq!((again.observed_generation, again.last_transition_time.as_str()), (Some(2), "2026-01-01T00:01:00Z"));
    }

    #[test]
    fn without_narrowing_it_goes_and_while_nothing_is_known_it_stays() {
        let stored = status(&json!([{"type": "Programmed", "status": "True"}]));
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(condition(&set(), 1, &Coverage::Off, Some(&stored), now), None);
        assert_eq!(condition(&set(), 1, &Coverage::Off, None, now), None);
        let kept = condition(&set(), 1, &Coverage::Unknown, Some(&stored), now);
        assert_eq!(kept.as_ref(), stored.conditions.unwrap().first());
        let wide = condition(&set(), 1, &Coverage::Known(NarrowingRule::Wide), None, now).unwrap();
        assert_eq!(wide.status, "True");
    }
}
