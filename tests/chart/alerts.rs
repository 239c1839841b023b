//! Alerts and dashboard ask for metrics that there are, and the alerts fire when they should.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrider::server::{Freshness, Metrics};

use crate::helm::CHART;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn asked_for(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|word| word.starts_with("outrider_"));
    words.map(|word| ["_total", "_bucket"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word)).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    let metrics = Metrics::new(Freshness::default());
    metrics.path("/mutate--v1-pod");
    metrics.controller("sidecarset");
    metrics.not_found();
    let served = metrics.encode().unwrap();
    for name in ["files/alerts.yaml", "files/dashboard.json"] {
        let text = fs::read_to_string(file(CHART).join(name)).unwrap();
        assert!(asked_for(&text).len() > 5, "{name}");
        for metric in asked_for(&text) {
            assert!(served.contains(&format!("# TYPE {metric} ")), "{name}: there is no {metric} in\n{served}");
        }
    }
}

/// promtool is Prometheus's own evaluation of rules; building it takes longer than everything else here, so who has it names it.
#[test]
#[ignore = "needs promtool: PROMTOOL=… cargo test --test chart -- --ignored promtool"]
fn alerts_fire_when_promtool_evaluates_them_in_bad_times_and_not_in_good_ones() {
    let promtool = env::var_os("PROMTOOL").expect("PROMTOOL names promtool");
    let dir = tempfile::tempdir().unwrap();
    fs::copy(file(CHART).join("files/alerts.yaml"), dir.path().join("alerts.yaml")).unwrap();
    fs::copy(file("tests/chart/alerts-test.yaml"), dir.path().join("test.yaml")).unwrap();
    let output = Command::new(promtool).args(["test", "rules", "test.yaml"]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
