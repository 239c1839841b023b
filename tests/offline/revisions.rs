//! Older revisions for new pods, without a cluster: `web` is among the workloads that are held back at 50 percent, `cart` is not.

use outrider::cli::streams::CommandOutcome;

use crate::golden;
use crate::run::outrider;

const REVISIONS: &str = "tests/offline/input/revisions";
const SET: &str = "tests/offline/input/revisions/set.yaml";
const REVISION: &str = "tests/offline/input/revisions/revision.yaml";
const WORKLOADS: &str = "tests/offline/input/revisions.yaml";

#[test]
fn each_workload_gets_its_revision_and_explain_names_it() {
    for (recording, arguments) in
        [("render/revisions.txt", &["render", "-o", "diff"][..]), ("explain/revisions.txt", &["explain"])]
    {
        let ran = outrider(&[arguments, &["--manifests", REVISIONS, "-f", WORKLOADS, "-n", "shop"]].concat(), "");
        assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
        golden::assert(recording, &ran.transcript());
    }
}

/// Revisions outside of a cluster are written or edited by hand.
#[test]
fn a_revision_that_no_pod_would_get_is_warned_of_with_what_to_write() {
    let set = std::fs::read_to_string(SET).unwrap();
    let revision = std::fs::read_to_string(REVISION).unwrap();
    let lint = |documents: &[&str]| {
        let ran = outrider(&["lint", "-"], &documents.join("---\n"));
        ran.stderr.lines().filter(|line| line.contains("warning")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(lint(&[&revision, &set]).is_empty());
    let told = lint(&[&revision.replace("proxy-5e9aeb076295dd4f", "proxy-v1"), &set]);
    assert!(
        told[0].starts_with("stdin:4: warning: ControllerRevision \"proxy-v1\": metadata.name: \"proxy-v1\" is not the name for this content, \"proxy-5e9aeb076295dd4f\""),
        "{told:?}"
    );
    assert!(lint(&[&revision.replace("proxy:1", "proxy:0"), &set])[0].contains(": metadata.name: "));
    let told = lint(&[
        &revision.replace("name: proxy\n    uid", "name: other\n    uid"),
        &set.replace("  injectionStrategy:\n    revision:\n      customVersion: v1\n      policy: Partial\n", ""),
    ]);
    assert!(
        told[0].contains("is not \"other\" of metadata.ownerReferences, a dash and the 16 digits of a hash"),
        "{told:?}"
    );
    let told = outrider(&["lint", "-"], &[&*revision.replace("    controller: true\n", ""), &set].join("---\n"));
    assert!(
        told.stderr.contains(
            "none is apps.outrider.dev/v1alpha1 SidecarSet with controller: true, so the revision belongs to no set"
        ),
        "{}",
        told.stderr
    );
    // Those of other controllers are theirs.
    let other = revision
        .replace("apps.outrider.dev/v1alpha1\n    kind: SidecarSet", "apps/v1\n    kind: StatefulSet")
        .replace("  labels:\n    apps.outrider.dev/sidecarset-custom-version: v1\n", "");
    assert!(lint(&[&other]).is_empty());
}

#[test]
fn a_canary_takes_the_place_of_its_base_where_it_selects_the_pod() {
    const CANARY: &str = "tests/offline/input/canary.yaml";
    let ran = outrider(&["explain", "--manifests", CANARY, "-f", WORKLOADS, "-n", "shop"], "");
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    golden::assert("explain/canary.txt", &ran.transcript());
}

#[test]
fn a_revision_that_is_not_among_the_manifests_is_an_error_that_says_where_it_is_named() {
    let more = ["--manifests", SET, "-f", WORKLOADS, "-n", "shop"];
    for (recording, arguments) in [
        ("render/no-revision.txt", [&["render"], &more[..]].concat()),
        ("explain/no-revision.txt", [&["explain"], &more[..]].concat()),
        ("lint/no-revision.txt", vec!["lint", SET]),
    ] {
        let ran = outrider(&arguments, "");
        assert_ne!(ran.outcome, CommandOutcome::Fine);
        assert_eq!(ran.stdout, "");
        golden::assert(recording, &ran.transcript());
    }
    assert_eq!(outrider(&["lint", REVISIONS], "").outcome, CommandOutcome::Fine);
}
