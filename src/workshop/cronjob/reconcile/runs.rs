//! Which run is due.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::workshop::cronjob::schedule::Schedule;

/// Missed runs that are still counted; one more and something is wrong with the clock or the object.
const MISSED_MAX: usize = 100;

/// The newest run that was missed, and the first one ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    pub due: Option<Timestamp>,
    pub next: Option<Timestamp>,
}

/// Finds the runs after `anchor` that are no later than the deadline allows; `None` when too many were missed.
///
/// An `@every` schedule counts from `anchor` at every reconcile: counted from now, it would move with each one.
pub fn find(
    schedule: &Schedule,
    zone: &TimeZone,
    anchor: Timestamp,
    deadline_seconds: Option<i64>,
    now: Timestamp,
) -> Option<Runs> {
    let deadline = deadline_seconds.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
    let from = deadline.map_or(anchor, |deadline| deadline.max(anchor));
    let mut time = match schedule.delay() {
        Some(delay) => last_tick(anchor, delay, from),
        None => from.min(now),
    };
    let mut due = None;
    for _ in 0..=MISSED_MAX {
        match schedule.next(time, zone) {
            Some(run) if run <= now => (due, time) = (Some(run), run),
            next => return Some(Runs { due, next }),
        }
    }
    None
}

/// The last of `anchor`, `anchor + delay`, … that is not after `until`.
fn last_tick(anchor: Timestamp, delay: SignedDuration, until: Timestamp) -> Timestamp {
    let elapsed = until.duration_since(anchor).as_secs();
    let whole = elapsed - elapsed.checked_rem(delay.as_secs()).unwrap_or(0);
    anchor.checked_add(SignedDuration::from_secs(whole.max(0))).unwrap_or(anchor)
}
