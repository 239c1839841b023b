//! How controllers run: what the configuration file says, and no flag does.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kube::{Api, Client, Resource};
use tokio::time::{sleep, timeout};

use super::scope::{Scoped, within};

/// Objects of a kind that are reconciled at one time, unless something else is asked for.
pub const WORKERS: usize = 3;

/// controller-runtime's default.
const SYNC_PERIOD: Duration = Duration::from_secs(10 * 60 * 60);

/// How controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerOptions {
    /// The only namespace whose objects are watched.
    pub namespace: Option<String>,
    /// Every object is reconciled again after so long; never when zero.
    pub sync_period: Duration,
    /// How long a controller waits until every object was listed.
    pub cache_sync_timeout: Option<Duration>,
    /// Workers by `Kind.group`.
    pub workers: BTreeMap<String, usize>,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self { namespace: None, sync_period: SYNC_PERIOD, cache_sync_timeout: None, workers: BTreeMap::new() }
    }
}

impl ControllerOptions {
    /// How many objects of a kind are reconciled at the same time.
    pub fn workers(&self, kind: &str, group: &str) -> usize {
        self.workers_or(kind, group, WORKERS)
    }

    /// The same for a kind that has another number where none is asked for.
    pub fn workers_or(&self, kind: &str, group: &str, default: usize) -> usize {
        self.workers.get(&group_kind(kind, group)).copied().unwrap_or(default)
    }

    /// Kinds with a number of workers that none of these is, each a kind and its group.
    pub fn unknown_kinds<'a>(&'a self, known: &[(&str, &str)]) -> Vec<&'a str> {
        let known: Vec<String> = known.iter().map(|(kind, group)| group_kind(kind, group)).collect();
        self.workers.keys().map(String::as_str).filter(|name| !known.iter().any(|known| known == name)).collect()
    }

    /// The namespace in which objects of the kind are watched; of all namespaces, and of none, where there is none.
    pub fn namespace_of<K: Resource<Scope: Scoped>>(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| <K::Scope as Scoped>::NAMESPACED)
    }

    /// Where objects of the kind are watched; those without a namespace are watched all.
    pub fn api<K>(&self, client: Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope: Scoped>,
    {
        match &self.namespace {
            Some(namespace) => within(client, namespace),
            None => Api::all(client),
        }
    }

    /// Waits until the watches of a controller have listed every object. Returns whether that was in time; if not, the log says so, and
    /// the controller should begin anew.
    pub async fn listed_in_time(&self, controller: &str, told: impl Future<Output = ()>) -> bool {
        let Some(longest) = self.cache_sync_timeout else {
            told.await;
            return true;
        };
        let in_time = timeout(longest, told).await.is_ok();
        if !in_time {
            let seconds = longest.as_secs_f64();
            tracing::error!(controller, seconds, "Not every watch was complete within the cacheSyncTimeout");
        }
        in_time
    }

    /// Calls `look_again` once in each period, give or take a tenth, so that controllers and replicas do not all do it at one
    /// moment. Does not end.
    pub async fn resync(&self, mut look_again: impl FnMut()) {
        if self.sync_period.is_zero() {
            return std::future::pending().await;
        }
        let chance = RandomState::new();
        for turn in 0_u64.. {
            sleep(spread(self.sync_period, chance.hash_one(turn))).await;
            look_again();
        }
    }
}

fn group_kind(kind: &str, group: &str) -> String {
    // As `String()` of k8s.io/apimachinery/pkg/runtime/schema.GroupKind.
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// The period, more or less by up to a tenth of it.
fn spread(period: Duration, chance: u64) -> Duration {
    let thousandths = 900 + u32::try_from(chance % 201).unwrap_or_default();
    (period / 1000).saturating_mul(thousandths)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn workers_are_found_by_kind_and_group() {
        let workers = [("SidecarSet.apps.example.com", 5), ("Pod", 2)];
        let workers = workers.map(|(name, count)| (name.to_owned(), count)).into();
        let options = ControllerOptions { workers, ..ControllerOptions::default() };
        assert_eq!(options.workers("SidecarSet", "apps.example.com"), 5);
        assert_eq!(options.workers("Pod", ""), 2);
        assert_eq!(options.workers("SidecarSet", "example.com"), WORKERS);
        assert_eq!((options.workers_or("Pod", "", 9), options.workers_or("Job", "batch", 9)), (2, 9));
        assert_eq!(options.unknown_kinds(&[("SidecarSet", "apps.example.com")]), ["Pod"]);
    }

    #[test]
    fn periods_are_spread_by_a_tenth_at_most() {
        let hour = Duration::from_secs(3600);
        for (chance, seconds) in [(0, 3_240), (100, 3_600), (200, 3_960), (201, 3_240)] {
            assert_eq!(spread(hour, chance), Duration::from_secs(seconds), "{chance}");
        }
        assert!(spread(hour, u64::MAX) <= hour * 11 / 10);
    }

    #[tokio::test]
    async fn every_object_is_looked_at_again_in_every_period_and_never_when_it_is_zero() {
        for (period, wanted) in [(Duration::from_millis(1), 3), (Duration::ZERO, 0)] {
            let options = ControllerOptions { sync_period: period, ..ControllerOptions::default() };
            let (times, enough) = (Arc::new(AtomicUsize::new(0)), tokio_util::sync::CancellationToken::new());
            let (count, reached) = (Arc::clone(&times), enough.clone());
            let again = options.resync(move || {
                if count.fetch_add(1, Ordering::SeqCst) == 2 {
                    reached.cancel();
                }
            });
            if wanted == 0 {
                assert!(timeout(Duration::from_millis(20), again).await.is_err());
            } else {
                enough.run_until_cancelled(again).await;
            }
            assert_eq!(times.load(Ordering::SeqCst), wanted);
        }
    }

    #[tokio::test]
    async fn a_watch_that_is_never_complete_is_given_up_only_where_a_timeout_is_set() {
        let options =
            ControllerOptions { cache_sync_timeout: Some(Duration::from_millis(1)), ..ControllerOptions::default() };
        assert!(!options.listed_in_time("test", std::future::pending()).await);
        assert!(options.listed_in_time("test", async {}).await);
        assert!(ControllerOptions::default().listed_in_time("test", async {}).await);
    }
}
