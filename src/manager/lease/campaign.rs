//! What to do about a lease that was just read. Pure: the time is an argument.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::manager::lease::record::LeaseRecord;

/// The longest duration of a record that is believed. Who writes one of years, by mistake or on purpose, must not keep everybody
/// from leading for so long.
pub const LONGEST: Duration = Duration::from_secs(600);

/// One candidate's knowledge of the lease.
#[derive(Debug)]
pub struct Campaign {
    identity: String,
    duration: Duration,
    /// The record last seen, `None` where there was no lease, and when it was first seen like that.
    seen: Option<(Option<LeaseRecord>, Instant)>,
    /// How long the last known holder of the lease may go on without it.
    held: Option<Duration>,
}

/// What follows from the lease as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseStep {
    /// Another holds it.
    Wait,
    /// There is none: create it.
    Create(LeaseRecord),
    /// It is ours, or free, or has run out: write this.
    Replace(LeaseRecord),
}

impl Campaign {
    pub const fn new(identity: String, duration: Duration) -> Self {
        Self { identity, duration, seen: None, held: None }
    }

    /// Decides on the lease just read. `leads` says whether it was ours until now. `now` is the monotonic clock, which decides;
    /// `wall` is what is written for people.
    ///
    /// A holder whose lease is deleted or emptied by another client goes on until its next read, and then takes it again. So the
    /// others wait as long as for one that is silent, but where it was given back.
    pub fn step(&mut self, found: Option<&LeaseRecord>, leads: bool, now: Instant, wall: Timestamp) -> LeaseStep {
        let since = match &self.seen {
            Some((seen, since)) if seen.as_ref() == found => *since,
            _ => {
                self.seen = Some((found.cloned(), now));
                now
            }
        };
        let silent = now.saturating_duration_since(since);
        let Some(found) = found else {
            let must_wait = !leads && self.held.is_some_and(|held| silent < held);
            return if must_wait { LeaseStep::Wait } else { LeaseStep::Create(self.record(None, wall)) };
        };
        let grace_period = found.duration.min(LONGEST).max(self.duration);
        if found.is_given_back() {
            self.held = None;
        } else if !found.holder.is_empty() {
            self.held = Some(grace_period);
        }
        let is_ours = found.holder == self.identity || (leads && found.holder.is_empty());
        if !is_ours && !found.is_given_back() && silent < grace_period {
            return LeaseStep::Wait;
        }
        LeaseStep::Replace(self.record(Some(found), wall))
    }

    /// The record, if it is to last longer than is believed and was not seen so before.
    pub fn is_news<'r>(&self, found: Option<&'r LeaseRecord>) -> Option<&'r LeaseRecord> {
        let is_absurd = |record: &&LeaseRecord| record.duration > LONGEST;
        let was_absurd = self.seen.as_ref().and_then(|(seen, _)| seen.as_ref()).is_some_and(|seen| is_absurd(&seen));
        found.filter(is_absurd).filter(|_| !was_absurd)
    }

    fn record(&self, found: Option<&LeaseRecord>, wall: Timestamp) -> LeaseRecord {
        let kept = found.filter(|found| found.holder == self.identity);
        // Another client wrote the largest number there is: it is for people, and must not keep any replica from leading.
        let transitions = found.map_or(0, |found| found.transitions.max(0).saturating_add(i32::from(kept.is_none())));
        LeaseRecord {
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

    fn held_by(holder: &str, version: &str) -> LeaseRecord {
        LeaseRecord {
            holder: holder.to_owned(),
            duration: DURATION,
            // Far in the future: the clock of another machine must not matter.
            renewed: Some("2999-01-01T00:00:00Z".parse().unwrap()),
            version: Some(version.to_owned()),
            ..LeaseRecord::default()
        }
    }

    fn campaign() -> (Campaign, Instant, Timestamp) {
        (Campaign::new("me".to_owned(), DURATION), Instant::now(), Timestamp::now())
    }

    #[test]
    fn a_missing_lease_is_created_and_a_free_one_is_taken_at_once() {
        let (mut campaign, now, wall) = campaign();
        assert!(matches!(campaign.step(None, false, now, wall), LeaseStep::Create(record) if record.holder == "me"));
        let free = held_by("other", "1").given_back(wall);
        let LeaseStep::Replace(record) = campaign.step(Some(&free), false, now, wall) else { panic!("it is free") };
        assert_eq!((record.holder.as_str(), record.transitions, record.version.as_deref()), ("me", 1, Some("1")));
        // One that was created empty.
        let (mut campaign, empty) = (Campaign::new("me".to_owned(), DURATION), LeaseRecord::default());
        assert!(matches!(campaign.step(Some(&empty), false, now, wall), LeaseStep::Replace(_)));
    }

    #[test]
    fn who_led_is_waited_for_when_its_lease_is_deleted_or_emptied_and_takes_it_at_once() {
        let (_, now, wall) = campaign();
        let (held, emptied) = (held_by("other", "1"), held_by("", "2"));
        let after = |seconds| now + Duration::from_secs(seconds);
        for gone in [None, Some(&emptied)] {
            let mut campaign = Campaign::new("me".to_owned(), DURATION);
            assert_eq!(campaign.step(Some(&held), false, now, wall), LeaseStep::Wait);
            assert_eq!(campaign.step(gone, false, after(10), wall), LeaseStep::Wait);
            assert_eq!(campaign.step(gone, false, after(24), wall), LeaseStep::Wait, "it may have renewed just before");
            assert_ne!(campaign.step(gone, false, after(25), wall), LeaseStep::Wait);

            let mut leader = Campaign::new("other".to_owned(), DURATION);
            leader.step(Some(&held), true, now, wall);
            assert_ne!(leader.step(gone, true, after(2), wall), LeaseStep::Wait);
        }
        // Given back, and then deleted.
        let mut other = Campaign::new("third".to_owned(), DURATION);
        other.step(Some(&held), false, now, wall);
        other.step(Some(&held_by("me", "3").given_back(wall)), false, after(1), wall);
        assert!(matches!(other.step(None, false, after(2), wall), LeaseStep::Create(_)));
    }

    #[test]
    fn the_largest_count_of_transitions_and_absurd_durations_keep_no_replica_from_leading() {
        let (mut campaign, now, wall) = campaign();
        for transitions in [i32::MAX, i32::MIN] {
            let found = LeaseRecord { transitions, ..held_by("other", "1").given_back(wall) };
            let LeaseStep::Replace(record) = campaign.step(Some(&found), false, now, wall) else {
                panic!("it is free")
            };
            assert!(record.transitions >= 0, "{record:?}");
        }
        let absurd = LeaseRecord { duration: Duration::from_secs(i32::MAX as u64), ..held_by("other", "9") };
        assert_eq!(campaign.step(Some(&absurd), false, now, wall), LeaseStep::Wait);
        assert_eq!(campaign.step(Some(&absurd), false, now + LONGEST * 9 / 10, wall), LeaseStep::Wait);
        assert!(matches!(campaign.step(Some(&absurd), false, now + LONGEST, wall), LeaseStep::Replace(_)));
    }

    #[test]
    fn another_holder_is_waited_for_until_its_record_stood_still_for_the_duration() {
        let (mut campaign, now, wall) = campaign();
        let other = held_by("other", "1");
        assert_eq!(campaign.step(Some(&other), false, now, wall), LeaseStep::Wait);
        assert_eq!(campaign.step(Some(&other), false, now + Duration::from_secs(14), wall), LeaseStep::Wait);
        let renewed = held_by("other", "2");
        assert_eq!(campaign.step(Some(&renewed), false, now + Duration::from_secs(14), wall), LeaseStep::Wait);
        assert_eq!(campaign.step(Some(&renewed), false, now + Duration::from_secs(28), wall), LeaseStep::Wait);
        let LeaseStep::Replace(record) = campaign.step(Some(&renewed), false, now + Duration::from_secs(29), wall)
        else {
            panic!("the record stood still for 15 s")
        };
        assert_eq!((record.transitions, record.acquired), (1, Some(wall)));
    }

    #[test]
    fn a_longer_duration_of_the_holder_is_respected() {
        let (mut campaign, now, wall) = campaign();
        let other = LeaseRecord { duration: Duration::from_secs(60), ..held_by("other", "1") };
        campaign.step(Some(&other), false, now, wall);
        assert_eq!(campaign.step(Some(&other), false, now + Duration::from_secs(59), wall), LeaseStep::Wait);
        assert!(matches!(
            campaign.step(Some(&other), false, now + Duration::from_secs(60), wall),
            LeaseStep::Replace(_)
        ));
    }

    #[test]
    fn renewing_keeps_when_it_was_acquired_and_counts_no_transition() {
        let (mut campaign, now, wall) = campaign();
        let acquired = "2020-01-01T00:00:00Z".parse().unwrap();
        let mine = LeaseRecord { acquired: Some(acquired), transitions: 4, ..held_by("me", "7") };
        let LeaseStep::Replace(record) = campaign.step(Some(&mine), true, now, wall) else { panic!("it is ours") };
        assert_eq!((record.acquired, record.renewed, record.transitions), (Some(acquired), Some(wall), 4));
    }
}
