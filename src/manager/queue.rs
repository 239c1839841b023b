//! Runs reconciles for keys as they are added.

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::manager::schedule::{Next, Schedule};
use crate::server::Metrics;
use crate::server::metrics::{ControllerMetrics, ReconcileResult};

/// Keys that want to be reconciled. Clones share their content.
pub struct Queue<K> {
    controller: &'static str,
    schedule: Arc<Mutex<Schedule<K>>>,
    wake: Arc<Notify>,
    metrics: Metrics,
    controller_metrics: ControllerMetrics,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            controller: self.controller,
            schedule: Arc::clone(&self.schedule),
            wake: Arc::clone(&self.wake),
            metrics: self.metrics.clone(),
            controller_metrics: self.controller_metrics.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash + Debug + Send + Sync + 'static> Queue<K> {
    /// An empty queue of the controller named; one key runs at most once in each `pace`.
    pub fn new(controller: &'static str, pace: Duration, metrics: &Metrics) -> Self {
        Self {
            controller,
            schedule: Arc::new(Mutex::new(Schedule::new(pace))),
            wake: Arc::default(),
            metrics: metrics.clone(),
            controller_metrics: metrics.controller(controller),
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule<K>> {
        // A panic cannot leave the schedule half changed in a way that matters: keys are added again by the next event.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a reconcile of the key.
    pub fn add(&self, key: K) {
        let mut schedule = self.schedule();
        schedule.add(key, Instant::now());
        self.controller_metrics.waiting(schedule.depth());
        drop(schedule);
        self.wake.notify_one();
    }

    async fn next(&self) -> K {
        loop {
            let woken = self.wake.notified();
            let next = {
                let mut schedule = self.schedule();
                let next = schedule.next(Instant::now());
                self.controller_metrics.waiting(schedule.depth());
                next
            };
            match next {
                Next::Run(key) => {
                    // Another worker may find a further key.
                    self.wake.notify_one();
                    return key;
                }
                Next::At(at) => {
                    tokio::select! {
                        () = woken => {}
                        () = tokio::time::sleep_until(at.into()) => {}
                    }
                }
                Next::Nothing => woken.await,
            }
        }
    }

    /// Reconciles with so many workers until cancelled. What runs at that moment is dropped, not finished: whoever
    /// cancels does it because this process must not write any more. A reconcile says when the key is to come back if nothing
    /// happens before.
    pub async fn run<E, F, R>(&self, workers: usize, reconcile: R, cancel: CancellationToken)
    where
        E: Display,
        F: Future<Output = Result<Option<Duration>, E>> + Send,
        R: Fn(K) -> F + Clone + Send + Sync + 'static,
    {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let (queue, reconcile) = (self.clone(), reconcile.clone());
            tasks.spawn(cancel.clone().run_until_cancelled_owned(async move {
                loop {
                    let key = queue.next().await;
                    queue.reconcile(key, &reconcile).await;
                }
            }));
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn reconcile<E, F>(&self, key: K, reconcile: &impl Fn(K) -> F)
    where
        E: Display,
        F: Future<Output = Result<Option<Duration>, E>>,
    {
        let start = Instant::now();
        let result = AssertUnwindSafe(async { reconcile(key.clone()).await }).catch_unwind().await;
        let again = match result {
            Ok(Ok(again)) => Some(again),
            Ok(Err(error)) => {
                tracing::warn!(controller = self.controller, ?key, %error, "Reconcile failed, trying again");
                None
            }
            Err(_) => {
                tracing::error!(controller = self.controller, ?key, "Reconcile panicked, trying again");
                self.metrics.panics.inc();
                None
            }
        };
        let word = if again.is_some() { ReconcileResult::success } else { ReconcileResult::error };
        self.controller_metrics.reconciled(word, start.elapsed());
        let now = Instant::now();
        let mut schedule = self.schedule();
        schedule.finish(&key, again.is_some(), now);
        // A time too far away to be told is never.
        if let Some(at) = again.flatten().and_then(|wait| now.checked_add(wait)) {
            schedule.add_at(key, at);
        }
        drop(schedule);
        self.wake.notify_one();
    }
}

/// Adds every key of a set to a queue.
pub fn add_all<K: Clone + Eq + Hash + Debug + Send + Sync + 'static>(
    queue: &Queue<K>,
    keys: impl IntoIterator<Item = K>,
) {
    let keys: HashSet<K> = keys.into_iter().collect();
    for key in keys {
        queue.add(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::server::Freshness;

    #[tokio::test]
    async fn a_key_that_fails_and_one_that_panics_come_back_and_others_go_on() {
        let queue = Queue::new("test", Duration::ZERO, &Metrics::new(Freshness::default()));
        let cancel = CancellationToken::new();
        let runs: Arc<[AtomicUsize; 3]> = Arc::default();
        for key in 0..3 {
            queue.add(key);
        }
        let reconcile = {
            let (runs, cancel) = (Arc::clone(&runs), cancel.clone());
            move |key: usize| {
                let (runs, cancel) = (Arc::clone(&runs), cancel.clone());
                async move {
                    let run = runs[key].fetch_add(1, Ordering::SeqCst);
                    assert!(key != 1 || run > 0, "the first run of key 1 panics");
                    if key == 0 && run < 2 {
                        return Err("not yet");
                    }
                    if runs.iter().zip([3, 2, 1]).all(|(count, wanted)| count.load(Ordering::SeqCst) == wanted) {
                        cancel.cancel();
                    }
                    Ok(None)
                }
            }
        };
        queue.run(2, reconcile, cancel).await;
        let runs: Vec<usize> = runs.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        assert_eq!(runs, [3, 2, 1]);
    }

    #[tokio::test]
    async fn a_key_comes_back_when_its_reconcile_said() {
        let queue = Queue::new("test", Duration::ZERO, &Metrics::new(Freshness::default()));
        let cancel = CancellationToken::new();
        let runs = Arc::new(AtomicUsize::new(0));
        queue.add(());
        let reconcile = {
            let (runs, cancel) = (Arc::clone(&runs), cancel.clone());
            move |()| {
                let (run, cancel) = (runs.fetch_add(1, Ordering::SeqCst), cancel.clone());
                async move {
                    if run == 2 {
                        cancel.cancel();
                    }
                    Ok::<_, String>(Some(Duration::from_millis(1)))
                }
            }
        };
        queue.run(1, reconcile, cancel).await;
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn cancelling_drops_the_reconcile_that_runs() {
        let queue = Queue::new("test", Duration::ZERO, &Metrics::new(Freshness::default()));
        let cancel = CancellationToken::new();
        queue.add(());
        let inner = cancel.clone();
        let reconcile = move |()| {
            let cancel = inner.clone();
            async move {
                cancel.cancel();
                std::future::pending::<Result<Option<Duration>, String>>().await
            }
        };
        queue.run(1, reconcile, cancel).await;
    }
}
