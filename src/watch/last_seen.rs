//! When the API server last answered on a watch.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Frame, SizeHint};

/// The time of the last bytes that came over a watch.
///
/// The API server sends a bookmark about once a minute, so a healthy watch is never silent for much longer.
#[derive(Debug, Clone)]
pub struct LastSeen {
    start: Instant,
    /// Milliseconds after `start`, plus one; zero for never.
    last: Arc<AtomicU64>,
}

impl Default for LastSeen {
    fn default() -> Self {
        Self { start: Instant::now(), last: Arc::default() }
    }
}

impl LastSeen {
    /// Notes that bytes came just now.
    pub fn touch(&self) {
        self.touch_at(Instant::now());
    }

    /// How long ago bytes came; `None` before the first.
    pub fn age(&self) -> Option<Duration> {
        self.age_at(Instant::now())
    }

    pub(super) fn touch_at(&self, now: Instant) {
        let elapsed = u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX);
        self.last.store(elapsed.saturating_add(1), Ordering::Relaxed);
    }

    pub(super) fn age_at(&self, now: Instant) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_duration_since(self.start).saturating_sub(Duration::from_millis(last)))
    }
}

/// A response body that notes each of its frames. Errors of the API server do not count as contact.
pub struct ObservedBody<B> {
    body: B,
    last_seen: Option<LastSeen>,
}

impl<B> ObservedBody<B> {
    /// Wraps the body of a response.
    pub fn response(response: http::Response<B>, last_seen: &LastSeen) -> http::Response<Self> {
        let last_seen = response.status().is_success().then(|| last_seen.clone());
        if let Some(last_seen) = &last_seen {
            last_seen.touch();
        }
        response.map(|body| Self { body, last_seen })
    }
}

impl<B: Body + Unpin> Body for ObservedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let (Poll::Ready(Some(Ok(_))), Some(last_seen)) = (&frame, &self.last_seen) {
            last_seen.touch();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_counts_from_the_last_touch() {
        let last_seen = LastSeen::default();
        let after = |seconds| last_seen.start + Duration::from_secs(seconds);
        assert_eq!(last_seen.age_at(after(5)), None);
        last_seen.touch_at(after(5));
        assert_eq!(last_seen.age_at(after(8)), Some(Duration::from_secs(3)));
    }
}
