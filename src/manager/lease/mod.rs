//! Leader election by a `coordination.k8s.io/v1` Lease, compatible with client-go's.
//!
//! Clocks of other machines are never trusted: a lease has run out when its record has not changed for its duration *as
//! watched from here*. A leader stops its work when it could not renew for the renew deadline, which is shorter than the
//! duration, so it has stopped before another can begin.
//!
//! A lease that is deleted or emptied by hand makes no second leader among those that have seen it held: they wait for as long,
//! and the leader has it back by then. Who writes another holder into it takes it from a leader that learns of it after a retry
//! period at most; and so does a candidate that starts within that period after a deletion, as for it there never was a lease.
//!
//! No library: kube-runtime has no leader election, and other crates compare the holder's times with the clock of this machine.

mod campaign;
mod record;
mod store;

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::controller::leader_term::LeaderTerm;
use crate::logging::throttle::LogThrottle;
use crate::manager::lease::campaign::{Campaign, LONGEST, LeaseStep};
pub use crate::manager::lease::record::{LeaseRecord, identity};
pub use crate::manager::lease::store::{Error, KubeStore, LeaseStore};
use crate::metrics::Metrics;

/// Name of the Lease.
pub use crate::names::LEASE as NAME;

/// Times of the election. The defaults are client-go's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Others may take over when the record has not changed for this long.
    pub duration: Duration,
    /// The leader stops when it has not renewed for this long.
    pub renew_deadline: Duration,
    /// Pause between two tries, of the leader and of the others.
    pub retry_period: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Times that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// Another could begin while the leader still works.
    #[error("the lease duration ({duration:?}) must be longer than the renew deadline ({renew_deadline:?})")]
    Duration {
        /// After so long without a renewal another replica may lead.
        duration: Duration,
        /// After so long without a renewal the leader gives up.
        renew_deadline: Duration,
    },
    /// A single failed try would end the leadership.
    #[error(
        "the renew deadline ({renew_deadline:?}) must be longer than 1.2 times the retry period ({retry_period:?})"
    )]
    RenewDeadline {
        /// After so long without a renewal the leader gives up.
        renew_deadline: Duration,
        /// From one try to the next.
        retry_period: Duration,
    },
    /// The Lease counts in seconds, and not fewer than one.
    #[error("the lease duration must be at least 1s, and the retry period more than nothing")]
    TooShort,
    /// There would be no leader for so long after a leader was killed; and the others do not wait longer.
    #[error("the lease duration ({0:?}) must be at most {LONGEST:?}")]
    TooLong(Duration),
}

impl Times {
    /// Checks what client-go checks.
    ///
    /// # Errors
    /// [`TimesError`].
    pub fn check(self) -> Result<Self, TimesError> {
        let Self { duration, renew_deadline, retry_period } = self;
        if duration < Duration::from_secs(1) || retry_period.is_zero() {
            return Err(TimesError::TooShort);
        }
        if duration > LONGEST {
            return Err(TimesError::TooLong(duration));
        }
        if duration <= renew_deadline {
            return Err(TimesError::Duration { duration, renew_deadline });
        }
        if renew_deadline <= retry_period.saturating_mul(6) / 5 {
            return Err(TimesError::RenewDeadline { renew_deadline, retry_period });
        }
        Ok(self)
    }
}

/// Takes part in an election.
pub struct Elector<S> {
    store: S,
    identity: String,
    times: Times,
    grace_period: Duration,
    metrics: Metrics,
}

impl<S: LeaseStore> Elector<S> {
    /// An elector by this identity, which must be unlike every other's. `grace_period` is how long work may go on once it has
    /// to end.
    pub fn new(store: S, identity: String, times: Times, grace_period: Duration, metrics: Metrics) -> Self {
        Self { store, identity, times, grace_period, metrics }
    }

    /// Campaigns, leads, and campaigns again, until cancelled. `work` is started with each leadership. When `cancel` is, its
    /// term ends, and the lease is held until it has finished; then the lease is given back. The moment the leadership is lost
    /// its term is cut.
    pub async fn run<F: Future<Output = ()>>(&self, work: impl Fn(LeaderTerm) -> F, cancel: CancellationToken) {
        let mut campaign = Campaign::new(self.identity.clone(), self.times.duration);
        while !cancel.is_cancelled() {
            let Some(held_since) = cancel.run_until_cancelled(self.acquire(&mut campaign)).await else { return };
            tracing::info!(identity = self.identity, "Leading");
            self.metrics.leader.set(1);
            // Work that ends by itself has a defect, which a new leadership may heal.
            LeaderTerm::serve(&work, &cancel, self.grace_period, self.renew(&mut campaign, held_since)).await;
            self.metrics.leader.set(0);
            if cancel.is_cancelled() {
                self.release().await;
            } else {
                tracing::warn!(
                    identity = self.identity,
                    "No longer the leader, leader work has stopped; trying to become the leader again"
                );
            }
        }
    }

    /// Tries until the lease is ours. Returns the time before the request that got it.
    async fn acquire(&self, campaign: &mut Campaign) -> Instant {
        let mut throttle = LogThrottle::default();
        loop {
            let start = Instant::now();
            match timeout_at(start + self.times.renew_deadline, self.step(campaign, false)).await {
                Ok(Ok(true)) => return start,
                Ok(Ok(false) | Err(Error::Conflict)) => throttle.over(),
                Ok(Err(error)) if throttle.is_news(&error) => {
                    tracing::warn!(%error, "Cannot acquire the lease, trying again");
                }
                Err(_) if throttle.is_news(&"no answer") => {
                    tracing::warn!("Cannot acquire the lease: no answer; trying again");
                }
                Ok(Err(_)) | Err(_) => {}
            }
            sleep(self.times.retry_period).await;
        }
    }

    /// Returns when the lease is lost.
    async fn renew(&self, campaign: &mut Campaign, held_since: Instant) {
        let mut deadline = held_since + self.times.renew_deadline;
        loop {
            tokio::select! {
                () = sleep(self.times.retry_period) => {}
                () = tokio::time::sleep_until(deadline) => return,
            }
            let start = Instant::now();
            match timeout_at(deadline, self.step(campaign, true)).await {
                Ok(Ok(true)) => deadline = start + self.times.renew_deadline,
                // Another replica holds it, or the deadline has passed.
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => tracing::warn!(%error, "Cannot renew the lease, trying again"),
            }
        }
    }

    /// Reads the lease once, and does what follows. True if it is ours afterwards.
    async fn step(&self, campaign: &mut Campaign, leads: bool) -> Result<bool, Error> {
        let found = self.store.get().await?;
        if let Some(absurd) = campaign.is_news(found.as_ref()) {
            let (holder, seconds) = (&absurd.holder, absurd.duration.as_secs());
            tracing::warn!(
                holder,
                seconds,
                "The lease has an unusually long duration; waiting {} s for its holder at most",
                LONGEST.as_secs()
            );
        }
        match campaign.step(found.as_ref(), leads, Instant::now().into_std(), jiff::Timestamp::now()) {
            LeaseStep::Wait => return Ok(false),
            LeaseStep::Create(record) => self.store.create(record).await?,
            LeaseStep::Replace(record) => self.store.replace(record).await?,
        };
        Ok(true)
    }

    /// Reads the lease first: a renewal that was broken off may have been written.
    async fn release(&self) {
        let given_back = async {
            match self.store.get().await?.filter(|found| found.holder == self.identity) {
                Some(held) => self.store.replace(held.given_back(jiff::Timestamp::now())).await.map(drop),
                None => Ok(()),
            }
        };
        match timeout(self.times.retry_period, given_back).await {
            Ok(Ok(())) => tracing::info!(identity = self.identity, "Gave the lease back"),
            Ok(Err(error)) => tracing::warn!(%error, "Cannot release the lease; it expires"),
            Err(_) => tracing::warn!("Cannot release the lease in time; it expires"),
        }
    }
}

#[cfg(test)]
mod tests;
