//! The metrics of one webhook path.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admission::reply::Count;
use admission::{Decision, Reason, Unserved};
use engine::reasons;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::labels::{PluginLabels, ReviewLabels};

pub(super) const DECISIONS: [Decision; 3] = [Decision::Allowed, Decision::Patched, Decision::Denied];
/// `dry_run` where no review was read.
pub(super) const UNKNOWN: &str = "";
/// The path on which pods get their sets.
pub(super) const PODS: &str = "/mutate--v1-pod";
/// The path on which pods are judged as they are to be stored.
const STORED_PODS: &str = "/validate--v1-pod";

/// Whether a pod was refused or went without a set because the two do not fit together: an alert is about each increase.
pub(super) fn is_misfit(reason: Reason) -> bool {
    reason.as_str().ends_with("Clash")
        || [reasons::SET_CONFLICT, reasons::EVALUATION_FAILED, reasons::RESULT_ILLEGAL].contains(&reason)
}

/// The metrics of one webhook path. Counting a decision takes no lock, no hash and no allocation after the first of its kind.
#[derive(Debug)]
pub struct PathMetrics {
    path: Arc<str>,
    duration: Histogram,
    reviews: Family<ReviewLabels, Counter>,
    plugin_decisions: Family<PluginLabels, Counter>,
    known: Vec<OnceLock<Counter>>,
}

impl PathMetrics {
    pub(super) fn new(
        path: &str,
        duration: Histogram,
        reviews: Family<ReviewLabels, Counter>,
        plugin_decisions: Family<PluginLabels, Counter>,
    ) -> Self {
        let known = std::iter::repeat_with(OnceLock::new).take(2 * DECISIONS.len() * reasons::ALL.len()).collect();
        let metrics = Self { path: path.into(), duration, reviews, plugin_decisions, known };
        metrics.start_at_zero();
        metrics
    }

    /// Creates the series that alerts are about: `increase()` does not count the first refusal of a series that begins with it.
    fn start_at_zero(&self) {
        let alerts_on: fn(Reason) -> bool = match &*self.path {
            PODS => is_misfit,
            STORED_PODS => |reason| reason == reasons::UNINJECTED,
            _ => return,
        };
        for decision in DECISIONS {
            for (reason, _) in reasons::ALL.iter().filter(|(reason, _)| alerts_on(*reason)) {
                self.counter(decision.as_str(), reason.as_str(), "false");
            }
        }
    }

    /// Counts a decision.
    pub fn decided(&self, decision: Decision, reason: Reason, dry_run: bool) {
        let row = match decision {
            Decision::Allowed => 0,
            Decision::Patched => 1,
            Decision::Denied => 2,
        };
        let (row, dry_run) = if dry_run { (row + DECISIONS.len(), "true") } else { (row, "false") };
        let create = || self.counter(decision.as_str(), reason.as_str(), dry_run);
        let column = reasons::position(reason);
        match column.and_then(|column| self.known.get(row * reasons::ALL.len() + column)) {
            Some(known) => known.get_or_init(create).inc(),
            None => create().inc(),
        };
    }

    /// Counts the decisions of admission plugins.
    pub fn plugins_decided(&self, counts: &[Count]) {
        for Count { by: plugin, mode, verdict } in counts.iter().copied() {
            self.plugin_decisions.get_or_create(&PluginLabels { plugin, mode, verdict }).inc();
        }
    }

    /// Counts a request that got no verdict.
    pub fn unserved(&self, unserved: &Unserved) {
        self.counter("unserved", unserved.reason(), UNKNOWN).inc();
    }

    /// Counts a request with another method than POST.
    pub fn wrong_method(&self) {
        self.counter("unserved", "MethodNotAllowed", UNKNOWN).inc();
    }

    /// Counts a `ConversionReview` that was answered.
    pub fn converted(&self) {
        self.counter("converted", "Converted", UNKNOWN).inc();
    }

    /// Observes the time of a request, whatever its answer.
    pub fn took(&self, duration: Duration) {
        self.duration.observe(duration.as_secs_f64());
    }

    fn counter(&self, verdict: &'static str, reason: &'static str, dry_run: &'static str) -> Counter {
        self.reviews.get_or_create_owned(&ReviewLabels { path: Arc::clone(&self.path), verdict, reason, dry_run })
    }
}
