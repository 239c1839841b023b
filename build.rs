//! Tells the binary which commit it was built from.
//!
//! Only in release builds: in others every commit would build the crate and its tests anew. `OUTRIDER_COMMIT` gives it where
//! there is no checkout, as in the Dockerfile. Without git nothing is told.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=OUTRIDER_COMMIT");
    let given = env::var("OUTRIDER_COMMIT").ok().filter(|commit| !commit.is_empty());
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| release.then(checked_out).flatten());
    println!(
        "cargo:rustc-env=OUTRIDER_COMMIT_NOTE={}",
        commit.map_or_else(String::new, |commit| format!(" ({commit})"))
    );
}

/// As in `a27b7f6c01d2`, or with `-dirty` when files differ from it.
fn checked_out() -> Option<String> {
    // The log changes with every commit and checkout; a file that is not there would have this run every time.
    let of_git = ["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(&["rev-parse", "--git-path", name]));
    for path in of_git.chain(["src", "crates", "Cargo.lock"].map(str::to_owned)) {
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
