//! Records since when the API server trusts an authority. Pure: both clocks are arguments.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::object::Trust;
use crate::certs::lifetimes::signed;
use crate::certs::trust_anchor::TrustAnchor;

/// What this process has seen of the caBundles.
#[derive(Debug)]
pub struct TrustObservations {
    settle: Duration,
    seen: HashMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// No other was trusted when this one was first looked for, so that no change can have been under way.
    alone: bool,
    /// Since when every caBundle has had it, as of the last look.
    everywhere: Option<Instant>,
}

impl TrustObservations {
    /// Nothing seen yet. An authority has to be seen for `settle` before it counts.
    pub fn new(settle: Duration) -> Self {
        Self { settle, seen: HashMap::new() }
    }

    /// Records a read of every object with caBundles. Those of `anchors` that are no longer wanted are forgotten.
    pub fn note(&mut self, anchors: &[TrustAnchor], found: &[&Trust], wall: Timestamp, now: Instant) {
        self.seen.retain(|fingerprint, _| anchors.iter().any(|anchor| anchor.fingerprint() == fingerprint));
        for anchor in anchors {
            let alone = || found.iter().all(|trust| is_alone(trust, anchor, self.settle, wall));
            let seen = self.seen.entry(anchor.fingerprint().to_owned());
            let seen = seen.or_insert_with(|| Seen { alone: alone(), everywhere: None });
            let everywhere = found.iter().all(|trust| trust.has(anchor));
            seen.everywhere = everywhere.then(|| seen.everywhere.unwrap_or(now));
        }
    }

    /// Whether every API server can be expected to trust it.
    pub fn is_settled(&self, anchor: &TrustAnchor, now: Instant) -> bool {
        let seen = self.seen.get(anchor.fingerprint());
        seen.is_some_and(|seen| match seen.everywhere {
            Some(since) => seen.alone || now.saturating_duration_since(since) >= self.settle,
            None => false,
        })
    }

    /// Whether every caBundle has it, as of the last look.
    pub fn is_everywhere(&self, anchor: &TrustAnchor) -> bool {
        self.seen.get(anchor.fingerprint()).is_some_and(|seen| seen.everywhere.is_some())
    }
}

/// Whether the object trusts no other certificate, or only those whose successor must have been known for long enough.
fn is_alone(trust: &Trust, anchor: &TrustAnchor, settle: Duration, wall: Timestamp) -> bool {
    let settle = signed(settle);
    trust.anchors().into_iter().filter(|other| *other != anchor && other.not_after() > wall).all(|other| {
        let since = trust.retiring.get(other.fingerprint());
        since.is_some_and(|since| wall.duration_since(*since) >= settle)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::SignedDuration;

    use super::*;
    use crate::certs::Authority;

    const SETTLE: Duration = Duration::from_secs(30);

    fn wall() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn anchor(name: &str) -> TrustAnchor {
        Authority::create(name, Duration::from_secs(3600), wall()).unwrap().anchor().clone()
    }

    fn trust(anchors: &[&TrustAnchor]) -> Trust {
        Trust { entries: vec![anchors.iter().copied().cloned().collect()], retiring: BTreeMap::new() }
    }

    /// Records observations at these moments, each with what was found; whether `anchor` is settled at the last.
    fn settled(anchor: &TrustAnchor, looks: &[(u64, Vec<Trust>)]) -> bool {
        let (mut observations, start, mut now) = (TrustObservations::new(SETTLE), Instant::now(), Instant::now());
        for (seconds, found) in looks {
            now = start + Duration::from_secs(*seconds);
            observations.note(std::slice::from_ref(anchor), &found.iter().collect::<Vec<_>>(), wall(), now);
        }
        observations.is_settled(anchor, now)
    }

    #[test]
    fn an_authority_is_settled_once_it_was_everywhere_for_long_enough() {
        let (new, old) = (anchor("new"), anchor("old"));
        let (both, only_old, only_new) = (trust(&[&new, &old]), trust(&[&old]), trust(&[&new]));
        let retiring = |seconds: i64| Trust {
            retiring: BTreeMap::from([(old.fingerprint().to_owned(), wall() - SignedDuration::from_secs(seconds))]),
            ..both.clone()
        };
        let one = |trust: &Trust| vec![trust.clone()];
        let table = [
            ("nobody looked", vec![], false),
            ("it is not there", vec![(0, one(&only_old)), (90, one(&only_old))], false),
            ("it came just now", vec![(0, one(&only_old)), (90, one(&both))], false),
            ("it came long ago", vec![(0, one(&only_old)), (10, one(&both)), (40, one(&both))], true),
            (
                "it was away meanwhile",
                vec![(0, one(&both)), (29, one(&only_old)), (31, one(&both)), (60, one(&both))],
                false,
            ),
            (
                "one object lacks it",
                vec![(0, vec![both.clone(), only_old.clone()]), (90, vec![both.clone(), only_old.clone()])],
                false,
            ),
            ("another was trusted at first", vec![(0, one(&both)), (29, one(&only_new))], false),
            ("nobody else was ever trusted", vec![(0, one(&trust(&[]))), (1, one(&only_new))], true),
            ("it alone was there", vec![(0, one(&only_new))], true),
            ("the other has been retiring for long", vec![(0, one(&retiring(30)))], true),
            ("the other began to retire just now", vec![(0, one(&retiring(29)))], false),
            ("there is nothing to be trusted by", vec![(0, vec![])], true),
        ];
        for (what, looks, expected) in table {
            assert_eq!(settled(&new, &looks), expected, "{what}");
        }
    }

    #[test]
    fn what_is_looked_for_anew_has_to_be_seen_anew() {
        let (a, b) = (anchor("a"), anchor("b"));
        let (mut observations, now) = (TrustObservations::new(SETTLE), Instant::now());
        let found = trust(&[&a, &b]);
        let found = [&found];
        observations.note(std::slice::from_ref(&a), &found, wall(), now);
        observations.note(std::slice::from_ref(&b), &found, wall(), now);
        observations.note(&[a.clone(), b.clone()], &found, wall(), now + SETTLE);
        assert!(!observations.is_settled(&a, now + SETTLE));
        assert!(observations.is_settled(&b, now + SETTLE));
    }
}
