//! The checks of the fuzz targets, without a fuzzer: on the seeds, on what fuzzing has found, and on the fixtures of the other tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../fuzz/src/checks/mod.rs"]
mod checks;

/// The modules that checks use, which `fuzz/` compiles apart from the process.
mod process {
    pub use outrider::certs::{pair, trust_anchor};
    pub use outrider::workshop::cronjob::{conversion, schedule};
}

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::checks::{Check, TARGETS, cluster, kept};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files in a folder and below, in a fixed order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != ".gitkeep") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Files of other tests that are inputs of a target.
fn fixtures(target: &str) -> Vec<PathBuf> {
    match target {
        "review" => files(&root().join("tests/fixtures/reviews")),
        "set" | "yaml" => files(&root().join("tests/fixtures/manifests")),
        _ => Vec::new(),
    }
}

fn inputs(target: &str) -> Vec<PathBuf> {
    let own = ["seeds", "regressions"].map(|folder| files(&root().join("fuzz").join(folder).join(target)));
    own.into_iter().flatten().chain(fixtures(target)).collect()
}

/// The inputs that a check fails on. The panics are printed.
fn failures(target: &str, check: Check, change: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<String> {
    let fails = |path: &PathBuf| {
        let data = change(fs::read(path).unwrap());
        catch_unwind(|| check(&data)).is_err()
    };
    inputs(target).iter().filter(|path| fails(path)).map(|path| format!("{target}: {}", path.display())).collect()
}

#[test]
fn every_seed_and_regression_passes_the_check_of_its_target() {
    let failures: Vec<String> =
        TARGETS.iter().flat_map(|(target, check)| failures(target, *check, |data| data)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn seeds_that_are_cut_or_changed_in_a_byte_pass_too() {
    let changes: [fn(Vec<u8>) -> Vec<u8>; 3] = [
        |mut data| {
            data.truncate(data.len() / 2);
            data
        },
        |mut data| {
            let middle = data.len() / 2;
            data.iter_mut().skip(middle).step_by(97).for_each(|byte| *byte ^= 1);
            data
        },
        |data| data.repeat(2),
    ];
    let mut failures_of_all = Vec::new();
    for (target, check) in TARGETS {
        for change in changes {
            failures_of_all.extend(failures(target, check, change));
        }
    }
    assert!(failures_of_all.is_empty(), "{failures_of_all:#?}");
}

/// A target without seeds would be tested on nothing here; one without a binary would not be fuzzed.
#[test]
fn every_target_has_seeds_and_a_binary() {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for (target, _) in TARGETS {
        assert!(!files(&root().join("fuzz/seeds").join(target)).is_empty(), "{target}");
        assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    assert_eq!(files(&root().join("fuzz/targets")).len(), TARGETS.len());
}

/// Reviews are decided with every plugin that there is.
#[test]
fn every_plugin_has_an_object() {
    let objects = engine::offline::manifest::parse("plugins.yaml", cluster::PLUGINS_OF_CLUSTER).unwrap();
    let named: BTreeSet<&str> = objects.iter().filter_map(|object| object.value["spec"]["plugin"].as_str()).collect();
    assert_eq!(named, engine::plugins::Plugin::ALL.map(engine::plugins::Plugin::name).into());
}

/// The check that most targets lean on finds what it is there for.
#[test]
fn a_pod_that_lost_or_gained_something_is_found() {
    let pod = json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"containers": [{"name": "app", "tomorrow": 1}, {"name": "web"}], "volumes": null},
    });
    let patched = json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d", "outrider.dev/injected": "{}"}},
        "spec": {"containers": [{"name": "x"}, {"name": "app", "tomorrow": 1, "env": []}, {"name": "web"}], "volumes": []},
    });
    kept::check(&pod, &patched);
    for (pointer, value) in [
        ("/metadata/labels/a", json!("c")),
        ("/metadata/annotations/c", json!("e")),
        ("/metadata/labels", json!({"a": "b", "c": "d"})),
        ("/spec/containers/1/tomorrow", json!(2)),
        ("/spec/containers/1", json!({"name": "app"})),
        ("/spec/containers/2", json!({"name": "web", "image": "i"})),
        ("/spec", json!({"containers": patched["spec"]["containers"], "volumes": [], "hostNetwork": true})),
        ("/spec/containers", json!([{"name": "web"}, {"name": "app", "tomorrow": 1}])),
    ] {
        let mut changed = patched.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(catch_unwind(|| kept::check(&pod, &changed)).is_err(), "{pointer}: {changed}");
    }
}
