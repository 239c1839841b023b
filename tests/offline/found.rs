//! What a first day and public reports found wrong in `outrider render`; `tests/found.md` has the numbers.

use std::process::Command;

use admission::patch::apply;
use clap::{CommandFactory as _, Parser as _};
use engine::yaml;
use outrider::cli::Cli;
use outrider::cli::streams::CommandOutcome;
use serde_json::Value;

use crate::golden;
use crate::run::{Ran, outrider};

const INPUT: &str = "tests/offline/input/found";
const POD: &str =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\nspec: {containers: [{name: a, image: b}]}\n";

fn render(set: &str, more: &[&str], stdin: &str) -> Ran {
    outrider(&[&["render", "--manifests", &format!("{INPUT}/{set}")], more].concat(), stdin)
}

fn values(text: &str) -> Vec<Value> {
    yaml::read(text).unwrap().into_iter().map(|document| document.value).collect()
}

/// Pods of the output that have the sidecar.
fn injected(ran: &Ran) -> usize {
    ran.stdout.matches("name: log-agent\n").count()
}

fn namespace(metadata: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop{metadata}}}\n")
}

#[test]
fn namespaces_among_the_rendered_documents_count_in_any_order() {
    let labelled = namespace(", labels: {inject: 'yes'}");
    for stream in [format!("{labelled}---\n{POD}"), format!("{POD}---\n{labelled}")] {
        let ran = render("labelled-set.yaml", &["--warnings-as-errors", "-f", "-"], &stream);
        assert_eq!(
            (ran.outcome, injected(&ran), ran.stderr.as_str()),
            (CommandOutcome::Fine, 1, "1 injected\n"),
            "{stream}"
        );
    }
    let list =
        format!("{{apiVersion: v1, kind: List, items: {}}}", Value::from(values(&format!("{POD}---\n{labelled}"))));
    assert_eq!(injected(&render("labelled-set.yaml", &["-f", "-"], &list)), 1);
}

#[test]
fn namespaces_among_the_rendered_documents_keep_pods_out() {
    for (metadata, said) in [
        (", labels: {inject: 'no'}", "no set that selects its labels is for namespace"),
        (", labels: {inject: 'yes', outrider.dev/exclude: ''}", "pods of namespace \"shop\" are left alone"),
    ] {
        let ran = render("labelled-set.yaml", &["-f", "-"], &format!("{POD}---\n{}", namespace(metadata)));
        assert_eq!((ran.outcome, injected(&ran)), (CommandOutcome::Fine, 0));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn a_rendered_namespace_counts_more_than_one_among_the_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("namespace.yaml");
    std::fs::write(&path, namespace(", labels: {inject: 'no'}")).unwrap();
    let arguments = ["--manifests", path.to_str().unwrap(), "-f", "-"];
    let ran = render("labelled-set.yaml", &arguments, &format!("{POD}---\n{}", namespace(", labels: {inject: 'yes'}")));
    assert_eq!(injected(&ran), 1);
    let note = "stdin:6: note: Namespace shop has other labels than among --manifests, and these count\n1 injected\n";
    assert_eq!(ran.stderr, note);
}

#[test]
fn rendered_namespaces_are_checked_as_those_among_the_manifests() {
    let twice = format!("{}---\n{}", namespace(""), namespace(""));
    assert_eq!(render("labelled-set.yaml", &["-f", "-"], &twice).outcome, CommandOutcome::Fine);
    for (stream, said) in [
        (namespace(", label: {a: b}"), "unknown field \"metadata.label\" (did you mean \"labels\"?)"),
        (namespace(", labels: {a: 5}"), "must be a string; put it in quotes"),
        (format!("{}---\n{}", namespace(""), namespace(", labels: {a: b}")), "Namespace \"shop\" is defined twice"),
    ] {
        let ran = render("labelled-set.yaml", &["-f", "-"], &stream);
        assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::BadInput, ""), "{stream}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn an_unknown_namespace_names_what_to_give() {
    let ran = render("labelled-set.yaml", &["-f", "-"], POD);
    assert!(ran.stderr.contains("Add the Namespace with its labels to the manifests"), "{}", ran.stderr);
}

#[test]
fn every_kind_with_pod_templates_is_injected() {
    let ran = render("set.yaml", &["-f", &format!("{INPUT}/kinds.yaml")], "");
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    // Every object once; LeaderWorkerSet, RayCluster and Experiment have two templates each.
    assert_eq!((values(&ran.stdout).len(), injected(&ran)), (13, 16), "{}", ran.stdout);
    golden::assert("render/kinds-by-shape.txt", &format!("---- stderr\n{}", ran.stderr));
    let again = render("set.yaml", &["-f", "-", "-o", "diff"], &ran.stdout);
    assert_eq!(again.stdout, "", "rendering again changes nothing");
}

#[test]
fn every_kind_with_pod_templates_is_injected_in_a_list_as_by_itself() {
    let kinds = std::fs::read_to_string(format!("{INPUT}/kinds.yaml")).unwrap();
    let mut kinds = values(&kinds);
    let workloads = std::fs::read_to_string("tests/offline/input/workloads.yaml").unwrap();
    kinds.extend(values(&workloads));
    for object in kinds {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [object]}).to_string();
        let alone = render("set.yaml", &["-f", "-"], &object.to_string());
        let listed = render("set.yaml", &["-f", "-"], &list);
        assert_eq!((listed.outcome, values(&listed.stdout)), (alone.outcome, values(&alone.stdout)), "{object}");
    }
    let all = values(&std::fs::read_to_string(format!("{INPUT}/kinds.yaml")).unwrap());
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string();
    assert_eq!(injected(&render("set.yaml", &["-f", "-"], &list)), 16);
}

#[test]
fn what_is_not_looked_into_is_a_warning() {
    let container = "{name: main, image: nginx}";
    for (spec, said) in [
        (
            format!("templates: [{{name: t, container: {container}}}]"),
            "spec.templates[0].container is in no pod template",
        ),
        (
            "podTemplate: {spec: {containers: [{name: main}]}}".to_owned(),
            "no container of spec.podTemplate has an image",
        ),
        (
            format!(
                "template: {{metadata: {{labels: {{team: a}}}}, spec: {{volumes: {{a: b}}, containers: [{container}]}}}}"
            ),
            "the template is left as it is: it is not the template of a pod",
        ),
    ] {
        let object = format!("apiVersion: example.com/v1\nkind: Flow\nmetadata: {{name: f}}\nspec: {{{spec}}}\n");
        let ran = render("set.yaml", &["-f", "-"], &object);
        assert_eq!((ran.outcome, injected(&ran)), (CommandOutcome::Fine, 0), "{spec}");
        assert!(ran.stderr.contains(&format!("warning: Flow default/f: {said}")), "{}", ran.stderr);
        let ran = render("set.yaml", &["-f", "-", "--warnings-as-errors"], &object);
        assert_eq!(ran.outcome, CommandOutcome::Refused, "{spec}");
    }
}

#[test]
fn typing_errors_in_workloads_are_warnings() {
    let arguments = ["-f", &format!("{INPUT}/typing.yaml")];
    let ran = render("set.yaml", &arguments, "");
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    golden::assert("render/typing-warn.txt", &format!("---- stderr\n{}", ran.stderr));
    for said in ["did you mean \"containers\"", "containers[0].image: Required", "64MB", "outrider.dev/skip"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(render("set.yaml", &[&arguments[..], &["--validate=warn"]].concat(), "").stderr, ran.stderr);
    let ran = render("set.yaml", &[&arguments[..], &["--warnings-as-errors"]].concat(), "");
    assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::Refused, ""));
}

#[test]
fn unknown_fields_of_built_in_kinds_are_errors_when_strict() {
    let ran = render("set.yaml", &["--validate=strict", "-f", &format!("{INPUT}/typing.yaml")], "");
    assert_eq!((ran.outcome, ran.stdout.as_str()), (CommandOutcome::BadInput, ""));
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(": error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", ran.stderr);
    assert!(
        errors[0].ends_with("error: Deployment default/misspelt: unknown field \"spec.template.spec.container\" (did you mean \"containers\"?)"),
        "{errors:?}"
    );
    let numbers = ran.stderr.lines().last().unwrap();
    assert!(numbers.ends_with(", 1 with errors") || numbers == "1 with errors", "{numbers}");
    let json = render("set.yaml", &["--validate=strict", "-o", "findings", "-f", &format!("{INPUT}/typing.yaml")], "");
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["summary"]["withErrors"], 1, "{json}");
}

#[test]
fn right_workloads_and_a_rollout_with_workload_ref_are_no_warning() {
    let arguments = ["--validate=strict", "--warnings-as-errors", "-f", &format!("{INPUT}/right.yaml")];
    let ran = render("set.yaml", &arguments, "");
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].contains("note: Rollout default/elsewhere: its pods are made from"),
        "{lines:?}"
    );
}

#[test]
fn a_set_for_every_pod_of_one_namespace_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.yaml");
    let set = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: log}\n\
               spec: {selector: {}, namespace: shop, containers: [{name: log-agent, image: i}]}\n";
    std::fs::write(&path, set).unwrap();
    let other = POD.replace("shop", "other");
    let ran = outrider(&["render", "--manifests", path.to_str().unwrap(), "-f", "-"], &format!("{POD}---\n{other}"));
    assert_eq!((ran.outcome, injected(&ran)), (CommandOutcome::Fine, 1), "{}", ran.stderr);
}

#[test]
fn patches_are_those_of_a_kustomization() {
    let ran = render("set.yaml", &["-o", "patch", "-f", &format!("{INPUT}/kinds.yaml")], "");
    let kustomization = values(&ran.stdout).remove(0);
    let patches = kustomization["patches"].as_array().unwrap();
    assert_eq!(patches.len(), 13);
    let mut ray = values(&std::fs::read_to_string(format!("{INPUT}/kinds.yaml")).unwrap())
        .into_iter()
        .find(|object| object["kind"] == "RayCluster")
        .unwrap();
    let of_ray = patches.iter().find(|patch| patch["target"]["kind"] == "RayCluster").unwrap();
    assert_eq!(
        of_ray["target"],
        serde_json::json!({"group": "ray.io", "version": "v1", "kind": "RayCluster", "name": "ray"})
    );
    let operations = values(of_ray["patch"].as_str().unwrap()).remove(0);
    apply(&mut ray, operations.to_string().as_bytes()).unwrap();
    // The pods are to end, so that the container is a native sidecar.
    assert_eq!(ray["spec"]["headGroupSpec"]["template"]["spec"]["initContainers"][0]["name"], "log-agent");
    assert_eq!(ray["spec"]["workerGroupSpecs"][0]["template"]["spec"]["initContainers"][0]["name"], "log-agent");
}

#[test]
fn a_patch_that_would_select_every_pod_of_a_kustomization_is_left_out_with_a_warning() {
    let pod = POD.replace("name: p, namespace: shop", "generateName: p-, labels: {team: a}");
    let ran = render("set.yaml", &["-o", "patch", "-f", "-"], &pod);
    assert!(ran.stderr.contains("its patch is left out"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "patches: []\n");
    let dotted = render(
        "set.yaml",
        &["-o", "patch", "-f", "-"],
        &POD.replace("name: p, namespace: shop", "name: p.q, labels: {team: a}"),
    );
    assert!(dotted.stdout.contains(r"name: p\.q"), "a name is a regular expression there: {}", dotted.stdout);
    assert_eq!(
        render("set.yaml", &["-o", "patch", "-f", "-", "--warnings-as-errors"], &pod).outcome,
        CommandOutcome::Refused
    );
    assert_eq!(render("set.yaml", &["-f", "-", "--warnings-as-errors"], &pod).outcome, CommandOutcome::Fine);
}

#[test]
fn words_that_yaml_takes_for_something_else_are_named_with_their_path() {
    let ran = render("set.yaml", &["-f", "-"], "apiVersion: v1\nkind: Pod\nmetadata: {name: n}\n");
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
    assert!(ran.stderr.contains("metadata.name must be a string, found a boolean: put it in quotes"), "{}", ran.stderr);
    let namespace = namespace(", labels: {inject: n}");
    let ran = render("labelled-set.yaml", &["-f", "-"], &namespace);
    assert!(
        ran.stderr.contains("metadata.labels[inject]: Invalid value: false: must be a string; put it in quotes"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_helm_template_is_named_as_one() {
    let ran = render("set.yaml", &["-f", "-"], "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n");
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
    assert!(ran.stderr.contains("it looks like a Helm template: run `helm template` first"), "{}", ran.stderr);
    assert!(!render("set.yaml", &["-f", "-"], "a: [").stderr.contains("Helm"));
}

#[test]
fn a_helm_template_that_is_legal_yaml_is_a_warning() {
    for (from, to, field) in [
        ("name: p", "name: 'web-{{ .Release.Name }}'", "metadata.name: \"web-{{ .Release.Name }}\""),
        ("name: p", "name: web-{{ .Release.Name }}", "metadata.name: \"web-{{ .Release.Name }}\""),
        ("namespace: shop", "namespace: '{{ .Values.ns }}'", "metadata.namespace: \"{{ .Values.ns }}\""),
        ("image: b", "image: 'b:{{ .Values.tag }}'", "spec.containers[0].image: \"b:{{ .Values.tag }}\""),
    ] {
        let block = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: shop\nspec:\n  containers:\n  - name: a\n    image: b\n";
        let ran = render("set.yaml", &["-f", "-"], &block.replace(from, to));
        let said = format!("{field} looks like a Helm template: run `helm template` first\n");
        assert!(ran.stderr.contains(&said), "{to}: {}", ran.stderr);
    }
    // Of another tool, where nothing is named by it.
    let argument = POD.replace("image: b", "image: b, args: ['{{ x }}']");
    assert!(!render("set.yaml", &["-f", "-"], &argument).stderr.contains("Helm"));
}

#[test]
fn a_namespace_that_cannot_be_is_refused() {
    for arguments in [
        &["render", "--manifests", "m", "-f", "f", "-n", "Shop"][..],
        &["verify", "-n", "a b"],
        &["doctor", "--namespace", ""],
        &["manifests", "--namespace", "a_b"],
        &["serve", "--namespace", "a."],
    ] {
        let refused = Cli::try_parse_from(["outrider"].iter().chain(arguments)).unwrap_err().to_string();
        assert!(refused.contains("RFC 1123") || refused.contains("a value is required"), "{arguments:?}: {refused}");
    }
}

#[test]
fn flags_of_serve_and_manifests_are_below_what_they_are_about() {
    let heading = |command: &str, flag: &str| {
        let cli = Cli::command();
        let command = cli.find_subcommand(command).unwrap();
        let flag = command.get_arguments().find(|argument| argument.get_long() == Some(flag)).unwrap();
        flag.get_help_heading().map(str::to_owned)
    };
    for (command, flag, expected) in [
        ("serve", "drain-delay", None),
        ("serve", "excluded-namespaces", None),
        ("serve", "validate", None),
        ("serve", "log-level", Some("Logging")),
        ("manifests", "output-dir", None),
        ("manifests", "enable-kinds", Some("Kinds")),
        ("manifests", "deployment-name", Some("Webhooks")),
    ] {
        assert_eq!(heading(command, flag).as_deref(), expected, "{command} --{flag}");
    }
}

#[test]
fn unknown_fields_of_the_configuration_file_are_refused_as_those_of_sets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    let text =
        "apiVersion: config.outrider.dev/v2\nkind: ProjectConfig\nmetrics: {bindAdress: ':1'}\nwebhook: {tls: x}\n";
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    // Where it may start it ends all the same, as there are no manifests to read.
    command.args(["serve", "--standalone", "--manifests", "/nowhere", "--config"]).arg(&path);
    let strict = command.output().unwrap();
    let said = String::from_utf8(strict.stderr).unwrap();
    assert_eq!(strict.status.code(), Some(2), "{said}");
    for field in ["unknown field \"metrics.bindAdress\"", "unknown field \"webhook.tls\"", "--validate=warn"] {
        assert!(said.contains(field), "{said}");
    }
    let lenient = command.arg("--validate=warn").output().unwrap();
    let said = String::from_utf8(lenient.stderr).unwrap();
    assert!(said.contains("metrics.bindAdress") && said.contains("/nowhere"), "{said}");
}

const SHOP: &str = "# The shop.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web
spec:
  selector:
    matchLabels:
      team: a
  template:
    metadata:
      labels:
        team: a # selected
    spec:
      containers:
      - name: app
        image: nginx
";

/// What the command prints of a diff, as a shell gets it: standard output and standard error.
fn diff_of(file: &str) -> (String, String) {
    let set = format!("{INPUT}/set.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    let ended = command.args(["render", "--manifests", &set, "-f", file, "-o", "diff"]).output().unwrap();
    let [out, err] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(ended.status.success(), "{err}");
    (out, err)
}

/// Applies the diff of a file of this text to it, and returns the file and whether its layout was kept.
fn patched(text: &str) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my app.yaml");
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let (diff, said) = diff_of(path);
    assert!(diff.starts_with(&format!("--- {path}\t\n+++ {path}\t\n")), "{diff}");
    let expected = values(&render("set.yaml", &["-f", path], "").stdout);
    let change = folder.path().join("change.diff");
    std::fs::write(&change, &diff).unwrap();
    let applied = Command::new("patch").args(["--binary", "-p0", "-i"]).arg(&change).current_dir("/").output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
    let after = std::fs::read_to_string(&file).unwrap();
    assert_eq!(values(&after), expected);
    (after, !said.contains("replaces its layout too"))
}

#[test]
fn a_diff_is_applied_by_patch_whatever_the_layout() {
    let indented = SHOP.replace("      - name: app\n        image", "        - name: app\n          image");
    for text in [SHOP, &indented, &SHOP.replace('\n', "\r\n"), &indented.replace('\n', "\r\n")] {
        let (after, keeps_layout) = patched(text);
        assert!(keeps_layout && after.starts_with("# The shop.") && after.contains("# selected"), "{after}");
        assert_eq!(after.matches('\r').count(), if text.contains('\r') { after.lines().count() } else { 0 });
    }
    // Each line keeps its own end.
    let (after, keeps_layout) = patched(&SHOP.replacen('\n', "\r\n", 2));
    assert!(keeps_layout && after.starts_with("# The shop.\r\napiVersion: v1\r\nkind: ConfigMap\n"), "{after}");
    let block = "containers:\n      - name: app\n        image: nginx";
    let flow = SHOP.replace(block, "containers: [{name: app, image: nginx}]");
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p, labels: {team: a}}\n  \
                spec: {containers: [{name: a, image: b}]}\n";
    for text in [&flow, list, &flow.replace('\n', "\r\n")] {
        assert!(!patched(text).1, "{text}");
    }
}

#[test]
fn a_number_among_labels_is_named_with_its_field_and_line() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels:\n    app: web\n    version: 1.0\nspec: {containers: [{name: a, image: b}]}\n";
    let ran = render("set.yaml", &["-f", "-"], pod);
    let told = "metadata.labels[version]: Invalid value: 1: must be a string; put it in quotes";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert_eq!(ran.outcome, CommandOutcome::BadInput);
}

#[test]
fn a_diff_that_patch_does_not_apply_says_so() {
    let ran = render("set.yaml", &["-f", "-", "-o", "diff"], SHOP);
    assert!(ran.stderr.contains("patch does not apply the diff of stdin"), "{}", ran.stderr);
    assert!(ran.stdout.contains("+++"), "{}", ran.stdout);
    // What a terminal would act on is written out.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.yaml");
    std::fs::write(&file, SHOP.replace("# selected", "# \u{202e}selected")).unwrap();
    let (diff, said) = diff_of(file.to_str().unwrap());
    assert!(said.contains("patch does not apply the diff of"), "{said}");
    assert!(diff.contains("+++") && !diff.contains('\u{202e}'), "{diff}");
}
