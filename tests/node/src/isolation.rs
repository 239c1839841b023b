//! Running a test, or a program, in namespaces of its own.

use std::env;
use std::io::{self, Read};
use std::path::Path;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use cluster::{Tools, one_passed, progress_on_stderr};

use crate::groups::Groups;
use crate::{REQUIRED, Visit, host};

/// Set for what runs inside.
const INSIDE: &str = "OUTRIDER_NODE_INSIDE";

/// A test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `test` inside network, mount and process namespaces: this process runs itself again there, for the test `name`
/// alone. The namespaces end with the test, and everything in them, also when this process is killed.
///
/// # Panics
/// If the machine lacks something, if the test fails, and if there is none of this name.
pub fn isolated(name: &str, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        end_after(LIMIT);
        inside(test);
        return;
    }
    let mut passed = Ok(false);
    let status = run_again(&["--exact", name, "--include-ignored", "--nocapture", "--test-threads=1"], |stdout| {
        passed = one_passed(stdout);
    });
    let passed = passed.unwrap_or_else(|error| panic!("cannot read what {name} prints: {error}"));
    assert!(passed && status.success(), "{name} did not pass inside its namespaces ({status}): see above");
}

/// Runs `program`, which is all that this executable does, in such namespaces until one of the two is ended.
///
/// # Panics
/// If the machine lacks something, or the program ends by itself.
pub fn isolated_program(program: impl FnOnce(&Visit)) {
    if env::var_os(INSIDE).is_some() {
        let visit = Visit::here();
        inside(|| program(&visit));
        return;
    }
    let status = run_again(&[], |mut stdout| {
        // If the reader is gone, the program goes on.
        drop(io::copy(&mut stdout, &mut io::stdout()));
    });
    panic!("what ran in the namespaces has ended ({status}): see above");
}

fn inside(run: impl FnOnce()) {
    let groups = Groups::before();
    end_when_the_outer_process_does(groups.clone());
    host::prepare();
    run();
    drop(groups);
}

fn run_again(args: &[&str], read: impl FnOnce(ChildStdout)) -> ExitStatus {
    require();
    // The network is not there any more when the node starts.
    let tools = Tools::locate_for_node(&progress_on_stderr).unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    command.arg(env::current_exe().unwrap_or_else(|error| panic!("cannot find this program: {error}"))).args(args);
    command.env(INSIDE, "yes").env("TMPDIR", "/run").env("PATH", path_with(&tools));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run unshare: {error}"));
    let outer_end = child.stdin.take();
    child.stdout.take().map(read);
    let status = child.wait().unwrap_or_else(|error| panic!("cannot wait for unshare: {error}"));
    drop(outer_end);
    status
}

/// We are the first process of the namespace: when we end, the kernel kills all others. The other end of stdin is held by
/// the outer process alone.
fn end_when_the_outer_process_does(groups: Groups) {
    thread::spawn(move || {
        drop(io::stdin().read_to_end(&mut Vec::new()));
        drop(groups);
        std::process::exit(1);
    });
}

fn end_after(limit: Duration) {
    thread::spawn(move || {
        thread::sleep(limit);
        eprintln!("the test has not ended in {} s", limit.as_secs());
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
