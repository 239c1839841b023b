//! Conditions of a status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Type of the condition.
    pub type_: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

/// As it is written: with a fraction it would differ from what is read back.
pub fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// When a condition became what it is: as `before`, which is its status and that time, unless its status is another.
pub fn since<T>(before: Option<(&str, T)>, status: &str, now: T) -> T {
    before.filter(|(old, _)| *old == status).map_or(now, |(_, time)| time)
}

impl Statement {
    /// The condition. The time stays as it was in `old` unless the status of this type changed.
    pub fn condition(self, old: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
        let status = if self.holds { "True" } else { "False" };
        let before = old.iter().find(|condition| condition.type_ == self.type_);
        let before = before.map(|before| (before.status.as_str(), before.last_transition_time.clone()));
        Condition {
            type_: self.type_.to_owned(),
            status: status.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message,
            last_transition_time: since(before, status, whole_seconds(now)),
            observed_generation: generation,
        }
    }

    /// Whether the old conditions do not say this already, for other reasons than the generation.
    pub fn is_news(&self, old: &[Condition]) -> bool {
        !old.iter().any(|condition| {
            condition.type_ == self.type_ && condition.reason == self.reason && condition.message == self.message
        })
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn statement(holds: bool, reason: &'static str) -> Statement {
        Statement { type_: "Ready", holds, reason, message: "m".to_owned() }
    }

    #[test]
    fn the_time_is_that_of_the_last_change_of_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = statement(false, "Waiting").condition(&[], Some(1), at(10) + jiff::SignedDuration::from_millis(5));
        assert_eq!((first.status.as_str(), first.last_transition_time.0), ("False", at(10)));
        let second = statement(false, "Failed").condition(&[first], Some(2), at(20));
        assert_eq!((second.last_transition_time.0, second.observed_generation), (at(10), Some(2)));
        let third = statement(true, "Done").condition(&[second], Some(2), at(30));
        assert_eq!((third.status.as_str(), third.last_transition_time.0), ("True", at(30)));
        assert!(
            !statement(true, "Done").is_news(slice::from_ref(&third)) && statement(true, "Other").is_news(&[third])
        );
    }
}
