//! Memory for the bodies of requests and replies, and who gives way when none is left.
//!
//! A body whose client sends no more, and a reply that its client does not read, take memory for as long as the client likes. So when
//! none is left, the client that has done nothing for longest loses its share: a request is answered at once that there is no room,
//! and a connection whose reply is not read is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use admission::Unserved;
use bytes::Bytes;
use http::Version;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::connections::Activity;

/// Memory is accounted for in steps of this many bytes. Every body that does not come in one piece is accounted for: HTTP/2 has
/// hundreds of them on each connection, and what is left out here is multiplied by that.
pub const STEP: usize = 4 * 1024;

/// Room that is made beyond what has arrived of a body.
pub const AHEAD: usize = 16 * 1024;

/// A body of at most so many bytes is small: reviews of usual size are.
const SMALL: usize = 64 * 1024;

/// One of so many parts of the memory is for small bodies alone.
const PART_FOR_SMALL: usize = 4;

/// A client is stalled if it does not read a reply to its end, or sends less than [`ENOUGH`] of what it has sent, for so long.
const STALLED: Duration = Duration::from_secs(2);

/// One of so many parts of the memory that a body holds: a client that sends less keeps it for little.
const ENOUGH: usize = 16;

/// How long a request or a connection that is ended may take to give its memory back, and how often it is looked for.
const GIVEN_BACK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(5);

/// Memory for all bodies of the process.
#[derive(Debug)]
pub struct BodyMemory {
    steps: Arc<Semaphore>,
    for_small: usize,
    awaited: Arc<Mutex<AwaitedClients>>,
}

/// The clients that are waited for.
#[derive(Debug, Default)]
struct AwaitedClients {
    next: u64,
    by_number: BTreeMap<u64, Awaited>,
}

#[derive(Debug)]
struct Awaited {
    since: Instant,
    what: What,
}

/// What a client is waited for.
#[derive(Debug, Clone)]
enum What {
    /// The rest of a body, which is no longer read after this.
    Body(Arc<Notify>),
    /// That it reads a reply on this connection.
    Reply(Arc<Activity>),
}

impl What {
    fn end(&self) {
        match self {
            Self::Body(end) => end.notify_one(),
            Self::Reply(connection) => connection.give_up(),
        }
    }
}

/// A client is waited for while this is there.
#[derive(Debug)]
pub struct AwaitedClient {
    number: u64,
    what: What,
    all: Arc<Mutex<AwaitedClients>>,
}

impl AwaitedClient {
    /// It has sent enough since it was waited for, and is waited for anew.
    pub fn goes_on(&self) {
        if let Some(awaited) = lock(&self.all).by_number.get_mut(&self.number) {
            awaited.since = Instant::now();
        }
    }

    /// Whether so many bytes are enough for a body that holds so many.
    pub fn is_enough(bytes: usize, held: usize) -> bool {
        bytes >= AHEAD.max(held / ENOUGH)
    }

    /// Waits until another body has got the memory of this one.
    pub async fn ended(&self) {
        match &self.what {
            What::Body(end) => end.notified().await,
            What::Reply(_) => std::future::pending().await,
        }
    }
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

    /// Begins to wait for the rest of a body.
    pub fn awaits_body(&self) -> AwaitedClient {
        self.awaits(What::Body(Arc::default()))
    }

    fn awaits(&self, what: What) -> AwaitedClient {
        let mut all = lock(&self.awaited);
        let number = all.next;
        all.next += 1;
        all.by_number.insert(number, Awaited { since: Instant::now(), what: what.clone() });
        AwaitedClient { number, what, all: Arc::clone(&self.awaited) }
    }

    /// Takes so many bytes, and ends no client for them.
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

    /// Takes so many bytes, of a body that has `in_all`. Where they are not there, stalled clients lose theirs, the most stalled first,
    /// but not `own`.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when no client is stalled.
    pub async fn take_making_room(
        &self,
        bytes: usize,
        in_all: usize,
        own: Option<&AwaitedClient>,
    ) -> Result<Option<OwnedSemaphorePermit>, Unserved> {
        loop {
            self.make_room(bytes, in_all, own).await?;
            // Another body may have been quicker.
            if let Ok(taken) = self.take(bytes) {
                // It was not its client that was waited for.
                if let Some(own) = own {
                    own.goes_on();
                }
                return Ok(taken);
            }
        }
    }

    /// The bytes of a reply, which hold their share of the memory until the connection has written the last of them: the client reads
    /// them when it likes. The body of a response would not do, as hyper drops it when it has taken the bytes.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when there is no memory, and no client is stalled.
    pub async fn reply(
        &self,
        bytes: Vec<u8>,
        connection: Option<&Arc<Activity>>,
        version: Version,
    ) -> Result<Bytes, Unserved> {
        // Less than what a connection takes anyway, where it has one reply at a time.
        if bytes.len() <= AHEAD && version < Version::HTTP_2 {
            return Ok(bytes.into());
        }
        let memory = self.take_making_room(bytes.len(), bytes.len(), None).await?;
        let awaited = connection.map(|connection| self.awaits(What::Reply(Arc::clone(connection))));
        Ok(Bytes::from_owner(Charged { bytes, _memory: memory, _awaited: awaited }))
    }

    /// Has so many bytes free, and takes none: an announcement takes no memory.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when no client is stalled, and at once when `own` is ended: it waits for nothing more, and no other client
    /// is ended for it.
    pub async fn make_room(&self, bytes: usize, in_all: usize, own: Option<&AwaitedClient>) -> Result<(), Unserved> {
        let ended = async {
            match own {
                Some(own) => own.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ended => Err(Unserved::Overloaded),
            made = self.end_stalled_clients(bytes, in_all, own) => made,
        }
    }

    async fn end_stalled_clients(
        &self,
        bytes: usize,
        in_all: usize,
        own: Option<&AwaitedClient>,
    ) -> Result<(), Unserved> {
        while !self.has_room(bytes, in_all) {
            if !self.end_most_stalled(own, Instant::now()) {
                return Err(Unserved::Overloaded);
            }
            let ended = Instant::now();
            while !self.has_room(bytes, in_all) && ended.elapsed() < GIVEN_BACK {
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    fn has_room(&self, bytes: usize, in_all: usize) -> bool {
        let kept = if in_all > SMALL { self.for_small } else { 0 };
        bytes.div_ceil(STEP).saturating_add(kept) <= self.steps.available_permits()
    }

    /// Whether there was a client that is stalled, and for longer than `own`.
    fn end_most_stalled(&self, own: Option<&AwaitedClient>, now: Instant) -> bool {
        let mut all = lock(&self.awaited);
        let longest = all.by_number.iter().min_by_key(|(_, awaited)| awaited.since);
        let Some((&number, awaited)) = longest else { return false };
        if own.is_some_and(|own| own.number == number) || now.saturating_duration_since(awaited.since) < STALLED {
            return false;
        }
        if let Some(awaited) = all.by_number.remove(&number) {
            awaited.what.end();
        }
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

    const MIB: usize = 1 << 20;

    /// Bodies that are waited for, each of which holds a MiB until it is ended.
    fn stalled(memory: &Arc<BodyMemory>, count: usize) {
        for _ in 0..count {
            let (awaited, taken) = (memory.awaits_body(), memory.take(MIB).unwrap());
            tokio::spawn(async move {
                awaited.ended().await;
                drop((awaited, taken));
            });
        }
    }

    fn left(memory: &BodyMemory) -> Vec<u64> {
        lock(&memory.awaited).by_number.keys().copied().collect()
    }

    #[tokio::test]
    async fn who_has_done_nothing_for_longest_gives_way_and_who_goes_on_does_not() {
        let memory = Arc::new(BodyMemory::new(4 * MIB));
        stalled(&memory, 3);
        let own = memory.awaits_body();
        assert!(memory.take_making_room(2 * MIB, 2 * MIB, None).await.is_err(), "they may be about to send");
        let later = Instant::now() + 2 * STALLED;
        lock(&memory.awaited).by_number.get_mut(&1).unwrap().since = later;
        assert!(memory.end_most_stalled(Some(&own), later));
        assert_eq!(left(&memory), [1, 2, 3]);
        assert!(memory.end_most_stalled(Some(&own), later));
        assert_eq!(left(&memory), [1, 3]);
        assert!(!memory.end_most_stalled(Some(&own), later), "it does not give way to itself");
        own.goes_on();
        drop(own);
        sleep(LOOK).await;
        assert!(!memory.end_most_stalled(None, later), "the only one left goes on");
        assert!(memory.take_making_room(2 * MIB, 2 * MIB, None).await.is_ok(), "what they held is there");
    }

    /// Makes a client one that has been stalled for long.
    fn let_stall(memory: &BodyMemory, number: u64) {
        let long_ago = Instant::now().checked_sub(2 * STALLED).unwrap();
        lock(&memory.awaited).by_number.get_mut(&number).unwrap().since = long_ago;
    }

    #[tokio::test]
    async fn who_is_ended_gets_nothing_more_and_ends_nobody() {
        let memory = Arc::new(BodyMemory::new(4 * MIB));
        stalled(&memory, 3);
        let own = memory.awaits_body();
        let_stall(&memory, 3);
        assert!(memory.end_most_stalled(None, Instant::now()), "another client ends it");
        let_stall(&memory, 0);
        assert!(memory.take_making_room(MIB, MIB, Some(&own)).await.is_err());
        assert_eq!(left(&memory), [0, 1, 2]);
        assert!(memory.take_making_room(MIB, MIB, None).await.is_ok(), "another may end who is stalled");
    }

    #[tokio::test]
    async fn who_is_ended_while_it_waits_for_memory_waits_no_longer() {
        let memory = Arc::new(BodyMemory::new(4 * MIB));
        let held = memory.take(4 * MIB).unwrap();
        // Stalled, and it gives nothing back.
        let (_other, own) = (memory.awaits_body(), memory.awaits_body());
        let_stall(&memory, 0);
        let room = memory.make_room(MIB, MIB, Some(&own));
        let end = async {
            sleep(LOOK).await;
            assert_eq!(left(&memory), [1], "it has ended the other, and waits");
            let_stall(&memory, 1);
            assert!(memory.end_most_stalled(None, Instant::now()));
            drop(held);
        };
        let (room, ()) = tokio::join!(room, end);
        assert!(room.is_err(), "there is room by now, and not for this one");
    }

    #[tokio::test]
    async fn a_part_of_the_memory_is_for_small_bodies() {
        let memory = BodyMemory::new(4 * MIB);
        let large = memory.take_making_room(3 * MIB, 3 * MIB, None).await.unwrap();
        assert!(memory.take_making_room(STEP, 2 * MIB, None).await.is_err());
        assert!(memory.take_making_room(STEP, SMALL, None).await.is_ok());
        drop(large);
        assert!(memory.take_making_room(STEP, 2 * MIB, None).await.is_ok());
    }

    #[test]
    fn a_large_body_has_to_come_quicker_than_a_small_one() {
        assert!(AwaitedClient::is_enough(AHEAD, AHEAD) && !AwaitedClient::is_enough(AHEAD - 1, AHEAD));
        assert!(AwaitedClient::is_enough(MIB / 16, MIB) && !AwaitedClient::is_enough(AHEAD, MIB));
    }

    #[tokio::test]
    async fn replies_over_http2_take_memory_also_when_they_are_small() {
        let memory = BodyMemory::new(STEP);
        for (version, is_taken) in [(Version::HTTP_11, false), (Version::HTTP_2, true)] {
            let reply = memory.reply(vec![0; 100], None, version).await.unwrap();
            assert_eq!(memory.take(1).is_err(), is_taken, "{version:?}");
            drop(reply);
            assert!(memory.take(1).is_ok());
        }
    }

    #[tokio::test]
    async fn what_is_larger_than_the_memory_is_refused_at_once() {
        let memory = Arc::new(BodyMemory::new(MIB));
        stalled(&memory, 1);
        assert!(memory.take_making_room(9 * MIB, 9 * MIB, None).await.is_err());
        assert_eq!(left(&memory), [0]);
    }
}
