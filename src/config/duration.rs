//! Durations as Go writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::go_duration::unsigned_duration;

/// A duration that is read and written as Go does: `1m30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

impl FromStr for GoDuration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        unsigned_duration(text).map(Self)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(duration) = self;
        let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
        if nanos != 0 {
            return if nanos % 1_000_000 == 0 {
                write!(f, "{}ms", duration.as_millis())
            } else {
                write!(f, "{}ns", duration.as_nanos())
            };
        }
        match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, 0, seconds) => write!(f, "{seconds}s"),
            (0, minutes, seconds) => write!(f, "{minutes}m{seconds}s"),
            (hours, minutes, seconds) => write!(f, "{hours}h{minutes}m{seconds}s"),
        }
    }
}

/// How long the process may take to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopBudget {
    /// From the signal to the end.
    AtMost(Duration),
    /// As long as what runs needs. Written as a negative duration.
    Unlimited,
}

impl FromStr for StopBudget {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix('-') {
            Some(text) => unsigned_duration(text).map(|_| Self::Unlimited),
            None => unsigned_duration(text).map(Self::AtMost),
        }
    }
}

impl fmt::Display for StopBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(duration) => GoDuration(*duration).fmt(f),
            Self::Unlimited => f.write_str("-1s"),
        }
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

as_text!(GoDuration);
as_text!(StopBudget);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::go_duration::HOW_TO_WRITE;

    #[test]
    fn durations_are_written_as_go_writes_them_and_read_back() {
        for (millis, text) in [
            (0, "0s"),
            (500, "500ms"),
            (1_500, "1500ms"),
            (10_000, "10s"),
            (90_000, "1m30s"),
            (36_000_000, "10h0m0s"),
            (3_661_000, "1h1m1s"),
        ] {
            let duration = GoDuration(Duration::from_millis(millis));
            assert_eq!(duration.to_string(), text);
            assert_eq!(text.parse(), Ok(duration));
        }
        assert_eq!(GoDuration(Duration::from_nanos(1_000_001)).to_string(), "1000001ns");
    }

    #[test]
    fn a_negative_budget_is_none() {
        for (text, budget) in [
            ("30s", Ok(StopBudget::AtMost(Duration::from_secs(30)))),
            ("0", Ok(StopBudget::AtMost(Duration::ZERO))),
            ("-1s", Ok(StopBudget::Unlimited)),
            ("-1ns", Ok(StopBudget::Unlimited)),
            ("-", Err(HOW_TO_WRITE)),
            ("--1s", Err(HOW_TO_WRITE)),
            ("30", Err(HOW_TO_WRITE)),
            ("", Err(HOW_TO_WRITE)),
        ] {
            assert_eq!(text.parse(), budget, "{text:?}");
        }
    }
}
