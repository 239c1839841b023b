//! `outrider test` beside `outrider render`: what decides, and what is said, are the same.

use outrider::cli::streams::CommandOutcome;
use serde_json::Value;

use crate::run::outrider;

const SET: &str = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: log}\nspec:\n  \
                   selector: {matchLabels: {app: web}}\n  namespaceSelector: {matchLabels: {team: a}}\n  \
                   containers: [{name: log, image: 'log:1'}]\n";
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: a}}\n";
const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec: {containers: [{name: web, image: w}]}\n";
const MISSPELT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
                        template:\n    metadata: {labels: {app: web}}\n    spec:\n      container: [{name: web, image: w}]\n";

/// The folder of a test file, and its path.
fn folder(resources: &str, results: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = format!(
        "apiVersion: cli.outrider.dev/v1alpha1\nkind: Test\nmetadata: {{name: t}}\nsets: [sets.yaml]\nresources: [app.yaml]\n\
         results:\n{results}"
    );
    for (name, text) in [("sets.yaml", SET), ("app.yaml", resources), ("outrider-test.yaml", &file)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn namespaces_among_the_resources_count_in_any_order() {
    for resources in [format!("{NAMESPACE}---\n{POD}"), format!("{POD}---\n{NAMESPACE}")] {
        let (_folder, path) = folder(&resources, "- {resource: web, result: injected, reason: Injected}\n");
        let ran = outrider(&["test", &path], "");
        assert_eq!((ran.outcome, ran.stderr.as_str()), (CommandOutcome::Fine, "1 passed\n"), "{resources}");
    }
    let (_folder, path) = folder(POD, "- {resource: web, result: injected}\n");
    assert_eq!(outrider(&["test", &path], "").outcome, CommandOutcome::Refused, "the namespace is not known");
}

/// A key with dots may be in quotes, and an item of a list be named by a field.
#[test]
fn fields_are_found_by_every_form_of_their_path() {
    const LABELLED: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web, example.com/team: a}}\nspec: {containers: \
                            [{name: web, image: w}]}\n";
    let fields = |fields: &str| {
        let (_folder, path) = folder(
            &format!("{NAMESPACE}---\n{LABELLED}"),
            &format!("- resource: web\n  result: injected\n  fields:\n{fields}"),
        );
        let ran = outrider(&["test", &path], "");
        ran.stderr.replace(&format!("{path}/outrider-test.yaml:"), "")
    };
    let right = "    metadata.labels[\"example.com/team\"]: a\n    metadata.labels['example.com/team']: a\n    \
                 metadata.labels[example.com/team]: a\n    spec.containers[name=log].image: log:1\n    \
                 spec.containers[name=\"log\"].image: log:1\n    spec.containers[name=other]: null\n";
    assert_eq!(fields(right), "1 passed\n");
    assert_eq!(
        fields("    spec.containers[name=other].image: a\n    metadata.name: null\n"),
        "10: error: web: spec.containers[name=other].image: expected \"a\", and it is absent\n11: error: web: metadata.name: expected \
         absent, and it is \"web\"\n1 failed\n"
    );
}

/// What `explain` prints of a set can be expected.
#[test]
fn reasons_of_single_sets_can_be_expected() {
    const CANARY: &str = "tests/offline/input/canary.yaml";
    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: cart, namespace: shop, labels: {app: cart, proxied: 'yes'}}\nspec: \
                       {containers: [{name: cart, image: c}]}\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pod.yaml"), POD).unwrap();
    let canary = std::env::current_dir().unwrap().join(CANARY);
    let case = |reason: &str| {
        let text = format!(
            "apiVersion: cli.outrider.dev/v1alpha1\nkind: Test\nsets: [{}]\nresources: [pod.yaml]\nresults:\n- {{resource: cart, result: \
             injected, reason: {reason}}}\n",
            canary.display()
        );
        let path = folder.path().join("outrider-test.yaml");
        std::fs::write(&path, text).unwrap();
        outrider(&["test", path.to_str().unwrap()], "")
    };
    assert_eq!(case("CanaryShadowed").stderr, "1 passed\n");
    let root = std::env::current_dir().unwrap().join("tests/offline/input");
    let held = format!(
        "apiVersion: cli.outrider.dev/v1alpha1\nkind: Test\nsets: [{0}/revisions]\nresources: [{0}/revisions.yaml]\nnamespace: \
         shop\nresults:\n- {{resource: web, result: injected, reason: PartialHeldBack}}\n- {{resource: cart, result: injected, reason: \
         PartialHeldBack}}\n",
        root.display()
    );
    let path = folder.path().join("held.yaml");
    std::fs::write(&path, held).unwrap();
    let ran = outrider(&["test", path.to_str().unwrap()], "");
    assert!(ran.stderr.ends_with("1 passed, 1 failed\n") && ran.stderr.contains("error: cart: "), "{}", ran.stderr);
    let wrong = case("PartialHeldBack");
    assert!(
        wrong.stderr.contains("expected reason PartialHeldBack, found Injected, CanaryShadowed"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn typing_errors_are_the_warnings_of_render_and_of_explain() {
    let resources = format!("{NAMESPACE}---\n{MISSPELT}");
    let (_folder, path) = folder(&resources, "- {resource: web, kind: Deployment, result: unchanged}\n");
    let (sets, app) = (format!("{path}/sets.yaml"), format!("{path}/app.yaml"));
    let warnings = |arguments: &[&str]| {
        let ran = outrider(arguments, "");
        assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.transcript());
        ran.stderr.lines().filter(|line| line.contains(": warning: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let of_render = warnings(&["render", "--manifests", &sets, "-f", &app]);
    assert!(of_render.iter().any(|line| line.contains("did you mean \"containers\"")), "{of_render:?}");
    assert_eq!(warnings(&["test", &path]), of_render);
    assert_eq!(warnings(&["test", "-o", "junit", &path]), of_render);
    assert_eq!(warnings(&["explain", "--manifests", &sets, "-f", &app]), of_render);
    assert!(warnings(&["test", "-q", &path]).is_empty());
    let json: Value = serde_json::from_str(&outrider(&["test", "-o", "json", &path], "").stdout).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), of_render.len(), "{json}");
}

#[test]
fn a_wrong_expectation_is_answered_with_a_sentence() {
    let other = POD.replace("app: web", "app: other");
    for (resources, results, said) in [
        (&other, "- {resource: web, result: injected}\n", "expected injected, and it is unchanged: no set selects"),
        (
            &MISSPELT
                .replace("apps/v1\nkind: Deployment", "example.org/v1\nkind: Batch")
                .replace("container:", "containers:"),
            "- {resource: web, kind: Batch, result: unchanged}\n",
            "expected unchanged, and it is injected: pod templates found by their shape: spec.template",
        ),
    ] {
        let (_folder, path) = folder(&format!("{NAMESPACE}---\n{resources}"), results);
        let ran = outrider(&["test", &path], "");
        assert!(ran.stderr.contains(said) && !ran.stderr.contains(": :"), "{}", ran.stderr);
    }
}

#[test]
fn a_case_that_several_objects_may_be_meant_by_names_them_and_what_to_write() {
    let in_bank = POD.replace("name: web, labels", "name: web, namespace: bank, labels");
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    let told = |resources: &[&str], case: &str| {
        let (_folder, path) =
            folder(&resources.join("---\n"), &format!("- {{resource: web, result: unchanged{case}}}\n"));
        let ran = outrider(&["test", &path], "");
        let line = ran.stderr.lines().find(|line| line.contains(": error: ")).unwrap_or("none").to_owned();
        line.split_once("web: ").map_or_else(|| line.clone(), |(_, text)| text.replace(&format!("{path}/"), ""))
    };
    assert_eq!(
        told(&[POD, config], ""),
        "2 resources match resource named \"web\": Pod default/web (app.yaml:1), ConfigMap web (app.yaml:6); add to the case which one \
         is meant, such as kind: Pod"
    );
    assert_eq!(
        told(&[POD, &in_bank], ", kind: Pod"),
        "2 resources match Pod named \"web\": Pod default/web (app.yaml:1), Pod bank/web (app.yaml:6); add to the case which one is \
         meant, such as namespace: default"
    );
    assert_eq!(
        told(&[POD, &in_bank], ", namespace: default"),
        "none",
        "an object without a namespace is in that of the file"
    );
    assert_eq!(
        told(&[POD, POD], ""),
        "2 resources match resource named \"web\": Pod default/web (app.yaml:1), Pod default/web (app.yaml:6); they are one object for \
         a cluster: leave all but one out of resources"
    );
    assert_eq!(
        told(&[POD], ", kind: Deployment"),
        "there is no Deployment named \"web\"; of that name there is Pod default/web (app.yaml:1)"
    );
    let many = vec![config; 7];
    assert!(told(&many, "").contains("ConfigMap web (app.yaml:17), and 2 more; "), "{}", told(&many, ""));
}

/// A file that a test file names and that is not there is wrong in the test file; what is wrong inside of a file is wrong there.
#[test]
fn a_file_that_cannot_be_read_has_the_line_on_which_the_test_file_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let namespace_only = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
    for (name, text) in
        [("sets.yaml", SET), ("app.yaml", POD), ("none.yaml", namespace_only), ("broken.yaml", "a: [\n")]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().join("outrider-test.yaml").display().to_string();
    let told = |sets: &[&str], resources: &[&str]| {
        let lines = |paths: &[&str]| paths.iter().flat_map(|path| ["- ", path, "\n"]).collect::<String>();
        let text = format!(
            "apiVersion: cli.outrider.dev/v1alpha1\nkind: Test\nsets:\n{}resources:\n{}results:\n- {{resource: web, result: injected}}\n",
            lines(sets),
            lines(resources)
        );
        std::fs::write(&path, text).unwrap();
        let ran = outrider(&["test", &path], "");
        assert_eq!(ran.outcome, CommandOutcome::BadInput, "{}", ran.stderr);
        ran.stderr.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(
        told(&["sets.yaml", "nowhere.yaml", "nor/here"], &["app.yaml"]),
        "outrider-test.yaml:5: error: sets[1]: nowhere.yaml: No such file or directory (os error 2)\noutrider-test.yaml:6: error: sets[2]: \
         nor/here: No such file or directory (os error 2)\n2 errors\n"
    );
    assert_eq!(
        told(&["sets.yaml"], &["app.yaml", "nowhere.yaml"]),
        "outrider-test.yaml:7: error: resources[1]: nowhere.yaml: No such file or directory (os error 2)\n1 error\n"
    );
    assert_eq!(
        told(&["none.yaml"], &["app.yaml"]),
        "outrider-test.yaml:3: error: sets: no SidecarSet (apps.outrider.dev/v1alpha1), AdmissionPlugin, ClusterLimitRange or \
         PodSecurityProfile in none.yaml\n1 error\n"
    );
    assert_eq!(
        told(&[], &["app.yaml"]),
        "outrider-test.yaml:3: error: sets: Required value: at least one file or folder with sets\n1 error\n"
    );
    assert!(told(&["sets.yaml"], &["broken.yaml"]).starts_with("broken.yaml:"));
}
