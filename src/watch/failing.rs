//! Since when a watch fails, and why.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use kube::runtime::watcher;

use crate::watch::last_seen::LastSeen;
use crate::watch::report::status_code;

/// Whether a watch fails. Clones share what they know.
#[derive(Debug, Clone, Default)]
pub struct Failing {
    seen: Arc<ArcSwapOption<SeenErrors>>,
}

#[derive(Debug, Clone)]
struct SeenErrors {
    since: Instant,
    last: Instant,
    why: String,
}

impl Failing {
    /// Takes note of an error. That a watch is too old after a long interruption is none: the next list puts it right.
    pub fn note(&self, error: &watcher::Error, last_seen: &LastSeen) {
        if status_code(error) != Some(410) {
            self.note_at(error.to_string(), last_seen, Instant::now());
        }
    }

    /// For how long the watch has failed, and why it last did. A watch that works sends nothing while nothing changes, but
    /// its requests are answered.
    pub fn since(&self, last_seen: &LastSeen) -> Option<(Duration, String)> {
        self.since_at(last_seen, Instant::now())
    }

    fn note_at(&self, why: String, last_seen: &LastSeen, now: Instant) {
        let before = self.seen.load_full().filter(|seen| !was_seen(last_seen, seen.last, now));
        let since = before.map_or(now, |seen| seen.since);
        self.seen.store(Some(Arc::new(SeenErrors { since, last: now, why })));
    }

    fn since_at(&self, last_seen: &LastSeen, now: Instant) -> Option<(Duration, String)> {
        let seen = self.seen.load_full().filter(|seen| !was_seen(last_seen, seen.last, now))?;
        Some((now.saturating_duration_since(seen.since), seen.why.clone()))
    }
}

fn was_seen(last_seen: &LastSeen, after: Instant, now: Instant) -> bool {
    last_seen.age_at(now).is_some_and(|age| age < now.saturating_duration_since(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_fails_until_it_is_heard() {
        let (failing, last_seen, start) = (Failing::default(), LastSeen::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let told = |seconds| failing.since_at(&last_seen, at(seconds)).map(|(since, why)| (since.as_secs(), why));
        last_seen.touch_at(at(1));
        assert_eq!(told(2), None);
        failing.note_at("one".to_owned(), &last_seen, at(5));
        failing.note_at("Unauthorized".to_owned(), &last_seen, at(65));
        assert_eq!(told(70), Some((65, "Unauthorized".to_owned())));
        last_seen.touch_at(at(71));
        assert_eq!(told(72), None);
        failing.note_at("again".to_owned(), &last_seen, at(80));
        assert_eq!(told(81), Some((1, "again".to_owned())));
    }
}
