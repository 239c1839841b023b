//! `outrider serve --standalone`: the snapshot follows the files.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use engine::snapshot::Exclusion;
use engine::snapshot::Snapshot;
use outrider::cli::serve::{Process, follow_manifests};
use outrider::kinds::Kinds;
use outrider::registry::registry;
use outrider::standalone::{Standalone, Validate};

const SET: &str = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: a}\nspec:\n  \
                   selector: {matchLabels: {app: web}}\n  containers: [{name: a, image: i}]\n";

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_broken_file_keeps_the_last_good_state_until_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sets.yaml");
    fs::write(&file, SET).unwrap();
    let (snapshot, process) = (Arc::<ArcSwap<Snapshot>>::default(), Process::default());
    let manifests = || {
        Standalone::new(
            vec![folder.path().to_owned()],
            Exclusion::default(),
            registry(&Kinds::default()),
            Validate::Strict,
        )
    };
    follow_manifests(manifests(), &snapshot, &process).unwrap();
    assert!(process.readiness.is_ready());
    assert_eq!(snapshot.load().sets.len(), 1);

    fs::write(&file, "broken: [").unwrap();
    let note = || process.readiness.checks().remove(0).detail;
    until(|| note().contains("not usable")).await;
    assert_eq!((snapshot.load().generation, snapshot.load().sets.len()), (1, 1));
    assert!(process.readiness.is_ready(), "what was good is served on");

    fs::write(&file, format!("{SET}---\n{}", SET.replace("name: a", "name: b"))).unwrap();
    until(|| snapshot.load().generation == 2).await;
    assert_eq!(snapshot.load().sets.len(), 2);
    assert_eq!(note(), "");
}

#[tokio::test]
async fn without_a_good_state_the_server_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sets.yaml"), "broken: [").unwrap();
    let paths = vec![folder.path().to_owned()];
    let manifests = Standalone::new(paths, Exclusion::default(), registry(&Kinds::default()), Validate::Strict);
    let error = follow_manifests(manifests, &Arc::default(), &Process::default()).unwrap_err().to_string();
    assert!(error.starts_with("the manifests cannot be used:\n"), "{error}");
    assert!(error.contains("sets.yaml:"), "{error}");
}

/// As the commands that read the same files, in the error at the start and in the log.
#[tokio::test]
async fn a_standalone_server_names_the_line_of_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sets.yaml");
    fs::write(&file, format!("# sets\n{}", SET.replace("image: i", "imgae: i"))).unwrap();
    let paths = vec![file.clone()];
    let manifests = Standalone::new(paths, Exclusion::default(), registry(&Kinds::default()), Validate::Strict);
    let error = follow_manifests(manifests, &Arc::default(), &Process::default()).unwrap_err().to_string();
    let expected =
        format!("\n{}:7: error: SidecarSet \"a\": unknown field \"spec.containers[0].imgae\"", file.display());
    assert!(error.contains(&expected), "{error}");
}
