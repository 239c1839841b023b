//! The files that a test file names, and on which of its lines it names one that cannot be read.

use std::path::{Path, PathBuf};

use super::super::findings::{Diagnostic, Level};
use super::super::report::CommandReport;
use crate::input::{Error, Manifest, load};

/// A field of a test file with files and folders.
pub struct NamedFiles {
    field: &'static str,
    /// `file:line` of the test file.
    source: String,
    /// The files, from where the command runs.
    pub paths: Vec<PathBuf>,
}

impl NamedFiles {
    /// Those of `field`, which are relative to the folder of the test file at `path`.
    pub fn of(field: &'static str, written: &[PathBuf], path: &Path, line: usize) -> Self {
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let paths = written.iter().map(|file| folder.join(file)).collect();
        Self { field, source: format!("{}:{line}", path.display()), paths }
    }

    /// The objects in the files; `None` when one cannot be read, which the report says. A file that is not there is wrong in the test
    /// file; what is wrong inside of a file is wrong there.
    pub fn read(&self, report: &mut CommandReport<'_>) -> Option<Vec<Manifest>> {
        let errors = match load(&self.paths) {
            Ok(manifests) => return Some(manifests),
            Err(errors) => errors,
        };
        for error in errors {
            match self.position(&error) {
                Some(position) => self.report(&format!("[{position}]: {error}"), report),
                None => report.errors(&[error]),
            }
        }
        None
    }

    /// Reports what is wrong with all of the files.
    pub fn wrong(&self, text: &str, report: &mut CommandReport<'_>) {
        self.report(&format!(": {text}"), report);
    }

    fn report(&self, text: &str, report: &mut CommandReport<'_>) {
        report.add(Diagnostic::of(Level::Error, &self.source, format!("{}{text}", self.field)));
    }

    /// Which entry an unreadable file is of. A file that is no text has a line of its own.
    fn position(&self, error: &Error) -> Option<usize> {
        let Error::Unreadable { path, .. } = error else { return None };
        self.paths.iter().position(|named| Path::new(path).starts_with(named))
    }
}
