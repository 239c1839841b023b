//! Has the API server trust an authority before anything of it is served.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::merge::Duty;
use super::object::Trust;
use super::observations::TrustObservations;
use super::{BundleState, CaBundles, Error};
use crate::answers::in_time;
use crate::certs::lifetimes::{CertificateLifetimes, signed};
use crate::certs::trust_anchor::TrustAnchor;

/// A replica that the leader has left out for this long helps itself: the leader may run in another mode.
const LEFT_OUT_FOR: Duration = Duration::from_secs(5);

/// Who writes the caBundles.
#[derive(Debug, Clone)]
pub enum Writer {
    /// This replica, while it leads; otherwise it writes only what it needs itself and no other replica has written.
    Leader(watch::Receiver<bool>),
    /// Another part of the process; this one only reads. The registration of a process outside the cluster writes whole configurations.
    Registration,
}

/// Publishes authorities, and knows since when they are known.
pub struct Publisher {
    bundles: CaBundles,
    writer: Writer,
    observations: TrustObservations,
    overlap: SignedDuration,
    check: Duration,
    settle: Duration,
    started: Instant,
    found: Vec<BundleState>,
}

impl Publisher {
    /// Nothing is asked of the API server yet.
    pub fn new(bundles: CaBundles, writer: Writer, lifetimes: &CertificateLifetimes) -> Self {
        Self {
            bundles,
            writer,
            observations: TrustObservations::new(lifetimes.settle),
            overlap: signed(lifetimes.overlap),
            check: lifetimes.check(),
            settle: lifetimes.settle,
            started: Instant::now(),
            found: Vec::new(),
        }
    }

    /// Brings the caBundles a step further towards `wanted`, and takes note of what they hold. `is_trusted` is false while this
    /// replica waits to be trusted itself.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn publish(&mut self, wanted: &[TrustAnchor], is_trusted: bool) -> Result<(), Error> {
        let pass = self.bundles.pass(wanted, self.duty(is_trusted), self.check);
        self.found = in_time(pass).await?;
        let trusts: Vec<&Trust> = self.found.iter().map(|found| &found.trust).collect();
        self.observations.note(wanted, &trusts, Timestamp::now(), Instant::now());
        Ok(())
    }

    fn duty(&self, is_trusted: bool) -> Duty {
        match &self.writer {
            Writer::Leader(leading) if *leading.borrow() => Duty::Keep { overlap: self.overlap },
            Writer::Leader(_) if !is_trusted && self.started.elapsed() >= LEFT_OUT_FOR.min(self.settle) => Duty::Add,
            Writer::Leader(_) | Writer::Registration => Duty::Look,
        }
    }

    /// Whether this replica writes for all.
    pub fn leads(&self) -> bool {
        match &self.writer {
            Writer::Leader(leading) => *leading.borrow(),
            Writer::Registration => true,
        }
    }

    /// Whether a replica may get requests only once it is trusted. A process that registers itself gets none before that.
    pub const fn guards_readiness(&self) -> bool {
        matches!(self.writer, Writer::Leader(_))
    }

    /// Waits until this replica begins or ends to lead.
    pub async fn leading_changes(&mut self) {
        match &mut self.writer {
            Writer::Leader(leading) => {
                if leading.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Writer::Registration => std::future::pending().await,
        }
    }

    /// Whether every API server can be expected to trust all of them.
    pub fn are_settled<'a>(&self, anchors: impl IntoIterator<Item = &'a TrustAnchor>) -> bool {
        let now = Instant::now();
        anchors.into_iter().all(|anchor| self.observations.is_settled(anchor, now))
    }

    /// How long to wait before the next look while something is under way.
    pub const fn pause(&self) -> Duration {
        self.check
    }

    /// Whether every object with a caBundle of ours exists.
    pub fn is_complete(&self) -> bool {
        self.bundles.are_complete()
    }

    /// What is waited for until these are settled, for people.
    pub fn obstacle(&self, anchors: &[TrustAnchor]) -> String {
        let lacking = self.found.iter().find(|found| !anchors.iter().all(|anchor| found.trust.has(anchor)));
        match lacking {
            Some(BundleState { object, is_injected: true, .. }) => format!(
                "caBundle of {object} does not hold the authority of this replica, and belongs to cert-manager's injector by an \
                 annotation cert-manager.io/inject-…; remove it, or run with --certificates files"
            ),
            Some(BundleState { object, .. }) => {
                format!("caBundle of {object} does not hold the authority of this replica yet; the leader adds it")
            }
            None => format!(
                "the authority of this replica is new; waiting {:?} until API servers have read it",
                self.settle
            ),
        }
    }
}
