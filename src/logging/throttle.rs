//! What a loop that tries again and again would write again and again.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The end of the log shows what is wrong now.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// What was logged last, and when.
#[derive(Debug, Default)]
pub struct LogThrottle(Option<(String, Instant)>);

impl LogThrottle {
    /// Whether it is to be logged: it is not what was logged last, or that was a minute ago.
    pub fn is_news(&mut self, what: &impl Display) -> bool {
        self.is_news_at(what, Instant::now())
    }

    /// Takes note that it is over: if it comes again, that is news.
    pub fn over(&mut self) {
        self.0 = None;
    }

    fn is_news_at(&mut self, what: &impl Display, now: Instant) -> bool {
        let what = what.to_string();
        let is_told =
            |(told, at): &(String, Instant)| *told == what && now.saturating_duration_since(*at) < TOLD_AGAIN_AFTER;
        if self.0.as_ref().is_some_and(is_told) {
            return false;
        }
        self.0 = Some((what, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_a_minute_and_anything_else_at_once() {
        let (mut throttle, start) = (LogThrottle::default(), Instant::now());
        let told = [("a", 0), ("a", 1), ("b", 2), ("b", 61), ("b", 62), ("a", 63), ("a", 122)]
            .map(|(what, seconds)| throttle.is_news_at(&what, start + Duration::from_secs(seconds)));
        assert_eq!(told, [true, false, true, false, true, true, false]);
    }

    #[test]
    fn the_same_is_told_at_once_after_it_was_over() {
        let (mut throttle, now) = (LogThrottle::default(), Instant::now());
        assert!(throttle.is_news_at(&"a", now));
        throttle.over();
        assert!(throttle.is_news_at(&"a", now));
    }
}
