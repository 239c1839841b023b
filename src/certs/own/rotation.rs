//! What follows from the authorities in the Secret. Pure: what was seen and the time are arguments.

use std::time::Duration;

use jiff::Timestamp;

use crate::certs::authority::CLOCK_SKEW;
use crate::certs::lifetimes::{CertificateLifetimes, signed};
use crate::certs::trust_anchor::TrustAnchor;

/// What is known of the authorities.
#[derive(Debug, Clone, Copy)]
pub struct KnownAuthorities<'a> {
    /// The one that signs, once it is trusted.
    pub newest: &'a TrustAnchor,
    /// The one before, while not everybody trusts the newest.
    pub previous: Option<&'a TrustAnchor>,
    /// Whether every API server can be expected to trust the newest.
    pub is_settled: bool,
}

/// What the leader does to the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationStep {
    /// Nothing.
    Rest,
    /// A new authority takes the first place, the newest becomes the previous one.
    Rotate,
    /// The previous one is removed: its key is not needed any more.
    Forget,
}

/// What the leader is to do.
pub fn step(known: &KnownAuthorities<'_>, lifetimes: &CertificateLifetimes, now: Timestamp) -> RotationStep {
    match known.previous {
        Some(_) if known.is_settled => RotationStep::Forget,
        None if is_ageing(known.newest, lifetimes.authority, now) => RotationStep::Rotate,
        // One change at a time: with three authorities, it would be unknown which one a replica signs with.
        Some(_) | None => RotationStep::Rest,
    }
}

/// Whether two thirds of an authority's life are over. One that was made to live longer than authorities do now is as old.
fn is_ageing(anchor: &TrustAnchor, life: Duration, now: Timestamp) -> bool {
    let made = anchor.not_before() + CLOCK_SKEW;
    let life = anchor.not_after().duration_since(made).min(signed(life));
    now.duration_since(made) >= life * 2 / 3
}

/// The leaf that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// Fingerprint of the authority that signed it.
    pub signed_by: &'a str,
    /// When it ends.
    pub not_after: Timestamp,
}

/// Who signs a leaf now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// None: the present one stays.
    Nobody,
    /// The newest authority.
    Newest,
    /// The one before.
    Previous,
}

/// Who is to sign a leaf. Every replica decides for itself, from what it has seen.
pub fn signer(
    known: &KnownAuthorities<'_>,
    leaf: Option<Leaf<'_>>,
    lifetimes: &CertificateLifetimes,
    now: Timestamp,
) -> Signer {
    let alive = leaf.filter(|leaf| leaf.not_after > now);
    let (signer, authority) = match (known.is_settled, known.previous) {
        (false, Some(previous)) => (Signer::Previous, previous),
        // Signed by an authority that is in the Secret no more, but trusted still.
        (false, None) if alive.is_some_and(|leaf| leaf.signed_by != known.newest.fingerprint()) => {
            return Signer::Nobody;
        }
        _ => (Signer::Newest, known.newest),
    };
    let fits = alive.is_some_and(|leaf| {
        let is_due = leaf.not_after.duration_since(now) < signed(lifetimes.leaf) / 3;
        leaf.signed_by == authority.fingerprint() && (!is_due || leaf.not_after >= authority.not_after())
    });
    if fits { Signer::Nobody } else { signer }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::certs::Authority;

    const LIFETIMES: CertificateLifetimes = CertificateLifetimes {
        authority: Duration::from_secs(900),
        leaf: Duration::from_secs(90),
        settle: Duration::from_secs(10),
        overlap: Duration::from_secs(90),
    };

    fn start() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        start() + SignedDuration::from_secs(seconds)
    }

    fn anchor(life: u64) -> TrustAnchor {
        Authority::create("a", Duration::from_secs(life), start()).unwrap().anchor().clone()
    }

    #[test]
    fn the_leader_changes_one_thing_at_a_time() {
        let (newest, long, previous) = (anchor(900), anchor(9000), anchor(900));
        let table = [
            ("young", &newest, None, true, 599, RotationStep::Rest),
            ("two thirds are over", &newest, None, true, 600, RotationStep::Rotate),
            ("made when authorities lived longer", &long, None, true, 600, RotationStep::Rotate),
            ("not trusted yet, but old", &newest, None, false, 600, RotationStep::Rotate),
            ("the newest waits to be trusted", &newest, Some(&previous), false, 5, RotationStep::Rest),
            ("it waits longer than its successor would", &newest, Some(&previous), false, 700, RotationStep::Rest),
            ("it is trusted", &newest, Some(&previous), true, 15, RotationStep::Forget),
        ];
        for (what, newest, previous, is_settled, seconds, expected) in table {
            assert_eq!(
                step(&KnownAuthorities { newest, previous, is_settled }, &LIFETIMES, at(seconds)),
                expected,
                "{what}"
            );
        }
    }

    #[test]
    fn a_leaf_is_of_the_newest_authority_that_everybody_trusts() {
        let (newest, previous, gone) = (anchor(900), anchor(900), anchor(900));
        let leaf = |by: &'static str, ends: i64| (by, at(ends));
        let table = [
            ("none yet", None, None, true, Signer::Newest),
            ("none yet, and nobody trusts anything", None, None, false, Signer::Newest),
            ("none yet, amid a change", None, Some(&previous), false, Signer::Previous),
            ("fresh", Some(leaf("newest", 31)), None, true, Signer::Nobody),
            ("a third is left", Some(leaf("newest", 29)), None, true, Signer::Newest),
            ("renewed although not seen everywhere", Some(leaf("newest", 29)), None, false, Signer::Newest),
            ("a change has begun", Some(leaf("previous", 31)), Some(&previous), false, Signer::Nobody),
            ("renewed amid a change", Some(leaf("previous", 29)), Some(&previous), false, Signer::Previous),
            ("the newest is trusted", Some(leaf("previous", 80)), Some(&previous), true, Signer::Newest),
            ("the newest is trusted no more", Some(leaf("newest", 80)), Some(&previous), false, Signer::Previous),
            ("the change was over before we heard", Some(leaf("previous", 80)), None, true, Signer::Newest),
            ("the Secret was lost", Some(leaf("gone", 80)), None, false, Signer::Nobody),
            ("the Secret was lost, the leaf is due", Some(leaf("gone", 1)), None, false, Signer::Nobody),
            ("the Secret was lost, the leaf has ended", Some(leaf("gone", 0)), None, false, Signer::Newest),
            ("the Secret was lost and is trusted anew", Some(leaf("gone", 80)), None, true, Signer::Newest),
        ];
        for (what, leaf, before, is_settled, expected) in table {
            let fingerprint = |by: &str| match by {
                "newest" => newest.fingerprint(),
                "previous" => previous.fingerprint(),
                _ => gone.fingerprint(),
            };
            let leaf = leaf.map(|(by, not_after)| Leaf { signed_by: fingerprint(by), not_after });
            let known = KnownAuthorities { newest: &newest, previous: before, is_settled };
            assert_eq!(signer(&known, leaf, &LIFETIMES, start()), expected, "{what}");
        }
    }

    #[test]
    fn a_leaf_that_ends_with_its_authority_is_not_signed_again() {
        let newest = anchor(20);
        let leaf = Leaf { signed_by: newest.fingerprint(), not_after: newest.not_after() };
        let known = KnownAuthorities { newest: &newest, previous: None, is_settled: true };
        assert_eq!(signer(&known, Some(leaf), &LIFETIMES, at(5)), Signer::Nobody);
        assert_eq!(signer(&known, Some(leaf), &LIFETIMES, at(20)), Signer::Newest);
    }
}
