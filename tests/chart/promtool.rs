//! Running promtool, Prometheus's own evaluation of rules and expressions.

use std::fs;
use std::path::Path;
use std::process::Command;

use cluster::{Tools, progress_on_stderr};

/// Runs promtool in a folder with these files. It must succeed.
pub fn promtool(files: &[(&str, &str)], args: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let tools = Tools::locate(&progress_on_stderr).unwrap();
    let output = Command::new(tools.program("promtool")).args(args).current_dir(dir.path()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// A file of the repository.
pub fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
