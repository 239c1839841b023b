//! How leader work ends: in order, or at once.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long leader work may take to tidy up once its term is cut.
const TIDY_UP: Duration = Duration::from_secs(5);

/// A time of leader work; clones share it. It ends in two steps: first nothing new is begun and what runs is finished, then
/// nothing may be written any more.
#[derive(Debug, Clone)]
pub struct LeaderTerm {
    ending: CancellationToken,
    over: CancellationToken,
}

impl Default for LeaderTerm {
    fn default() -> Self {
        let over = CancellationToken::new();
        Self { ending: over.child_token(), over }
    }
}

impl LeaderTerm {
    /// Works for a new term, until the work ends by itself. When `cancel` is cancelled the term ends, and it is cut if what runs
    /// has not finished after `grace_period`; when `lost` has come to its end, it is cut at once.
    pub async fn serve<F: Future<Output = ()>>(
        work: impl FnOnce(Self) -> F,
        cancel: &CancellationToken,
        grace_period: Duration,
        lost: impl Future<Output = ()>,
    ) {
        let term = Self::default();
        let mut work = pin!(work(term.clone()));
        let ended = async {
            cancel.cancelled().await;
            term.end();
            sleep(grace_period).await;
            tracing::warn!("Leader work did not finish in time");
        };
        tokio::select! {
            () = &mut work => return,
            () = ended => {}
            () = lost => {}
        }
        term.cut();
        if timeout(TIDY_UP, work).await.is_err() {
            tracing::error!("Leader work did not stop and was dropped");
        }
    }

    /// Nothing new is to be begun; what runs may go on to its end.
    pub fn end(&self) {
        self.ending.cancel();
    }

    /// Running work is to be dropped: another process may write from now on.
    pub fn cut(&self) {
        self.over.cancel();
    }

    /// Whether nothing new is to be begun.
    pub fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Waits until nothing new is to be begun.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Waits until whatever runs is to be dropped.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Works until nothing new is to be begun, in the midst of whatever it is. `None` when it was that.
    pub async fn until_ending<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.ending.run_until_cancelled(work).await
    }
}
