//! What the engine and the framework depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::imports::sources;
use crate::root;

/// Everything below the engine, build tools and tests aside. No runtime, no HTTP, no Kubernetes client, no types of its API (they
/// bring jiff, which is a clock), no file system. `libc` and `getrandom` are ring's, of which only
/// SHA-256 is used; `aho-corasick` is a part of regex; `log` is tracing's, as other packages of the workspace ask for it.
const BELOW_ENGINE: [&str; 30] = [
    "aho-corasick",
    "arc-swap",
    "arraydeque",
    "base64",
    "cfg-if",
    "getrandom",
    "granit-parser",
    "itoa",
    "json-patch",
    "jsonptr",
    "libc",
    "log",
    "memchr",
    "once_cell",
    "outrider-admission",
    "pin-project-lite",
    "regex",
    "regex-automata",
    "regex-syntax",
    "ring",
    "serde",
    "serde_core",
    "serde_json",
    "smallvec",
    "strsim",
    "thiserror",
    "tracing",
    "tracing-core",
    "untrusted",
    "zmij",
];

/// Everything below the framework, likewise.
const BELOW_ADMISSION: [&str; 10] =
    ["base64", "itoa", "json-patch", "jsonptr", "memchr", "serde", "serde_core", "serde_json", "thiserror", "zmij"];

/// Parts of the standard library that decisions do without.
const IMPURE: [&str; 8] =
    ["std::fs", "std::net", "std::env", "std::process", "std::thread", "std::io", "SystemTime", "Instant"];

/// The platform of the image; others bring other packages.
const PLATFORM: &str = "--filter-platform=x86_64-unknown-linux-gnu";

/// Names of the packages that a package is linked with.
fn below(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline", PLATFORM])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let is_macro = |package: &Value| list(&package["targets"]).iter().any(|target| target["kind"][0] == "proc-macro");
    let packages: BTreeMap<String, (String, bool)> = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), (text(&package["name"]), is_macro(package))))
        .collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node["deps"].clone())).collect();
    let (start, _) = packages.iter().find(|(_, (name, _))| name == package).unwrap();
    let (mut found, mut open) = (BTreeSet::new(), vec![start.clone()]);
    while let Some(id) = open.pop() {
        for dependency in list(&nodes[&id]) {
            let is_linked = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let id = text(&dependency["pkg"]);
            let (name, is_macro) = packages[&id].clone();
            if is_linked && !is_macro && found.insert(name) {
                open.push(id);
            }
        }
    }
    found
}

#[test]
fn the_engine_has_no_runtime_client_clock_or_file_system_below_it() {
    assert_eq!(below("outrider-engine"), BELOW_ENGINE.map(str::to_owned).into());
}

#[test]
fn the_framework_knows_nothing_of_ours() {
    assert_eq!(below("outrider-admission"), BELOW_ADMISSION.map(str::to_owned).into());
    for source in sources(root(), "crates/admission/src") {
        assert!(!source.text().contains("SidecarSet"), "{}", source.file);
    }
}

#[test]
fn what_decides_uses_no_impure_part_of_the_standard_library() {
    for source in ["crates/engine/src", "crates/admission/src"].into_iter().flat_map(|folder| sources(root(), folder)) {
        for part in IMPURE {
            assert!(!source.text().contains(part), "{} uses {part}", source.file);
        }
    }
}
