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
    let of_stdin = expected.replace(&format!("{SAMPLE}:"), "stdin:");
    assert_eq!(review(&["--filename", "-"], &text), of_stdin);
    assert_eq!(review(&["-"], &text), of_stdin);
    // In YAML the field is on another line.
    let without_line = |transcript: &str| {
        let lines = transcript
            .lines()
            .map(|line| line.strip_prefix("stdin:").and_then(|it| it.split_once(": ")).map_or(line, |(_, said)| said));
        lines.collect::<Vec<_>>().join("\n")
    };
    let of_yaml = review(&["-"], &engine::yaml::write(&document));
    assert_eq!(without_line(&of_yaml), without_line(&of_stdin));
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
        let stderr = told.strip_prefix("exit 2\n---- stdout\n---- stderr\n").unwrap_or_else(|| panic!("{told}"));
        let is_placed = stderr.starts_with("error: ") || stderr.starts_with("stdin:") && stderr.contains(": error: ");
        assert!(is_placed, "{told}");
        golden::assert(&format!("review/{recording}"), &told);
    }
}

#[test]
fn without_a_set_pods_cannot_be_judged_and_other_kinds_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let told = outrider(&["review", "--manifests", path, SAMPLE], "").transcript();
    let expected = format!(
        "error: no SidecarSet (apps.outrider.dev/v1alpha1), AdmissionPlugin, ClusterLimitRange or PodSecurityProfile in {path}\n"
    );
    assert_eq!(told, format!("exit 2\n---- stdout\n---- stderr\n{expected}"));
    for (kind, outcome) in [("apps-outrider-dev-v1alpha1-sidecarset", 0), ("webapp-outrider-dev-v1-welcome", 0)] {
        let sample = format!("tests/fixtures/reviews/validate-{kind}/valid.json");
        let ran = outrider(&["review", "--manifests", path, "--path", &format!("/validate-{kind}"), &sample], "");
        assert_eq!(ran.outcome.code(), outcome, "{}", ran.stderr);
        assert!(!ran.stderr.contains("no SidecarSet"), "{}", ran.stderr);
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

/// What a reply says of a field is reported with the line of that field in the review.
#[test]
fn what_a_reply_says_is_reported_with_the_line_of_the_field() {
    const REFUSED: &str = "tests/fixtures/reviews/validate-apps-outrider-dev-v1alpha1-sidecarset/several-faults.json";
    let path = ["--path", "/validate-apps-outrider-dev-v1alpha1-sidecarset"];
    let ran = outrider(&[&SETS[..], &path, &[REFUSED]].concat(), "");
    let text = std::fs::read_to_string(REFUSED).unwrap();
    let faults: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(": refused: ")).collect();
    assert!(faults.len() > 1, "{}", ran.stderr);
    for fault in &faults {
        let (place, said) = fault.split_once(": refused: ").unwrap();
        let line: usize = place.strip_prefix(&format!("{REFUSED}:")).unwrap().parse().unwrap();
        let field = said.split(": ").nth(1).unwrap().rsplit(['.', '[']).find(|step| !step.ends_with(']')).unwrap();
        assert!(line > 1 && text.lines().nth(line - 1).unwrap().contains(field), "{fault}");
    }
    let quiet = outrider(&[&SETS[..], &path, &["--quiet", REFUSED]].concat(), "");
    assert!(quiet.stderr.starts_with(faults[0]), "{}", quiet.stderr);

    let yaml = "# a review\nkind: AdmissionReview\napiVersion: admission.k8s.io/v1\nrequest:\n  uid: a\n  operation: CREATE\n  namespace: bare\n  name: web\n  \
                kind: {group: '', version: v1, kind: Pod}\n  object:\n    metadata: {name: web}\n    spec:\n      containers: []\n";
    let stdin = outrider(&[&SETS[..], &["-"]].concat(), yaml);
    let warning = "stdin:13: warning: Pod bare/web: spec.containers is empty: the API server refuses such a pod";
    assert!(stdin.stderr.starts_with(warning) && stdin.stderr.contains("\nallowed: Invalid\n"), "{}", stdin.stderr);
    assert_eq!(stdin.outcome.code(), 0);
}

/// An API server drops the field before it sends a review, or refuses the object.
#[test]
fn typing_errors_in_a_review_are_warnings_and_errors_where_that_is_asked_for() {
    let yaml = "kind: AdmissionReview\napiVersion: admission.k8s.io/v1\nrequest:\n  uid: a\n  operation: CREATE\n  namespace: bare\n  \
                name: web\n  kind: {group: '', version: v1, kind: Pod}\n  object:\n    apiVersion: v1\n    kind: Pod\n    \
                metadata: {name: web}\n    spec:\n      containers:\n      - name: web\n        image: w\n        imagePullPolcy: Always\n";
    let ran = outrider(&[&SETS[..], &["-"]].concat(), yaml);
    let warning = "stdin:17: warning: Pod bare/web: unknown field \"spec.containers[0].imagePullPolcy\" (did you mean \"imagePullPolicy\"?)";
    assert!(ran.stderr.starts_with(warning), "{}", ran.stderr);
    assert_eq!(ran.outcome.code(), 0);
    let strict = outrider(&[&SETS[..], &["--validate=strict", "-"]].concat(), yaml);
    assert!(strict.stderr.starts_with(&warning.replace("warning", "error")), "{}", strict.stderr);
    assert_eq!(strict.outcome.code(), 2);
}

/// Each plugin has its own entry, which the API server calls by itself.
#[test]
fn other_paths_of_a_kind_are_named_and_what_cannot_be_known_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("plugin.yaml");
    let plugin = "apiVersion: policy.outrider.dev/v1alpha1\nkind: AdmissionPlugin\nmetadata: {name: resize}\nspec: {plugin: PersistentVolumeClaimResize}\n";
    std::fs::write(&sets, plugin).unwrap();
    let claim = |size: &str| {
        format!(
            "{{metadata: {{name: a, namespace: shop}}, spec: {{storageClassName: gold, resources: {{requests: {{storage: {size}}}}}}}, status: {{phase: Bound}}}}"
        )
    };
    let review = format!(
        "kind: AdmissionReview\napiVersion: admission.k8s.io/v1\nrequest:\n  uid: a\n  operation: UPDATE\n  namespace: shop\n  name: a\n  \
         kind: {{group: '', version: v1, kind: PersistentVolumeClaim}}\n  resource: {{group: '', version: v1, resource: persistentvolumeclaims}}\n  \
         object: {}\n  oldObject: {}\n",
        claim("2Gi"),
        claim("1Gi")
    );
    let ask =
        |more: &[&str]| outrider(&[&["review", "--manifests", sets.to_str().unwrap()], more, &["-"]].concat(), &review);
    let path = "/validate--v1-persistentvolumeclaim-persistentvolumeclaimresize";
    let by_default = ask(&[]);
    assert!(
        by_default.stderr.contains("plugins decide on it under these paths too, each by --path: "),
        "{}",
        by_default.stderr
    );
    assert!(by_default.stderr.contains(path) && !by_default.stderr.contains("-ignore"), "{}", by_default.stderr);
    let chosen = ask(&["--path", path]);
    let warning = "AdmissionPlugin \"resize\" (PersistentVolumeClaimResize) cannot say whether it would refuse it: there is no StorageClass";
    assert!(chosen.stderr.contains(warning) && !chosen.stderr.contains("under these paths"), "{}", chosen.stderr);
}

/// The API server sends the object with every creation and change; without it nothing is decided.
#[test]
fn a_review_without_its_object_is_bad_input_beside_the_answer_of_the_server() {
    let review = |operation: &str| {
        let kind = r#"{"group":"","version":"v1","kind":"Pod"}"#;
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"a","kind":{kind},"operation":"{operation}"}}}}"#
        )
    };
    for operation in ["CREATE", "UPDATE"] {
        let ran = outrider(&[&SETS[..], &["-"]].concat(), &review(operation));
        assert_eq!(ran.outcome.code(), 2, "{}", ran.stderr);
        let error =
            format!("stdin:1: error: Pod: request.object is missing: the API server sends it with every {operation}");
        assert!(ran.stderr.starts_with(&error) && ran.stderr.contains("\nallowed: "), "{}", ran.stderr);
        assert!(ran.stdout.contains(r#""allowed":true"#), "the reply of the server: {}", ran.stdout);
    }
    assert_eq!(outrider(&[&SETS[..], &["-"]].concat(), &review("DELETE")).outcome.code(), 0);
}
