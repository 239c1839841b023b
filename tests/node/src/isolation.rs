//! Running a test in namespaces of its own.

use std::env;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use cluster::{Tools, one_passed, progress_on_stderr};

use crate::REQUIRED;
use crate::host;

/// Tells the test that it is inside, and which cgroup its pods belong into.
const INSIDE: &str = "OUTRIDER_NODE_CGROUP";

/// A test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `test` inside network, mount and process namespaces: this process runs itself again there, for the test `name`
/// alone. The namespaces end with the test, and everything in them, also when this process is killed.
///
/// # Panics
/// If the machine lacks something, if the test fails, and if there is none of this name.
pub fn isolated(name: &str, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        end_when_the_outer_process_does();
        host::prepare();
        test();
        return;
    }
    require();
    // The network is not there any more when the node starts.
    let tools = Tools::locate_for_node(&progress_on_stderr).unwrap_or_else(|error| panic!("{error}"));
    let cgroup = format!("outrider-node-{}", std::process::id());
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    command.arg(env::current_exe().unwrap_or_else(|error| panic!("cannot find this program: {error}")));
    command.args(["--exact", name, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(INSIDE, &cgroup).env("TMPDIR", "/run").env("PATH", path_with(&tools));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run unshare: {error}"));
    let outer_end = child.stdin.take();
    let passed = child.stdout.take().map_or(Ok(false), one_passed);
    let status = child.wait().unwrap_or_else(|error| panic!("cannot wait for unshare: {error}"));
    drop(outer_end);
    remove_cgroups(&cgroup);
    let passed = passed.unwrap_or_else(|error| panic!("cannot read what {name} prints: {error}"));
    assert!(passed && status.success(), "{name} did not pass inside its namespaces ({status}): see above");
}

/// The cgroup, from the root of every hierarchy, that pods of this test belong into.
pub(crate) fn cgroup() -> String {
    env::var(INSIDE).unwrap_or_default()
}

/// We are the first process of the namespace: when we end, the kernel kills all others. The other end of stdin is held by
/// the outer process alone.
fn end_when_the_outer_process_does() {
    thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(1);
    });
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("the test has not ended in {} s", LIMIT.as_secs());
        std::process::exit(1);
    });
}

/// containerd finds its shim in `PATH`.
fn path_with(tools: &Tools) -> String {
    let shim =
        tools.program("containerd-shim-runc-v2").parent().unwrap_or_else(|| Path::new("/")).display().to_string();
    format!("{shim}:{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default())
}

fn require() {
    let uid = Command::new("id").arg("-u").output().map(|output| output.stdout).unwrap_or_default();
    assert_eq!(uid.trim_ascii(), b"0", "a node needs root: kubelet, runc and network namespaces do");
    let found = |program: &str| {
        let path = env::var("PATH").unwrap_or_default();
        path.split(':').chain(["/usr/sbin", "/sbin"]).any(|dir| Path::new(dir).join(program).exists())
    };
    let missing: Vec<&str> =
        REQUIRED.iter().filter(|(program, _)| !found(program)).map(|(_, package)| *package).collect();
    assert!(missing.is_empty(), "a node needs packages that are not there: apt-get install {}", missing.join(" "));
}

/// Killed containers leave their groups behind, empty.
fn remove_cgroups(name: &str) {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path());
    for top in hierarchies.chain([Path::new("/sys/fs/cgroup").to_owned()]).map(|root| root.join(name)) {
        for child in fs::read_dir(&top).into_iter().flatten().flatten() {
            drop(fs::remove_dir(child.path()));
        }
        drop(fs::remove_dir(&top));
    }
}
