//! The condition `Programmed`: whether the API server calls the webhook for the pods of a set.

use jiff::Timestamp;

use crate::watch::coverage::Coverage;
use engine::sidecarset::api::{Condition, SidecarSetStatus};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::narrowing::Rule;

/// Type of the condition.
pub const PROGRAMMED: &str = "Programmed";

/// The conditions of a set where they have to change; nothing where they are as they should be. Conditions of other types are
/// kept.
pub fn conditions(
    set: &CompiledSet,
    generation: i64,
    coverage: &Coverage,
    stored: Option<&SidecarSetStatus>,
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let stored: &[Condition] = stored.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let (ours, mut others): (Vec<Condition>, Vec<Condition>) =
        stored.iter().cloned().partition(|condition| condition.type_ == PROGRAMMED);
    let rule = match coverage {
        Coverage::Unknown => return None,
        Coverage::Off if ours.is_empty() => return None,
        Coverage::Off => return Some(others),
        Coverage::Known(rule) => rule,
    };
    let mut wanted = condition(rule.covers(&Rule::of([set])), generation);
    let before = ours.first();
    wanted.last_transition_time = match before {
        Some(before) if before.status == wanted.status => before.last_transition_time.clone(),
        _ => now.to_string(),
    };
    if before == Some(&wanted) {
        return None;
    }
    others.push(wanted);
    Some(others)
}

fn condition(covered: bool, generation: i64) -> Condition {
    let (status, reason, message) = if covered {
        ("True", "Covered", "The API server asks Outrider about the pods that the set selects.")
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
        let other = json!({"type": "Other", "status": "True"});
        let stored = status(&json!([other]));
        let none = Coverage::Known(Rule::of([]));
        let pending = conditions(&set, 1, &none, Some(&stored), first).unwrap();
        assert_eq!((pending[0].type_.as_str(), pending[1].status.as_str()), ("Other", "False"));

        let stored = status(&json!(pending));
        assert_eq!(conditions(&set, 1, &none, Some(&stored), later), None);
        let known = Coverage::Known(Rule::of([&set]));
        let covered = conditions(&set, 1, &known, Some(&stored), later).unwrap();
        assert_eq!(
            (covered[1].status.as_str(), covered[1].last_transition_time.as_str()),
            ("True", "2026-01-01T00:01:00Z")
        );

        let stored = status(&json!(covered));
        let again = conditions(&set, 2, &known, Some(&stored), first).unwrap();
        assert_eq!(
            (again[1].observed_generation, again[1].last_transition_time.as_str()),
            (Some(2), "2026-01-01T00:01:00Z")
        );
    }

    #[test]
    fn without_narrowing_it_goes_and_while_nothing_is_known_it_stays() {
        let stored = status(&json!([{"type": "Programmed", "status": "True"}]));
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(conditions(&set(), 1, &Coverage::Off, Some(&stored), now), Some(vec![]));
        assert_eq!(conditions(&set(), 1, &Coverage::Off, None, now), None);
        assert_eq!(conditions(&set(), 1, &Coverage::Unknown, Some(&stored), now), None);
        let wide = conditions(&set(), 1, &Coverage::Known(Rule::Wide), None, now).unwrap();
        assert_eq!(wide[0].status, "True");
    }
}
