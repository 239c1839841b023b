//! `outrider demo`.

use outrider::cli::demo::{DemoArgs, run};
use outrider::cli::streams::Outcome;

use crate::golden;

#[test]
fn demo_shows_an_injected_pod_and_how_to_ask_again() {
    let mut stdout = Vec::new();
    assert_eq!(run(&DemoArgs { once: true }, false, &mut stdout).unwrap(), Outcome::Fine);
    let told = String::from_utf8(stdout).unwrap();
    let folder = std::env::temp_dir().join(format!("outrider-demo-{}", std::process::id()));
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
