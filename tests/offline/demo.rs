//! `outrider demo`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use outrider::cli::demo::{DemoArgs, run};
use outrider::cli::streams::CommandOutcome;

use crate::golden;

#[test]
fn a_demo_that_has_ended_names_no_file_and_no_port_of_its_own() {
    let mut stdout = Vec::new();
    assert_eq!(run(&DemoArgs { once: true }, false, &mut stdout).unwrap(), CommandOutcome::Fine);
    let told = String::from_utf8(stdout).unwrap();
    let folder = std::env::temp_dir().join(format!("outrider-demo-{}", std::process::id()));
    assert!(!folder.exists(), "the files stay behind");
    assert!(!told.contains(folder.to_str().unwrap()) && !told.contains("127.0.0.1"), "{told}");
    golden::assert("demo-once.txt", &told);
}

#[test]
fn demo_shows_an_injected_pod_and_how_to_ask_again() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_outrider"));
    let mut demo = demo.arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    for line in BufReader::new(demo.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        told.extend([line.as_str(), "\n"]);
        if line.starts_with("Ctrl-C ends") {
            break;
        }
    }
    assert!(Command::new("kill").arg(demo.id().to_string()).status().unwrap().success());
    let folder = std::env::temp_dir().join(format!("outrider-demo-{}", demo.id()));
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    assert!(!folder.exists(), "the files stay behind");
    golden::assert("demo.txt", &without_ports(&told.replace(folder.to_str().unwrap(), "FOLDER")));
}

/// Ports are free ones, so they differ from run to run.
fn without_ports(text: &str) -> String {
    const ADDRESS: &str = "127.0.0.1:";
    let mut parts = text.split(ADDRESS);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| told + ADDRESS + "PORT" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn sets_that_are_broken_while_the_demo_runs_are_told() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_outrider"));
    let mut demo = demo.arg("demo").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(demo.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let sets = first.trim_end().strip_prefix("Outrider is serving the SidecarSets of ").unwrap();
    fs::write(sets, "kind: [").unwrap();
    let mut told = BufReader::new(demo.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = told.find(|line| line.contains("ERROR")).unwrap();
    assert!(line.contains(&format!("{sets}:1:")), "{line}");
    assert!(Command::new("kill").arg(demo.id().to_string()).status().unwrap().success());
    assert_eq!(demo.wait().unwrap().code(), Some(0));
}
