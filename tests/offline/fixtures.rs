//! The sample reviews in `tests/fixtures/reviews/<webhook path>/`, which people can also post with curl.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admission::Reason;
use arc_swap::ArcSwap;
use engine::reasons;
use engine::snapshot::Exclusion;
use http::Request;
use http_body_util::{BodyExt, Full};
use outrider::kinds::Kinds;
use outrider::metrics::{Freshness, Metrics};
use outrider::readiness::Readiness;
use outrider::registry::registry;
use outrider::server::{Limits, Webhooks};
use outrider::standalone::{self, Validate};
use serde_json::{Value, json};

use crate::golden;
use crate::run::outrider;

const MANIFESTS: &str = "tests/fixtures/manifests";

struct Fixture {
    file: PathBuf,
    /// Path of the webhook.
    path: String,
    /// What `outrider review` says of it.
    expected: PathBuf,
}

fn fixtures() -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    for folder in entries(Path::new("tests/fixtures/reviews")) {
        let path = folder.file_name().unwrap().to_str().unwrap();
        for file in entries(&folder) {
            let expected = Path::new("tests/fixtures/expected").join(path).join(file.file_name().unwrap());
            let path = format!("/{path}");
            fixtures.push(Fixture { file, path, expected: expected.with_extension("txt") });
        }
    }
    fixtures
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn every_sample_is_answered_as_recorded() {
    let mut differences = Vec::new();
    let fixtures = fixtures();
    for Fixture { file, path, expected } in &fixtures {
        let ran = outrider(&["review", "--manifests", MANIFESTS, "--path", path, file.to_str().unwrap()], "");
        differences.extend(golden::differs(expected, &ran.transcript()));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(fixtures.len() >= 30, "{} samples", fixtures.len());
}

#[test]
fn every_recording_has_its_sample() {
    let samples: BTreeSet<PathBuf> = fixtures().into_iter().map(|fixture| fixture.expected).collect();
    let recordings = entries(Path::new("tests/fixtures/expected")).into_iter().flat_map(|folder| entries(&folder));
    let orphans: Vec<PathBuf> = recordings.filter(|recording| !samples.contains(recording)).collect();
    assert!(orphans.is_empty(), "{orphans:?}");
}

#[tokio::test]
async fn the_router_answers_every_sample_with_the_bytes_that_review_prints() {
    let exclusion = Arc::new(Exclusion::new("outrider-system", []));
    let loaded =
        standalone::load(&[MANIFESTS.into()], &exclusion, &registry(&Kinds::all()), Validate::Strict, None).unwrap();
    let webhooks = Webhooks::new(
        Arc::new(registry(&Kinds::all())),
        Arc::new(ArcSwap::from_pointee(loaded.snapshot)),
        Readiness::default(),
        Metrics::new(Freshness::default()),
        Limits::default(),
        None,
    );
    for Fixture { file, path, .. } in fixtures() {
        let ran = outrider(&["review", "--manifests", MANIFESTS, "--path", &path, file.to_str().unwrap()], "");
        let request = Request::post(&path).header("Content-Type", "application/json");
        let response = webhooks.answer(request.body(Full::from(fs::read(&file).unwrap())).unwrap(), None).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        if status.is_success() {
            assert_eq!(format!("{body}\n"), ran.stdout, "{}", file.display());
        } else {
            assert_eq!(ran.stdout, "", "{}", file.display());
            assert!(ran.stderr.contains(&format!("HTTP {}", status.as_u16())), "{}: {}", file.display(), ran.stderr);
        }
    }
}

#[test]
fn the_readme_names_a_sample_that_its_sets_inject() {
    const SAMPLE: &str = "tests/fixtures/README-pod.json";
    assert!(fs::read_to_string("README.md").unwrap().contains(&format!("--data @{SAMPLE} ")));
    let ran = outrider(&["review", "--manifests", "config/samples", SAMPLE], "");
    assert!(ran.stderr.contains("\npatched: Injected\n"), "{}", ran.stderr);
}

/// The codes that a command reports: of the decision, in warnings, and of each set.
fn codes(transcript: &str) -> BTreeSet<&str> {
    let is_code = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase()) && !word.contains(' ');
    let mut found = BTreeSet::new();
    for line in transcript.lines() {
        let mut parts = line.split(": ");
        match parts.next() {
            Some("allowed" | "patched" | "denied") => found.extend(parts.next().filter(is_code)),
            Some("audit skipped") => {
                found.extend(parts.flat_map(|sets| sets.split(',')).filter_map(|set| Some(set.split_once('=')?.1)));
            }
            // A line of `outrider explain`, or `FILE:LINE: warning: OBJECT: CODE: …`.
            Some(first) => {
                found.extend(first.strip_prefix("  ").filter(is_code));
                found.extend(parts.next().filter(|it| *it == "warning").and_then(|_| parts.nth(1)).filter(is_code));
            }
            None => {}
        }
    }
    found
}

/// A review of a new pod, which is like that of the README.
fn review(change: impl FnOnce(&mut Value)) -> String {
    let mut review: Value =
        serde_json::from_str(&fs::read_to_string("tests/fixtures/README-pod.json").unwrap()).unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}], "terminationGracePeriodSeconds": 30},
    });
    review["request"]["object"] = pod;
    change(&mut review["request"]["object"]);
    review.to_string()
}

/// What no sample gives, and a run that gives it. Canaries and older revisions are in `revisions.rs` too; validation keeps two sets
/// from bringing the same container to one pod, but not a record from saying so; a sample that is too large would be long.
fn without_sample() -> Vec<(Reason, String)> {
    let explained = |manifests: &str| {
        let workloads = "tests/offline/input/revisions.yaml";
        outrider(&["explain", "--manifests", manifests, "-f", workloads, "-n", "shop"], "").transcript()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.yaml");
    let set = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: log}\n\
               spec: {selector: {matchLabels: {app: web}}, containers: [{name: log, image: 'log:1', lifecycle: LIFECYCLE}]}\n";
    let reviewed = |lifecycle: &str, review: String| {
        fs::write(&path, set.replace("LIFECYCLE", lifecycle)).unwrap();
        outrider(&["review", "--manifests", path.to_str().unwrap(), "-"], &review).transcript()
    };
    let record = r#"{"mesh":{"containers":["log"]}}"#;
    let of_another_set = review(|pod| {
        pod["metadata"]["annotations"]["outrider.dev/injected"] = record.into();
        pod["spec"]["containers"] = json!([{"name": "log", "image": "log:2"}, {"name": "web", "image": "web:1"}]);
    });
    let sleeps = "{preStop: {sleep: {seconds: 60}}}";
    let too_large = review(|pod| pod["metadata"]["annotations"]["a"] = "x".repeat(300 * 1024).into());
    vec![
        (reasons::CANARY_SHADOWED, explained("tests/offline/input/canary.yaml")),
        (reasons::PARTIAL_HELD_BACK, explained("tests/offline/input/revisions")),
        (reasons::SET_CONFLICT, reviewed("{}", of_another_set)),
        (reasons::RESULT_ILLEGAL, reviewed(sleeps, review(|_| ()))),
        (Reason::TOO_LARGE, reviewed("{}", too_large)),
    ]
}

#[test]
fn every_reason_is_given_by_a_sample_or_another_run() {
    let recordings = fixtures().into_iter().map(|fixture| fs::read_to_string(fixture.expected).unwrap_or_default());
    let recordings: Vec<String> = recordings.collect();
    let sampled: BTreeSet<&str> = recordings.iter().flat_map(|recording| codes(recording)).collect();
    let others = without_sample();
    for (reason, transcript) in &others {
        assert!(codes(transcript).contains(reason.as_str()), "{reason}: {transcript:.2000}");
    }
    let mut given: BTreeSet<&str> = others.iter().map(|(reason, _)| reason.as_str()).collect();
    assert!(given.is_disjoint(&sampled), "a sample gives one of {given:?}");
    given.extend(sampled);
    let listed: BTreeSet<&str> = reasons::ALL.iter().map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(listed.difference(&given).collect::<Vec<_>>(), Vec::<&&str>::new());
}
