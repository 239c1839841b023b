//! `cluster`: a real Kubernetes control plane in the background, for a person to play with.

use std::path::PathBuf;
use std::process::ExitCode;

use cluster::background::Background;
use cluster::{Error, Tools, progress_on_stderr};

const HELP: &str = "\
A real Kubernetes API server with etcd, controller-manager, scheduler and two
fake nodes, on loopback. Needs no root and no container engine.

Usage: cluster COMMAND [--state DIR]

Commands:
  up       start it in the background (again: find it), then print the line
           that points kubectl at it; use: eval \"$(cluster up)\"
  down     end it and remove its data
  status   is it there? exit code 0: yes, 1: no, 2: it is broken
  tools    build the programs it needs, and print where they are; with --node
           also those of a whole node (kubelet, containerd, cert-manager)

Options:
  --state DIR   keep socket, log and kubeconfig in DIR instead of
                ${XDG_CACHE_HOME:-$HOME/.cache}/outrider/cluster; another DIR
                is another cluster
  -h, --help    this text

Environment:
  KUBEBUILDER_ASSETS   folder with etcd, kube-apiserver and kubectl to use;
                       what else is needed is taken from there or built
  KUBE_VERSION         Kubernetes release to build, as in v1.35.2
  XDG_CACHE_HOME       where built programs are kept
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["-h" | "--help" | "help"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        // How `up` runs this program again; not for people.
        ["hold", dir] => Background::in_dir(PathBuf::from(dir)).hold(&mut std::io::stdout()).map(|()| 0),
        ["tools", "--node"] => Tools::locate_for_node(&progress_on_stderr).map(|tools| print_tools(&tools)),
        [command] => Background::of_this_user().and_then(|background| run(command, &background)),
        [command, "--state", dir] | ["--state", dir, command] => std::path::absolute(dir)
            .map_err(|source| Error::Io { what: format!("--state {dir}"), source })
            .and_then(|dir| run(command, &Background::in_dir(dir))),
        _ => Err(usage("want one command: up, down, status or tools")),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("cluster: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: &str, background: &Background) -> Result<u8, Error> {
    match command {
        "up" => up(background).map(|()| 0),
        "down" => {
            let ended = background.down()?;
            eprintln!("cluster: {}", if ended { "ended" } else { "none is running" });
            Ok(0)
        }
        "status" => status(background),
        "tools" => Tools::locate(&progress_on_stderr).map(|tools| print_tools(&tools)),
        _ => Err(usage(&format!("unknown command `{command}`"))),
    }
}

fn print_tools(tools: &Tools) -> u8 {
    for (name, path) in tools.programs() {
        println!("{name} {}", path.display());
    }
    0
}

fn up(background: &Background) -> Result<(), Error> {
    let started = background.up(&progress_on_stderr)?;
    let status =
        background.status()?.ok_or_else(|| Error::Background("the cluster ended right after its start".to_owned()))?;
    if let Some(trouble) = status.trouble {
        return Err(Error::Background(format!("the cluster is broken; run `make cluster-down` first: {trouble}")));
    }
    let verb = if started { "started" } else { "already running:" };
    eprintln!("cluster: {verb} Kubernetes {}; end it with `make cluster-down`", status.version);
    // Who has Rust and Go alone has no kubectl yet.
    let tools = Tools::locate(&progress_on_stderr)?;
    eprintln!("cluster: a kubectl for it: {}", tools.program("kubectl").display());
    println!("export KUBECONFIG={}", shell_word(&background.kubeconfig().display().to_string()));
    Ok(())
}

fn status(background: &Background) -> Result<u8, Error> {
    let Some(status) = background.status()? else {
        println!("not running");
        return Ok(1);
    };
    println!("Kubernetes {}, process {}, KUBECONFIG={}", status.version, status.pid, background.kubeconfig().display());
    match status.trouble {
        None => Ok(0),
        Some(trouble) => {
            println!("{trouble}");
            Ok(2)
        }
    }
}

fn usage(what: &str) -> Error {
    Error::Background(format!("{what}; see `cluster --help`"))
}

/// `text` as one word for a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
