//! The metric about the pods that rollouts are about, summed over the sets.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::metrics::Metrics;
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::memory::Memory;

/// The names of the phases.
const PHASES: [&str; 4] = ["in_flight", "waiting", "failing", "not_updatable"];

/// How many pods are in each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases([u64; PHASES.len()]);

impl Phases {
    /// Those of one set.
    pub fn of(counts: Counts, memory: &Memory) -> Self {
        let whole = |pods: i32| u64::try_from(pods).unwrap_or_default();
        let count = |pods: usize| u64::try_from(pods).unwrap_or(u64::MAX);
        let (failing, not_updatable) = (count(memory.failures().0), count(memory.new_pods_only().0));
        let outdated = whole(counts.matched_pods).saturating_sub(whole(counts.updated_pods));
        let waiting = outdated.saturating_sub(failing).saturating_sub(not_updatable);
        Self([count(memory.in_flight()), waiting, failing, not_updatable])
    }
}

/// The sum over all sets. It is there until this is dropped: replicas that do not lead report nothing, so that a sum over replicas is right.
pub struct RolloutMetric {
    metrics: Metrics,
    sets: Mutex<OfSets>,
}

#[derive(Default)]
struct OfSets {
    // Sets that no rollout is about are left out.
    phases: HashMap<String, Phases>,
    sum: Phases,
}

impl RolloutMetric {
    /// One that knows of no set.
    pub fn new(metrics: Metrics) -> Self {
        Self { metrics, sets: Mutex::default() }
    }

    /// Takes in how many pods of the set are in each phase.
    pub fn note(&self, set: &str, new: Phases) {
        let mut sets = locked(&self.sets);
        let before = sets.phases.remove(set).unwrap_or_default();
        if new != Phases::default() {
            sets.phases.insert(set.to_owned(), new);
        }
        for (sum, (before, new)) in sets.sum.0.iter_mut().zip(before.0.into_iter().zip(new.0)) {
            *sum = sum.saturating_sub(before).saturating_add(new);
        }
        for (phase, pods) in PHASES.into_iter().zip(sets.sum.0) {
            self.metrics.sidecarset_rollout_pods(phase, pods);
        }
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        self.note(set, Phases::default());
    }
}

impl Drop for RolloutMetric {
    fn drop(&mut self) {
        self.metrics.no_sidecarset_rollout_pods();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::metrics::Freshness;
    use crate::sidecarset::controller::memory::PodFact;
    use crate::sidecarset::controller::pods::PodKey;
    use crate::sidecarset::controller::record::tests::pod;

    fn lines(metrics: &Metrics) -> Vec<String> {
        let text = metrics.encode().unwrap();
        let of_metric = text.lines().filter_map(|line| line.strip_prefix("outrider_sidecarset_rollout_pods{phase="));
        let mut lines: Vec<String> = of_metric.map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn each_outdated_pod_is_in_one_phase() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let key = |name: &str| PodKey::of(&pod(name, "web", &[], true));
        memory.note(&key("stays"), 1, "h", PodFact::NewPodOnly("why".to_owned()));
        for _ in 0..2 {
            memory.note_failure(&key("fails"), 1, "h", "refused".to_owned(), now);
        }
        let counts = Counts { matched_pods: 10, updated_pods: 3, ..Counts::default() };
        assert_eq!(Phases::of(counts, &memory), Phases([0, 5, 1, 1]));
        let done = Counts { matched_pods: 10, updated_pods: 10, ..Counts::default() };
        assert_eq!(Phases::of(done, &Memory::default()), Phases::default());
    }

    #[test]
    fn the_metric_is_the_sum_over_the_sets_and_goes_with_the_leadership() {
        let metrics = Metrics::new(Freshness::default());
        let metric = RolloutMetric::new(metrics.clone());
        assert_eq!(lines(&metrics), [""; 0]);
        metric.note("a", Phases([1, 2, 3, 4]));
        metric.note("b", Phases([1, 1, 1, 1]));
        metric.note("a", Phases([0, 1, 3, 4]));
        let expected = ["\"failing\"} 4", "\"in_flight\"} 1", "\"not_updatable\"} 5", "\"waiting\"} 2"];
        assert_eq!(lines(&metrics), expected);
        metric.forget("a");
        metric.forget("b");
        assert_eq!(lines(&metrics)[1], "\"in_flight\"} 0");
        assert!(locked(&metric.sets).phases.is_empty());
        drop(metric);
        assert_eq!(lines(&metrics), [""; 0]);
    }
}
