//! Schedules: a line with a time zone, a line with seconds since 1970, and a schedule.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::process::schedule::{Schedule, expansion, is_too_often, zone};

/// Checks that times of a schedule go forward, and that a schedule which never fires has none.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(3, '\n');
    let zone = zone(lines.next()).unwrap_or(TimeZone::UTC);
    let seconds = lines.next().and_then(|line| line.parse().ok()).unwrap_or(1_700_000_000);
    let text = lines.next().unwrap_or_default();
    expansion(text);
    is_too_often(text);
    let Ok(schedule) = Schedule::parse(text) else { return };
    let Ok(mut at) = Timestamp::from_second(seconds) else { return };
    for _ in 0..4 {
        let Some(next) = schedule.next(at, &zone) else { break };
        assert!(next > at, "{text:?}: {next} is not after {at}");
        assert_eq!(next.subsec_nanosecond(), 0, "{text:?}");
        assert!(!schedule.never_fires(), "{text:?} fires at {next}");
        if schedule.delay().is_none() {
            assert_eq!(next.to_zoned(zone.clone()).second(), 0, "{text:?}: {next}");
            // No time in between is left out.
            if let Ok(earlier) = next.checked_sub(1.second())
                && earlier > at
            {
                assert_eq!(schedule.next(earlier, &zone), Some(next), "{text:?}");
            }
        }
        at = next;
    }
}
