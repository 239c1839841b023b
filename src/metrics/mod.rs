//! Every metric of the process. The names are an interface; no label holds a name, a namespace or a uid.

pub mod freshness;
mod handshakes;

pub use freshness::Freshness;
pub use handshakes::{HandshakeFailure, HandshakeFailures};

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admission::reply::Count;
use admission::{Decision, Reason, Unserved};
use engine::reasons;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// Seconds. A decision takes tens of microseconds; the API server waits 10 s.
const REVIEW_BUCKETS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Seconds. A reconciliation waits for the API server.
const RECONCILE_BUCKETS: [f64; 11] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    path: Arc<str>,
    verdict: &'static str,
    reason: &'static str,
    /// Empty where no review was read.
    dry_run: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: &'static str,
    mode: &'static str,
    verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabels {
    path: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: &'static str,
    result: ReconcileResult,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    watch: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// How a reconciliation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum ReconcileResult {
    /// Done.
    #[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
    success,
    /// Failed; will be tried again.
    #[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
    error,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuestionLabels {
    kind: &'static str,
    result: QuestionResult,
}

/// What became of a question of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum QuestionResult {
    /// It was asked and answered.
    #[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
    answered,
    /// The answer was remembered.
    #[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
    cached,
    /// The deadline of the review passed.
    #[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
    timeout,
    /// It was not answered.
    #[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
    error,
}

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
    watch_failing: Family<WatchLabels, Gauge>,
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
    /// 1 while `/readyz` says so.
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
            watch_failing: Family::default(),
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
        all.register("reviews", "Reviews answered, by path, verdict and reason", self.reviews.clone());
        all.register_with_unit(
            "review_duration",
            "Time from the head of the request to the reply",
            Unit::Seconds,
            self.review_duration.clone(),
        );
        all.register(
            "reviews_in_flight",
            "Reviews between the head of the request and the reply",
            self.in_flight.clone(),
        );
        all.register("panics", "Panics that were caught", self.panics.clone());
        all.register(
            "plugin_decisions",
            "Decisions of admission plugins, by plugin, mode and verdict; none are counted of dry runs",
            self.plugin_decisions.clone(),
        );
        all.register(
            "questions",
            "Questions of decisions about what the read model does not say, by kind and result",
            self.questions.clone(),
        );
        all.register(
            "snapshot_generation",
            "Generation of the read model that decisions are taken from",
            self.snapshot_generation.clone(),
        );
        all.register_with_unit(
            "snapshot_age",
            "Time since the API server last confirmed the read model",
            Unit::Seconds,
            self.snapshot_age.clone(),
        );
        all.register_with_unit(
            "watch_failing",
            "Since when a watch has got errors and nothing else, by what is watched; 0 while it works",
            Unit::Seconds,
            self.watch_failing.clone(),
        );
        self.register_certificates(&mut all);
        all.register("reconcile", "Reconciliations, by controller and result", self.reconciles.clone());
        all.register_with_unit(
            "reconcile_duration",
            "Time of a reconciliation",
            Unit::Seconds,
            self.reconcile_duration.clone(),
        );
        all.register("workqueue_depth", "Objects that wait for their reconciliation", self.queue_depth.clone());
        all.register(
            "sidecarset_pods",
            "Pods that a SidecarSet selects, summed over the sets, by what they carry of it; only the leader tells",
            self.sidecarset_pods.clone(),
        );
        all.register(
            "sidecarset_pods_clipped",
            "Pods that say more about sets than the leader keeps",
            self.sidecarset_pods_clipped.clone(),
        );
        all.register("leader", "1 while this process holds the lease", self.leader.clone());
        all.register("ready", "1 while this process is ready to answer", self.ready.clone());
        all.register("build", "What is running", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        all
    }

    fn register_certificates(&self, all: &mut Registry) {
        all.register_with_unit(
            "certificate_not_after_timestamp",
            "When the serving certificate ends",
            Unit::Seconds,
            self.certificate_not_after.clone(),
        );
        all.register_with_unit(
            "certificate_not_before_timestamp",
            "When the serving certificate began",
            Unit::Seconds,
            self.certificate_not_before.clone(),
        );
        all.register_with_unit(
            "ca_not_before_timestamp",
            "When the newest certificate authority began",
            Unit::Seconds,
            self.ca_not_before.clone(),
        );
        all.register_with_unit(
            "ca_not_after_timestamp",
            "When the newest certificate authority ends",
            Unit::Seconds,
            self.ca_not_after.clone(),
        );
        all.register_with_unit(
            "certificate_checked_timestamp",
            "When the certificate files or the Secret were last found in order",
            Unit::Seconds,
            self.certificate_checked.clone(),
        );
        all.register(
            "certificate_errors",
            "Certificates that were offered and refused; the last good one stays in use",
            self.certificate_errors.clone(),
        );
    }

    /// The handles of one webhook path, resolved once.
    pub fn path(&self, path: &str) -> PathMetrics {
        let path: Arc<str> = path.into();
        let metrics = PathMetrics {
            duration: self.review_duration.get_or_create_owned(&PathLabels { path: Arc::clone(&path) }),
            reviews: self.reviews.clone(),
            plugin_decisions: self.plugin_decisions.clone(),
            known: std::iter::repeat_with(OnceLock::new).take(2 * DECISIONS.len() * reasons::ALL.len()).collect(),
            path,
        };
        metrics.start_at_zero();
        metrics
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

    /// Tells for how many seconds a watch has failed.
    pub fn watch_failing(&self, watch: &'static str, seconds: u64) {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        self.watch_failing.get_or_create(&WatchLabels { watch }).set(seconds);
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

    /// Tells how many pods that a set selects stand to it in this way, summed over the sets.
    pub fn sidecarset_pods(&self, state: &'static str, pods: u32) {
        self.sidecarset_pods.get_or_create(&StateLabels { state }).set(pods.into());
    }

    /// Tells how many pods say more about sets than the leader keeps.
    pub fn sidecarset_pods_clipped(&self, pods: usize) {
        self.sidecarset_pods_clipped.set(i64::try_from(pods).unwrap_or(i64::MAX));
    }

    /// Tells no such number any more: another replica does.
    pub fn no_sidecarset_pods(&self) {
        self.sidecarset_pods.clear();
        self.sidecarset_pods_clipped.set(0);
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

const DECISIONS: [Decision; 3] = [Decision::Allowed, Decision::Patched, Decision::Denied];
/// `dry_run` where no review was read.
const UNKNOWN: &str = "";
/// The path on which pods get their sets.
const PODS: &str = "/mutate--v1-pod";

/// Whether a pod was refused or went without a set because the two do not fit together: an alert is about each increase.
fn is_misfit(reason: Reason) -> bool {
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
    /// `increase()` sees nothing of a series that begins with its first refusal.
    fn start_at_zero(&self) {
        if *self.path != *PODS {
            return;
        }
        for decision in DECISIONS {
            for (reason, _) in reasons::ALL.iter().filter(|(reason, _)| is_misfit(*reason)) {
                self.counter(decision.as_str(), reason.as_str(), "false");
            }
        }
    }

    /// Counts what admission plugins decided.
    pub fn plugins_decided(&self, counts: &[Count]) {
        for Count { by: plugin, mode, verdict } in counts.iter().copied() {
            self.plugin_decisions.get_or_create(&PluginLabels { plugin, mode, verdict }).inc();
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

    /// Takes the time of a request, whatever its answer.
    pub fn took(&self, duration: Duration) {
        self.duration.observe(duration.as_secs_f64());
    }

    fn counter(&self, verdict: &'static str, reason: &'static str, dry_run: &'static str) -> Counter {
        self.reviews.get_or_create_owned(&ReviewLabels { path: Arc::clone(&self.path), verdict, reason, dry_run })
    }
}

/// The metrics of one controller.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    success: Counter,
    error: Counter,
    duration: Histogram,
    queue_depth: Gauge,
}

impl ControllerMetrics {
    /// Counts a reconciliation that ended.
    pub fn reconciled(&self, result: ReconcileResult, took: Duration) {
        match result {
            ReconcileResult::success => self.success.inc(),
            ReconcileResult::error => self.error.inc(),
        };
        self.duration.observe(took.as_secs_f64());
    }

    /// Tells how many objects wait.
    pub fn waiting(&self, objects: usize) {
        self.queue_depth.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests;
