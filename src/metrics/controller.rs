//! The metrics of one controller.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::labels::ReconcileResult;

/// Counts and durations of the reconciles of one controller.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    pub(super) success: Counter,
    pub(super) error: Counter,
    pub(super) duration: Histogram,
    pub(super) queue_depth: Gauge,
}

impl ControllerMetrics {
    /// Counts a reconciliation, and observes its time.
    pub fn reconciled(&self, result: ReconcileResult, took: Duration) {
        match result {
            ReconcileResult::success => self.success.inc(),
            ReconcileResult::error => self.error.inc(),
        };
        self.duration.observe(took.as_secs_f64());
    }

    /// Sets the number of objects that wait.
    pub fn waiting(&self, objects: usize) {
        self.queue_depth.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }
}
