//! What editors, kubectl, krew and CI get.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::yaml;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names(folder: &str) -> Vec<PathBuf> {
    fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_sample_names_its_schema() {
    let mut named = 0;
    for path in names("config/samples") {
        let text = fs::read_to_string(&path).unwrap();
        let sample = yaml::read(&text).unwrap().remove(0).value;
        let api_version = sample["apiVersion"].as_str().unwrap();
        if !api_version.contains("outrider.dev") {
            continue;
        }
        let schema = text.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=");
        let schema = schema.unwrap_or_else(|| panic!("{} names no schema", path.display()));
        let schema = fs::read_to_string(path.parent().unwrap().join(schema)).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["properties"]["apiVersion"]["const"], api_version, "{}", path.display());
        assert_eq!(schema["title"], sample["kind"], "{}", path.display());
        named += 1;
    }
    assert!(named > 5, "{named}");
}

#[test]
#[cfg(unix)]
fn the_binary_answers_as_a_plugin_of_kubectl() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-outrider");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_outrider"), &plugin).unwrap();
    let usage = |program: &Path, args: &[&str]| {
        let output = Command::new(program).args(args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find(|line| line.starts_with("Usage: ")).map(str::to_owned).unwrap_or(text)
    };
    assert_eq!(usage(&plugin, &["--help"]), "Usage: kubectl outrider [OPTIONS] <COMMAND>");
    assert!(usage(&plugin, &["lint", "--help"]).starts_with("Usage: kubectl outrider lint "));
    assert!(usage(Path::new(env!("CARGO_BIN_EXE_outrider")), &["--help"]).starts_with("Usage: outrider "));
}

fn script(name: &str, args: &[&str], dist: &Path) -> String {
    let output = Command::new(root().join("packaging").join(name)).args(args).env("DIST", dist).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn archives_hold_both_names_and_the_manifest_of_krew_their_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("binary");
    fs::write(&binary, "#!/bin/sh\n").unwrap();
    let mut sums = Vec::new();
    for platform in ["linux_amd64", "linux_arm64"] {
        let archive = || {
            script("archive.sh", &[binary.to_str().unwrap(), "1.2.3", platform], folder.path());
            fs::read(folder.path().join(format!("outrider_1.2.3_{platform}.tar.gz"))).unwrap()
        };
        assert!(archive() == archive(), "the same binary gives other bytes");
        let sum = fs::read_to_string(folder.path().join(format!("outrider_1.2.3_{platform}.tar.gz.sha256"))).unwrap();
        sums.push(sum.split(' ').next().unwrap().to_owned());
    }
    let listed = Command::new("tar").arg("-tzf").arg(folder.path().join("outrider_1.2.3_linux_amd64.tar.gz")).output();
    assert_eq!(String::from_utf8(listed.unwrap().stdout).unwrap(), "LICENSE\nkubectl-outrider\noutrider\n");

    let manifest = script("krew.sh", &["somebody", "1.2.3"], folder.path());
    assert!(["OWNER", "VERSION", "SHA256"].iter().all(|word| !manifest.contains(word)), "{manifest}");
    let manifest = yaml::read(&manifest).unwrap().remove(0).value;
    assert_eq!(manifest["spec"]["version"], "v1.2.3");
    for (platform, sum) in manifest["spec"]["platforms"].as_array().unwrap().iter().zip(sums) {
        assert_eq!((&platform["sha256"], &platform["bin"]), (&Value::from(sum), &"kubectl-outrider".into()));
    }
}

#[test]
fn workflows_call_targets_that_are_there() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let mut called = 0;
    for path in names(".github/workflows") {
        let text = fs::read_to_string(&path).unwrap();
        assert!(yaml::read(&text).unwrap()[0].value["jobs"].is_object(), "{}", path.display());
        for target in text.split("make ").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
            assert!(makefile.contains(&format!("\n{target}: ")), "{} calls make {target}", path.display());
            called += 1;
        }
        for program in text.split("packaging/").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
            assert!(root().join("packaging").join(program).exists(), "{} calls {program}", path.display());
        }
    }
    assert!(called > 2, "{called}");
}
