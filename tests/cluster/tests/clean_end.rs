//! Nothing of a cluster outlives the process that started it, however that ends.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Cluster, Options};

/// Every process that has `text` in its arguments; all of a cluster's have the cluster's directory there.
fn processes_with(text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    // A process that ended meanwhile has no command line to read.
    let commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    commands.filter(|command| command.contains(text)).collect()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn api_only() -> Options {
    Options { kwok: false, controller_manager: false, ..Options::default() }
}

#[test]
fn dropping_a_cluster_leaves_no_process_and_no_file() {
    let cluster = Cluster::start().unwrap();
    let dir = cluster.dir().to_owned();
    let running = processes_with(dir.to_str().unwrap());
    for name in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"] {
        assert!(
            running.iter().any(|command| command.split(' ').next().unwrap().ends_with(name)),
            "{name}: {running:#?}"
        );
    }
    drop(cluster);
    assert_eq!(processes_with(dir.to_str().unwrap()), Vec::<String>::new());
    assert!(!dir.exists());
}

#[test]
fn a_panicking_test_leaves_no_process_and_no_file() {
    let mut dir = PathBuf::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let cluster = Cluster::start_with(&api_only()).unwrap();
        cluster.dir().clone_into(&mut dir);
        panic!("as a failing test does");
    }));
    assert!(outcome.is_err() && dir.is_absolute());
    assert_eq!(processes_with(dir.to_str().unwrap()), Vec::<String>::new());
    assert!(!dir.exists());
}

#[test]
fn a_killed_process_leaves_no_process_and_no_file() {
    let state = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut holder = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .arg("hold")
        .arg(state.path())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let dir = temporary.path().to_str().unwrap();
    assert!(processes_with(dir).iter().any(|command| command.contains("kube-apiserver")));
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("all processes end", || processes_with(dir).is_empty());
    wait_until("all files are removed", || is_empty(temporary.path()));
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}
