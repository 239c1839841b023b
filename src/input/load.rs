//! From paths to objects. One broken file does not hide what is wrong in the others.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use engine::offline::manifest::Parsed;

use super::files::{files, unreadable};
use super::{Error, Manifest};

/// Reads all objects of all paths: files whatever their names, folders with all .yaml, .yml and .json files in them
/// in the order of their paths. Lists (`kind: List`, `PodList`, …) are taken apart.
///
/// # Errors
///
/// All that is wrong in all files.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Manifest>, Vec<Error>> {
    load_from(paths, None)
}

/// As [`load`], and the path `-` means `stdin`, which is read to its end when it comes up first.
///
/// # Errors
///
/// All that is wrong in all files.
pub fn load_or_stdin(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Manifest>, Vec<Error>> {
    load_from(paths, Some(stdin))
}

fn load_from(paths: &[PathBuf], mut stdin: Option<&mut dyn Read>) -> Result<Vec<Manifest>, Vec<Error>> {
    let mut parsed = Parsed::default();
    for path in paths {
        match &mut stdin {
            Some(stdin) if path.as_os_str() == "-" => from_stdin(&mut parsed, stdin),
            _ => from_path(&mut parsed, path),
        }
    }
    parsed.into_result()
}

fn from_stdin(parsed: &mut Parsed, stdin: &mut dyn Read) {
    let mut bytes = Vec::new();
    match stdin.read_to_end(&mut bytes) {
        Ok(_) => parsed.bytes("stdin", bytes),
        Err(error) => parsed.error(unreadable(Path::new("stdin"), &error)),
    }
}

fn from_path(parsed: &mut Parsed, path: &Path) {
    let found = files(path);
    for error in found.errors {
        parsed.error(error);
    }
    for file in found.files {
        match fs::read(&file) {
            Ok(bytes) => parsed.bytes(&file.display().to_string(), bytes),
            Err(error) => parsed.error(unreadable(&file, &error)),
        }
    }
}
