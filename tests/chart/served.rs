//! What the alerts, the dashboard and their tests take for granted of `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use admission::Decision;
use engine::reasons;
use outrider::metrics::{Freshness, Metrics};
use outrider::metrics::{QuestionResult, ReconcileResult};

use crate::dashboard::DASHBOARD;
use crate::promtool::file;

/// The labels of every series, by its name; without those that a scrape adds.
type Series = BTreeMap<String, BTreeSet<String>>;

/// What others serve: the API server (`tests/e2e/ways_out.rs` meets both on a real one) and kube-state-metrics.
const OTHERS: [(&str, &[&str]); 3] = [
    ("apiserver_admission_webhook_rejection_count", &["error_type", "name", "operation", "rejection_code", "type"]),
    ("apiserver_admission_webhook_fail_open_count", &["name", "type"]),
    ("kube_deployment_spec_replicas", &["namespace", "deployment"]),
];

/// A process that has done everything.
fn served() -> String {
    let metrics = Metrics::new(Freshness::default());
    let path = metrics.path("/mutate--v1-pod");
    path.decided(Decision::Patched, reasons::INJECTED, false);
    path.took(Duration::from_millis(1));
    metrics.not_found();
    metrics.controller("sidecarset").reconciled(ReconcileResult::success, Duration::from_millis(1));
    metrics.sidecarset_pods("missing", 1);
    metrics.sidecarset_rollout_pods("waiting", 1);
    metrics.watch_failing("sidecarsets", 0);
    metrics.write_limited("cronjob", "status");
    metrics.question("access", QuestionResult::answered);
    metrics.encode().unwrap()
}

/// Reads `name{label="value",…}` at the start of a line; values hold no comma here.
fn series(line: &str) -> Option<(String, BTreeSet<String>)> {
    let (series, labels) = match line.split_once('{') {
        Some((name, rest)) => (name, rest.split_once('}')?.0),
        None => (line.split_whitespace().next()?, ""),
    };
    let labels = labels.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.trim().to_owned()));
    Some((series.to_owned(), labels.filter(|label| !["instance", "job"].contains(&label.as_str())).collect()))
}

fn all_served() -> Series {
    let text = served();
    text.lines().filter(|line| line.starts_with("outrider_")).filter_map(series).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|word| word.starts_with("outrider_"))
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    let served = all_served();
    for name in ["charts/outrider/files/alerts.yaml", DASHBOARD] {
        let text = file(name);
        let asked: BTreeSet<&str> = words(&text).collect();
        assert!(asked.len() > 5, "{name}");
        for metric in asked {
            assert!(served.contains_key(metric), "{name}: there is no {metric} among {:?}", served.keys());
        }
    }
}

#[test]
fn the_series_that_promtool_is_given_are_like_those_that_are_served() {
    let served = all_served();
    for name in ["tests/chart/alerts-test.yaml", "tests/chart/dashboard-series.yaml"] {
        let text = file(name);
        let given: Vec<_> = text.lines().filter_map(|line| series(line.split_once("series: '")?.1)).collect();
        assert!(given.len() > 5, "{name}");
        for (metric, labels) in given {
            let known = OTHERS.iter().find(|(name, _)| *name == metric);
            let known = known.map(|(_, labels)| labels.iter().map(|&label| label.to_owned()).collect());
            assert_eq!(known.as_ref().or_else(|| served.get(&metric)), Some(&labels), "{name}: {metric}");
        }
    }
}

#[test]
fn every_metric_has_a_row_in_the_documentation() {
    let page = file("docs/operations.md");
    let served = served();
    let families: Vec<&str> =
        served.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for family in &families {
        // The encoder gives counters their ending, and that of `build` is its type's.
        let names = ["", "_total", "_info"].map(|end| format!("| `{family}{end}"));
        assert!(page.lines().any(|line| names.iter().any(|name| is_row_of(line, name))), "{family}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `outrider_")).count();
    assert_eq!(rows, families.len(), "a row for a metric that is no more");
}

fn is_row_of(line: &str, beginning: &str) -> bool {
    line.strip_prefix(beginning).is_some_and(|rest| rest.starts_with(['`', '{']))
}
