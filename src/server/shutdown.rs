//! How the process ends: not ready at once, serving on while the news spreads, then closed, then gone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::readiness::Readiness;

/// The phases of ending; clones share them.
#[derive(Debug, Clone)]
pub struct Shutdown {
    readiness: Readiness,
    draining: CancellationToken,
    stopping: CancellationToken,
    holds: TaskTracker,
}

impl Shutdown {
    /// A process that runs.
    pub fn new(readiness: Readiness) -> Self {
        let (draining, stopping) = (CancellationToken::new(), CancellationToken::new());
        Self { readiness, draining, stopping, holds: TaskTracker::new() }
    }

    /// Ends the process in order: `/readyz` turns false now; after `drain_delay`, in which every reply says
    /// `Connection: close`, and not before the last [`hold`](Self::hold) is dropped, the listeners close.
    pub async fn begin(&self, drain_delay: Duration) {
        self.readiness.drain();
        self.draining.cancel();
        self.holds.close();
        tokio::join!(tokio::time::sleep(drain_delay), self.holds.wait());
        self.stopping.cancel();
    }

    /// Keeps the listeners open until it is dropped, for a component that first has to stop the API server from sending requests.
    pub fn hold(&self) -> TaskTrackerToken {
        self.holds.token()
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
