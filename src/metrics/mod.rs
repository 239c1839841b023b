//! Every metric of the process. The names are an interface; no label holds a name, a namespace or a uid.

mod controller;
pub mod freshness;
mod handshakes;
mod labels;
mod path;

pub use controller::ControllerMetrics;
pub use freshness::Freshness;
pub use handshakes::{HandshakeFailure, HandshakeFailures};
pub use labels::{QuestionResult, ReconcileResult};
pub use path::PathMetrics;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use labels::{
    ControllerLabels, PathLabels, PhaseLabels, PluginLabels, QuestionLabels, ReconcileLabels, ReviewLabels,
    StateLabels, WatchLabels, WriteLabels,
};
use path::UNKNOWN;

/// Seconds. A decision takes tens of microseconds; the API server waits 10 s.
const REVIEW_BUCKETS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Seconds. A reconciliation waits for the API server.
const RECONCILE_BUCKETS: [f64; 11] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Handles of all metrics; clones share the same values.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    freshness: Freshness,
    reviews: Family<ReviewLabels, Counter>,
    review_duration: Family<PathLabels, Histogram, fn() -> Histogram>,
    plugin_decisions: Family<PluginLabels, Counter>,
    questions: Family<QuestionLabels, Counter>,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_duration: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    queue_depth: Family<ControllerLabels, Gauge>,
    sidecarset_pods: Family<StateLabels, Gauge>,
    sidecarset_pods_clipped: Gauge,
    sidecarset_rollout_pods: Family<PhaseLabels, Gauge>,
    watch_failing: Family<WatchLabels, Gauge>,
    writes_limited: Family<WriteLabels, Counter>,
    snapshot_generation: Gauge,
    snapshot_age: Gauge<f64, std::sync::atomic::AtomicU64>,
    /// Reviews between the head of the request and the reply.
    pub in_flight: Gauge,
    /// TLS handshakes that failed.
    pub handshake_failures: HandshakeFailures,
    /// Panics that were caught.
    pub panics: Counter,
    /// Certificates that were offered and refused.
    pub certificate_errors: Counter,
    /// When the serving certificate ends, in seconds since 1970; 0 without one.
    pub certificate_not_after: Gauge,
    /// When the serving certificate began, in seconds since 1970; 0 without one.
    pub certificate_not_before: Gauge,
    /// When the newest authority ends, in seconds since 1970; 0 if none is known.
    pub ca_not_after: Gauge,
    /// When the newest authority began, in seconds since 1970; 0 if none is known.
    pub ca_not_before: Gauge,
    /// When the source of the certificate was last found in order, in seconds since 1970.
    pub certificate_checked: Gauge,
    /// 1 while this process holds the lease.
    pub leader: Gauge,
    /// 1 while `/readyz` reports that this process is ready.
    pub ready: Gauge,
}

impl Metrics {
    /// All metrics, at zero. `freshness` is read at every scrape.
    pub fn new(freshness: Freshness) -> Self {
        let mut metrics = Self {
            registry: Arc::default(),
            freshness,
            reviews: Family::default(),
            review_duration: Family::new_with_constructor(|| Histogram::new(REVIEW_BUCKETS)),
            plugin_decisions: Family::default(),
            questions: Family::default(),
            reconciles: Family::default(),
            reconcile_duration: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            queue_depth: Family::default(),
            sidecarset_pods: Family::default(),
            sidecarset_pods_clipped: Gauge::default(),
            sidecarset_rollout_pods: Family::default(),
            watch_failing: Family::default(),
            writes_limited: Family::default(),
            snapshot_generation: Gauge::default(),
            snapshot_age: Gauge::default(),
            in_flight: Gauge::default(),
            handshake_failures: HandshakeFailures::default(),
            panics: Counter::default(),
            certificate_errors: Counter::default(),
            certificate_not_after: Gauge::default(),
            certificate_not_before: Gauge::default(),
            ca_not_after: Gauge::default(),
            ca_not_before: Gauge::default(),
            certificate_checked: Gauge::default(),
            leader: Gauge::default(),
            ready: Gauge::default(),
        };
        metrics.registry = Arc::new(metrics.register());
        metrics
    }

    /// Counters get their `_total`, and what has a unit its `_seconds`, from the encoder.
    fn register(&self) -> Registry {
        let mut all = Registry::with_prefix("outrider");
        self.handshake_failures.register(&mut all);
        plain(&mut all, "reviews", "Reviews answered, by path, verdict and reason", &self.reviews);
        seconds(&mut all, "review_duration", "Time from the head of the request to the reply", &self.review_duration);
        plain(&mut all, "reviews_in_flight", "Reviews between the head of the request and the reply", &self.in_flight);
        plain(&mut all, "panics", "Panics that were caught", &self.panics);
        plain(
            &mut all,
            "plugin_decisions",
            "Decisions of admission plugins, by plugin, mode and verdict; none are counted of dry runs",
            &self.plugin_decisions,
        );
        plain(
            &mut all,
            "questions",
            "Questions of decisions about what the read model does not say, by kind and result",
            &self.questions,
        );
        plain(
            &mut all,
            "snapshot_generation",
            "Generation of the read model that decisions are taken from",
            &self.snapshot_generation,
        );
        seconds(
            &mut all,
            "snapshot_age",
            "Time since the API server last confirmed the read model",
            &self.snapshot_age,
        );
        seconds(
            &mut all,
            "watch_failing",
            "Since when a watch has got errors and nothing else, by what is watched; 0 while it works",
            &self.watch_failing,
        );
        self.register_certificates(&mut all);
        plain(&mut all, "reconcile", "Reconciliations, by controller and result", &self.reconciles);
        seconds(&mut all, "reconcile_duration", "Time of a reconciliation", &self.reconcile_duration);
        plain(
            &mut all,
            "writes_limited",
            "Writes that a controller put off, or events that it left out, as there were too many in a short time",
            &self.writes_limited,
        );
        plain(&mut all, "workqueue_depth", "Objects that wait for their reconciliation", &self.queue_depth);
        plain(
            &mut all,
            "sidecarset_pods",
            "Pods that a SidecarSet selects, summed over the sets, by whether they carry it and in which form; only \
             the leader exposes it",
            &self.sidecarset_pods,
        );
        plain(
            &mut all,
            "sidecarset_pods_clipped",
            "Pods whose annotations about sets are too large for the leader to keep",
            &self.sidecarset_pods_clipped,
        );
        plain(
            &mut all,
            "sidecarset_rollout_pods",
            "Pods that rollouts of SidecarSets are about, summed over the sets, by phase; only the leader exposes it",
            &self.sidecarset_rollout_pods,
        );
        plain(&mut all, "leader", "1 while this process holds the lease", &self.leader);
        plain(&mut all, "ready", "1 while this process is ready to answer", &self.ready);
        all.register("build", "What is running", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        all
    }

    fn register_certificates(&self, all: &mut Registry) {
        seconds(
            all,
            "certificate_not_after_timestamp",
            "When the serving certificate ends",
            &self.certificate_not_after,
        );
        seconds(
            all,
            "certificate_not_before_timestamp",
            "When the serving certificate began",
            &self.certificate_not_before,
        );
        seconds(all, "ca_not_before_timestamp", "When the newest certificate authority began", &self.ca_not_before);
        seconds(all, "ca_not_after_timestamp", "When the newest certificate authority ends", &self.ca_not_after);
        seconds(
            all,
            "certificate_checked_timestamp",
            "When the certificate files or the Secret were last found in order",
            &self.certificate_checked,
        );
        plain(
            all,
            "certificate_errors",
            "Certificates that were offered and refused; the last good one stays in use",
            &self.certificate_errors,
        );
    }

    /// The handles of one webhook path, resolved once.
    pub fn path(&self, path: &str) -> PathMetrics {
        let duration = self.review_duration.get_or_create_owned(&PathLabels { path: path.into() });
        PathMetrics::new(path, duration, self.reviews.clone(), self.plugin_decisions.clone())
    }

    /// Counts a request to a path that is not served. The path itself is the client's choice and therefore no label.
    pub fn not_found(&self) {
        let labels = ReviewLabels { path: "other".into(), verdict: "unserved", reason: "NotFound", dry_run: UNKNOWN };
        self.reviews.get_or_create(&labels).inc();
    }

    /// Counts a question of a review.
    pub fn question(&self, kind: &'static str, result: QuestionResult) {
        self.questions.get_or_create(&QuestionLabels { kind, result }).inc();
    }

    /// Sets the seconds for which a watch has failed.
    pub fn watch_failing(&self, watch: impl Into<Cow<'static, str>>, seconds: u64) {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        self.watch_failing.get_or_create(&WatchLabels { watch: watch.into() }).set(seconds);
    }

    /// Counts a write that waits, or is left out, as there were too many: of `jobs`, `status` or `events`.
    pub fn write_limited(&self, controller: &'static str, write: &'static str) {
        self.writes_limited.get_or_create(&WriteLabels { controller, write }).inc();
    }

    /// The handles of one controller, resolved once.
    pub fn controller(&self, controller: &'static str) -> ControllerMetrics {
        let labels = ControllerLabels { controller };
        let count = |result| self.reconciles.get_or_create_owned(&ReconcileLabels { controller, result });
        ControllerMetrics {
            success: count(ReconcileResult::success),
            error: count(ReconcileResult::error),
            duration: self.reconcile_duration.get_or_create_owned(&labels),
            queue_depth: self.queue_depth.get_or_create_owned(&labels),
        }
    }

    /// Sets the number of pods in this state to the sets that select them, summed over the sets.
    pub fn sidecarset_pods(&self, state: &'static str, pods: u32) {
        self.sidecarset_pods.get_or_create(&StateLabels { state }).set(pods.into());
    }

    /// Sets the number of pods that say more about sets than the leader keeps.
    pub fn sidecarset_pods_clipped(&self, pods: usize) {
        self.sidecarset_pods_clipped.set(i64::try_from(pods).unwrap_or(i64::MAX));
    }

    /// Removes both numbers: another replica leads, and reports them.
    pub fn no_sidecarset_pods(&self) {
        self.sidecarset_pods.clear();
        self.sidecarset_pods_clipped.set(0);
    }

    /// Sets the number of pods in this phase of a rollout, summed over the sets.
    pub fn sidecarset_rollout_pods(&self, phase: &'static str, pods: u64) {
        let pods = i64::try_from(pods).unwrap_or(i64::MAX);
        self.sidecarset_rollout_pods.get_or_create(&PhaseLabels { phase }).set(pods);
    }

    /// Removes these numbers: another replica leads, and reports them.
    pub fn no_sidecarset_rollout_pods(&self) {
        self.sidecarset_rollout_pods.clear();
    }

    /// The text that Prometheus scrapes (`OpenMetrics` 1.0).
    ///
    /// # Errors
    /// Never in practice: a string takes every byte.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        self.snapshot_generation.set(i64::try_from(self.freshness.generation()).unwrap_or(i64::MAX));
        self.snapshot_age.set(self.freshness.age().unwrap_or_default().as_secs_f64());
        let mut text = String::with_capacity(16 * 1024);
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn plain(all: &mut Registry, name: &str, help: &str, metric: &(impl Metric + Clone)) {
    all.register(name, help, metric.clone());
}

fn seconds(all: &mut Registry, name: &str, help: &str, metric: &(impl Metric + Clone)) {
    all.register_with_unit(name, help, Unit::Seconds, metric.clone());
}

#[cfg(test)]
mod tests;
