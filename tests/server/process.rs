//! The whole process: starting, serving, ending by signals.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use serde_json::{Value, json};

use crate::client::{Client, plain_get};

pub const OUTRIDER: &str = env!("CARGO_BIN_EXE_outrider");

/// The variable of the environment by which the image sets bounds for the allocator, and its value.
fn allocator() -> (&'static str, &'static str) {
    let line = include_str!("../../Dockerfile").lines().find_map(|line| line.strip_prefix("ENV "));
    line.and_then(|line| line.split_once('=')).expect("the image sets GLIBC_TUNABLES")
}

/// In which a line is logged, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// `outrider serve`, whose log is JSON.
pub struct Process {
    child: Child,
    log: mpsc::Receiver<String>,
    /// Lines that were read while another one was waited for: parts of the process log in no order.
    passed: Vec<Value>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Serves without a cluster, on ports of the system's choice.
    pub fn standalone(ca_file: &std::path::Path, more: &[&str]) -> Self {
        let ports = ["--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "0"];
        Self::standalone_on(ca_file, &[&ports, more].concat())
    }

    /// Serves without a cluster; of the ports, only that of the webhooks is of the system's choice.
    pub fn standalone_on(ca_file: &std::path::Path, more: &[&str]) -> Self {
        Self::standalone_of(&Self::binary(), ca_file, more)
    }

    /// The same with this binary.
    pub fn standalone_of(binary: &std::path::Path, ca_file: &std::path::Path, more: &[&str]) -> Self {
        Self::spawn(Command::new(binary), ca_file, more)
    }

    /// The binary of this version. `OUTRIDER_BINARY` names another one, such as that of a release, whose memory is to be measured.
    pub fn binary() -> PathBuf {
        std::env::var_os("OUTRIDER_BINARY").unwrap_or_else(|| OUTRIDER.into()).into()
    }

    /// The same, started by a program that becomes it.
    fn standalone_by(wrapper: &[&str], ca_file: &std::path::Path, more: &[&str]) -> Self {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(OUTRIDER).stdin(Stdio::null()).stdout(Stdio::null());
        Self::spawn(command, ca_file, &[&["--health-probe-bind-address=0", "--metrics-bind-address=0"], more].concat())
    }

    fn spawn(mut command: Command, ca_file: &std::path::Path, more: &[&str]) -> Self {
        let (variable, value) = allocator();
        command
            .env(variable, value)
            .args(["serve", "--standalone", "--log-format", "json", "--webhook-bind-address", "127.0.0.1:0"])
            .arg("--ca-file")
            .arg(ca_file)
            .args(more);
        Self::of(&mut command)
    }

    /// Starts the command, whose log is JSON.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (lines, log) = mpsc::channel();
        // A process whose log is not read waits some time. So it is read on where the test needs it no longer.
        thread::spawn(move || {
            for line in stderr.lines() {
                drop(lines.send(line.unwrap()));
            }
        });
        Self { child, log, passed: Vec::new() }
    }

    /// Waits for a line with this message that was not returned before.
    pub fn line(&mut self, message: &str) -> Value {
        if let Some(found) = self.passed.iter().position(|line| line["message"] == message) {
            return self.passed.remove(found);
        }
        loop {
            let Ok(line) = self.log.recv_timeout(TIME_LIMIT) else {
                panic!("the log has no line {message:?}, but {:?}", self.passed);
            };
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["message"] == message {
                return line;
            }
            self.passed.push(line);
        }
    }

    /// Waits for the line with this message. Returns it behind those that were logged before and not returned yet.
    pub fn lines_to(&mut self, message: &str) -> Vec<Value> {
        let line = self.line(message);
        let mut lines = std::mem::take(&mut self.passed);
        lines.push(line);
        lines
    }

    /// Forgets the rest of the log, which is not needed.
    pub fn discard_log(&mut self) {
        self.log = mpsc::channel().1;
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Megabytes of memory: now, and at most so far.
    pub fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let megabytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
        };
        (megabytes("VmRSS:"), megabytes("VmHWM:"))
    }

    pub fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_trusted_with_the_file_it_wrote_and_ends_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let ca_file = dir.path().join("ca.crt");
    let mut process = Process::standalone(&ca_file, &["--drain-delay", "0"]);
    let listening = process.line("Listening");
    let address = |front: &str| listening[front].as_str().unwrap().parse().unwrap();
    assert_eq!(listening["metrics"], "off");

    let ca = std::fs::read_to_string(&ca_file).unwrap();
    let mut client = Client::connect(address("webhooks"), &ca).await.unwrap();
    assert_eq!(client.post("/mutate-nothing", "{}").await.status, 404);
    while plain_get(address("health"), "/readyz").await.0 != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    process.signal("TERM");
    process.line("Ended in order");
    assert_eq!(process.end().code(), Some(0));
}

/// Acceptance check 38, second half.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::standalone(&dir.path().join("ca.crt"), &["--drain-delay", "1h"]);
    process.line("Listening");
    process.signal("INT");
    process.line("Stopping; no longer ready");
    process.signal("TERM");
    process.line("Ending at once");
    assert_eq!(process.end().code(), Some(1));
}

/// A closed terminal sends SIGHUP once or twice. What is registered must not stay without anybody who answers.
#[test]
fn a_closed_terminal_ends_the_process_in_order() {
    let dir = tempfile::tempdir().unwrap();
    // The parent of the tests may have it ignored, and programs inherit that.
    let by_default = ["env", "--default-signal=HUP"];
    let mut process = Process::standalone_by(&by_default, &dir.path().join("ca.crt"), &["--drain-delay", "100ms"]);
    process.line("Listening");
    for ignored in ["USR1", "USR2", "ALRM"] {
        process.signal(ignored);
    }
    process.signal("HUP");
    let line = process.line("Stopping; no longer ready");
    assert_eq!((&line["signal"], &line["drain_delay"]), (&json!("SIGHUP"), &json!(0.1)));
    process.signal("HUP");
    process.line("Ended in order");
    assert_eq!(process.end().code(), Some(0));
}

/// `nohup` has the signal ignored before the process begins.
#[test]
fn a_process_that_is_to_outlive_its_terminal_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::standalone_by(&["nohup"], &dir.path().join("ca.crt"), &["--drain-delay", "0"]);
    process.line("Listening");
    process.signal("HUP");
    process.signal("TERM");
    assert_eq!(process.line("Stopping; no longer ready")["signal"], "SIGTERM");
}

#[test]
fn nobody_waits_for_a_drain_delay_that_was_not_asked_for_without_a_cluster() {
    let table: [(&str, &[&str], f64); 4] = [
        ("INT", &[], 0.0),
        ("INT", &["--drain-delay", "1h"], 3600.0),
        ("TERM", &[], 0.0),
        ("TERM", &["--drain-delay", "1h"], 3600.0),
    ];
    for (signal, flags, delay) in table {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Process::standalone(&dir.path().join("ca.crt"), flags);
        process.line("Listening");
        process.signal(signal);
        assert_eq!(process.line("Stopping; no longer ready")["drain_delay"], delay, "{signal} {flags:?}");
        if delay == 0.0 {
            process.line("Ended in order");
        }
    }
}

#[test]
fn a_process_that_cannot_start_says_why_with_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let ca_file = dir.path().join("ca.crt");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let missing = dir.path().join("missing").join("ca.crt");
    let table: [(&[&str], String); 6] = [
        (&["--health-probe-bind-address", &address], format!("cannot listen on {address} for health probes")),
        (
            &["--health-probe-bind-address", &address],
            "choose another address with --health-probe-bind-address".to_owned(),
        ),
        (&["--client-ca-file", "/nonexistent/ca.crt"], "client CA file /nonexistent/ca.crt".to_owned()),
        (&["--ca-file", missing.to_str().unwrap()], "cannot write ".to_owned()),
        (
            &["--log-level", "outrider=loud"],
            "error: there is no log level \"loud\" in \"outrider=loud\"; write error, warn".to_owned(),
        ),
        (&["--log-level", "loud"], "error: there is no log level \"loud\"; write error, warn".to_owned()),
    ];
    for (arguments, text) in table {
        let mut command = Command::new(OUTRIDER);
        command.args(["serve", "--standalone", "--webhook-bind-address", "127.0.0.1:0", "--metrics-bind-address", "0"]);
        if !arguments.contains(&"--health-probe-bind-address") {
            command.args(["--health-probe-bind-address", "0"]);
        }
        if !arguments.contains(&"--ca-file") {
            command.arg("--ca-file").arg(&ca_file);
        }
        let output = command.args(arguments).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(&text), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty());
        assert!(!ca_file.exists(), "{arguments:?}: the file of another process would be written over");
    }
}

/// The client library would wait without end for a program that fetches credentials.
#[test]
fn a_credential_plugin_that_hangs_is_given_up() {
    let run = |timeout: &str, script: &str| {
        let arguments = ["run-credential-plugin", timeout, "--", "sh", "-c", script];
        let output = Command::new(OUTRIDER).args(arguments).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, credentials, told) = run("--timeout=1m", "echo credentials; echo beware >&2");
    assert_eq!((code, &*credentials, &*told), (Some(0), "credentials\n", "beware\n"));
    assert_eq!(run("--timeout=1m", "exit 3").0, Some(3));
    // What it started holds its outputs.
    let (code, credentials, told) = run("--timeout=100ms", "sleep 300 & wait");
    assert_eq!((code, &*credentials), (Some(2), ""));
    assert!(told.starts_with("error: the credential plugin sh gave no answer within 0 s"), "{told}");
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named_once() {
    let output = Command::new(OUTRIDER).args(["serve", "--kubeconfig", "/nonexistent/config"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let expected = "error: kubeconfig /nonexistent/config cannot be used: No such file or directory (os error 2)\n";
    assert!(told.ends_with(expected), "{told}");
}

#[test]
fn version_and_completion_go_to_stdout() {
    let table: [(&[&str], &str); 3] = [
        (&["--version"], concat!("outrider ", env!("CARGO_PKG_VERSION"))),
        (&["completion", "bash"], "complete -F _outrider"),
        (&["serve", "--help"], "--health-probe-bind-address"),
    ];
    for (arguments, text) in table {
        let output = Command::new(OUTRIDER).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains(text), "{arguments:?}");
        assert!(output.stderr.is_empty());
    }
}
