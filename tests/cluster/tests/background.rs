//! `cluster up`, `status` and `down`, as a person uses them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::Command;

use cluster::Tools;

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn cluster(args: &[&str], state: &Path) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_cluster")).args(args).arg("--state").arg(state).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Ends the cluster also when the test fails.
struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        cluster(&["down"], self.0);
    }
}

#[test]
fn up_prints_the_kubeconfig_line_and_nothing_is_left_after_down() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let _down = Down(state);
    let none = cluster(&["status"], state);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), "not running\n"));

    // As make and scripts do, with a file open beside the streams.
    let held = state.join("held");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 7>\"$1\"; shift; exec \"$@\"", "sh"]).arg(&held).arg(env!("CARGO_BIN_EXE_cluster"));
    let up = shell.args(["up", "--state"]).arg(state).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let up = Ran { code: up.status.code(), stdout: text(up.stdout), stderr: text(up.stderr) };
    let kubeconfig = state.join("kubeconfig");
    assert_eq!(up.code, Some(0), "{}", up.stderr);
    assert_eq!(up.stdout, format!("export KUBECONFIG={}\n", kubeconfig.display()));
    let running = cluster(&["status"], state);
    assert_eq!(running.code, Some(0), "{}", running.stdout);
    assert!(running.stdout.starts_with("Kubernetes v1."), "{}", running.stdout);
    let process = running.stdout.split(", ").find_map(|part| part.strip_prefix("process ")).unwrap();
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    assert!(open.filter_map(|file| fs::read_link(file.path()).ok()).all(|path| path != held), "it keeps a file open");

    let again = cluster(&["up"], state);
    assert_eq!(again.stdout, up.stdout);
    assert!(again.stderr.contains("already running"), "{}", again.stderr);
    assert_eq!(cluster(&["status"], state).stdout, running.stdout);
    assert_container_restarts(&kubeconfig);

    let down = cluster(&["down"], state);
    assert_eq!((down.code, down.stderr.as_str()), (Some(0), "cluster: ended\n"));
    assert_eq!(cluster(&["status"], state).code, Some(1));
    assert!(!kubeconfig.exists());
    assert_eq!(cluster(&["down"], state).stderr, "cluster: none is running\n");
}

/// A container whose image a person changes is restarted, as by a kubelet.
fn assert_container_restarts(kubeconfig: &Path) {
    const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: kwok-0, containers: [{name: app, image: 'app:1'}]}}";
    let tools = Tools::locate(&|_| {}).unwrap();
    let kubectl = |args: &[&str]| {
        let mut command = Command::new(tools.program("kubectl"));
        let output = command.arg("--kubeconfig").arg(kubeconfig).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let file = kubeconfig.with_file_name("pod.yaml");
    fs::write(&file, POD).unwrap();
    // The controller-manager may not have made the service account yet.
    kubectl(&["wait", "--for=create", "serviceaccount/default", "--timeout=60s"]);
    kubectl(&["apply", "-f", file.to_str().unwrap()]);
    kubectl(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
    kubectl(&["set", "image", "pod/web", "app=app:2"]);
    let restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1";
    kubectl(&["wait", restarted, "pod/web", "--timeout=60s"]);
}

#[test]
fn an_unknown_command_points_at_the_help() {
    let state = Path::new("unused");
    let ran = cluster(&["start"], state);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), "cluster: unknown command `start`; see `cluster --help`\n"));
}
