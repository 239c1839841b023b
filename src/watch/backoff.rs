//! How long to wait before a failed watch is tried again.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use kube::runtime::utils::Backoff;

const FIRST: Duration = Duration::from_millis(200);
/// client-go waits up to 30 s. Pods are decided with what the watch last said, so an API server that is back should be
/// noticed sooner; one try in five seconds a replica is no load.
const LONGEST: Duration = Duration::from_secs(5);
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Doubles from 200 ms to 5 s, each wait up to half as long again by chance, so that replicas do not come back in step.
/// A minute without a failure starts it over.
#[derive(Debug)]
pub struct WatchBackoff {
    base: Duration,
    last: Option<Instant>,
    chance: RandomState,
    turn: u64,
}

impl Default for WatchBackoff {
    fn default() -> Self {
        Self { base: FIRST, last: None, chance: RandomState::new(), turn: 0 }
    }
}

impl WatchBackoff {
    fn wait_after(&mut self, failure: Instant) -> Duration {
        if self.last.is_some_and(|last| failure.saturating_duration_since(last) > FORGIVEN_AFTER) {
            self.base = FIRST;
        }
        self.last = Some(failure);
        self.turn += 1;
        let chance = u32::try_from(self.chance.hash_one(self.turn) % 512).unwrap_or_default();
        let wait = self.base + self.base * chance / 1024;
        self.base = (self.base * 2).min(LONGEST);
        wait
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.wait_after(Instant::now()))
    }
}

impl Backoff for WatchBackoff {
    /// Nothing: kube's watcher reports `Init` before its first request, so a success is no sign of health.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_start_over_after_a_quiet_minute() {
        let mut backoff = WatchBackoff::default();
        let now = Instant::now();
        let waits: Vec<Duration> = (0..20).map(|_| backoff.wait_after(now)).collect();
        assert!(waits.first() < Some(&(FIRST * 2)));
        assert!(waits.last() >= Some(&LONGEST) && waits.iter().all(|wait| *wait <= LONGEST * 3 / 2));
        assert!(backoff.wait_after(now + Duration::from_secs(61)) < FIRST * 2);
    }
}
