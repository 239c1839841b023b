//! What the Makefile says before it needs anything but make.

use std::process::Command;

#[test]
fn a_target_that_needs_a_cluster_says_how_to_get_one() {
    for target in ["install", "run", "uninstall", "deploy", "undeploy"] {
        let mut make = Command::new("make");
        make.args(["--no-print-directory", target, "KUBECTL=false", "OUTRIDER=false", "CARGO=false"]);
        let output = make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let told = r#"No cluster answers: set KUBECONFIG to one, or start a local one: eval "$(make cluster)""#;
        assert!(!output.status.success() && stderr.starts_with(told), "{target}: {stderr}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{target} goes on");
    }
}

#[test]
fn the_first_build_of_the_demo_shows_its_progress() {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "--dry-run", "demo", "CARGO=cargo"]);
    let output = make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap();
    let recipe = String::from_utf8(output.stdout).unwrap();
    let first = recipe.lines().next().unwrap_or_default();
    assert!(first.starts_with("cargo build") && !first.contains("--quiet"), "{recipe}");
}

/// What a dry run of a target prints.
fn recipe(arguments: &[&str]) -> String {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "--dry-run"]).args(arguments).args(["CARGO=cargo", "KUBECTL=true"]);
    let output = make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_process_outside_the_cluster_serves_on_loopback_unless_another_address_is_given() {
    let of_run = recipe(&["run"]);
    for flag in ["webhook", "health-probe", "metrics"] {
        assert!(of_run.contains(&format!("--{flag}-bind-address 127.0.0.1:")), "{flag}: {of_run}");
    }
    let elsewhere = recipe(&["run", "WEBHOOK_BIND_ADDRESS=:9443"]);
    assert!(elsewhere.contains("--webhook-bind-address :9443 "), "{elsewhere}");
}
