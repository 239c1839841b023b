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
        let response = webhooks.answer(request.body(Full::from(fs::read(&file).unwrap())).unwrap()).await;
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

/// Reasons of parts that later builds bring, and of what validation keeps from happening here: two sets that bring the same
/// container to one pod, and sets that break the pods they are added to. A sample that is too large would be megabytes. Canaries and
/// older revisions are recorded in `revisions.rs`.
const WITHOUT_SAMPLE: [Reason; 5] = [
    reasons::CANARY_SHADOWED,
    reasons::PARTIAL_HELD_BACK,
    reasons::SET_CONFLICT,
    reasons::RESULT_ILLEGAL,
    Reason::TOO_LARGE,
];

#[test]
fn every_other_reason_has_a_sample() {
    let recordings = fixtures().into_iter().map(|fixture| fixture.expected);
    let told: String = recordings.map(|recording| fs::read_to_string(recording).unwrap_or_default()).collect();
    let words: BTreeSet<&str> = told.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let missing: Vec<Reason> =
        reasons::ALL.iter().map(|(reason, _)| *reason).filter(|reason| !words.contains(reason.as_str())).collect();
    assert_eq!(missing, WITHOUT_SAMPLE);
}
