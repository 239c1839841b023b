//! What commands find in manifests, and how they report it.

use outrider::cli::streams::Outcome;
use serde_json::Value;

use crate::run::outrider;

const SET: &str = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata:\n  name: proxy\nspec:\n  selector:\n    matchLabels: {app: web}\n  containers:\n  - name: proxy\n    image: proxy:1\n";
const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec:\n  containers:\n  - {name: web, image: web:1}\n";

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn broken() -> String {
    SET.replace("image: proxy:1", "image: ''").replace("name: proxy\n    ", "name: Proxy\n    ")
}

#[test]
fn lint_names_the_line_of_each_fault() {
    let folder =
        folder(&[("sets.yaml", &format!("{SET}---\n{}", broken().replace("  name: proxy\n", "  name: other\n")))]);
    let path = folder.path().join("sets.yaml").display().to_string();
    let ran = outrider(&["lint", &path], "");
    assert_eq!((ran.outcome, ran.stdout.as_str()), (Outcome::Refused, ""));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[0].starts_with(&format!("{path}:20: error: ")) && lines[0].contains("name: Invalid value"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with(&format!("{path}:21: error: ")) && lines[1].contains("image: Required value"),
        "{lines:?}"
    );
    assert_eq!(lines[2], "2 sets checked, 2 errors");
    let quiet = outrider(&["lint", "--quiet", &path], "");
    assert_eq!(quiet.stderr.lines().count(), 2, "{}", quiet.stderr);
    let fine = outrider(&["lint", "-"], SET);
    assert_eq!((fine.outcome, fine.stderr.as_str()), (Outcome::Fine, "1 set checked\n"));
}

#[test]
fn lint_of_no_set_is_bad_input() {
    let ran = outrider(&["lint", "-"], POD);
    assert_eq!(ran.outcome, Outcome::BadInput);
    assert!(ran.stderr.contains("error: no apps.outrider.dev/v1alpha1 SidecarSet"), "{}", ran.stderr);
}

#[test]
fn findings_are_printed_as_json_and_sarif() {
    let folder = folder(&[("a b.yaml", &broken())]);
    let path = folder.path().join("a b.yaml").display().to_string();
    let json: Value = serde_json::from_str(&outrider(&["lint", "-o", "json", &path], "").stdout).unwrap();
    assert_eq!(json["summary"]["errors"], 2);
    assert_eq!((&json["findings"][1]["line"], &json["findings"][1]["severity"]), (&10.into(), &"error".into()));
    let sarif: Value = serde_json::from_str(&outrider(&["lint", "-o", "sarif", &path], "").stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"lint".into(), &"error".into()));
    let location = &result["locations"][0]["physicalLocation"];
    assert!(location["artifactLocation"]["uri"].as_str().unwrap().ends_with("a%20b.yaml"), "{location}");
    assert_eq!(location["region"]["startLine"], 9);

    let input = "tests/offline/input/found";
    let arguments = ["render", "--manifests", &format!("{input}/set.yaml"), "-f", &format!("{input}/typing.yaml")];
    let rendered = outrider(&[&arguments[..], &["-o", "sarif"]].concat(), "");
    let sarif: Value = serde_json::from_str(&rendered.stdout).unwrap();
    let levels: Vec<&str> = sarif["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["level"].as_str().unwrap())
        .collect();
    assert!(levels.contains(&"warning") && levels.contains(&"note"), "{levels:?}");
}

#[test]
fn flags_about_a_cluster_that_is_not_asked_are_refused() {
    for command in ["render", "review"] {
        let flags = [command, "-f", "-", "--manifests", "tests/fixtures/manifests", "--context", "prod"];
        let refused = outrider(&flags, POD);
        assert_eq!(refused.outcome, Outcome::BadInput);
        assert_eq!(refused.stderr, "error: --context needs --from-cluster: without it no cluster is read\n");
    }
}

#[test]
fn findings_of_a_review_are_printed_as_json_and_sarif() {
    const SETS: [&str; 3] = ["review", "--manifests", "tests/fixtures/manifests"];
    const WARNED: &str = "tests/fixtures/reviews/mutate--v1-pod/port-shared.json";
    const REFUSED: &str = "tests/fixtures/reviews/validate-apps-outrider-dev-v1alpha1-sidecarset/several-faults.json";
    let json = outrider(&[&SETS[..], &["-o", "json", WARNED]].concat(), "");
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.outcome.code(), json.stderr.as_str()), (0, ""));
    assert_eq!(value["summary"], serde_json::json!({"allowed": 1, "refused": 0, "warnings": 1}), "{value}");
    assert_eq!((&value["findings"][0]["file"], &value["findings"][0]["severity"]), (&WARNED.into(), &"warning".into()));

    let path = ["--path", "/validate-apps-outrider-dev-v1alpha1-sidecarset"];
    let sarif = outrider(&[&SETS[..], &path, &["-o", "sarif", REFUSED]].concat(), "");
    let value: Value = serde_json::from_str(&sarif.stdout).unwrap();
    let results = value["runs"][0]["results"].as_array().unwrap();
    assert_eq!(sarif.outcome.code(), 1);
    assert!(results.len() > 1 && results.iter().all(|result| result["level"] == "error"), "{results:?}");

    // What cannot be read is a finding too: readers of SARIF do not read stderr.
    for command in [&["review", "-"][..], &["render", "-f", "-"]] {
        let none = outrider(&[command, &["--manifests", "tests/no-such-folder", "-o", "sarif"]].concat(), "");
        let value: Value = serde_json::from_str(&none.stdout).unwrap();
        assert_eq!(none.outcome.code(), 2);
        assert!(
            value["runs"][0]["results"][0]["message"]["text"].as_str().unwrap().contains("no-such-folder"),
            "{value}"
        );
    }
}

const TEST: &str = "apiVersion: cli.outrider.dev/v1alpha1\nkind: Test\nmetadata: {name: sidecars}\nsets: [sets.yaml]\nresources: [app]\nnamespace: shop\nresults:\n";

fn cases(results: &str) -> tempfile::TempDir {
    let clash =
        POD.replace("name: web, labels", "name: clash, labels").replace("{name: web, image", "{name: proxy, image");
    let other = POD.replace("name: web, labels: {app: web}", "name: other");
    folder(&[
        ("sets.yaml", SET),
        ("app/web.yaml", POD),
        ("app/clash.yaml", &clash),
        ("app/other.yaml", &other),
        ("outrider-test.yaml", &format!("{TEST}{results}")),
    ])
}

#[test]
fn cases_pass_and_fail_by_verdict_reason_message_and_field() {
    let right = "- {resource: web, kind: Pod, result: injected, reason: Injected, fields: {'spec.containers[0].name': proxy}}\n\
                 - {resource: clash, result: refused, reason: ContainerClash, message: rename one of them}\n\
                 - {resource: other, result: unchanged, reason: NoMatch, fields: {'metadata.annotations': null}}\n";
    let folder = cases(right);
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    assert_eq!((ran.outcome, ran.stderr.as_str()), (Outcome::Fine, "3 passed\n"));

    let wrong = "- {resource: web, result: unchanged}\n\
                 - {resource: web, name: reason, result: injected, reason: NoMatch}\n\
                 - {resource: clash, name: message, result: refused, message: turn around}\n\
                 - {resource: web, name: field, result: injected, fields: {'spec.containers[0].name': web}}\n\
                 - {resource: nobody, result: injected}\n";
    let folder = cases(wrong);
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, Outcome::Refused);
    for said in [
        "error: web: expected unchanged, and it is injected",
        "error: reason: expected reason NoMatch, found Injected",
        "error: message: nothing says \"turn around\"",
        "error: field: spec.containers[0].name: expected \"web\", and it is \"proxy\"",
        "error: nobody: 0 of the resources have that name and kind; it must be one",
        "\n5 failed\n",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn a_test_file_with_an_unknown_field_is_bad_input() {
    let folder = cases("- {resource: web, result: injected, filds: {}}\n");
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, Outcome::BadInput);
    assert!(ran.stderr.contains("outrider-test.yaml:1: error: unknown field `filds`"), "{}", ran.stderr);
    let none = outrider(&["test", folder.path().join("app").to_str().unwrap()], "");
    assert_eq!(none.outcome, Outcome::BadInput);
}

#[test]
fn cases_are_printed_as_junit() {
    let folder = cases("- {resource: web, result: injected}\n- {resource: web, name: a < b, result: refused}\n");
    let ran = outrider(&["test", "-o", "junit", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, Outcome::Refused);
    let xml = ran.stdout;
    assert!(xml.contains("<testsuites tests=\"2\" failures=\"1\">"), "{xml}");
    assert!(xml.contains("name=\"web\"/>") && xml.contains("name=\"a &lt; b\">"), "{xml}");
    assert!(xml.contains("<failure message=\"expected refused, and it is injected\"/>"), "{xml}");
}

#[test]
fn failed_cases_are_printed_as_json_and_sarif() {
    let folder = cases("- {resource: web, result: injected}\n- {resource: web, name: wrong, result: refused}\n");
    let json = outrider(&["test", "-o", "json", folder.path().to_str().unwrap()], "");
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.outcome, &value["summary"]), (Outcome::Refused, &serde_json::json!({"passed": 1, "failed": 1})));
    assert_eq!(value["findings"].as_array().unwrap().len(), 1, "{value}");
    let ran = outrider(&["test", "-o", "sarif", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, Outcome::Refused);
    let sarif: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"test".into(), &"error".into()));
    assert!(results[0]["message"]["text"].as_str().unwrap().starts_with("wrong: expected refused"), "{results:?}");
    let uri = results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.ends_with("outrider-test.yaml"), "{uri}");

    let folder = cases("- {resource: web, result: injected}\n");
    let ran = outrider(&["test", "-o", "sarif", folder.path().to_str().unwrap()], "");
    let sarif: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.outcome, &sarif["runs"][0]["results"]), (Outcome::Fine, &serde_json::json!([])));
}

#[test]
fn a_render_ends_with_its_numbers_unless_it_is_quiet() {
    let folder = cases("[]\n");
    let (sets, app) = (folder.path().join("sets.yaml"), folder.path().join("app"));
    let arguments = ["render", "--manifests", sets.to_str().unwrap(), "-f", app.to_str().unwrap()];
    let ran = outrider(&arguments, "");
    assert_eq!(ran.outcome, Outcome::Refused);
    assert!(ran.stderr.ends_with("\n1 injected, 1 unchanged, 1 refused\n"), "{}", ran.stderr);
    let quiet = outrider(&[&arguments[..], &["-q"]].concat(), "");
    assert!(quiet.stderr.lines().count() == 1 && quiet.stderr.contains(": refused: "), "{}", quiet.stderr);
}

#[test]
fn items_of_a_list_have_lines_of_their_own() {
    let indented = |text: &str| text.trim_end().replace('\n', "\n  ");
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n",
        indented(POD),
        indented(&POD.replace("web:1", "' '"))
    );
    let folder = folder(&[("sets.yaml", SET), ("list.yaml", &list)]);
    let (sets, file) = (folder.path().join("sets.yaml"), folder.path().join("list.yaml").display().to_string());
    let ran = outrider(&["render", "--manifests", sets.to_str().unwrap(), "-f", &file], "");
    assert!(
        ran.stderr.starts_with(&format!("{file}:15: warning: Pod default/web: spec.containers[0].image")),
        "{}",
        ran.stderr
    );
}

#[test]
fn sets_come_from_stdin() {
    let folder = folder(&[("pod.yaml", POD)]);
    let pod = folder.path().join("pod.yaml");
    let ran = outrider(&["render", "--manifests", "-", "-f", pod.to_str().unwrap()], SET);
    assert_eq!((ran.outcome, ran.stderr.as_str()), (Outcome::Fine, "1 injected\n"));
    let both = outrider(&["render", "--manifests", "-", "-f", "-"], SET);
    assert_eq!(
        (both.outcome, both.stderr.as_str()),
        (Outcome::BadInput, "error: --manifests and -f cannot both be stdin\n")
    );
}

#[test]
fn a_folder_without_a_kustomization_is_named() {
    let folder = folder(&[("sets.yaml", SET)]);
    let sets = folder.path().join("sets.yaml");
    let ran = outrider(&["render", "--manifests", sets.to_str().unwrap(), "-k", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, Outcome::BadInput);
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("kubectl kustomize"), "{}", ran.stderr);
}

#[test]
fn a_version_is_printed_in_one_line_or_as_json() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(outrider(&["version"], "").stdout.starts_with(&format!("outrider {version}")));
    let json: Value = serde_json::from_str(&outrider(&["version", "-o", "json"], "").stdout).unwrap();
    assert_eq!(json["version"], version);
}
