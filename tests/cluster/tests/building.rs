//! How the programs of a cluster are built, with a `go` that only pretends: the real one takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Notes every build in `$HOME/builds` and its go.mod in `$HOME/go.mod`, and writes an empty program.
const GO: &str = r#"#!/bin/sh
set -e
case "$1" in
build)
    [ "$GO_FAILS_FOR" != "$7" ] || { echo "no network" >&2; exit 1; }
    sleep 0.1
    echo "$CGO_ENABLED $2 $7" >>"$HOME/builds"
    cat go.mod >"$HOME/go.mod"
    [ "$7" != . ] || cat main.go >"$HOME/main.go"
    : >"$6"
    ;;
list) echo "$HOME/${5##*/}" ;;
mod) printf '{"GoMod": "%s"}\n' "$HOME/upstream.mod" ;;
esac
"#;

const STAGES: [&str; 5] = [
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
];

const CRDS: [&str; 6] = [
    "acme.cert-manager.io_challenges.yaml",
    "acme.cert-manager.io_orders.yaml",
    "cert-manager.io_certificaterequests.yaml",
    "cert-manager.io_certificates.yaml",
    "cert-manager.io_clusterissuers.yaml",
    "cert-manager.io_issuers.yaml",
];

/// A home directory with the pretended `go` and what it needs.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let go = home.path().join("bin/go");
        fs::create_dir(home.path().join("bin")).unwrap();
        fs::write(&go, GO).unwrap();
        fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
        let files = STAGES.map(|stage| ("kwok/kustomize/stage", stage)).into_iter();
        for (folder, name) in files.chain(CRDS.map(|crd| ("cert-manager/deploy/crds", crd))) {
            let path = home.path().join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let upstream = "go 1.25.0\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        fs::write(home.path().join("upstream.mod"), upstream).unwrap();
        Self(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn start(&self, settings: &[(&str, &str)]) -> Child {
        self.command(settings).spawn().unwrap()
    }

    fn command(&self, settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
        command.arg("tools").env_clear().env("HOME", self.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path().join("bin").display()));
        command.envs(settings.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn tools(&self, settings: &[(&str, &str)]) -> (Option<i32>, String, String) {
        told(self.start(settings).wait_with_output().unwrap())
    }

    fn builds(&self) -> Vec<String> {
        let builds = fs::read_to_string(self.path().join("builds")).unwrap_or_default();
        builds.lines().map(str::to_owned).collect()
    }
}

fn told(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn path_of(tool: &str, stdout: &str) -> PathBuf {
    let line = stdout.lines().find_map(|line| line.strip_prefix(&format!("{tool} ")));
    PathBuf::from(line.unwrap_or_else(|| panic!("no {tool} in {stdout}")))
}

#[test]
fn everything_is_built_once_with_progress_and_then_found() {
    let machine = Machine::new();
    let (code, stdout, stderr) = machine.tools(&[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(machine.builds().len(), 8);
    assert_eq!(machine.builds()[0], "0 -mod=readonly go.etcd.io/etcd/server/v3");
    assert!(stderr.contains("cluster: building etcd v1.36.3 (1 of 8)\n"), "{stderr}");
    assert!(stderr.contains("(8 of 8): done in "), "{stderr}");
    let kwok = path_of("kwok", &stdout);
    assert!(kwok.starts_with(machine.path().join(".cache/outrider/cluster-tools")));
    let ready = fs::read_to_string(kwok.with_file_name("kwok-stages").join("pod-ready.yaml"));
    assert_eq!(ready.unwrap(), "pod/fast/pod-ready.yaml");

    assert_eq!(machine.tools(&[]), (Some(0), stdout, String::new()));
    assert_eq!(machine.builds().len(), 8);
}

#[test]
fn what_only_a_node_needs_is_built_when_asked_for() {
    let machine = Machine::new();
    let output = machine.command(&[]).arg("--node").output().unwrap();
    let (code, stdout, stderr) = told(output);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(machine.builds().len(), 14);
    let crds = path_of("cert-manager", &stdout).with_file_name("cert-manager-crds");
    assert_eq!(fs::read_dir(crds).unwrap().count(), CRDS.len());
    assert!(fs::read_to_string(machine.path().join("main.go")).unwrap().contains("package main"));
}

#[test]
fn two_at_once_build_once() {
    let machine = Machine::new();
    let (first, second) = (machine.start(&[]), machine.start(&[]));
    let first = told(first.wait_with_output().unwrap());
    let second = told(second.wait_with_output().unwrap());
    assert_eq!((first.0, second.0), (Some(0), Some(0)), "{}{}", first.2, second.2);
    assert_eq!(first.1, second.1);
    assert_eq!(machine.builds().len(), 8);
}

#[test]
fn a_failed_build_tells_what_go_said_and_the_next_goes_on_from_there() {
    let machine = Machine::new();
    let (code, _, stderr) = machine.tools(&[("GO_FAILS_FOR", "k8s.io/kubernetes/cmd/kubectl")]);
    assert_eq!(code, Some(2));
    assert!(stderr.ends_with("failed with exit status: 1:\nno network\n"), "{stderr}");
    assert_eq!(machine.builds().len(), 4);
    assert_eq!(machine.tools(&[]).0, Some(0));
    assert_eq!(machine.builds().len(), 8);
}

#[test]
fn another_release_is_built_in_a_module_of_its_own() {
    let machine = Machine::new();
    let (code, pinned, stderr) = machine.tools(&[]);
    assert_eq!(code, Some(0), "{stderr}");
    let (code, stdout, stderr) = machine.tools(&[("KUBE_VERSION", "v1.35.2")]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(path_of("etcd", &stdout), path_of("etcd", &pinned));
    assert_ne!(path_of("kubectl", &stdout), path_of("kubectl", &pinned));
    assert_eq!(machine.builds().len(), 12);
    assert_eq!(machine.builds()[8], "0 -mod=mod k8s.io/kubernetes/cmd/kubectl");
    let expected = "module outrider.dev/cluster-tools\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v1.35.2\n\n\
                    replace k8s.io/api => k8s.io/api v0.35.2\n";
    assert_eq!(fs::read_to_string(machine.path().join("go.mod")).unwrap(), expected);
}

#[test]
fn what_cannot_work_is_told_before_anything_is_built() {
    let machine = Machine::new();
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let cases = [
        (("PATH", empty), "cannot run `go`".to_owned()),
        (("KUBE_VERSION", "1.35"), "KUBE_VERSION=1.35: want a Kubernetes release such as v1.35.2".to_owned()),
        (("KUBEBUILDER_ASSETS", empty), format!("KUBEBUILDER_ASSETS={empty} holds no `etcd`")),
        (("HOME", ""), "neither XDG_CACHE_HOME nor HOME is set".to_owned()),
    ];
    for (setting, expected) in cases {
        let (code, stdout, stderr) = machine.tools(&[setting]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(&expected), "{expected}: {stderr}");
        assert!(machine.builds().is_empty());
    }
}
