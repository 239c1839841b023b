//! How much is written about `CronJob`s in a second: for one of them, and for all together.
//!
//! The authors of `CronJob`s write through this controller: what is due at one time, or changed again and again, can be as much as
//! they like. Pure; the time is an argument.
//!
//! No library: governor answers whether one more may pass now. Here an owner is promised the moment at which it may.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::workshop::cronjob::vocabulary::JOBS_PER_SECOND;

#[cfg(test)]
mod tests;

/// Owners that are remembered before those are forgotten that have nothing to wait for.
const OWNERS: usize = 1_000;

/// So many in a second, and so many more at once.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    per_second: u32,
    burst: u32,
}

impl Rate {
    fn interval(self) -> SignedDuration {
        SignedDuration::from_secs(1) / i32::try_from(self.per_second.max(1)).unwrap_or(i32::MAX)
    }

    /// The moment for one more, after those that led to `next`; and what is next then.
    fn slot(self, next: Option<Timestamp>, now: Timestamp) -> (Timestamp, Timestamp) {
        let next = next.map_or(now, |next| next.max(now));
        let ahead = self.interval() * i32::try_from(self.burst).unwrap_or(i32::MAX);
        let slot = next.checked_sub(ahead).unwrap_or(now).max(now);
        (slot, next.checked_add(self.interval()).unwrap_or(next))
    }
}

/// A limit on one kind of write.
#[derive(Debug)]
pub struct Limit {
    each: Rate,
    all: Rate,
    /// When the next would be even, were there no burst.
    next: Option<Timestamp>,
    owners: HashMap<String, Owner>,
}

#[derive(Debug)]
struct Owner {
    next: Timestamp,
    /// The moment that was promised.
    promised: Option<Timestamp>,
}

/// When one more may be written, and what is next then.
struct Place {
    slot: Timestamp,
    next_of_owner: Timestamp,
    next_of_all: Timestamp,
}

impl Limit {
    /// Jobs that are created. All together as many at once as are due on one minute in a large cluster: the built-in controller has
    /// no limit for them.
    pub fn of_creates() -> Self {
        let [each, all] = JOBS_PER_SECOND;
        Self::new(Rate { per_second: each, burst: 5 }, Rate { per_second: all, burst: 500 })
    }

    /// Of writes of the status.
    pub fn of_status() -> Self {
        Self::new(Rate { per_second: 2, burst: 20 }, Rate { per_second: 300, burst: 1000 })
    }

    /// Of events.
    pub fn of_events() -> Self {
        Self::new(Rate { per_second: 1, burst: 10 }, Rate { per_second: 50, burst: 100 })
    }

    fn new(each: Rate, all: Rate) -> Self {
        Self { each, all, next: None, owners: HashMap::new() }
    }

    /// Takes one for this owner.
    ///
    /// # Errors
    /// How long the owner has to wait. Its place is kept: who comes after has to wait longer.
    pub fn take(&mut self, owner: &str, now: Timestamp) -> Result<(), Duration> {
        let promised = self.owners.get(owner).and_then(|before| before.promised);
        // A clock that was set back does not make anyone wait longer than a new wait would.
        if let Some(promised) = promised.filter(|promised| is_near(*promised, now)) {
            return self.keep(owner, promised, now);
        }
        let place = self.place(owner, now);
        self.give(owner, &place, now);
        self.keep(owner, place.slot, now)
    }

    /// As [`Self::take`], for what is not worth waiting for.
    pub fn try_take(&mut self, owner: &str, now: Timestamp) -> bool {
        let place = self.place(owner, now);
        let is_free = place.slot <= now;
        if is_free {
            self.give(owner, &place, now);
        }
        is_free
    }

    /// The place of one more of this owner, which is not given yet.
    fn place(&self, owner: &str, now: Timestamp) -> Place {
        let near = |next: Option<Timestamp>| next.filter(|next| is_near(*next, now));
        let (slot_of_owner, next_of_owner) =
            self.each.slot(near(self.owners.get(owner).map(|before| before.next)), now);
        let (slot_of_all, next_of_all) = self.all.slot(near(self.next), now);
        Place { slot: slot_of_owner.max(slot_of_all), next_of_owner, next_of_all }
    }

    fn give(&mut self, owner: &str, place: &Place, now: Timestamp) {
        self.next = Some(place.next_of_all);
        self.forget(now);
        self.owners.insert(owner.to_owned(), Owner { next: place.next_of_owner, promised: None });
    }

    fn keep(&mut self, owner: &str, slot: Timestamp, now: Timestamp) -> Result<(), Duration> {
        let wait = Duration::try_from(slot.duration_since(now)).unwrap_or_default();
        if let Some(owner) = self.owners.get_mut(owner) {
            owner.promised = (!wait.is_zero()).then_some(slot);
        }
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Owners whose writes are all long ago are as new ones.
    fn forget(&mut self, now: Timestamp) {
        if self.owners.len() >= OWNERS && self.owners.len().is_power_of_two() {
            self.owners.retain(|_, owner| owner.next > now || owner.promised.is_some_and(|promised| promised > now));
        }
    }
}

/// What is an hour ahead was written by another clock.
fn is_near(next: Timestamp, now: Timestamp) -> bool {
    next.duration_since(now) < SignedDuration::from_hours(1)
}
