//! From paths to objects. One broken file does not hide what is wrong in the others.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use engine::offline::manifest::Parsed;

use super::files::{files, unreadable};
use super::{Error, Manifest};

/// What messages call standard input.
pub const STDIN: &str = "stdin";

/// Reads all objects of all paths: files whatever their names, folders with all .yaml, .yml and .json files in them
/// in the order of their paths. Lists (`kind: List`, `PodList`, …) are taken apart.
///
/// # Errors
///
/// All that is wrong in all files.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Manifest>, Vec<Error>> {
    load_from(paths, None).into_result()
}

/// As [`load`], and the path `-` means `stdin`, which is read to its end when it comes up first.
///
/// # Errors
///
/// All that is wrong in all files.
pub fn load_or_stdin(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Manifest>, Vec<Error>> {
    load_from(paths, Some(stdin)).into_result()
}

/// As [`load_or_stdin`], for a command that goes on with what can be read.
pub fn load_readable_or_stdin(paths: &[PathBuf], stdin: &mut dyn Read) -> (Vec<Manifest>, Vec<Error>) {
    load_from(paths, Some(stdin)).into_parts()
}

/// What messages call a path.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { STDIN.to_owned() } else { path.display().to_string() }
}

fn load_from(paths: &[PathBuf], mut stdin: Option<&mut dyn Read>) -> Parsed {
    let (mut parsed, mut seen) = (Parsed::default(), HashSet::new());
    for path in paths {
        match &mut stdin {
            Some(stdin) if path.as_os_str() == "-" => from_stdin(&mut parsed, stdin),
            _ => from_path(&mut parsed, path, &mut seen),
        }
    }
    parsed
}

fn from_stdin(parsed: &mut Parsed, stdin: &mut dyn Read) {
    let mut bytes = Vec::new();
    match stdin.read_to_end(&mut bytes) {
        Ok(_) => parsed.bytes(STDIN, bytes),
        Err(error) => parsed.error(unreadable(Path::new(STDIN), &error)),
    }
}

/// Reads each file once, also where a folder and a file in it are named.
fn from_path(parsed: &mut Parsed, path: &Path, seen: &mut HashSet<PathBuf>) {
    let found = files(path);
    for error in found.errors {
        parsed.error(error);
    }
    for file in found.files {
        if fs::canonicalize(&file).is_ok_and(|real| !seen.insert(real)) {
            continue;
        }
        match fs::read(&file) {
            Ok(bytes) => parsed.bytes(&file.display().to_string(), bytes),
            Err(error) => parsed.error(unreadable(&file, &error)),
        }
    }
}
