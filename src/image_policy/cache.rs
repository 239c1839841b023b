//! Verdicts that count for a while, as many as the API server's own plugin keeps. A question is known by its digest, so that what is
//! kept does not grow with what a client sends.
//!
//! No library: lru knows no ages, and each verdict has a life of its own. moka has both, and brings several packages for a thousand entries.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use admission::question::ImageVerdict;

/// Verdicts that are kept: the one that was not used for longest goes.
const KEPT: usize = 1024;

/// What a question is known by.
pub type Digest = [u8; 32];

/// The verdicts.
#[derive(Debug, Default)]
pub struct Cache(Mutex<ByUse>);

#[derive(Debug, Default)]
struct ByUse {
    known: HashMap<Digest, Kept>,
    by_turn: BTreeMap<u64, Digest>,
    turn: u64,
}

#[derive(Debug)]
struct Kept {
    verdict: Arc<ImageVerdict>,
    until: Instant,
    turn: u64,
}

impl Cache {
    /// The verdict, if it still counts.
    pub fn get(&self, of: &Digest, now: Instant) -> Option<Arc<ImageVerdict>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { verdict, until, turn } = all.take(of)?;
        if until <= now {
            return None;
        }
        all.put(*of, Arc::clone(&verdict), until);
        debug_assert!(all.turn > turn);
        Some(verdict)
    }

    /// Keeps a verdict for so long.
    pub fn keep(&self, of: Digest, verdict: &Arc<ImageVerdict>, life: Duration, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.take(&of);
        while all.known.len() >= KEPT {
            let Some((_, oldest)) = all.by_turn.pop_first() else { break };
            all.known.remove(&oldest);
        }
        all.put(of, Arc::clone(verdict), now + life);
    }
}

impl ByUse {
    fn take(&mut self, of: &Digest) -> Option<Kept> {
        let kept = self.known.remove(of)?;
        self.by_turn.remove(&kept.turn);
        Some(kept)
    }

    fn put(&mut self, of: Digest, verdict: Arc<ImageVerdict>, until: Instant) {
        self.turn += 1;
        self.by_turn.insert(self.turn, of);
        self.known.insert(of, Kept { verdict, until, turn: self.turn });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> Digest {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[test]
    fn a_verdict_counts_for_its_time_and_the_least_used_goes_first() {
        let (cache, now) = (Cache::default(), Instant::now());
        let (verdict, life) = (Arc::new(ImageVerdict::default()), Duration::from_secs(30));
        for number in 0..KEPT {
            cache.keep(digest(number), &verdict, life, now);
        }
        assert!(cache.get(&digest(0), now).is_some(), "this makes it the last that was used");
        for number in KEPT..KEPT + 100 {
            cache.keep(digest(number), &verdict, life, now);
        }
        let all = cache.0.lock().unwrap();
        assert_eq!((all.known.len(), all.by_turn.len()), (KEPT, KEPT));
        drop(all);
        let found = |number, later| cache.get(&digest(number), now + later).is_some();
        assert!(found(0, Duration::ZERO) && !found(1, Duration::ZERO) && found(KEPT + 99, Duration::ZERO));
        assert!(!found(0, life) && !found(0, Duration::ZERO), "what is over is forgotten");
    }
}
