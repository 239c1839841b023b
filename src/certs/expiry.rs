//! Says well before the time that something ends.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::Resolver;
use super::authority::CLOCK_SKEW;
use super::warnings::Warnings;

/// Everybody renews with a third of the life left; a quarter means that it did not work.
const QUARTER: i32 = 4;

/// Often enough to be seen, seldom enough not to drown the rest.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Remembers what was said when.
pub struct Alarm {
    warnings: Option<Warnings>,
    told: HashMap<&'static str, Timestamp>,
}

impl Alarm {
    /// Without `warnings`, it only logs.
    pub fn new(warnings: Option<Warnings>) -> Self {
        Self { warnings, told: HashMap::new() }
    }

    /// Warns when less than a quarter of the life of a certificate is left, once a day.
    pub async fn check(&mut self, what: &'static str, begin: Timestamp, end: Timestamp, now: Timestamp) {
        let Some(text) = ending(begin + CLOCK_SKEW, end, now) else {
            self.told.remove(what);
            return;
        };
        if self.told.get(what).is_some_and(|told| now.duration_since(*told) < AGAIN_AFTER) {
            return;
        }
        self.told.insert(what, now);
        let text = format!("{what} {text}; it should have been renewed by now");
        tracing::warn!("Ending: {text}");
        if let Some(warnings) = &self.warnings {
            warnings.warn("CertificateEnds", &text).await;
        }
    }

    /// The same, of the certificate that is served.
    pub async fn check_served(&mut self, resolver: &Resolver, now: Timestamp) {
        if let Some(pair) = resolver.current() {
            self.check("the serving certificate", pair.not_before(), pair.not_after(), now).await;
        }
    }
}

/// What is to be said of a life, if anything.
fn ending(begin: Timestamp, end: Timestamp, now: Timestamp) -> Option<String> {
    let left = end.duration_since(now);
    if left >= end.duration_since(begin) / QUARTER {
        return None;
    }
    let word = if left.is_positive() { "ends" } else { "ended" };
    Some(format!("{word} at {end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_called_at_its_end_when_less_than_a_quarter_is_left() {
        let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |hours| begin + SignedDuration::from_hours(hours);
        for (now, expected) in [
            (0, None),
            (75, None),
            (76, Some("ends at 2026-01-05T04:00:00Z")),
            (99, Some("ends at 2026-01-05T04:00:00Z")),
            (100, Some("ended at 2026-01-05T04:00:00Z")),
            (500, Some("ended at 2026-01-05T04:00:00Z")),
        ] {
            assert_eq!(ending(begin, at(100), at(now)).as_deref(), expected, "after {now} hours");
        }
    }
}
