//! How long authorities and certificates live, and how long changes of them take.

use std::time::Duration;

use jiff::SignedDuration;

/// The shortest interval between two checks.
const SHORTEST_CHECK: Duration = Duration::from_millis(200);

/// The longest interval between two checks.
const LONGEST_CHECK: Duration = Duration::from_secs(15);

const HOUR: Duration = Duration::from_secs(60 * 60);

/// For sums with timestamps; what does not fit is as good as for ever.
pub fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Durations of certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateLifetimes {
    /// Of an authority of our own. Its successor comes when two thirds are over.
    pub authority: Duration,
    /// Of a leaf that it signs. It is renewed when a third is left.
    pub leaf: Duration,
    /// How long a new authority has to be seen everywhere before a leaf of it is served.
    pub settle: Duration,
    /// How long an authority that was replaced stays trusted.
    pub overlap: Duration,
}

impl Default for CertificateLifetimes {
    /// As cert-manager does it for its own webhook: a year, and a week (`pkg/server/tls/authority`).
    fn default() -> Self {
        Self {
            authority: HOUR * 24 * 365,
            leaf: HOUR * 24 * 7,
            settle: Duration::from_secs(30),
            overlap: HOUR * 24 * 7,
        }
    }
}

/// Durations that cannot work together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifetimesError {
    /// A leaf would be older than its authority, or the next authority too late.
    #[error(
        "--self-signed-ca-duration ({authority:?}) must be at least {least:?}: twice --self-signed-leaf-duration, and nine times --ca-bundle-settle"
    )]
    Authority {
        /// As given.
        authority: Duration,
        /// What is needed.
        least: Duration,
    },
    /// It would end before it is renewed.
    #[error("--self-signed-leaf-duration ({0:?}) must be at least {SHORTEST_LEAF:?}")]
    Leaf(Duration),
}

/// A third of it is a few looks.
const SHORTEST_LEAF: Duration = Duration::from_secs(5);

impl CertificateLifetimes {
    /// Checks that each life is long enough for what has to happen in it.
    ///
    /// # Errors
    /// [`LifetimesError`].
    pub fn checked(self) -> Result<Self, LifetimesError> {
        let Self { authority, leaf, settle, .. } = self;
        if leaf < SHORTEST_LEAF {
            return Err(LifetimesError::Leaf(leaf));
        }
        // The last third of an authority's life is for its successor to be seen everywhere, with two further tries.
        let least = (leaf.saturating_mul(2)).max(settle.saturating_mul(9));
        if authority < least {
            return Err(LifetimesError::Authority { authority, least });
        }
        Ok(self)
    }

    /// The interval between two checks. Not one long sleep until something is due: timers stop while a machine is
    /// suspended, certificates do not.
    pub fn check(&self) -> Duration {
        (self.settle / 2).min(self.leaf / 20).clamp(SHORTEST_CHECK, LONGEST_CHECK)
    }

    /// The same, where authorities are our own: while the old one is trusted, its last leaf has ended, also in a replica that
    /// learned late of the new one.
    #[must_use]
    pub fn with_leaves(self) -> Self {
        Self { overlap: self.overlap.max(self.leaf).saturating_add(self.settle), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lifetimes(authority: u64, leaf: u64, settle: u64) -> CertificateLifetimes {
        let second = Duration::from_secs(1);
        CertificateLifetimes {
            authority: Duration::from_secs(authority),
            leaf: Duration::from_secs(leaf),
            settle: Duration::from_secs(settle),
            overlap: second,
        }
    }

    #[test]
    fn lives_that_are_too_short_are_refused() {
        assert_eq!(CertificateLifetimes::default().checked(), Ok(CertificateLifetimes::default()));
        for (given, fine) in [
            (lifetimes(60, 20, 2), true),
            (lifetimes(40, 20, 2), true),
            (lifetimes(39, 20, 2), false),
            (lifetimes(89, 20, 10), false),
            (lifetimes(90, 20, 10), true),
            (lifetimes(60, 4, 0), false),
        ] {
            assert_eq!(given.checked().is_ok(), fine, "{given:?}");
        }
    }

    #[test]
    fn every_life_has_time_for_several_looks() {
        for given in
            [CertificateLifetimes::default(), lifetimes(60, 20, 2), lifetimes(60, 5, 0), lifetimes(3600, 20, 300)]
        {
            let check = given.check();
            assert!(check * 6 <= given.leaf / 3, "{given:?}: {check:?}");
        }
        assert_eq!(CertificateLifetimes::default().check(), Duration::from_secs(15));
    }
}
