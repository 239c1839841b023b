//! Commands that ask a cluster, where none answers.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use clap::CommandFactory as _;
use outrider::cli::Cli;

/// Every command that asks a cluster, in each way that it does.
pub const COMMANDS: [&[&str]; 12] = [
    &["doctor"],
    &["doctor", "-o", "json"],
    &["verify", "--timeout", "1s"],
    &["break-glass"],
    &["break-glass", "--undo", "--dry-run"],
    &["uninstall", "--dry-run"],
    &["uninstall", "--kind", "cronjob", "--dry-run"],
    &["explain", "pod", "web-0", "-n", "shop"],
    &["explain", "--from-cluster", "-f", "tests/offline/input/deployment.yaml"],
    &["render", "--from-cluster", "-f", "tests/offline/input/deployment.yaml"],
    &["review", "--from-cluster", "tests/fixtures/README-pod.json"],
    &["migrate", "--cluster"],
];

/// It goes on trying, as a pod of Outrider may start before the API server answers.
const SERVE: &str = "serve";

#[test]
fn every_command_that_takes_a_kubeconfig_is_tried_here() {
    let takes = |command: &&clap::Command| command.get_arguments().any(|flag| flag.get_long() == Some("kubeconfig"));
    let cli = Cli::command();
    let mut taking: BTreeSet<&str> = cli.get_subcommands().filter(takes).map(clap::Command::get_name).collect();
    let nested = cli.get_subcommands().flat_map(clap::Command::get_subcommands).filter(takes).count();
    assert_eq!(nested, 0, "a nested command takes a kubeconfig: name it in COMMANDS");
    assert!(taking.remove(SERVE));
    assert_eq!(taking, COMMANDS.iter().map(|arguments| arguments[0]).collect());
}

fn outrider(arguments: &[&str], kubeconfig: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(arguments).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
    if !kubeconfig.as_os_str().is_empty() {
        command.arg("--kubeconfig").arg(kubeconfig);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn kubeconfig(folder: &Path, server: &str) -> std::path::PathBuf {
    let path = folder.join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn assert_cannot_tell(output: &Output, arguments: &[&str], expected: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    for text in expected {
        assert!(stderr.contains(text), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_api_server_that_cannot_be_reached_is_named_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens there any more.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = format!("http://{nobody}");
    let path = kubeconfig(folder.path(), &server);
    let place = format!("the API server at {server} (kubeconfig {}, context c) cannot be reached", path.display());
    for arguments in COMMANDS {
        assert_cannot_tell(&outrider(arguments, &path, &[]), arguments, &[&place, "Connection refused"]);
    }
    let variable = path.display().to_string();
    let output = outrider(&["verify"], Path::new(""), &[("KUBECONFIG", &variable)]);
    assert_cannot_tell(&output, &["KUBECONFIG"], &[&server, &format!("kubeconfig KUBECONFIG={variable}, context c")]);
}

/// A server that answers every request with a page, with this status.
fn page_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let page = "<!doctype html><title>Log in</title>";
            let length = page.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
            );
        }
    });
    format!("http://{address}")
}

#[test]
fn a_server_that_answers_with_pages_is_said_to_be_no_api_server() {
    for status in ["200 OK", "401 Unauthorized", "502 Bad Gateway"] {
        let folder = tempfile::tempdir().unwrap();
        let server = page_server(status);
        let path = kubeconfig(folder.path(), &server);
        let named =
            format!("what answers at {server} (kubeconfig {}, context c) is no Kubernetes API server", path.display());
        for arguments in COMMANDS {
            assert_cannot_tell(&outrider(arguments, &path, &[]), arguments, &[&named]);
        }
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_named_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "current-context: [").unwrap();
    for arguments in COMMANDS.into_iter().chain([&[SERVE, "--certificates=self"][..]]) {
        for path in [&missing, &broken] {
            let named = format!("kubeconfig {} cannot be used", path.display());
            assert_cannot_tell(&outrider(arguments, path, &[]), arguments, &[&named]);
            let variable = path.display().to_string();
            let output = outrider(arguments, Path::new(""), &[("KUBECONFIG", &variable)]);
            assert_cannot_tell(&output, arguments, &["no cluster found", &format!("KUBECONFIG={variable}")]);
        }
        let home = folder.path().display().to_string();
        let output = outrider(arguments, Path::new(""), &[("HOME", &home)]);
        assert_cannot_tell(&output, arguments, &[&format!("{home}/.kube/config")]);
    }
}
