//! How the process ends: not ready at once, serving on while the news spreads, then closed, then gone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::readiness::Readiness;

/// The phases of ending; clones share them.
#[derive(Debug, Clone)]
pub struct Shutdown {
    readiness: Readiness,
    draining: CancellationToken,
    stopping: CancellationToken,
}

impl Shutdown {
    /// A process that runs.
    pub fn new(readiness: Readiness) -> Self {
        Self { readiness, draining: CancellationToken::new(), stopping: CancellationToken::new() }
    }

    /// Ends the process in order: `/readyz` turns false now; after `drain_delay`, in which every reply says
    /// `Connection: close`, the listeners close.
    pub async fn begin(&self, drain_delay: Duration) {
        self.readiness.drain();
        self.draining.cancel();
        tokio::time::sleep(drain_delay).await;
        self.stopping.cancel();
    }

    /// Waits until the process is to end: the time to give up a lease and to take on nothing new.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Waits until no new connection is taken.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Whether the process is to end.
    pub fn is_draining(&self) -> bool {
        self.readiness.is_draining()
    }
}
