//! What commands find in manifests, and how they report it.

use outrider::cli::streams::CommandOutcome;
use serde_json::Value;

use crate::run::outrider;

pub const SET: &str = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata:\n  name: proxy\nspec:\n  selector:\n    matchLabels: {app: web}\n  containers:\n  - name: proxy\n    image: proxy:1\n";
pub const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec:\n  containers:\n  - {name: web, image: web:1}\n";

/// A folder with these files.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
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
    assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::Refused, ""));
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
    assert_eq!(lines[2], "2 objects checked, 2 errors");
    let quiet = outrider(&["lint", "--quiet", &path], "");
    assert_eq!(quiet.stderr.lines().count(), 2, "{}", quiet.stderr);
    let fine = outrider(&["lint", "-"], SET);
    assert_eq!((fine.outcome, fine.stderr.as_str()), (CommandOutcome::Fine, "1 object checked\n"));
}

/// A kind in other letters, or in another group, would be left out, and labels are written as in a Service's selector.
#[test]
fn what_a_slip_in_a_kind_or_in_a_selector_may_mean_is_suggested() {
    let slips = [
        ("Sidecarset", "apps.outrider.dev/v1alpha1", "apps.outrider.dev/v1alpha1 SidecarSet"),
        ("sidecarSet", "apps.kruise.io/v1alpha1", "apps.kruise.io/v1alpha1 SidecarSet"),
        ("SideCarSets", "apps.kruise.io/v1beta1", "apps.kruise.io/v1beta1 SidecarSet"),
        ("Sidecarset", "apps/v1", "apps.outrider.dev/v1alpha1 SidecarSet"),
        ("AdmissionPlugin", "apps.outrider.dev/v1alpha1", "policy.outrider.dev/v1alpha1 AdmissionPlugin"),
        ("admissionplugin", "policy.outrider.dev/v1alpha1", "policy.outrider.dev/v1alpha1 AdmissionPlugin"),
    ];
    for (kind, api_version, meant) in slips {
        let text = SET.replace("apps.outrider.dev/v1alpha1", api_version).replace("SidecarSet", kind);
        let error = format!("stdin:1: error: there is no {kind} in {api_version} (did you mean \"{meant}\"?)\n");
        let ran = outrider(&["lint", "-"], &text);
        assert_eq!((ran.outcome, ran.stderr), (CommandOutcome::BadInput, format!("{error}1 error\n")));
        let beside = outrider(&["lint", "-"], &format!("{text}---\n{SET}"));
        assert_eq!(beside.outcome, CommandOutcome::Refused, "{}", beside.stderr);
        if api_version.starts_with("apps.kruise.io") {
            let ran = outrider(&["migrate", "-"], &text);
            assert_eq!((ran.outcome, ran.stderr), (CommandOutcome::BadInput, error));
        }
    }
    let kruise = SET.replace("apps.outrider.dev", "apps.kruise.io");
    let ran = outrider(&["migrate", "-"], &format!("{kruise}---\n{}", kruise.replace("SidecarSet", "Sidecarset")));
    assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::Refused, ""), "{}", ran.stderr);
    let other = "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: a}\n";
    assert_eq!(outrider(&["lint", "-"], &format!("{other}---\n{SET}")).outcome, CommandOutcome::Fine);
    assert_eq!(
        outrider(&["lint", "-"], &SET.replace("    matchLabels: {app: web}", "    app: web")).stderr,
        "stdin:7: error: SidecarSet \"proxy\": unknown field \"spec.selector.app\" (did you mean \"matchLabels[app]\"?)\n1 object \
         checked, 1 error\n"
    );
}

#[test]
fn a_namespace_of_a_cluster_scoped_object_is_warned_of() {
    let of = |text: &str| outrider(&["lint", "-"], &text.replace("  name: ", "  namespace: prod\n  name: "));
    let ran = of(SET);
    let warning = "stdin:4: warning: SidecarSet \"proxy\": metadata.namespace: \"prod\" is dropped, as the kind is cluster-scoped; \
                   spec.namespace limits the set to pods of one namespace";
    assert_eq!((ran.outcome, ran.stderr.lines().next()), (CommandOutcome::Fine, Some(warning)));
    let ran = of(
        "apiVersion: policy.outrider.dev/v1alpha1\nkind: AdmissionPlugin\nmetadata:\n  name: always-pull\nspec: {plugin: AlwaysPullImages}\n",
    );
    let warning = "stdin:4: warning: AdmissionPlugin \"always-pull\": metadata.namespace: \"prod\" is dropped, as the kind is cluster-scoped";
    assert_eq!(ran.stderr.lines().next(), Some(warning), "{}", ran.stderr);
}

#[test]
fn lint_takes_files_by_the_flags_of_other_commands_too() {
    for flag in ["-f", "--filename", "--manifests"] {
        let ran = outrider(&["lint", flag, "-"], SET);
        assert_eq!((ran.outcome, ran.stderr.as_str()), (CommandOutcome::Fine, "1 object checked\n"), "{flag}");
    }
}

/// A set cannot know the containers of pods, but workloads beside it have some.
#[test]
fn lint_warns_of_containers_that_no_workload_in_the_files_has() {
    let set = SET.replace("  containers:", "  appContainers:\n  - env: [{name: A, value: a}]\n  - containerNames: [wbe]\n    env: [{name: B, value: b}]\n  containers:");
    let workload = |name: &str, container: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  template:\n    metadata: {{labels: {{app: \
             web}}}}\n    spec: {{containers: [{{name: {container}, image: a}}]}}\n"
        )
    };
    let lint = |documents: &[&str]| {
        let ran = outrider(&["lint", "-"], &documents.join("---\n"));
        assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::Fine, ""));
        ran.stderr
    };
    let (first, second) = (workload("one", "web"), workload("two", "job"));
    assert_eq!(
        lint(&[&set, &first, &second]),
        "stdin:10: warning: SidecarSet \"proxy\": spec.appContainers[1].containerNames: no container of Deployment default/one, \
         Deployment default/two is named \"wbe\", so nothing that these files hold gets anything of this entry\n1 object checked, 1 \
         warning\n"
    );
    // One of them has it, in either order; nothing is known without a workload, or with one that the set does not select.
    let right = workload("three", "wbe");
    let other = first.replace("app: web", "app: other");
    for fine in [&[&*set, &first, &right][..], &[&set, &right, &first], &[&set]] {
        assert_eq!(lint(fine), "1 object checked\n", "{fine:?}");
    }
    assert!(!lint(&[&set, &other]).contains("warning"));
}

/// A set for pods elsewhere is right, so that no exit code depends on it.
#[test]
fn lint_notes_a_set_that_selects_none_of_the_pods_and_workloads_in_the_files() {
    let lint = |documents: &[&str]| {
        let ran = outrider(&["lint", "--warnings-as-errors", "-"], &documents.join("---\n"));
        assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::Fine, ""), "{}", ran.stderr);
        ran.stderr
    };
    let other = POD.replace("app: web", "app: other");
    let none = "stdin:6: note: SidecarSet \"proxy\": spec.selector: it does not select the one pod or workload in these files\n";
    assert_eq!(lint(&[SET, &other]), format!("{none}1 object checked\n"));
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, labels: {app: web}}\nspec:\n  template:\n    metadata: \
                      {labels: {app: wbe}}\n    spec: {containers: [{name: a, image: a}]}\n";
    let several = none.replace("does not select the one pod or workload", "selects none of the 3 pods and workloads");
    assert_eq!(lint(&[SET, &other, deployment, &other]), format!("{several}1 object checked\n"));
    // One of them is selected, wherever it is; there is none; what selects every pod.
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let deployed = deployment.replace("wbe", "web");
    let everywhere = SET.replace("matchLabels: {app: web}", "matchExpressions: [{key: app, operator: DoesNotExist}]");
    let unlabelled = POD.replace(", labels: {app: web}", "");
    for fine in [&[&other, SET, POD][..], &[SET, &other, &deployed], &[SET, config], &[&everywhere, &unlabelled]] {
        assert_eq!(lint(fine), "1 object checked\n", "{fine:?}");
    }
    assert_eq!(outrider(&["lint", "-q", "-"], &format!("{SET}---\n{other}")).stderr, "");
}

/// A right and a wrong object of each kind that decides beside sets.
#[test]
fn lint_checks_plugins_ranges_and_profiles_as_sets() {
    const HEAD: &str = "apiVersion: policy.outrider.dev/v1alpha1\nkind: ";
    let plugin = format!("{HEAD}AdmissionPlugin\nmetadata: {{name: storage}}\nspec:\n  plugin: DefaultStorageClass\n");
    let range = format!(
        "{HEAD}ClusterLimitRange\nmetadata: {{name: small}}\nspec:\n  limits:\n  - type: Container\n    default: {{cpu: 100m}}\n"
    );
    let of = |text: &str| {
        let ran = outrider(&["lint", "-"], text);
        (ran.outcome, ran.stderr)
    };
    assert_eq!(of(&plugin), (CommandOutcome::Fine, "1 object checked\n".to_owned()));
    assert_eq!(of(&range), (CommandOutcome::Fine, "1 object checked\n".to_owned()));
    let profile = format!(
        "{HEAD}PodSecurityProfile\nmetadata: {{name: open}}\nspec:\n  runAsUser: {{rule: RunAsAny}}\n  seLinux: {{rule: RunAsAny}}\n  fsGroup: {{rule: RunAsAny}}\n  supplementalGroups: {{rule: RunAsAny}}\n"
    );
    assert_eq!(of(&profile), (CommandOutcome::Fine, "1 object checked\n".to_owned()));
    let all = format!("{plugin}---\n{range}---\n{profile}---\n{SET}");
    assert_eq!(of(&all), (CommandOutcome::Fine, "4 objects checked\n".to_owned()));
    let wrong = [
        (plugin.replace("DefaultStorageClass", "DefaultStorageClas"), 5, "spec.plugin: Unsupported value"),
        (plugin.replace("  plugin", "  mode: Warned\n  plugin"), 5, "spec.mode: Unsupported value"),
        (plugin.replace("  plugin", "  mod: Warn\n  plugin"), 5, "unknown field \"spec.mod\" (did you mean \"mode\"?)"),
        (range.replace("Container", "Containers"), 6, "spec.limits[0].type: "),
        (range.replace("100m", "odd"), 7, "spec.limits[0].default[cpu]: "),
        (
            profile.replace("  runAsUser: {rule: RunAsAny", "  runAsUser: {rule: RunAs"),
            5,
            "spec.runAsUser.rule: Unsupported value",
        ),
        (profile.replace("  seLinux", "  selinux"), 6, "unknown field \"spec.selinux\" (did you mean \"seLinux\"?)"),
    ];
    for (text, line, said) in wrong {
        let folder = folder(&[("objects.yaml", text.as_str())]);
        let path = folder.path().join("objects.yaml").display().to_string();
        let ran = outrider(&["lint", &path], "");
        assert_eq!(ran.outcome, CommandOutcome::Refused, "{text}");
        let place = format!("{path}:{line}: error: ");
        assert!(ran.stderr.starts_with(&place) && ran.stderr.contains(said), "{said}: {}", ran.stderr);
        assert!(ran.stderr.ends_with("\n1 object checked, 1 error\n"), "{}", ran.stderr);
    }
}

/// The server answers an object that is too large without its name.
#[test]
fn a_set_that_is_too_large_is_named_with_the_line_of_its_field() {
    let containers: Vec<String> = (0..101).map(|at| format!("  - {{name: c{at}, image: i}}\n")).collect();
    let (head, _) = SET.split_once("  - name: proxy").unwrap();
    let folder = folder(&[("sets.yaml", &format!("{head}{}", containers.concat())), ("pod.yaml", POD)]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let error =
        format!("{}:8: error: SidecarSet \"proxy\": spec.containers holds more than 100 elements\n", path("sets.yaml"));
    assert!(outrider(&["lint", &path("sets.yaml")], "").stderr.starts_with(&error));
    let rendered = outrider(&["render", "--manifests", &path("sets.yaml"), "-f", &path("pod.yaml")], "");
    assert_eq!((rendered.outcome, rendered.stderr), (CommandOutcome::BadInput, error));
}

#[test]
fn lint_of_no_set_is_bad_input() {
    let ran = outrider(&["lint", "-"], POD);
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
    assert!(
        ran.stderr
            .contains("error: no SidecarSet (apps.outrider.dev/v1alpha1), AdmissionPlugin, ClusterLimitRange or PodSecurityProfile in"),
        "{}",
        ran.stderr
    );
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
    let found: Value =
        serde_json::from_str(&outrider(&[&arguments[..], &["-o", "findings"]].concat(), "").stdout).unwrap();
    assert_eq!(found["findings"].as_array().unwrap().len(), sarif["runs"][0]["results"].as_array().unwrap().len());
    assert!(found["findings"][0]["line"].is_u64() && found["summary"]["injected"].as_u64() > Some(0), "{found}");
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
        assert_eq!(refused.outcome, CommandOutcome::BadInput);
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
    assert_eq!((ran.outcome, ran.stderr.as_str()), (CommandOutcome::Fine, "3 passed\n"));

    let wrong = "- {resource: web, result: unchanged}\n\
                 - {resource: web, name: reason, result: injected, reason: NoMatch}\n\
                 - {resource: clash, name: message, result: refused, message: turn around}\n\
                 - {resource: web, name: field, result: injected, fields: {'spec.containers[0].name': web}}\n\
                 - {resource: nobody, result: injected}\n";
    let folder = cases(wrong);
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, CommandOutcome::Refused);
    let file = folder.path().join("outrider-test.yaml").display().to_string();
    let expected = [
        "8: error: web: expected unchanged, and it is injected",
        "9: error: reason: expected reason NoMatch, found Injected",
        "10: error: message: no message contains \"turn around\": found \"pod cannot carry",
        "11: error: field: spec.containers[0].name: expected \"web\", and it is \"proxy\"",
        "12: error: nobody: there is no resource named \"nobody\"",
    ];
    let expected: Vec<String> = expected.iter().map(|line| format!("{file}:{line}\n")).collect();
    let told: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!((told.len(), told[5]), (6, "5 failed"), "{told:?}");
    for (line, expected) in told.iter().zip(&expected) {
        assert!(line.starts_with(expected.trim_end()), "{line}");
    }
}

#[test]
fn a_case_whose_resource_is_not_one_names_what_may_be_meant() {
    let folder = cases("- {resource: wbe, result: injected}\n- {resource: web, kind: Job, result: injected}\n");
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    for text in ["there is no resource named \"wbe\" (did you mean \"web\"?)", "there is no Job named \"web\""] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
}

/// Each failure has the line of the expectation that was not met, in text and for code scanning.
#[test]
fn a_failed_case_has_the_line_of_its_expectation() {
    let folder = cases(
        "- resource: web\n  name: several\n  result: refused\n  reason: NoMatch\n  message: none\n  fields:\n    spec.x: 1\n    spec.containers[0].name: web\n",
    );
    let file = folder.path().join("outrider-test.yaml").display().to_string();
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    let lines: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix(&format!("{file}:"))).collect();
    let numbers: Vec<&str> = lines.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(numbers, ["10", "11", "12", "14", "15"], "{}", ran.stderr);
    assert!(lines[3].ends_with("several: spec.x: expected 1, and it is absent"), "{}", ran.stderr);
    let sarif = outrider(&["test", "-o", "sarif", folder.path().to_str().unwrap()], "");
    let sarif: Value = serde_json::from_str(&sarif.stdout).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let started = |result: &Value| result["locations"][0]["physicalLocation"]["region"]["startLine"].to_string();
    assert_eq!(results.iter().map(started).collect::<Vec<_>>(), numbers);
}

#[test]
fn a_test_file_with_an_unknown_field_is_bad_input() {
    let folder = cases("- {resource: web, result: injected}\n- {resource: web, result: injected, filds: {}}\n");
    let ran = outrider(&["test", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
    let error = "outrider-test.yaml:9: error: unknown field \"results[1].filds\" (did you mean \"fields\"?)";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
    let none = outrider(&["test", folder.path().join("app").to_str().unwrap()], "");
    assert_eq!(none.outcome, CommandOutcome::BadInput);
}

/// What no case may be without, and what would never be as expected.
#[test]
fn a_case_that_cannot_be_judged_is_bad_input_at_the_line_of_its_field() {
    for (results, errors) in [
        (" []\n", &["7: error: results: Required value: at least one case"][..]),
        ("\n", &["7: error: results: Required value: at least one case"]),
        (
            "\n- resource: web\n  result: injected\n- kind: Pod\n  resource: web\n",
            &["10: error: results[1].result: Required value"],
        ),
        (
            "\n- resource: web\n  result: injected\n  reason: Injectd\n  fields:\n    spec.containers[0.name: proxy\n    spec..x: 1\n    \
             metadata.annotations[outrider.dev/skip]: null\n",
            &[
                "10: error: results[0].reason: Invalid value: \"Injectd\": no reason code; did you mean Injected? docs/reasons.md lists them",
                "11: error: results[0].fields: Invalid value: \"spec.containers[0.name\": no field path",
                "11: error: results[0].fields: Invalid value: \"spec..x\": no field path",
            ],
        ),
    ] {
        let file = format!("{}{results}", TEST.trim_end());
        let folder = folder(&[("sets.yaml", SET), ("app/web.yaml", POD), ("outrider-test.yaml", &file)]);
        let path = folder.path().join("outrider-test.yaml").display().to_string();
        let ran = outrider(&["test", "-f", &path], "");
        assert_eq!(ran.outcome, CommandOutcome::BadInput, "{}", ran.stderr);
        for error in errors {
            assert!(ran.stderr.contains(&format!("{path}:{error}")), "{error}: {}", ran.stderr);
        }
        let summary = format!("{} error{}", errors.len(), if errors.len() == 1 { "" } else { "s" });
        assert_eq!(ran.stderr.lines().count(), errors.len() + 1, "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().last(), Some(summary.as_str()));
    }
}

/// What cannot be read has the line where reading ended.
#[test]
fn a_duplicate_key_has_its_own_line() {
    let folder = folder(&[("app.yaml", "kind: Pod\nmetadata:\n  name: a\n  name: b\n")]);
    let path = folder.path().join("app.yaml").display().to_string();
    let ran = outrider(&["lint", "-f", &path], "");
    assert!(ran.stderr.starts_with(&format!("{path}:4: error: metadata: duplicate key")), "{}", ran.stderr);
}

/// One file that cannot be read hides nothing of the others.
#[test]
fn lint_checks_what_can_be_read_beside_a_broken_file() {
    let other = SET.replace("  name: proxy\nspec", "  name: other\nspec").replace("app: web", "app: other");
    let folder = folder(&[("a.yaml", "kind: [\n"), ("b.yaml", &broken()), ("c.yaml", &other)]);
    let ran = outrider(&["lint", &folder.path().display().to_string()], "");
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (file, line) in [("a.yaml", 1), ("b.yaml", 9), ("b.yaml", 10)] {
        assert!(ran.stderr.contains(&format!("{}:{line}: error: ", at(file))), "{file}:{line}\n{}", ran.stderr);
    }
    assert!(ran.stderr.ends_with("2 objects checked, 3 errors\n"), "{}", ran.stderr);
}

/// The same as of a file, in every command that reads objects.
#[test]
fn findings_about_standard_input_have_the_line_of_the_field() {
    let broken = SET.replace("matchLabels", "matchLabel");
    let pod = POD.replace("image: web:1", "imag: web:1");
    let folder = folder(&[("set.yaml", SET), ("broken.yaml", &broken), ("pod.yaml", &pod)]);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (set, broken_file, pod_file) = (at("set.yaml"), at("broken.yaml"), at("pod.yaml"));
    for (of_file, of_stdin, file, text, line) in [
        (&["lint", &broken_file][..], &["lint", "-"][..], &broken_file, &broken, 7),
        (
            &["render", "--manifests", &set, "-f", &pod_file],
            &["render", "--manifests", &set, "-f", "-"],
            &pod_file,
            &pod,
            6,
        ),
        (
            &["explain", "--manifests", &set, "-f", &pod_file],
            &["explain", "--manifests", &set, "-f", "-"],
            &pod_file,
            &pod,
            6,
        ),
        (
            &["render", "--manifests", &broken_file, "-f", &pod_file],
            &["render", "--manifests", "-", "-f", &pod_file],
            &broken_file,
            &broken,
            7,
        ),
    ] {
        let (of_file, of_stdin) = (outrider(of_file, ""), outrider(of_stdin, text));
        assert_eq!(of_stdin.stderr, of_file.stderr.replace(file.as_str(), "stdin"));
        assert!(of_stdin.stderr.contains(&format!("stdin:{line}: ")), "{}", of_stdin.stderr);
    }
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let folder = folder(&[("sets.yaml", SET), ("app/web.yaml", POD)]);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (sets, app, pod) = (at("sets.yaml"), at("app"), at("app/web.yaml"));
    let ran = outrider(&["render", "--manifests", &sets, "--manifests", &sets, "-f", &app, "-f", &pod], "");
    assert_eq!(ran.stderr, "1 injected\n");
    assert_eq!(ran.stdout.matches("kind: Pod").count(), 1);
}

#[test]
fn cases_are_printed_as_junit() {
    let folder = cases("- {resource: web, result: injected}\n- {resource: web, name: a < b, result: refused}\n");
    let ran = outrider(&["test", "-o", "junit", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, CommandOutcome::Refused);
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
    assert_eq!(
        (json.outcome, &value["summary"]),
        (CommandOutcome::Refused, &serde_json::json!({"passed": 1, "failed": 1, "errors": 0}))
    );
    assert_eq!(value["findings"].as_array().unwrap().len(), 1, "{value}");
    let ran = outrider(&["test", "-o", "sarif", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, CommandOutcome::Refused);
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
    assert_eq!((ran.outcome, &sarif["runs"][0]["results"]), (CommandOutcome::Fine, &serde_json::json!([])));
}

#[test]
fn a_render_ends_with_its_numbers_unless_it_is_quiet() {
    let folder = cases("[]\n");
    let (sets, app) = (folder.path().join("sets.yaml"), folder.path().join("app"));
    let arguments = ["render", "--manifests", sets.to_str().unwrap(), "-f", app.to_str().unwrap()];
    let ran = outrider(&arguments, "");
    assert_eq!(ran.outcome, CommandOutcome::Refused);
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
    assert_eq!((ran.outcome, ran.stderr.as_str()), (CommandOutcome::Fine, "1 injected\n"));
    let both = outrider(&["render", "--manifests", "-", "-f", "-"], SET);
    assert_eq!(
        (both.outcome, both.stderr.as_str()),
        (CommandOutcome::BadInput, "error: --manifests and -f cannot both be stdin\n")
    );
}

#[test]
fn a_folder_without_a_kustomization_is_named() {
    let folder = folder(&[("sets.yaml", SET)]);
    let sets = folder.path().join("sets.yaml");
    let ran = outrider(&["render", "--manifests", sets.to_str().unwrap(), "-k", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("kubectl kustomize"), "{}", ran.stderr);
}

#[test]
fn a_version_is_printed_in_one_line_or_as_json() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(outrider(&["version"], "").stdout.starts_with(&format!("outrider {version}")));
    let json: Value = serde_json::from_str(&outrider(&["version", "-o", "json"], "").stdout).unwrap();
    assert_eq!(json["version"], version);
}
