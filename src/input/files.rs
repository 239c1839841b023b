//! Which files a list of paths means, and whether they have changed.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Error;

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The state of the files of a list of paths. Two that differ mean that something was written, added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    states: Vec<FileState>,
    unreadable: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FileState {
    path: PathBuf,
    /// Absent where the file cannot be read, or the platform does not know it.
    modified: Option<SystemTime>,
    len: Option<u64>,
}

/// Reads paths, times and sizes of the files that [`load`](super::load()) would read, not their content; cheap
/// enough for a poll. What cannot be read is part of the result, not an error.
pub fn fingerprint(paths: &[PathBuf]) -> Fingerprint {
    let (mut states, mut unreadable) = (Vec::new(), Vec::new());
    for path in paths {
        let found = files(path);
        states.extend(found.files.into_iter().map(FileState::of));
        unreadable.extend(found.errors.iter().map(ToString::to_string));
    }
    Fingerprint { states, unreadable }
}

impl FileState {
    fn of(path: PathBuf) -> Self {
        let metadata = fs::metadata(&path).ok();
        Self {
            modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            len: metadata.as_ref().map(Metadata::len),
            path,
        }
    }
}

/// The files of a path, and what could not be read on the way to them.
#[derive(Default)]
pub(super) struct Found {
    pub(super) files: Vec<PathBuf>,
    pub(super) errors: Vec<Error>,
    seen: HashSet<PathBuf>,
}

/// A file means itself, whatever its name; a folder its .yaml, .yml and .json files at any depth, sorted.
///
/// Names in a folder that start with a dot are left out: hidden files, and `..data` of a mounted `ConfigMap`, where each
/// file is once more. A folder that several links lead to is read once, so links in a circle end.
pub(super) fn files(path: &Path) -> Found {
    let mut found = Found::default();
    match metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let mut folders = vec![path.to_owned()];
            while let Some(folder) = folders.pop() {
                match found.folder(&folder) {
                    Ok(inner) => folders.extend(inner),
                    Err(error) => found.errors.push(unreadable(&folder, &error)),
                }
            }
            found.files.sort();
        }
        Ok(_) => found.files.push(path.to_owned()),
        Err(error) => found.errors.push(error),
    }
    found
}

impl Found {
    /// Takes the files of one folder and returns the folders in it, the last one first.
    fn folder(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut inner = Vec::new();
        if !self.seen.insert(fs::canonicalize(folder)?) {
            return Ok(inner);
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            match metadata(&path) {
                Ok(metadata) if metadata.is_dir() => inner.push(path),
                // Not a pipe or a device, which could block for ever.
                Ok(metadata) if metadata.is_file() && is_manifest(&path) => self.files.push(path),
                Err(error) if is_manifest(&path) => self.errors.push(error),
                // Neither, as a link to nowhere that is not called a manifest.
                Ok(_) | Err(_) => {}
            }
        }
        // Which of two links to one folder counts must not depend on the order on the disk.
        inner.sort_by(|left, right| right.cmp(left));
        Ok(inner)
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

fn metadata(path: &Path) -> Result<Metadata, Error> {
    fs::metadata(path).map_err(|error| unreadable(path, &error))
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Unreadable { path: path.display().to_string(), error: error.to_string() }
}
