//! The metric about pods and the sets that select them, kept up to date event by event.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::metrics::Metrics;
use crate::sidecarset::controller::injection_counts::InjectionCounts;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use engine::snapshot::Snapshot;

/// Pods that are counted before others get the processor: with a few sets for each, a fraction of a millisecond.
const BATCH: usize = 256;

/// From one count of all pods to the next. A pod's own events are counted at once; only a change of a set or of a namespace asks
/// for all of them, and in a large cluster one of these changes all the time.
const PAUSE: Duration = Duration::from_secs(5);

/// The sum over all pods of their states for the sets that select them. The metric is there from the first count of all pods until
/// this is dropped: replicas that do not lead report nothing, so that a sum over replicas is right.
pub struct PodStateMetric {
    metrics: Metrics,
    // Pods that no set selects are left out.
    counts: HashMap<PodKey, InjectionCounts>,
    sum: InjectionCounts,
    taken: Option<Instant>,
    stale: bool,
}

impl PodStateMetric {
    /// One that knows of no pod.
    pub fn new(metrics: Metrics) -> Self {
        Self { metrics, counts: HashMap::new(), sum: InjectionCounts::default(), taken: None, stale: true }
    }

    /// Sets or namespaces have changed: all pods have to be counted again.
    pub const fn sets_changed(&mut self) {
        self.stale = true;
    }

    /// Waits until all pods are to be counted.
    pub async fn due(&self) {
        match self.due_at() {
            Some(time) => sleep_until(time).await,
            None => pending().await,
        }
    }

    fn due_at(&self) -> Option<Instant> {
        self.stale.then(|| self.taken.map_or_else(Instant::now, |taken| taken + PAUSE))
    }

    /// Counts all pods.
    pub async fn take(&mut self, pods: &Mutex<PodIndex>, snapshot: &Snapshot) {
        self.stale = false;
        self.counts.clear();
        self.sum = InjectionCounts::default();
        let mut last: Option<PodKey> = None;
        loop {
            let mut looked_at = 0;
            {
                let pods = locked(pods);
                let mut end = None;
                for (key, pod) in pods.after(last.as_ref()).take(BATCH) {
                    self.file(key, InjectionCounts::of(&key.namespace, pod, snapshot));
                    looked_at += 1;
                    end = Some(key);
                }
                last = end.cloned();
            }
            if looked_at < BATCH {
                break;
            }
            yield_now().await;
        }
        self.taken = Some(Instant::now());
        self.tell();
    }

    /// Counts what a pod is now, nothing if it is gone. Before all pods were counted, nothing is.
    pub fn pod(&mut self, key: &PodKey, pod: Option<&PodRecord>, snapshot: &Snapshot) {
        if self.taken.is_none() {
            return;
        }
        if let Some(before) = self.counts.remove(key) {
            self.sum = self.sum.minus(before);
        }
        if let Some(pod) = pod {
            self.file(key, InjectionCounts::of(&key.namespace, pod, snapshot));
        }
        self.tell();
    }

    /// Reports how many pods say more about sets than is kept.
    pub fn clipped(&self, pods: usize) {
        self.metrics.sidecarset_pods_clipped(pods);
    }

    fn file(&mut self, key: &PodKey, counts: InjectionCounts) {
        if counts != InjectionCounts::default() {
            self.sum = self.sum.plus(counts);
            self.counts.insert(key.clone(), counts);
        }
    }

    fn tell(&self) {
        for (state, pods) in self.sum.by_state() {
            self.metrics.sidecarset_pods(state, pods);
        }
    }
}

impl Drop for PodStateMetric {
    fn drop(&mut self) {
        self.metrics.no_sidecarset_pods();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::metrics::Freshness;
    use crate::sidecarset::controller::injection_counts::tests::{set, snapshot};
    use crate::sidecarset::controller::record::tests::{pod, wanted};
    use crate::sidecarset::controller::watched_pod::WatchedPod;

    /// The lines of the metric, without its name.
    fn told(metrics: &Metrics) -> Vec<String> {
        let text = metrics.encode().unwrap();
        let mut lines: Vec<String> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("outrider_sidecarset_pods")?.to_owned()))
            .filter(|line| line.starts_with('{'))
            .collect();
        lines.sort();
        lines
    }

    fn lines(exempt: u32, missing: u32, outdated: u32, updated: u32) -> Vec<String> {
        [("exempt", exempt), ("missing", missing), ("outdated", outdated), ("updated", updated)]
            .map(|(state, pods)| format!("{{state=\"{state}\"}} {pods}"))
            .into()
    }

    fn index(pods: &[WatchedPod]) -> Mutex<PodIndex> {
        let mut index = PodIndex::default();
        for pod in pods {
            index.update(&PodKey::of(pod), PodRecord::of(pod, &wanted(&[])));
        }
        Mutex::new(index)
    }

    fn is(metric: &mut PodStateMetric, pod: &WatchedPod, snapshot: &Snapshot) {
        metric.pod(&PodKey::of(pod), PodRecord::of(pod, &wanted(&[])).as_ref(), snapshot);
    }

    #[tokio::test]
    async fn the_metric_follows_pods_and_sets_and_goes_with_the_leadership() {
        let metrics = Metrics::new(Freshness::default());
        let mut metric = PodStateMetric::new(metrics.clone());
        let (some, none) = (snapshot([set(&json!({}))], &json!({})), snapshot([], &json!({})));
        let hash = set(&json!({})).hash;
        let injected = pod("injected", "web", &[("a", &hash)], true);
        let old = pod("old", "web", &[], true);
        let pods = index(&[injected.clone(), old.clone(), pod("other", "db", &[], true)]);

        is(&mut metric, &old, &some);
        assert_eq!(told(&metrics), [""; 0], "half of the pods are no sum");
        metric.take(&pods, &some).await;
        assert_eq!(told(&metrics), lines(0, 1, 0, 1));
        is(&mut metric, &old, &some);
        is(&mut metric, &pod("new", "web", &[], true), &some);
        assert_eq!(told(&metrics), lines(0, 2, 0, 1), "a pod counts once");
        is(&mut metric, &pod("new", "web", &[("a", "v1:old")], true), &some);
        assert_eq!(told(&metrics), lines(0, 1, 1, 1));
        metric.pod(&PodKey::of(&old), None, &some);
        metric.pod(&PodKey::of(&injected), None, &some);
        assert_eq!(told(&metrics), lines(0, 0, 1, 0));

        metric.take(&pods, &none).await;
        assert_eq!(told(&metrics), lines(0, 0, 0, 0));
        drop(metric);
        assert_eq!(told(&metrics), [""; 0]);
    }

    #[tokio::test]
    async fn every_pod_is_looked_at_however_many_batches_there_are() {
        let some = snapshot([set(&json!({}))], &json!({}));
        for pods in [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH] {
            let all: Vec<_> = (0..pods).map(|number| pod(&format!("p-{number}"), "web", &[], true)).collect();
            let metrics = Metrics::new(Freshness::default());
            let mut metric = PodStateMetric::new(metrics.clone());
            metric.take(&index(&all), &some).await;
            assert_eq!(told(&metrics), lines(0, u32::try_from(pods).unwrap(), 0, 0));
        }
    }

    #[tokio::test]
    async fn all_pods_are_looked_at_again_after_a_pause_and_only_if_something_changed() {
        let mut metric = PodStateMetric::new(Metrics::new(Freshness::default()));
        assert!(metric.due_at().unwrap() <= Instant::now());
        metric.take(&index(&[]), &snapshot([], &json!({}))).await;
        assert_eq!(metric.due_at(), None);
        metric.sets_changed();
        assert_eq!(metric.due_at(), Some(metric.taken.unwrap() + PAUSE));
    }
}
