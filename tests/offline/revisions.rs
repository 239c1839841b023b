//! Older revisions for new pods, without a cluster: `web` is among the workloads that are held back at 50 percent, `cart` is not.

use outrider::cli::streams::CommandOutcome;

use crate::golden;
use crate::run::outrider;

const REVISIONS: &str = "tests/offline/input/revisions";
const SET: &str = "tests/offline/input/revisions/set.yaml";
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
