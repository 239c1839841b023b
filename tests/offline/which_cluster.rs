//! Which cluster a command uses, as which user and how long, and what it asks on a terminal before it changes one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::no_cluster::COMMANDS;

/// An API server that knows its version and holds nothing.
struct ApiServer {
    address: SocketAddr,
    /// Method, path and the user asked as, of each request.
    asked: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let asked = Arc::clone(&server.asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let asked = Arc::clone(&asked);
                std::thread::spawn(move || answer(stream.unwrap(), &asked));
            }
        });
        server
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers one request after the other.
fn answer(stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut request, mut user, mut length) = (String::new(), String::new(), 0);
        if lines.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            lines.read_line(&mut header).unwrap();
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("impersonate-user: ") {
                user = format!(" as {value}");
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
        }
        lines.read_exact(&mut vec![0; length]).unwrap();
        let request = request.trim_end_matches(" HTTP/1.1\r\n").to_owned();
        let (code, body) = if request == "GET /version" {
            let fields = [
                "major",
                "minor",
                "gitVersion",
                "gitCommit",
                "gitTreeState",
                "buildDate",
                "goVersion",
                "compiler",
                "platform",
            ];
            (
                "200 OK",
                serde_json::json!(
                    fields.map(|field| (field, "1")).into_iter().collect::<std::collections::BTreeMap<_, _>>()
                ),
            )
        } else {
            let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "not found", "reason": "NotFound", "code": 404});
            ("404 Not Found", status)
        };
        asked.lock().unwrap().push(format!("{request}{user}"));
        let body = body.to_string();
        let head =
            format!("HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// A kubeconfig with the contexts `first`, which is current, and `second`.
fn kubeconfig(folder: &Path, first: SocketAddr, second: SocketAddr) -> PathBuf {
    let path = folder.join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: first\nusers: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: first, context: {{cluster: a, user: u}}}}, {{name: second, context: {{cluster: b, user: u}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://{first}'}}}}, {{name: b, cluster: {{server: 'http://{second}'}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn command(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig).env_remove("KUBERNETES_SERVICE_HOST");
    command
}

fn outrider(kubeconfig: &Path, arguments: &[&str]) -> Output {
    command(kubeconfig, arguments).stdin(Stdio::null()).output().unwrap()
}

/// With a terminal at stdin, at which a user writes this.
fn at_a_terminal(kubeconfig: &Path, arguments: &[&str], written: &str) -> Output {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(theirs.to_str().unwrap()).unwrap();
    let child =
        command(kubeconfig, arguments).stdin(theirs).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ours = File::from(ours);
    ours.write_all(written.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const CHANGES: [&[&str]; 3] = [&["break-glass"], &["break-glass", "--undo"], &["uninstall"]];

#[test]
fn every_command_asks_the_context_that_is_named_as_the_user_who_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let (first, second) = (ApiServer::start(), ApiServer::start());
        let path = kubeconfig(folder.path(), first.address, second.address);
        let flags = ["--context=second", "--as=jane", "--as-group=system:authenticated"];
        let output = outrider(&path, &[command, &flags].concat());
        assert_eq!(first.asked(), Vec::<String>::new(), "{command:?}");
        let asked = second.asked();
        assert!(
            !asked.is_empty() && asked.iter().all(|it| it.ends_with(" as jane")),
            "{command:?}: {asked:?} {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_context_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start();
    let path = kubeconfig(folder.path(), server.address, server.address);
    let output = outrider(&path, &["doctor", "--context=third"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("third"), "{}", stderr(&output));
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[test]
fn a_request_takes_no_longer_than_is_said() {
    let folder = tempfile::tempdir().unwrap();
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let path = kubeconfig(folder.path(), address, address);
    for command in COMMANDS {
        let output = outrider(&path, &[command, &["--request-timeout=300ms"]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(
            stderr(&output).contains("cannot be reached: no answer within 300ms"),
            "{command:?}: {}",
            stderr(&output)
        );
    }
    let output = outrider(&path, &["doctor", "--request-timeout=0"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_changes_a_cluster_says_which_and_asks_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for command in CHANGES {
        let server = ApiServer::start();
        let path = kubeconfig(folder.path(), server.address, server.address);
        for written in ["n\n", "\n", "\u{4}"] {
            let output = at_a_terminal(&path, command, written);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(", context first)\nGo on? [y/N] "), "{}", stderr(&output));
            assert!(stderr(&output).ends_with("nothing was done\n"), "{}", stderr(&output));
            assert!(server.asked().iter().all(|asked| asked == "GET /version"), "{:?}", server.asked());
        }
        for (arguments, written) in [(&[][..], "y\n"), (&["--yes"], ""), (&["--dry-run"], "")] {
            let output = at_a_terminal(&path, &[command, arguments].concat(), written);
            assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
            assert_eq!(stderr(&output).contains("Go on?"), arguments.is_empty(), "{}", stderr(&output));
        }
        // A script is not asked, and reads in its log where it was.
        let output = outrider(&path, command);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(&format!("at the API server http://{}", server.address)),
            "{}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("Go on?"), "{}", stderr(&output));
    }
}
