//! `outrider explain`: a line for each set, with the reason code first.

use outrider::cli::streams::CommandOutcome;
use serde_json::Value;

use crate::golden;
use crate::run::{Ran, outrider};

const PODS: &str = "tests/offline/input/explain/pods.yaml";

fn explain(more: &[&str], stdin: &str) -> Ran {
    outrider(&[&["explain", "--manifests", "tests/fixtures/manifests"], more].concat(), stdin)
}

#[test]
fn explanations_are_as_recorded() {
    for (recording, more) in [
        ("text.txt", &["-f", PODS][..]),
        ("json.txt", &["-f", PODS, "-o", "json"]),
        ("workloads.txt", &["-f", "tests/offline/input/workloads.yaml", "-n", "shop"]),
        ("no-pod.txt", &["-f", "tests/offline/input/configmap.yaml"]),
    ] {
        golden::assert(&format!("explain/{recording}"), &explain(more, "").transcript());
    }
}

/// What the webhook warns of beside its reason codes, and what a set names and the pod does not have.
#[test]
fn warnings_are_explained_too() {
    const POD: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
  annotations:
    outrider.dev/skip: scanner,certs
    outrider.dev/overrides: |
      {\"scaner\": {\"image\": \"scanner:2\"}}
spec:
  initContainers: [{name: migrate, image: 'web:1'}]
  containers: [{name: web, image: 'web:1', ports: [{containerPort: 80}]}]
";
    let explain = |more: &[&str]| {
        let set = &["explain", "--manifests", "tests/offline/input/explain/unmatched.yaml", "-f", "-"];
        outrider(&[&set[..], more].concat(), POD)
    };
    golden::assert("explain/warnings.txt", &explain(&[]).transcript());
    assert!(!explain(&["-q"]).stdout.contains("warning"));
    golden::assert("explain/warnings-json.txt", &explain(&["-o", "json"]).transcript());
}

/// The explanation and the patch come from one decision.
#[test]
fn sets_that_are_injected_by_render_are_those_that_explain_names() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: bare, labels: {mesh: enabled, metrics: 'on'}}\nspec: {containers: [{name: web, image: 'web:1'}]}\n";
    let rendered = outrider(&["render", "--manifests", "tests/fixtures/manifests", "-o", "json", "-f", "-"], pod);
    let rendered: Value = serde_json::from_str(&rendered.stdout).unwrap();
    let record = rendered["metadata"]["annotations"]["outrider.dev/injected"].as_str().unwrap();
    let record: Value = serde_json::from_str(record).unwrap();
    let explained: Value = serde_json::from_str(&explain(&["-o", "json", "-f", "-"], pod).stdout).unwrap();
    let sets = explained["pods"][0]["sets"].as_array().unwrap();
    let injected: Vec<&str> =
        sets.iter().filter(|set| set["result"] == "injected").map(|set| set["set"].as_str().unwrap()).collect();
    let recorded: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let mut sorted = injected.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, recorded);
    assert!(injected.contains(&"proxy") && injected.contains(&"metrics"), "{injected:?}");
}

/// A pod that was rendered before the set got another image.
#[test]
fn a_pod_with_an_older_form_is_explained_with_the_field_that_differs() {
    const SET: &str = "tests/offline/input/explain/changed-set.yaml";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {team: a}}\nspec: {containers: [{name: web, image: 'web:1'}]}\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, pod).unwrap();
    let before = std::fs::read_to_string(SET).unwrap().replace("log-agent:2", "log-agent:1");
    let rendered = outrider(&["render", "--manifests", "-", "-f", path.to_str().unwrap()], &before);
    assert!(rendered.stdout.contains("log-agent:1"), "{}", rendered.stderr);
    let explained = outrider(&["explain", "--manifests", SET, "-f", "-"], &rendered.stdout);
    assert!(explained.stdout.contains("Outdated: log: outdated: the pod carries"), "{}", explained.stdout);
    golden::assert("explain/outdated.txt", &explained.transcript());
    let json = outrider(&["explain", "--manifests", SET, "-f", "-", "-o", "json"], &rendered.stdout);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let set = &json["pods"][0]["sets"][0];
    assert_eq!((&set["result"], &set["reason"]), (&"outdated".into(), &"Outdated".into()), "{json}");
    let text = set["text"].as_str().unwrap();
    assert!(
        text.starts_with("the pod carries another form") && text.contains("`outrider render` replaces it"),
        "{json}"
    );
}

#[test]
fn a_pod_that_is_refused_ends_with_exit_code_1_and_no_pod_with_2() {
    assert_eq!(explain(&["-f", PODS], "").outcome, CommandOutcome::Refused);
    assert_eq!(explain(&["-f", "tests/offline/input/nginx.yaml"], "").outcome, CommandOutcome::Fine);
    assert_eq!(
        explain(&["-f", "-"], "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").outcome,
        CommandOutcome::BadInput
    );
    let none = outrider(
        &["explain", "--manifests", "-", "-f", PODS],
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
    );
    assert_eq!(none.outcome, CommandOutcome::BadInput);
    assert!(none.stderr.contains("no SidecarSet (apps.outrider.dev/v1alpha1), AdmissionPlugin"), "{}", none.stderr);
}

/// As in `render`, whatever the place of the Namespace.
#[test]
fn namespaces_among_the_explained_documents_count() {
    let pod =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\nspec: {containers: [{name: a, image: b}]}\n";
    for (label, result) in [("yes", "injected"), ("no", "not injected")] {
        let namespace =
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{inject: '{label}'}}}}\n");
        for stream in [format!("{namespace}---\n{pod}"), format!("{pod}---\n{namespace}")] {
            let ran = outrider(
                &["explain", "--manifests", "tests/offline/input/found/labelled-set.yaml", "-o", "json", "-f", "-"],
                &stream,
            );
            let explained: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(explained["pods"].as_array().unwrap().len(), 1, "{explained:#}");
            assert_eq!(explained["pods"][0]["sets"][0]["result"], result, "{explained:#}");
        }
    }
}

#[test]
fn what_is_named_without_a_flag_is_answered_with_what_to_write() {
    const HINT: &str = "a file needs a flag: -f pod.yaml if it has pods and what makes pods, --manifests pod.yaml if it has sets and \
                        namespaces";
    let of_workload = |kind: &str, name: &str, namespace: &str| {
        format!(
            "explain reads only pods from a cluster: name a pod of the {kind} (outrider explain pod NAME -n {namespace}), or give its manifest: \
             kubectl get {kind} {name} -n {namespace} -o yaml | outrider explain --from-cluster -n {namespace} -f -"
        )
    };
    for (arguments, expected) in [
        (&["pod.yaml"][..], HINT),
        (&["pod.yaml", "--manifests", "sets"], HINT),
        (&["--manifests", "sets", "pod.yaml", "-f", PODS], HINT),
        (&["pod", "web-0", "-f", PODS], "a pod of the cluster and -f are both named: leave one of them out"),
        (&["pod"], "the name of the pod is missing: outrider explain pod NAME"),
        (&["web-0"], "\"web-0\" cannot be read from a cluster: write pod and its name, or use -f"),
        (&["pod/"], "the name of the pod is missing: outrider explain pod NAME"),
        (&["Po"], "the name of the pod is missing: outrider explain pod NAME"),
        (&["Pod", "web-0", "-f", PODS], "a pod of the cluster and -f are both named: leave one of them out"),
        (&["PODS/web-0", "-f", PODS], "a pod of the cluster and -f are both named: leave one of them out"),
        (&["service", "web"], "\"service\" cannot be read from a cluster: write pod and its name, or use -f"),
        (&["deployment", "web"], &of_workload("deployment", "web", "default")),
        (&["deploy/web", "-n", "shop"], &of_workload("deployment", "web", "shop")),
        (&["Deployment.apps/web"], &of_workload("deployment", "web", "default")),
        (&["sts"], &of_workload("statefulset", "NAME", "default")),
        (&["cronjob", "$(x)"], &of_workload("cronjob", "NAME", "default")),
        (&["deployment.yaml"], &HINT.replace("pod.yaml", "deployment.yaml")),
        (&["deploy/web.yaml"], &HINT.replace("pod.yaml", "deploy/web.yaml")),
        // A folder that is there.
        (&["tests/offline"], &HINT.replace("pod.yaml", "tests/offline")),
    ] {
        let explained = outrider(&[&["explain"], arguments].concat(), "");
        assert_eq!(
            explained.transcript(),
            format!("exit 2\n---- stdout\n---- stderr\nerror: {expected}\n"),
            "{arguments:?}"
        );
    }
}

/// A kind that is not known may be misspelt: explain notes it as render does.
#[test]
fn a_workload_of_an_unknown_kind_is_noted_as_by_render() {
    const SPEC: &str = "metadata: {name: web, labels: {app: web}}\nspec:\n  template:\n    metadata: {labels: {app: web}}\n    spec: \
                        {containers: [{name: web, image: 'web:1'}]}\n";
    let notes = |command: &str, head: &str| {
        let ran =
            outrider(&[command, "--manifests", "tests/fixtures/manifests", "-f", "-"], &format!("{head}\n{SPEC}"));
        let notes = ran
            .stderr
            .lines()
            .filter(|line| line.contains(": note: ") && !line.contains(" is unchanged: "))
            .map(str::to_owned);
        notes.collect::<Vec<_>>()
    };
    for (head, meant) in [
        ("apiVersion: apps/v1\nkind: Deploymnet", " (did you mean kind \"Deployment\"?)"),
        ("apiVersion: apps/v1\nkind: deployment", " (did you mean kind \"Deployment\"?)"),
        ("apiVersion: batch/v1\nkind: Deploymnet", ""),
        ("apiVersion: example.com/v1\nkind: Deploymnet", ""),
    ] {
        let kind = head.rsplit(' ').next().unwrap();
        let expected =
            format!("stdin:5: note: {kind} default/web: pod templates found by their shape: spec.template{meant}");
        assert_eq!(notes("explain", head), [expected.as_str()], "{head}");
        assert_eq!(notes("render", head), [expected.as_str()], "{head}");
    }
    assert!(notes("explain", "apiVersion: apps/v1\nkind: Deployment").is_empty());
}
