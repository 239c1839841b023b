//! `outrider review`, as a person uses it.

use crate::golden;
use crate::run::outrider;

const SETS: [&str; 3] = ["review", "--manifests", "tests/fixtures/manifests"];
const SAMPLE: &str = "tests/fixtures/reviews/mutate--v1-pod/port-shared.json";

fn review(more: &[&str], stdin: &str) -> String {
    outrider(&[&SETS[..], more].concat(), stdin).transcript()
}

#[test]
fn yaml_and_stdin_and_the_default_path_give_the_same_answer() {
    let expected = review(&["--path", "/mutate--v1-pod", SAMPLE], "");
    assert!(expected.starts_with("exit 0\n"), "{expected}");
    let text = std::fs::read_to_string(SAMPLE).unwrap();
    let document = engine::yaml::read(&text).unwrap().remove(0).value;
    assert_eq!(review(&[SAMPLE], ""), expected);
    assert_eq!(review(&["-f", SAMPLE], ""), expected);
    assert_eq!(review(&["--filename", "-"], &text), expected);
    assert_eq!(review(&["-"], &text), expected);
    assert_eq!(review(&["-"], &engine::yaml::write(&document)), expected);
}

#[test]
fn what_cannot_be_answered_is_told_in_words() {
    let table: [(&str, &[&str], &str); 12] = [
        ("no-such-file.txt", &["tests/fixtures/none.json"], ""),
        ("no-such-path.txt", &["--path", "/mutate--v1-node", SAMPLE], ""),
        ("empty.txt", &["-"], ""),
        ("two-documents.txt", &["-"], "a: 1\n---\nb: 2\n"),
        ("broken.txt", &["-"], "request:\n  uid: [\n"),
        ("a-manifest.txt", &["-"], "apiVersion: v1\nkind: Pod\n"),
        ("without-request.txt", &["-"], r#"{"kind":"AdmissionReview"}"#),
        ("without-kind.txt", &["-"], "{}"),
        ("without-kind-at-a-path.txt", &["--path", "/mutate--v1-pod", "-"], "{}"),
        ("text.txt", &["-"], "hello"),
        ("no-kind.txt", &["-"], r#"{"kind":"AdmissionReview","request":{"uid":"a"}}"#),
        (
            "unserved-kind.txt",
            &["-"],
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","kind":{"group":"apps","version":"v1","kind":"Deployment"}}}"#,
        ),
    ];
    for (recording, arguments, stdin) in table {
        let told = review(arguments, stdin);
        assert!(told.starts_with("exit 2\n---- stdout\n---- stderr\nerror: "), "{told}");
        golden::assert(&format!("review/{recording}"), &told);
    }
}

#[test]
fn without_a_set_pods_cannot_be_judged_and_other_kinds_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let told = outrider(&["review", "--manifests", path, SAMPLE], "").transcript();
    let expected = format!("error: no apps.outrider.dev/v1alpha1 SidecarSet in {path}\n");
    assert_eq!(told, format!("exit 2\n---- stdout\n---- stderr\n{expected}"));
    for (kind, outcome) in [("apps-outrider-dev-v1alpha1-sidecarset", 0), ("webapp-outrider-dev-v1-welcome", 0)] {
        let sample = format!("tests/fixtures/reviews/validate-{kind}/valid.json");
        let ran = outrider(&["review", "--manifests", path, "--path", &format!("/validate-{kind}"), &sample], "");
        assert_eq!(ran.outcome.code(), outcome, "{}", ran.stderr);
        assert!(!ran.stderr.contains("SidecarSet in"), "{}", ran.stderr);
    }
}

#[test]
fn a_warning_can_be_made_an_error() {
    const WARNED: &str = "tests/fixtures/reviews/validate-apps-outrider-dev-v1alpha1-sidecarset/unknown-field.json";
    const VALIDATE: &str = "/validate-apps-outrider-dev-v1alpha1-sidecarset";
    for (sample, path, code) in [(WARNED, VALIDATE, 1), (SAMPLE, "/mutate--v1-pod", 1)] {
        let arguments = [&SETS[..], &["--path", path, sample]].concat();
        let (plain, strict) =
            (outrider(&arguments, ""), outrider(&[&arguments[..], &["--warnings-as-errors"]].concat(), ""));
        assert_eq!((plain.outcome.code(), strict.outcome.code()), (0, code), "{}", plain.stderr);
        let error = "error: there were warnings, and --warnings-as-errors\n";
        assert_eq!((plain.stdout, format!("{}{error}", plain.stderr)), (strict.stdout, strict.stderr));
    }
}

#[test]
fn broken_manifests_are_told_with_file_and_line() {
    let ran = outrider(&["review", "--manifests", "tests/offline/input/broken", SAMPLE], "");
    golden::assert("review/broken-manifests.txt", &ran.transcript());
}
