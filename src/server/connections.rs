//! The open connections of a listener, and which of them goes when there is no place for another.
//!
//! Who opens connections and leaves them idle, or sends a byte a second, must not keep out those who ask something. So a new
//! connection always gets a place: that of the oldest on which nothing was ever asked; if there is none, that of the one on which
//! nothing happened for the longest time. A client that knows what it wants has asked long before its turn comes.
//!
//! No library: a limit of tower, or a semaphore before `accept`, makes a new connection wait, so that idle clients could keep all
//! others out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// A request that is younger is about to be answered. One that is older waits for its own body: deciding takes microseconds.
const BUSY: Duration = Duration::from_secs(1);

/// How often a place is looked for while all are busy.
const LOOK: Duration = Duration::from_millis(100);

/// Everybody who has a place.
pub struct ConnectionLimiter {
    start: Instant,
    places: Arc<Semaphore>,
    seated: Mutex<BTreeMap<u64, Arc<Activity>>>,
}

/// What happens on one connection.
#[derive(Debug)]
pub struct Activity {
    /// Counts connections, from 1.
    pub number: u64,
    start: Instant,
    begun: AtomicU64,
    ended: AtomicU64,
    /// When a request last began or ended, in microseconds after `start`.
    latest: AtomicU64,
    first: Notify,
    given_up: Notify,
}

/// A slot; its holder may use the connection.
pub struct ConnectionSlot {
    /// The state of the connection that the others see.
    pub activity: Arc<Activity>,
    limiter: Arc<ConnectionLimiter>,
    _permit: OwnedSemaphorePermit,
}

/// A request; it ends when this is dropped, also when the client takes it back.
pub struct Asking<'a>(&'a Activity);

impl ConnectionLimiter {
    /// No connections, and slots for so many.
    pub fn new(places: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Self { start: Instant::now(), places, seated: Mutex::default() })
    }

    /// Waits for a place, which takes no longer than [`BUSY`] unless all connections are in use.
    pub async fn seat(self: &Arc<Self>, number: u64) -> ConnectionSlot {
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                break permit;
            }
            self.give_up_one(Instant::now());
            if let Ok(Ok(permit)) = timeout(LOOK, Arc::clone(&self.places).acquire_owned()).await {
                break permit;
            }
        };
        let activity = Arc::new(Activity::new(number, self.start));
        self.seated().insert(number, Arc::clone(&activity));
        ConnectionSlot { activity, limiter: Arc::clone(self), _permit: permit }
    }

    fn seated(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Activity>>> {
        self.seated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up_one(&self, now: Instant) {
        let mut seated = self.seated();
        let idlest = seated.values().filter(|activity| !activity.is_busy(now)).min_by_key(|activity| activity.rank());
        let Some(idlest) = idlest.cloned() else { return };
        seated.remove(&idlest.number);
        idlest.give_up();
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limiter.seated().remove(&self.activity.number);
    }
}

impl Activity {
    fn new(number: u64, start: Instant) -> Self {
        Self {
            number,
            start,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            first: Notify::new(),
            given_up: Notify::new(),
        }
    }

    /// A request begins.
    pub fn ask(&self) -> Asking<'_> {
        self.touch(Instant::now());
        if self.begun.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first.notify_one();
        }
        Asking(self)
    }

    fn touch(&self, now: Instant) {
        let micros = u64::try_from(now.saturating_duration_since(self.start).as_micros()).unwrap_or(u64::MAX);
        self.latest.store(micros, Ordering::Relaxed);
    }

    /// How many requests have begun, and how many of them have ended.
    pub fn requests(&self) -> (u64, u64) {
        (self.begun.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed))
    }

    /// Waits for the first request.
    pub async fn first_request(&self) {
        self.first.notified().await;
    }

    /// Has the connection closed, as others need what it takes.
    pub fn give_up(&self) {
        self.given_up.notify_one();
    }

    /// Waits until the connection is to be closed for another.
    pub async fn given_up(&self) {
        self.given_up.notified().await;
    }

    fn is_busy(&self, now: Instant) -> bool {
        let (begun, ended) = self.requests();
        let latest = self.start + Duration::from_micros(self.latest.load(Ordering::Relaxed));
        begun != ended && now.saturating_duration_since(latest) < BUSY
    }

    /// The lowest goes first.
    fn rank(&self) -> (bool, u64, u64) {
        let (begun, _) = self.requests();
        (begun > 0, self.latest.load(Ordering::Relaxed), self.number)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.touch(Instant::now());
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(limiter: &ConnectionLimiter, seconds: u64) -> Instant {
        limiter.start + Duration::from_secs(seconds)
    }

    /// Who is still there after one was given up.
    fn left(limiter: &ConnectionLimiter, now: Instant) -> Vec<u64> {
        limiter.give_up_one(now);
        limiter.seated().keys().copied().collect()
    }

    #[tokio::test]
    async fn who_never_asked_goes_first_then_who_was_silent_longest_and_who_is_busy_stays() {
        let limiter = ConnectionLimiter::new(9);
        let mut places = Vec::new();
        for number in 1..=5 {
            places.push(limiter.seat(number).await);
        }
        let busy = places[0].activity.ask();
        for (place, second) in [(1, 30), (2, 20)] {
            drop(places[place].activity.ask());
            places[place].activity.touch(after(&limiter, second));
        }
        busy.0.touch(after(&limiter, 40));
        let now = after(&limiter, 40);
        assert_eq!(left(&limiter, now), [1, 2, 3, 5], "the older of those that never asked");
        assert_eq!(left(&limiter, now), [1, 2, 3]);
        assert_eq!(left(&limiter, now), [1, 2], "the one that is silent for longer");
        assert_eq!(left(&limiter, now), [1]);
        assert_eq!(left(&limiter, now), [1], "it is about to be answered");
        assert_eq!(left(&limiter, after(&limiter, 42)), [0; 0], "its body never comes");
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_it_is_dropped() {
        let limiter = ConnectionLimiter::new(1);
        drop(limiter.seat(1).await);
        let second = limiter.seat(2).await;
        assert_eq!(limiter.seated().len(), 1);
        let newcomer = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.seat(3).await.activity.number }
        });
        second.activity.given_up().await;
        drop(second);
        assert_eq!(newcomer.await.unwrap(), 3);
    }
}
