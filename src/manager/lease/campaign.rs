//! What to do about a lease that was just read. Pure: the time is an argument.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::manager::lease::record::Record;

/// One candidate's knowledge of the lease.
#[derive(Debug)]
pub struct Campaign {
    identity: String,
    duration: Duration,
    /// The record last seen, and when it was first seen like that.
    seen: Option<(Record, Instant)>,
}

/// What follows from the lease as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another holds it.
    Wait,
    /// There is none: create it.
    Create(Record),
    /// It is ours, or free, or has run out: write this.
    Replace(Record),
}

impl Campaign {
    pub const fn new(identity: String, duration: Duration) -> Self {
        Self { identity, duration, seen: None }
    }

    /// Decides on the lease just read. `now` is the monotonic clock, which decides; `wall` is what is written for people.
    pub fn step(&mut self, found: Option<&Record>, now: Instant, wall: Timestamp) -> Step {
        let Some(found) = found else {
            self.seen = None;
            return Step::Create(self.record(None, wall));
        };
        let since = match &self.seen {
            Some((seen, since)) if seen == found => *since,
            _ => {
                self.seen = Some((found.clone(), now));
                now
            }
        };
        let silent = now.saturating_duration_since(since);
        let free = found.holder.is_empty() || found.holder == self.identity;
        if !free && silent < found.duration.max(self.duration) {
            return Step::Wait;
        }
        Step::Replace(self.record(Some(found), wall))
    }

    fn record(&self, found: Option<&Record>, wall: Timestamp) -> Record {
        let kept = found.filter(|found| found.holder == self.identity);
        let transitions = found.map_or(0, |found| found.transitions + i32::from(kept.is_none()));
        Record {
            holder: self.identity.clone(),
            duration: self.duration,
            acquired: kept.and_then(|kept| kept.acquired).or(Some(wall)),
            renewed: Some(wall),
            transitions,
            version: found.and_then(|found| found.version.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn held_by(holder: &str, version: &str) -> Record {
        Record {
            holder: holder.to_owned(),
            duration: DURATION,
            // Far in the future: the clock of another machine must not matter.
            renewed: Some("2999-01-01T00:00:00Z".parse().unwrap()),
            version: Some(version.to_owned()),
            ..Record::default()
        }
    }

    fn campaign() -> (Campaign, Instant, Timestamp) {
        (Campaign::new("me".to_owned(), DURATION), Instant::now(), Timestamp::now())
    }

    #[test]
    fn a_missing_lease_is_created_and_a_free_one_is_taken_at_once() {
        let (mut campaign, now, wall) = campaign();
        assert!(matches!(campaign.step(None, now, wall), Step::Create(record) if record.holder == "me"));
        let Step::Replace(record) = campaign.step(Some(&held_by("", "1")), now, wall) else { panic!("it is free") };
        assert_eq!((record.holder.as_str(), record.transitions, record.version.as_deref()), ("me", 1, Some("1")));
    }

    #[test]
    fn another_holder_is_waited_for_until_its_record_stood_still_for_the_duration() {
        let (mut campaign, now, wall) = campaign();
        let other = held_by("other", "1");
        assert_eq!(campaign.step(Some(&other), now, wall), Step::Wait);
        assert_eq!(campaign.step(Some(&other), now + Duration::from_secs(14), wall), Step::Wait);
        let renewed = held_by("other", "2");
        assert_eq!(campaign.step(Some(&renewed), now + Duration::from_secs(14), wall), Step::Wait);
        assert_eq!(campaign.step(Some(&renewed), now + Duration::from_secs(28), wall), Step::Wait);
        let Step::Replace(record) = campaign.step(Some(&renewed), now + Duration::from_secs(29), wall) else {
            panic!("the record stood still for 15 s")
        };
        assert_eq!((record.transitions, record.acquired), (1, Some(wall)));
    }

    #[test]
    fn a_longer_duration_of_the_holder_is_respected() {
        let (mut campaign, now, wall) = campaign();
        let other = Record { duration: Duration::from_secs(60), ..held_by("other", "1") };
        campaign.step(Some(&other), now, wall);
        assert_eq!(campaign.step(Some(&other), now + Duration::from_secs(59), wall), Step::Wait);
        assert!(matches!(campaign.step(Some(&other), now + Duration::from_secs(60), wall), Step::Replace(_)));
    }

    #[test]
    fn renewing_keeps_when_it_was_acquired_and_counts_no_transition() {
        let (mut campaign, now, wall) = campaign();
        let acquired = "2020-01-01T00:00:00Z".parse().unwrap();
        let mine = Record { acquired: Some(acquired), transitions: 4, ..held_by("me", "7") };
        let Step::Replace(record) = campaign.step(Some(&mine), now, wall) else { panic!("it is ours") };
        assert_eq!((record.acquired, record.renewed, record.transitions), (Some(acquired), Some(wall), 4));
    }
}
