//! What a caBundle should hold, from what it holds. Pure: the time is an argument.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::object::Trust;
use crate::certs::trust_anchor::TrustAnchor;

/// What every caBundle of an object should hold, and since when it holds certificates that are no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The certificates: what is wanted, then what is kept.
    pub anchors: Vec<TrustAnchor>,
    /// Since when a certificate is kept, by fingerprint.
    pub retiring: BTreeMap<String, Timestamp>,
}

/// What may be done to a caBundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Nothing: it is only read.
    Look,
    /// What is missing is added, and nothing taken out.
    Add,
    /// Certificates that were not needed for `overlap` are removed as well.
    Keep {
        /// How long what is not wanted stays.
        overlap: SignedDuration,
    },
}

/// Certificates that are kept beside those that are wanted. Each is in every entry of a configuration, which the API server stores
/// up to 1.5 MiB; a process that is killed and started again makes one each time.
const MAX_KEPT: usize = 16;

/// What is to be written, or nothing where the object is in order.
///
/// A certificate that is not wanted may still be needed: by replicas that do not know its successor yet, or that run in
/// another mode. So it stays for a while, which begins when it is first seen here.
pub fn merge(found: &Trust, wanted: &[TrustAnchor], duty: Duty, now: Timestamp) -> Option<Bundle> {
    if wanted.is_empty() {
        return None;
    }
    let others = found.anchors().into_iter().filter(|anchor| !wanted.contains(anchor));
    let (mut anchors, mut retiring) = (wanted.to_vec(), BTreeMap::new());
    let in_order = match duty {
        Duty::Look => true,
        Duty::Add => {
            anchors.extend(others.cloned());
            retiring.clone_from(&found.retiring);
            wanted.iter().all(|anchor| found.has(anchor))
        }
        Duty::Keep { overlap } => {
            let alive = others.filter(|anchor| anchor.not_after() > now);
            let since = |anchor: &TrustAnchor| found.retiring.get(anchor.fingerprint()).copied().unwrap_or(now);
            let dated = alive.map(|anchor| (anchor, since(anchor)));
            let mut kept: Vec<_> = dated.filter(|(_, since)| now.duration_since(*since) < overlap).collect();
            if kept.len() > MAX_KEPT {
                kept.sort_by_key(|(_, since)| Reverse(*since));
                kept.truncate(MAX_KEPT);
            }
            for (anchor, since) in kept {
                anchors.push(anchor.clone());
                retiring.insert(anchor.fingerprint().to_owned(), since);
            }
            let fingerprints = |anchors: &[TrustAnchor]| -> BTreeSet<String> {
                anchors.iter().map(|anchor| anchor.fingerprint().to_owned()).collect()
            };
            let should = fingerprints(&anchors);
            found.retiring == retiring && found.entries.iter().all(|entry| fingerprints(entry) == should)
        }
    };
    (!in_order).then_some(Bundle { anchors, retiring })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certs::Authority;

    const KEEP: Duty = Duty::Keep { overlap: SignedDuration::from_secs(100) };

    fn anchor(name: &str) -> TrustAnchor {
        Authority::create(name, Duration::from_secs(3600), now()).unwrap().anchor().clone()
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn ago(seconds: i64) -> Timestamp {
        now() - SignedDuration::from_secs(seconds)
    }

    #[test]
    fn bundles_hold_what_is_wanted_and_for_a_while_what_was() {
        let (a, b, c) = (anchor("a"), anchor("b"), anchor("c"));
        let trust = |entries: &[&[&TrustAnchor]], retiring: &[(&TrustAnchor, i64)]| Trust {
            entries: entries.iter().map(|entry| entry.iter().copied().cloned().collect()).collect(),
            retiring: retiring.iter().map(|(anchor, age)| (anchor.fingerprint().to_owned(), ago(*age))).collect(),
        };
        let bundle = |anchors: &[&TrustAnchor], retiring: &[(&TrustAnchor, i64)]| {
            let retiring = retiring.iter().map(|(anchor, age)| (anchor.fingerprint().to_owned(), ago(*age))).collect();
            Some(Bundle { anchors: anchors.iter().copied().cloned().collect(), retiring })
        };
        let table = [
            ("an empty one is filled", trust(&[&[], &[]], &[]), vec![&a], KEEP, bundle(&[&a], &[])),
            ("one that fits stays", trust(&[&[&a], &[&a]], &[]), vec![&a], KEEP, None),
            ("the order does not matter", trust(&[&[&b, &a]], &[]), vec![&a, &b], KEEP, None),
            ("every entry must have it", trust(&[&[&a], &[]], &[]), vec![&a], KEEP, bundle(&[&a], &[])),
            ("a successor is added", trust(&[&[&a]], &[]), vec![&b, &a], KEEP, bundle(&[&b, &a], &[])),
            ("what is found stays", trust(&[&[&a]], &[]), vec![&b], KEEP, bundle(&[&b, &a], &[(&a, 0)])),
            ("it stays for a while", trust(&[&[&b, &a]], &[(&a, 99)]), vec![&b], KEEP, None),
            ("and then it goes", trust(&[&[&b, &a]], &[(&a, 100)]), vec![&b], KEEP, bundle(&[&b], &[])),
            ("a note about what is gone goes", trust(&[&[&b]], &[(&a, 5)]), vec![&b], KEEP, bundle(&[&b], &[])),
            (
                "what is wanted again is no more retiring",
                trust(&[&[&b, &a]], &[(&a, 99)]),
                vec![&b, &a],
                KEEP,
                bundle(&[&b, &a], &[]),
            ),
            (
                "each has its own time",
                trust(&[&[&b, &a, &c]], &[(&a, 100), (&c, 7)]),
                vec![&b],
                KEEP,
                bundle(&[&b, &c], &[(&c, 7)]),
            ),
            (
                "adding takes nothing out",
                trust(&[&[&a]], &[(&a, 100)]),
                vec![&b],
                Duty::Add,
                bundle(&[&b, &a], &[(&a, 100)]),
            ),
            ("adding heeds only what is wanted", trust(&[&[&b], &[&b, &a]], &[]), vec![&b], Duty::Add, None),
            ("looking changes nothing", trust(&[&[&a]], &[]), vec![&b], Duty::Look, None),
            ("nothing wanted is no reason to take all away", trust(&[&[&a]], &[(&a, 100)]), vec![], KEEP, None),
            ("there may be nothing to write to", trust(&[], &[]), vec![&a], KEEP, None),
        ];
        for (what, found, wanted, duty, expected) in table {
            let wanted: Vec<TrustAnchor> = wanted.into_iter().cloned().collect();
            assert_eq!(merge(&found, &wanted, duty, now()), expected, "{what}");
        }
    }

    #[test]
    fn what_has_ended_does_not_stay() {
        let (old, new) = (anchor("old"), anchor("new"));
        let found = Trust { entries: vec![vec![new.clone(), old.clone()]], retiring: BTreeMap::new() };
        let bundle = merge(&found, std::slice::from_ref(&new), KEEP, old.not_after()).unwrap();
        assert_eq!(bundle, Bundle { anchors: vec![new], retiring: BTreeMap::new() });
    }

    #[test]
    fn of_many_that_are_kept_the_oldest_go() {
        let wanted = anchor("wanted");
        let others: Vec<TrustAnchor> = (0..=MAX_KEPT).map(|at| anchor(&at.to_string())).collect();
        let retiring =
            others.iter().zip((1..).map(ago)).map(|(anchor, since)| (anchor.fingerprint().to_owned(), since));
        let found = Trust { entries: vec![others.clone()], retiring: retiring.collect() };
        let bundle = merge(&found, std::slice::from_ref(&wanted), KEEP, now()).unwrap();
        assert_eq!(bundle.anchors.len(), MAX_KEPT + 1);
        assert!(bundle.anchors.contains(&others[0]) && !bundle.anchors.contains(&others[MAX_KEPT]));
        let written = Trust { entries: vec![bundle.anchors], retiring: bundle.retiring };
        assert_eq!(merge(&written, &[wanted], KEEP, now()), None);
    }

    #[test]
    fn writing_what_is_decided_leaves_nothing_to_decide() {
        let (a, b) = (anchor("a"), anchor("b"));
        let found = Trust { entries: vec![vec![a], vec![]], retiring: BTreeMap::new() };
        for duty in [KEEP, Duty::Add] {
            let Bundle { anchors, retiring } = merge(&found, std::slice::from_ref(&b), duty, now()).unwrap();
            let written = Trust { entries: vec![anchors.clone(), anchors], retiring };
            assert_eq!(merge(&written, std::slice::from_ref(&b), duty, now()), None, "{duty:?}");
        }
    }
}
