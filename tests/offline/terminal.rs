//! What commands print of other people's text does nothing to a terminal.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use engine::yaml;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

/// Clears the screen, sets the title, moves, begins a sequence in one character, turns the order of what follows.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\r\u{8}\u{9b}31m\u{202e}";

fn outrider(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_outrider")).args(args).output().unwrap()
}

fn acts_on_a_terminal(text: &str) -> bool {
    text.chars().any(|character| {
        (character.is_control() && !matches!(character, '\n' | '\t')) || ('\u{202a}'..='\u{202e}').contains(&character)
    })
}

/// Both streams, which hold nothing of that kind.
fn harmless(what: &str, output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(!acts_on_a_terminal(&stdout) && !acts_on_a_terminal(&stderr), "{what}: {stdout:?} {stderr:?}");
    (stdout, stderr)
}

fn pod(annotation: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "annotations": {"a": annotation}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    })
}

/// Selects nothing.
const SETS: &str = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: other}\n\
    spec: {selector: {matchLabels: {app: other}}, containers: [{name: other, image: other}]}\n";

/// What a command writes to stderr, which is a terminal or not.
fn stderr_of(is_terminal: bool, args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(args).env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
    if !is_terminal {
        return String::from_utf8(command.output().unwrap().stderr).unwrap();
    }
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ptsname(&ours, Vec::new()).unwrap();
    let theirs = fs::File::options().read(true).write(true).open(theirs.to_str().unwrap()).unwrap();
    let mut child = command.stdout(Stdio::null()).stderr(theirs).spawn().unwrap();
    // The command keeps its end, so that this process holds none.
    drop(command);
    assert!(!child.wait().unwrap().success());
    let mut text = vec![0; 64 * 1024];
    let read = fs::File::from(ours).read(&mut text).unwrap();
    String::from_utf8(text[..read].to_vec()).unwrap()
}

#[test]
fn severities_are_coloured_on_a_terminal_unless_no_color_or_the_flag_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.yaml");
    fs::write(&path, SETS.replace("image: other", "image: ''")).unwrap();
    let lint = ["lint", path.to_str().unwrap()];
    for (is_terminal, flags, variables, is_coloured) in [
        (true, &[][..], &[][..], true),
        (true, &[], &[("NO_COLOR", "1")], false),
        (true, &[], &[("NO_COLOR", "")], true),
        (true, &[], &[("TERM", "dumb")], false),
        (true, &["--color=never"], &[], false),
        (true, &["--color=always"], &[("NO_COLOR", "1")], true),
        (false, &[], &[], false),
        (false, &["--color=always"], &[], true),
        (false, &["--color=auto"], &[], false),
    ] {
        let text = stderr_of(is_terminal, &[&lint, flags].concat(), variables);
        let case = format!("{is_terminal} {flags:?} {variables:?}: {text:?}");
        assert_eq!(text.contains("\u{1b}[1;31merror\u{1b}[0m: "), is_coloured, "{case}");
        assert_eq!(text.contains('\u{1b}'), is_coloured, "{case}");
        assert!(text.contains("image"), "{case}");
    }
}

#[test]
fn names_of_files_and_texts_in_them_are_written_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let hostile_name = file(&format!("{HOSTILE}.yaml"), "a: [");
    let missing = dir.path().join(format!("{HOSTILE}.none")).to_str().unwrap().to_owned();
    let kind = file("kind.yaml", &json!({"apiVersion": HOSTILE, "kind": HOSTILE}).to_string());
    let mut set =
        json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": HOSTILE}});
    set["spec"] = json!({HOSTILE: 1, "containers": [{"name": HOSTILE, "image": HOSTILE}]});
    let set = file("set.yaml", &set.to_string());
    let sets = file("sets.yaml", SETS);
    let plain = file("pod.yaml", &pod("b").to_string());
    let unknown = format!("--{HOSTILE}");
    for args in [
        &["render", "-f", &hostile_name, "--manifests", &sets][..],
        &["render", "-f", &missing, "--manifests", &sets],
        &["render", "-f", &kind, "--manifests", &sets],
        &["render", "-f", &plain, "--manifests", &hostile_name],
        &["render", "-f", &plain, "--manifests", &set],
        &["review", "--manifests", &sets, &missing],
        &["review", "--manifests", &sets, &hostile_name],
        &["review", "--manifests", &sets, "--path", HOSTILE, &plain],
        &["manifests", HOSTILE],
        &["render", &unknown],
        &["serve", "--config", &missing],
        &["doctor", "--kubeconfig", &missing],
    ] {
        let output = outrider(args);
        let (_, stderr) = harmless(&format!("{args:?}"), &output);
        assert!(!stderr.is_empty(), "{args:?}: {output:?}");
    }
    let (_, stderr) = harmless("a missing file", &outrider(&["render", "-f", &missing, "--manifests", &sets]));
    assert!(stderr.contains(r"\u001b[2J\u001b]0;t\u0007\u000d\u0008\u009b31m\u202e.none"), "{stderr}");
}

/// What the other commands print of sets, pods, tests and plugins.
#[test]
fn what_every_command_says_of_objects_is_written_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let sidecarset = |api_version: &str, spec: &Value| {
        json!({"apiVersion": api_version, "kind": "SidecarSet", "metadata": {"name": "web"}, "spec": spec}).to_string()
    };
    let spec = json!({
        "selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "app", "image": "app:1", "args": [HOSTILE]}],
    });
    let mut faulty = spec.clone();
    faulty[HOSTILE] = json!(1);
    let (ours, theirs) = ("apps.outrider.dev/v1alpha1", "apps.kruise.io/v1beta1");
    let set = file("set.yaml", &sidecarset(ours, &spec));
    let faulty_set = file("faulty.yaml", &sidecarset(ours, &faulty));
    let kruise = file("kruise.yaml", &sidecarset(theirs, &spec));
    let faulty_kruise = file("faulty-kruise.yaml", &sidecarset(theirs, &faulty));
    let mut clashing = pod(HOSTILE);
    clashing["metadata"]["labels"] = json!({"app": "web", HOSTILE: HOSTILE});
    clashing["metadata"]["annotations"]["outrider.dev/skip"] = json!(HOSTILE);
    clashing["spec"]["containers"][0]["image"] = json!(HOSTILE);
    let clashing = file("pod.yaml", &clashing.to_string());
    let case = json!({"apiVersion": "cli.outrider.dev/v1alpha1", "kind": "Test", "metadata": {"name": HOSTILE}, "sets": ["set.yaml"],
        "resources": ["pod.yaml"], "results": [{"resource": HOSTILE, "result": "injected"},
            {"resource": "web", "result": "unchanged", "fields": {"metadata.annotations.a": format!("not {HOSTILE}")}}]});
    let case = file("outrider-test.yaml", &case.to_string());
    let plugin = json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin", "metadata": {"name": HOSTILE},
        "spec": {"plugin": HOSTILE, HOSTILE: 1}});
    let plugin = file("plugin.yaml", &plugin.to_string());
    let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": HOSTILE, "configuration": {HOSTILE: HOSTILE}}]});
    let configuration = file("admission.yaml", &configuration.to_string());
    for args in [
        &["explain", "--manifests", &set, "-f", &clashing][..],
        &["explain", "--manifests", &set, "-f", &clashing, "-o", "json"],
        &["lint", &faulty_set],
        &["lint", "-o", "json", &faulty_set],
        &["lint", &plugin],
        &["test", &case],
        &["test", "-o", "junit", &case],
        &["migrate", &kruise],
        &["migrate", "-o", "json", &kruise],
        &["migrate", &faulty_kruise],
        &["plugins", HOSTILE],
        &["plugins", "convert", &configuration],
    ] {
        let (stdout, stderr) = harmless(&format!("{args:?}"), &outrider(args));
        // The text is there, or else the case says nothing.
        assert!(stdout.contains("[2J") || stderr.contains("[2J"), "{args:?}: {stdout}{stderr}");
    }
}

#[test]
fn rendered_objects_keep_their_value() {
    let dir = tempfile::tempdir().unwrap();
    let (path, sets) = (dir.path().join("pod.json"), dir.path().join("sets.yaml"));
    fs::write(&path, pod(HOSTILE).to_string()).unwrap();
    fs::write(&sets, SETS).unwrap();
    let render = |format: &str| {
        let (path, sets) = (path.to_str().unwrap(), sets.to_str().unwrap());
        let output = outrider(&["render", "-f", path, "--manifests", sets, "-o", format]);
        assert!(output.status.success(), "{output:?}");
        harmless(format, &output).0
    };
    assert_eq!(serde_json::from_str::<Value>(&render("json")).unwrap(), pod(HOSTILE));
    assert_eq!(yaml::read(&render("yaml")).unwrap().remove(0).value, pod(HOSTILE));
}
