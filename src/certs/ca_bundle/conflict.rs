//! Detects another client that keeps writing the same caBundle, and limits how often it is answered. Pure: the time is an argument.

use std::time::{Duration, Instant};

use super::object::Trust;

/// So often another may have the last word before we call it a contest: once is an upgrade that went back and forth.
const TOLERATED_LOSSES: u32 = 3;

/// We go on answering, so that an end of the contest is an end in order.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// After this long without a loss the contest is over.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// The state of what this process wrote into one object.
#[derive(Debug, Default)]
pub struct BundleConflict {
    written: Option<Trust>,
    losses: u32,
    last_loss: Option<Instant>,
}

impl BundleConflict {
    /// Takes note of a look. True if what we wrote has been replaced since.
    pub fn observe(&mut self, found: &Trust, now: Instant) -> bool {
        if self.last_loss.is_some_and(|lost| now.saturating_duration_since(lost) > FORGOTTEN_AFTER) {
            *self = Self { written: self.written.take(), ..Self::default() };
        }
        let lost = self.written.as_ref().is_some_and(|written| written != found);
        if lost {
            self.written = None;
            self.losses += 1;
            self.last_loss = Some(now);
        }
        lost
    }

    /// We wrote, and this is what is there.
    pub fn written(&mut self, trust: &Trust) {
        self.written = Some(trust.clone());
    }

    /// How long to wait after the last loss, once it is a contest. `check` is the pause without one.
    pub fn pause(&self, check: Duration) -> Option<Duration> {
        let excess = self.losses.checked_sub(TOLERATED_LOSSES)?;
        Some(check.saturating_mul(2_u32.saturating_pow(excess + 1)).min(LONGEST_PAUSE))
    }

    /// Whether it is time to answer.
    pub fn may_write(&self, check: Duration, now: Instant) -> bool {
        let (Some(pause), Some(lost)) = (self.pause(check), self.last_loss) else { return true };
        now.saturating_duration_since(lost) >= pause
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const CHECK: Duration = Duration::from_secs(15);

    /// Writes and loses so many times in a row, one check apart; the time is that of the last loss.
    fn lost(times: u32) -> (BundleConflict, Instant) {
        let ours = Trust { entries: vec![vec![]], retiring: BTreeMap::new() };
        let theirs = Trust { entries: vec![], ..ours.clone() };
        let (mut conflict, mut now) = (BundleConflict::default(), Instant::now());
        for _ in 0..times {
            conflict.written(&ours);
            assert!(!conflict.observe(&ours, now));
            now += CHECK;
            assert!(conflict.observe(&theirs, now));
            assert!(!conflict.observe(&theirs, now), "one loss counts once");
        }
        (conflict, now)
    }

    #[test]
    fn answers_get_seldom_but_do_not_end() {
        for (losses, pause) in [(0, None), (2, None), (3, Some(30)), (4, Some(60)), (7, Some(300)), (80, Some(300))] {
            let (conflict, now) = lost(losses);
            let pause = pause.map(Duration::from_secs);
            assert_eq!(conflict.pause(CHECK), pause, "after {losses}");
            assert_eq!(conflict.may_write(CHECK, now), pause.is_none());
            assert!(conflict.may_write(CHECK, now + pause.unwrap_or_default()));
        }
    }

    #[test]
    fn a_contest_is_forgotten_when_nothing_was_lost_for_long() {
        let (mut conflict, now) = lost(5);
        let ours = Trust { entries: vec![vec![]], retiring: BTreeMap::new() };
        conflict.written(&ours);
        conflict.observe(&ours, now + FORGOTTEN_AFTER + CHECK);
        assert_eq!(conflict.pause(CHECK), None);
    }
}
