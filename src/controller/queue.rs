//! Runs reconciles for keys as they are added.
//!
//! No library: kube-runtime's `Controller` merges a burst of events only by a debounce, which delays every event, and leaves the
//! pauses after errors to each controller.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::controller::leader_term::LeaderTerm;
use crate::controller::work_queue::{Next, RunEnd, WorkQueue};
use crate::metrics::Metrics;
use crate::metrics::{ControllerMetrics, ReconcileResult};

/// The name of an object, as logs show it.
pub trait ObjectName {
    /// Its namespace, if it has one.
    fn namespace(&self) -> Option<&str>;
    /// Its name in the namespace.
    fn name(&self) -> &str;
}

/// Of an object without a namespace.
impl ObjectName for Arc<str> {
    fn namespace(&self) -> Option<&str> {
        None
    }

    fn name(&self) -> &str {
        self
    }
}

/// What a reconcile failed with.
pub trait ReconcileError: Display {
    /// Whether the API server or a webhook refused what was written, so that it would refuse the same again.
    fn is_refusal(&self) -> bool;
}

/// Keys that want to be reconciled. Clones share their content.
pub struct Queue<K> {
    controller: &'static str,
    kind: Cow<'static, str>,
    schedule: Arc<Mutex<WorkQueue<K>>>,
    wake: Arc<Notify>,
    metrics: Metrics,
    controller_metrics: ControllerMetrics,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            controller: self.controller,
            kind: self.kind.clone(),
            schedule: Arc::clone(&self.schedule),
            wake: Arc::clone(&self.wake),
            metrics: self.metrics.clone(),
            controller_metrics: self.controller_metrics.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash + ObjectName + Send + Sync + 'static> Queue<K> {
    /// An empty queue of the controller named, which reconciles objects of this kind; one key runs at most once in each `pace`.
    pub fn new(controller: &'static str, kind: Cow<'static, str>, pace: Duration, metrics: &Metrics) -> Self {
        Self {
            controller,
            kind,
            schedule: Arc::new(Mutex::new(WorkQueue::new(pace))),
            wake: Arc::default(),
            metrics: metrics.clone(),
            controller_metrics: metrics.controller(controller),
        }
    }

    fn schedule(&self) -> MutexGuard<'_, WorkQueue<K>> {
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

    /// Reconciles with so many workers until the term ends. What runs then is finished, unless the term is cut: then this
    /// process must not write any more. A reconcile says when the key is to come back if nothing happens before.
    pub async fn run<E, F, R>(&self, workers: usize, reconcile: R, term: LeaderTerm)
    where
        E: ReconcileError,
        F: Future<Output = Result<Option<Duration>, E>> + Send,
        R: Fn(K) -> F + Clone + Send + Sync + 'static,
    {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let (queue, reconcile, term) = (self.clone(), reconcile.clone(), term.clone());
            tasks.spawn(async move {
                let work = async {
                    while let Some(key) = term.until_ending(queue.next()).await {
                        queue.reconcile(key, &reconcile).await;
                    }
                    true
                };
                tokio::select! {
                    biased;
                    () = term.over() => false,
                    finished = work => finished,
                }
            });
        }
        let mut all_finished = true;
        while let Some(worker) = tasks.join_next().await {
            all_finished &= matches!(worker, Ok(true));
        }
        if all_finished {
            tracing::info!(controller = self.controller, "All workers finished");
        } else {
            tracing::warn!(controller = self.controller, "Not all workers finished; what ran was dropped");
        }
    }

    /// A span is around every line of a reconcile, at the highest level, so that no filter takes it from the lines it lets
    /// through. Its fields are those of controller-runtime.
    fn span(&self, key: &K) -> tracing::Span {
        static RECONCILES: AtomicU64 = AtomicU64::new(1);
        tracing::error_span!(
            "reconcile",
            controller = self.controller,
            kind = &*self.kind,
            namespace = key.namespace(),
            name = key.name(),
            reconcileID = RECONCILES.fetch_add(1, Ordering::Relaxed),
        )
    }

    async fn reconcile<E, F>(&self, key: K, reconcile: &impl Fn(K) -> F)
    where
        E: ReconcileError,
        F: Future<Output = Result<Option<Duration>, E>>,
    {
        let start = Instant::now();
        let span = self.span(&key);
        let run = AssertUnwindSafe(async { reconcile(key.clone()).await }.instrument(span.clone()));
        let result = run.catch_unwind().await;
        let (end, again) = span.in_scope(|| match result {
            Ok(Ok(again)) => (RunEnd::Success, again),
            Ok(Err(error)) => {
                tracing::warn!(%error, "Reconcile failed, trying again");
                (if error.is_refusal() { RunEnd::Refusal } else { RunEnd::Failure }, None)
            }
            Err(_) => {
                tracing::error!("Reconcile panicked, trying again");
                self.metrics.panics.inc();
                (RunEnd::Failure, None)
            }
        });
        let word = if end == RunEnd::Success { ReconcileResult::success } else { ReconcileResult::error };
        self.controller_metrics.reconciled(word, start.elapsed());
        let now = Instant::now();
        let mut schedule = self.schedule();
        schedule.finish(&key, end, now);
        // A time too far away to be expressed is never.
        if let Some(at) = again.and_then(|wait| now.checked_add(wait)) {
            schedule.add_at(key, at);
        }
        drop(schedule);
        self.wake.notify_one();
    }
}

/// Adds every key of a set to a queue.
pub fn add_all<K: Clone + Eq + Hash + ObjectName + Send + Sync + 'static>(
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
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;
    use crate::metrics::Freshness;

    impl ReconcileError for &'static str {
        fn is_refusal(&self) -> bool {
            false
        }
    }

    impl ObjectName for usize {
        fn namespace(&self) -> Option<&str> {
            None
        }

        #[expect(clippy::unnecessary_literal_bound, reason = "the trait has it")]
        fn name(&self) -> &str {
            "numbered"
        }
    }

    fn queue(keys: impl IntoIterator<Item = usize>) -> Queue<usize> {
        let queue = Queue::new("test", "Test".into(), Duration::ZERO, &Metrics::new(Freshness::default()));
        add_all(&queue, keys);
        queue
    }

    #[tokio::test]
    async fn a_key_that_fails_and_one_that_panics_come_back_and_others_go_on() {
        let (queue, term) = (queue(0..3), LeaderTerm::default());
        let runs: Arc<[AtomicUsize; 3]> = Arc::default();
        let reconcile = {
            let (runs, term) = (Arc::clone(&runs), term.clone());
            move |key: usize| {
                let (runs, term) = (Arc::clone(&runs), term.clone());
                async move {
                    let run = runs[key].fetch_add(1, Ordering::SeqCst);
                    assert!(key != 1 || run > 0, "the first run of key 1 panics");
                    if key == 0 && run < 2 {
                        return Err("not yet");
                    }
                    if runs.iter().zip([3, 2, 1]).all(|(count, wanted)| count.load(Ordering::SeqCst) == wanted) {
                        term.end();
                    }
                    Ok(None)
                }
            }
        };
        queue.run(2, reconcile, term).await;
        let runs: Vec<usize> = runs.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        assert_eq!(runs, [3, 2, 1]);
    }

    #[tokio::test]
    async fn a_key_comes_back_when_its_reconcile_said() {
        let (queue, term) = (queue([0]), LeaderTerm::default());
        let runs = Arc::new(AtomicUsize::new(0));
        let reconcile = {
            let (runs, term) = (Arc::clone(&runs), term.clone());
            move |_| {
                let (run, term) = (runs.fetch_add(1, Ordering::SeqCst), term.clone());
                async move {
                    if run == 2 {
                        term.end();
                    }
                    Ok::<_, &str>(Some(Duration::from_millis(1)))
                }
            }
        };
        queue.run(1, reconcile, term).await;
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }

    /// Every reconcile waits until so many have begun as there are workers, and then for all others to have had their chance.
    #[tokio::test]
    async fn as_many_reconciles_run_at_once_as_there_are_workers_and_never_more() {
        const WORKERS: usize = 4;
        const KEYS: usize = 20;
        let (queue, term) = (queue(0..KEYS), LeaderTerm::default());
        let (running, most, done) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let all_begun = Arc::new(tokio::sync::Barrier::new(WORKERS));
        let reconcile = {
            let (running, most, done, term) =
                (Arc::clone(&running), Arc::clone(&most), Arc::clone(&done), term.clone());
            move |_| {
                let (running, most, done) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&done));
                let (all_begun, term) = (Arc::clone(&all_begun), term.clone());
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // With fewer at once, nothing goes on from here.
                    all_begun.wait().await;
                    for _ in 0..10 * KEYS {
                        tokio::task::yield_now().await;
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                    if done.fetch_add(1, Ordering::SeqCst) + 1 == KEYS {
                        term.end();
                    }
                    Ok::<_, &str>(None)
                }
            }
        };
        let run = queue.run(WORKERS, reconcile, term);
        tokio::time::timeout(Duration::from_secs(60), run).await.expect("as many run at once as there are workers");
        assert_eq!((most.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (WORKERS, KEYS));
    }

    /// A run of key 0 that ends on a signal, and the sender of that signal.
    fn held_run(
        queue: &Queue<usize>,
        term: &LeaderTerm,
    ) -> (tokio::task::JoinHandle<()>, oneshot::Sender<()>, Arc<AtomicUsize>) {
        let (release, held) = oneshot::channel();
        let (held, finished) = (Arc::new(Mutex::new(Some(held))), Arc::new(AtomicUsize::new(0)));
        let (term, begun, count) = (term.clone(), term.clone(), Arc::clone(&finished));
        let reconcile = move |_| {
            let (held, count, begun) = (held.lock().unwrap().take(), Arc::clone(&count), begun.clone());
            async move {
                begun.end();
                if let Some(held) = held {
                    held.await.unwrap();
                }
                count.fetch_add(1, Ordering::SeqCst);
                Ok::<_, &str>(None)
            }
        };
        let queue = queue.clone();
        (tokio::spawn(async move { queue.run(1, reconcile, term).await }), release, finished)
    }

    /// Acceptance check 38: running reconciles finish, and no further one begins.
    #[tokio::test]
    async fn a_reconcile_that_runs_when_the_term_ends_is_finished_and_no_other_begins() {
        let (queue, term) = (queue([0, 1]), LeaderTerm::default());
        let (running, release, finished) = held_run(&queue, &term);
        term.ending().await;
        tokio::task::yield_now().await;
        assert!(!running.is_finished());
        release.send(()).unwrap();
        running.await.unwrap();
        assert_eq!(finished.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_reconcile_that_runs_when_the_term_is_cut_is_dropped() {
        let (queue, term) = (queue([0]), LeaderTerm::default());
        let (running, _release, finished) = held_run(&queue, &term);
        term.ending().await;
        term.cut();
        running.await.unwrap();
        assert_eq!(finished.load(Ordering::SeqCst), 0);
    }
}
