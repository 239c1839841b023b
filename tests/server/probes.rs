//! Health, readiness and metrics.

use std::collections::BTreeSet;

use outrider::server::ProbePaths;

use crate::harness::{Setup, TestServer, any_review};
use crate::toys::path;

/// Acceptance check 35: readiness.
#[tokio::test(flavor = "multi_thread")]
async fn ready_only_while_every_gate_is_open() {
    let server = TestServer::start().await;
    assert_eq!(server.probe("/readyz").await, (200, "ok".to_owned()));
    server.sync.close("the watch broke");
    assert_eq!(server.probe("/readyz").await, (503, "not ready: sync:toys".to_owned()));
    for path in ["/healthz", "/livez"] {
        assert_eq!(server.probe(path).await, (200, "ok".to_owned()), "{path}");
    }
    server.sync.open();
    assert_eq!(server.probe("/readyz").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_move_to_the_paths_that_are_asked_for() {
    let probes = ProbePaths { readiness: "/ready/{now}".to_owned(), liveness: "/alive".to_owned() };
    let server = TestServer::with(Setup { probes, ..Setup::default() }).await;
    for (path, status) in
        [("/ready/{now}", 200), ("/alive", 200), ("/livez", 200), ("/readyz", 404), ("/healthz", 404), ("/ready/", 404)]
    {
        assert_eq!(server.probe(path).await.0, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verbose_names_every_gate_and_the_age_of_the_snapshot() {
    let server = TestServer::start().await;
    let (status, text) = server.probe("/readyz?verbose").await;
    assert_eq!(status, 200);
    for line in
        ["[+]sync:toys ok", "[+]webhook listener ok", "[+]shutdown ok", "snapshot: none yet", "readyz check passed"]
    {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
    server.freshness.replaced(7);
    server.sync.close("the watch broke");
    let (status, text) = server.probe("/readyz?verbose=true").await;
    assert_eq!(status, 503);
    assert!(text.contains("[-]sync:toys failed: the watch broke\n"), "{text}");
    assert!(text.contains("snapshot: generation 7, age "), "{text}");
    assert!(text.ends_with("readyz check failed\n"), "{text}");
}

/// Acceptance check 35: metrics.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_their_exact_names_and_labels() {
    let server = TestServer::start().await;
    server.freshness.replaced(42);
    let controller = server.controllers.controller("sidecarset");
    controller.reconciled(outrider::metrics::ReconcileResult::success, std::time::Duration::from_millis(2));
    controller.waiting(3);
    let mut client = server.client().await;
    for toy in ["allow", "allow", "deny", "patch", "panic"] {
        client.post(&path(toy), &any_review()).await;
    }
    client.post("/mutate-no-such-path", &any_review()).await;
    let text = server.scrape().await;
    let series = [
        r#"outrider_reviews_total{path="/mutate-toy-example-v1-allow",verdict="allowed",reason="Allowed",dry_run="false"} 2"#,
        r#"outrider_reviews_total{path="/mutate-toy-example-v1-deny",verdict="denied",reason="Invalid",dry_run="false"} 1"#,
        r#"outrider_reviews_total{path="/mutate-toy-example-v1-patch",verdict="patched",reason="Defaulted",dry_run="false"} 1"#,
        r#"outrider_reviews_total{path="/mutate-toy-example-v1-panic",verdict="unserved",reason="Fault",dry_run=""} 1"#,
        r#"outrider_reviews_total{path="other",verdict="unserved",reason="NotFound",dry_run=""} 1"#,
        r#"outrider_review_duration_seconds_count{path="/mutate-toy-example-v1-allow"} 2"#,
        r#"outrider_review_duration_seconds_bucket{le="0.00005",path="/mutate-toy-example-v1-strict"} 0"#,
        r#"outrider_review_duration_seconds_bucket{le="10.0",path="/mutate-toy-example-v1-allow"} 2"#,
        "outrider_reviews_in_flight 0",
        "outrider_panics_total 1",
        "outrider_snapshot_generation 42",
        r#"outrider_reconcile_total{controller="sidecarset",result="success"} 1"#,
        r#"outrider_reconcile_total{controller="sidecarset",result="error"} 0"#,
        r#"outrider_reconcile_duration_seconds_count{controller="sidecarset"} 1"#,
        r#"outrider_workqueue_depth{controller="sidecarset"} 3"#,
        "outrider_leader 0",
    ];
    for line in series {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
    let not_after = server.resolver.not_after().unwrap().as_second();
    assert!(text.contains(&format!("\noutrider_certificate_not_after_timestamp_seconds {not_after}\n")));
    assert!(text.contains("\noutrider_snapshot_age_seconds "));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_label_holds_what_a_client_chooses() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.post(&path("allow"), &any_review()).await;
    client.post("/mutate-chosen-by-the-client", &any_review()).await;
    let text = server.scrape().await;
    assert!(!text.contains("chosen-by-the-client"), "{text}");
    let labels: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once('{')?.1.rsplit_once('}')?.0))
        .flat_map(|labels| labels.split("\","))
        .filter_map(|pair| Some(pair.split_once('=')?.0))
        .collect();
    assert_eq!(labels, BTreeSet::from(["cause", "dry_run", "le", "path", "reason", "verdict", "version"]));
}
