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
    let document = outrider::yaml::read(&text).unwrap().remove(0).value;
    assert_eq!(review(&[SAMPLE], ""), expected);
    assert_eq!(review(&["-"], &text), expected);
    assert_eq!(review(&["-"], &outrider::yaml::write(&document)), expected);
}

#[test]
fn what_cannot_be_answered_is_told_in_words() {
    let table: [(&str, &[&str], &str); 8] = [
        ("no-such-file.txt", &["tests/fixtures/none.json"], ""),
        ("no-such-path.txt", &["--path", "/mutate--v1-node", SAMPLE], ""),
        ("empty.txt", &["-"], ""),
        ("two-documents.txt", &["-"], "a: 1\n---\nb: 2\n"),
        ("broken.txt", &["-"], "request:\n  uid: [\n"),
        ("a-manifest.txt", &["-"], "apiVersion: v1\nkind: Pod\n"),
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
fn broken_manifests_are_told_with_file_and_line() {
    let ran = outrider(&["review", "--manifests", "tests/offline/input/broken", SAMPLE], "");
    golden::assert("review/broken-manifests.txt", &ran.transcript());
}
