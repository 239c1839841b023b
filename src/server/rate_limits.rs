//! The tokens of rate limits: what decisions ask for, and only a clock and a lock can say.
//!
//! The state is that of this process, as the API server's own is that of one API server. Its size is bounded by the limits and by
//! [`BUCKETS`], whatever keys requests have: of a key only a hash is kept, by a secret of this process.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use admission::question::{RateLimit, Token};

/// Limits that are remembered. Beyond that, the one that was not used for longest begins anew: one that was changed is not used
/// any more.
const LIMITS: usize = 256;
/// Buckets of all limits together. Where there is no room, the limit that has most of them loses its oldest.
const BUCKETS: usize = 262_144;

/// The buckets of all limits.
#[derive(Debug, Default)]
pub struct RateLimits {
    state: Mutex<State>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct State {
    limits: HashMap<RateLimit, Limiter>,
    /// Rises with every use of a limit.
    turn: u64,
    buckets: usize,
}

/// The buckets of a limit. A bucket is the time at which it will be full again, which says how many tokens it lacks (the generic
/// cell rate algorithm, a token bucket in one number).
#[derive(Debug, Default)]
struct Limiter {
    buckets: HashMap<u64, Bucket>,
    /// The bucket of each turn, the one that was not used for longest first.
    by_turn: BTreeMap<u64, u64>,
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    full_at: Duration,
    turn: u64,
}

impl RateLimits {
    /// Takes each of these tokens, at a time since some fixed moment. Returns whether there was one, in their order.
    pub fn take(&self, tokens: &[Token], now: Duration) -> Vec<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().map(|token| state.take(&token.limit, self.hasher.hash_one(&token.key), now)).collect()
    }
}

impl State {
    fn take(&mut self, limit: &RateLimit, key: u64, now: Duration) -> bool {
        self.turn += 1;
        if !self.limits.contains_key(limit) {
            self.make_room();
            self.limits.insert(limit.clone(), Limiter::default());
        }
        if self.buckets >= BUCKETS
            && let Some(largest) = self.limits.values_mut().max_by_key(|limiter| limiter.buckets.len())
        {
            largest.forget_oldest();
            self.buckets -= 1;
        }
        let Some(limiter) = self.limits.get_mut(limit) else { return true };
        limiter.turn = self.turn;
        let before = limiter.buckets.len();
        let is_there = limiter.take(limit, (key, self.turn), now);
        self.buckets = self.buckets.saturating_sub(before) + limiter.buckets.len();
        is_there
    }

    /// Forgets the limit that was not used for longest.
    fn make_room(&mut self) {
        if self.limits.len() < LIMITS {
            return;
        }
        let oldest = self.limits.iter().min_by_key(|(_, limiter)| limiter.turn).map(|(limit, _)| limit.clone());
        let gone = oldest.and_then(|oldest| self.limits.remove(&oldest));
        self.buckets = self.buckets.saturating_sub(gone.map_or(0, |gone| gone.buckets.len()));
    }
}

impl Limiter {
    fn take(&mut self, limit: &RateLimit, (key, turn): (u64, u64), now: Duration) -> bool {
        let each = Duration::from_secs(1) / limit.qps.max(1);
        let found = self.buckets.get(&key).copied();
        if let Some(found) = found {
            self.by_turn.remove(&found.turn);
        } else if self.buckets.len() >= usize::try_from(limit.buckets.max(1)).unwrap_or(usize::MAX) {
            self.forget_oldest();
        }
        let full_at = found.map_or(now, |found| found.full_at.max(now));
        let with_this = full_at.saturating_add(each);
        let is_there = with_this.saturating_sub(now) <= each.saturating_mul(limit.burst);
        let full_at = if is_there { with_this } else { full_at };
        self.buckets.insert(key, Bucket { full_at, turn });
        self.by_turn.insert(turn, key);
        is_there
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.by_turn.pop_first() {
            self.buckets.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1000);

    fn limit(qps: u32, burst: u32, buckets: u32) -> RateLimit {
        RateLimit { name: "a/0".to_owned(), qps, burst, buckets }
    }

    fn token(limit: &RateLimit, key: &str) -> Token {
        Token { limit: limit.clone(), key: key.to_owned() }
    }

    /// Whether each key in turn finds a token.
    fn taken(limits: &RateLimits, limit: &RateLimit, keys: &str, now: Duration) -> String {
        let one = |key: char| limits.take(&[token(limit, &key.to_string())], now).remove(0);
        keys.chars().map(|key| if one(key) { '+' } else { '-' }).collect()
    }

    /// 4.5, rows 1, 4, 5 and 9.
    #[test]
    fn a_bucket_has_its_burst_and_gains_its_rate() {
        let (limits, limit) = (RateLimits::default(), limit(1, 3, 4096));
        assert_eq!(taken(&limits, &limit, "AAAA", START), "+++-");
        assert_eq!(taken(&limits, &limit, "B", START), "+");
        assert_eq!(taken(&limits, &limit, "A", START + Duration::from_millis(999)), "-");
        assert_eq!(taken(&limits, &limit, "AA", START + Duration::from_secs(1)), "+-");
        assert_eq!(taken(&limits, &limit, "AAAA", START + Duration::from_secs(60)), "+++-");
    }

    /// 4.5, rows 6 and 7.
    #[test]
    fn the_bucket_that_was_not_used_for_longest_is_forgotten() {
        let (limits, limit) = (RateLimits::default(), limit(1, 3, 2));
        assert_eq!(taken(&limits, &limit, "AABBBABACAB", START), "++++++--+-+");
    }

    /// 4.5, row 10.
    #[test]
    fn every_limit_takes_its_token_also_behind_one_that_has_none() {
        let (limits, one, two) = (RateLimits::default(), limit(1, 1, 1), limit(1, 2, 10));
        let both = [token(&one, ""), token(&two, "ns")];
        assert_eq!(limits.take(&both, START), [true, true]);
        assert_eq!(limits.take(&both, START), [false, true]);
        assert_eq!(limits.take(&both, START), [false, false]);
    }

    #[test]
    fn the_fastest_and_the_slowest_limit_overflow_nothing() {
        let limits = RateLimits::default();
        for limit in [limit(i32::MAX as u32, i32::MAX as u32, 1), limit(1, i32::MAX as u32, 1)] {
            assert_eq!(taken(&limits, &limit, "AA", START), "++");
            assert_eq!(taken(&limits, &limit, "A", Duration::MAX), "+");
        }
    }

    #[test]
    fn however_many_keys_and_limits_there_are_so_many_are_kept() {
        let limits = RateLimits::default();
        let kept = || {
            let state = limits.state.lock().unwrap();
            let buckets = state.limits.values().map(|limiter| limiter.buckets.len()).sum::<usize>();
            assert_eq!(buckets, state.buckets);
            assert!(state.limits.values().all(|limiter| limiter.by_turn.len() == limiter.buckets.len()));
            (state.limits.len(), buckets)
        };
        let wide = limit(1, 1, 200_000);
        for key in 0..BUCKETS {
            limits.take(&[token(&wide, &key.to_string())], START);
        }
        assert_eq!(kept(), (1, 200_000));
        for index in 0..3 {
            let other = RateLimit { name: index.to_string(), ..wide.clone() };
            for key in 0..BUCKETS / 4 {
                limits.take(&[token(&other, &key.to_string())], START);
            }
        }
        let (_, buckets) = kept();
        assert!(buckets <= BUCKETS, "{buckets}");
        // A further limit is not without memory because others hold all buckets.
        let small = RateLimit { name: "small".to_owned(), ..limit(1, 1, 2) };
        assert_eq!(taken(&limits, &small, "ABAB", START), "++--");
        for index in 0..2 * LIMITS {
            limits.take(&[token(&RateLimit { name: index.to_string(), ..limit(1, 1, 1) }, "")], START);
        }
        assert_eq!(kept().0, LIMITS);
    }
}
