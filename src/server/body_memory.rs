//! Memory for the bodies of requests and replies, and who gives way when none is left.
//!
//! A body whose client sends no more, and a reply that its client does not read, take memory for as long as the client likes. So when
//! none is left, the connection whose client has been waited for longest is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use admission::Unserved;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::connections::{Activity, BUSY};

/// Memory is accounted for in steps of this many bytes. Every body that does not come in one piece is accounted for: HTTP/2 has
/// hundreds of them on each connection, and what is left out here is multiplied by that.
pub const STEP: usize = 4 * 1024;

/// Room that is made beyond what has arrived of a body.
pub const AHEAD: usize = 16 * 1024;

/// A body of at most so many bytes is small: reviews of usual size are.
const SMALL: usize = 64 * 1024;

/// One of so many parts of the memory is for small bodies alone.
const PART_FOR_SMALL: usize = 4;

/// How long a connection that was closed may take to give its memory back, and how often it is looked for.
const GIVEN_BACK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(5);

/// Memory for all bodies of the process.
#[derive(Debug)]
pub struct BodyMemory {
    steps: Arc<Semaphore>,
    for_small: usize,
    awaited: Arc<Mutex<AwaitedClients>>,
}

/// The clients that are waited for, the one that has been for longest first.
#[derive(Debug, Default)]
struct AwaitedClients {
    next: u64,
    by_number: BTreeMap<u64, (Instant, Arc<Activity>)>,
}

/// A client that is to send the rest of a body, or to read a reply, while this is there.
#[derive(Debug)]
pub struct AwaitedClient {
    number: u64,
    all: Arc<Mutex<AwaitedClients>>,
}

/// A reply that is being written.
struct Charged {
    bytes: Vec<u8>,
    _memory: Option<OwnedSemaphorePermit>,
    _awaited: Option<AwaitedClient>,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyMemory {
    /// Room for this many bytes.
    pub fn new(bytes: usize) -> Self {
        let steps = (bytes / STEP).clamp(1, Semaphore::MAX_PERMITS);
        Self { steps: Arc::new(Semaphore::new(steps)), for_small: steps / PART_FOR_SMALL, awaited: Arc::default() }
    }

    /// Begins to wait for a client.
    pub fn awaits(&self, client: &Arc<Activity>) -> AwaitedClient {
        let mut all = lock(&self.awaited);
        let number = all.next;
        all.next += 1;
        all.by_number.insert(number, (Instant::now(), Arc::clone(client)));
        AwaitedClient { number, all: Arc::clone(&self.awaited) }
    }

    /// Takes so many bytes, whoever is waited for.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when there are not so many.
    pub fn take(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Unserved> {
        let steps = u32::try_from(bytes.div_ceil(STEP)).unwrap_or(u32::MAX);
        if steps == 0 {
            return Ok(None);
        }
        Arc::clone(&self.steps).try_acquire_many_owned(steps).map(Some).map_err(|_| Unserved::Overloaded)
    }

    /// Takes so many bytes, of a body that has `in_all`. Where they are not there, connections whose clients have been waited for
    /// for too long are closed, the oldest first, but not that of `own`.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when no such connection is left.
    pub async fn take_or_close(
        &self,
        bytes: usize,
        in_all: usize,
        own: Option<&AwaitedClient>,
    ) -> Result<Option<OwnedSemaphorePermit>, Unserved> {
        loop {
            self.make_room(bytes, in_all, own).await?;
            // Another body may have been quicker.
            if let Ok(taken) = self.take(bytes) {
                return Ok(taken);
            }
        }
    }

    /// The bytes of a reply, which hold their share of the memory until the connection has written the last of them: the client reads
    /// them when it likes. The body of a response would not do, as hyper drops it when it has taken the bytes.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when there is no memory, and no connection to close for it.
    pub async fn reply(&self, bytes: Vec<u8>, client: Option<&Arc<Activity>>) -> Result<Bytes, Unserved> {
        // Less than what a connection takes anyway.
        if bytes.len() <= AHEAD {
            return Ok(bytes.into());
        }
        let memory = self.take_or_close(bytes.len(), bytes.len(), None).await?;
        let awaited = client.map(|client| self.awaits(client));
        Ok(Bytes::from_owner(Charged { bytes, _memory: memory, _awaited: awaited }))
    }

    /// Has so many bytes free, and takes none: an announcement takes no memory.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when no such connection is left.
    pub async fn make_room(&self, bytes: usize, in_all: usize, own: Option<&AwaitedClient>) -> Result<(), Unserved> {
        while !self.has_room(bytes, in_all) {
            if !self.close_oldest(own, Instant::now()) {
                return Err(Unserved::Overloaded);
            }
            let closed = Instant::now();
            while !self.has_room(bytes, in_all) && closed.elapsed() < GIVEN_BACK {
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    fn has_room(&self, bytes: usize, in_all: usize) -> bool {
        let kept = if in_all > SMALL { self.for_small } else { 0 };
        bytes.div_ceil(STEP).saturating_add(kept) <= self.steps.available_permits()
    }

    /// Whether there was a client that had been waited for for longer than [`BUSY`], and for longer than `own`.
    fn close_oldest(&self, own: Option<&AwaitedClient>, now: Instant) -> bool {
        let mut all = lock(&self.awaited);
        let Some(oldest) = all.by_number.first_entry() else { return false };
        let (since, _) = oldest.get();
        if own.is_some_and(|own| own.number == *oldest.key()) || now.saturating_duration_since(*since) < BUSY {
            return false;
        }
        let (_, client) = oldest.remove();
        client.give_up();
        true
    }
}

impl Drop for AwaitedClient {
    fn drop(&mut self) {
        lock(&self.all).by_number.remove(&self.number);
    }
}

fn lock(all: &Mutex<AwaitedClients>) -> MutexGuard<'_, AwaitedClients> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connections::ConnectionLimiter;

    const MIB: usize = 1 << 20;

    /// Clients that are waited for, each of a connection of its own, which holds a MiB until it is closed.
    async fn waited_for(memory: &BodyMemory, limiter: &Arc<ConnectionLimiter>, count: u64) {
        for number in 1..=count {
            let place = limiter.seat(number).await;
            let awaited = memory.awaits(&place.activity);
            let taken = memory.take(MIB).unwrap();
            tokio::spawn(async move {
                place.activity.given_up().await;
                drop((awaited, taken));
            });
        }
    }

    #[tokio::test]
    async fn clients_that_have_been_waited_for_longest_give_way_and_those_of_this_moment_do_not() {
        let (memory, limiter) = (BodyMemory::new(4 * MIB), ConnectionLimiter::new(9));
        waited_for(&memory, &limiter, 4).await;
        assert!(matches!(memory.take_or_close(1, 1, None).await, Err(Unserved::Overloaded)), "they are about to send");
        let seconds_later = Instant::now() + 2 * BUSY;
        assert!(memory.close_oldest(None, seconds_later));
        let left: Vec<u64> = lock(&memory.awaited).by_number.keys().copied().collect();
        assert_eq!(left, [1, 2, 3]);
        sleep(LOOK).await;
        // The oldest does not give way to itself, nor does a younger one to it.
        let own = AwaitedClient { number: 1, all: Arc::clone(&memory.awaited) };
        assert!(!memory.close_oldest(Some(&own), seconds_later));
        drop(own);
        assert!(memory.close_oldest(None, seconds_later));
    }

    #[tokio::test]
    async fn a_part_of_the_memory_is_for_small_bodies() {
        let memory = BodyMemory::new(4 * MIB);
        let large = memory.take_or_close(3 * MIB, 3 * MIB, None).await.unwrap();
        assert!(memory.take_or_close(STEP, 2 * MIB, None).await.is_err());
        assert!(memory.take_or_close(STEP, SMALL, None).await.is_ok());
        drop(large);
        assert!(memory.take_or_close(STEP, 2 * MIB, None).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_larger_than_the_memory_closes_nobody_that_is_busy_and_ends() {
        let (memory, limiter) = (BodyMemory::new(MIB), ConnectionLimiter::new(9));
        waited_for(&memory, &limiter, 1).await;
        assert!(memory.take_or_close(9 * MIB, 9 * MIB, None).await.is_err());
    }
}
