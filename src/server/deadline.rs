//! The deadline that the API server announces, and nothing else does: `?timeout=10s` in the URL.

use std::time::{Duration, Instant};

use crate::go_duration;

/// Kept back so that the reply is there before the client gives up.
const MARGIN: Duration = Duration::from_millis(200);

/// The API server accepts at most 30 s in a webhook configuration; a client that asks for more gets this.
const LONGEST: Duration = Duration::from_secs(30);

/// How long the server may take for a request with this query string.
///
/// A timeout that cannot be read counts as none: the API server never sends one, and a person at a terminal is better served by
/// an answer.
pub fn budget(query: Option<&str>, default: Duration) -> Duration {
    let announced = query
        .and_then(timeout_parameter)
        .and_then(|text| go_duration::unsigned_duration(text).ok())
        .unwrap_or(default)
        .min(LONGEST);
    within(announced)
}

/// How long the server may take for a request of a client that waits for so long.
pub fn within(announced: Duration) -> Duration {
    // A very short deadline must not be eaten up by the margin.
    announced.saturating_sub(MARGIN.min(announced / 2))
}

/// Until when a review is to be answered.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// The end.
    pub until: Instant,
    /// How long there was from the beginning.
    pub in_all: Duration,
}

fn timeout_parameter(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("timeout="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_leaves_a_margin_and_has_an_upper_bound() {
        let default = Duration::from_secs(10);
        let table = [
            (Some("timeout=10s"), 9_800),
            (Some("dryRun=All&timeout=2s"), 1_800),
            (Some("timeout=100ms"), 50),
            (Some("timeout=1h"), 29_800),
            (Some("timeout=soon"), 9_800),
            (Some(""), 9_800),
            (None, 9_800),
        ];
        for (query, millis) in table {
            assert_eq!(budget(query, default), Duration::from_millis(millis), "{query:?}");
        }
    }
}
