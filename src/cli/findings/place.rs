//! The line of the field that a finding is about, in place of the line on which its object starts.

use std::collections::HashMap;
use std::fs;

use engine::yaml::{self, Place};

use super::Finding;

/// Files larger than this are not read again for lines.
const FILE_MAX_BYTES: u64 = 4 << 20;

/// Files that findings are about, read when the first one is.
#[derive(Default)]
pub struct Places {
    files: HashMap<String, Vec<Place>>,
}

impl Places {
    /// Moves a finding from its object to its field, where the text names one that is there.
    pub fn locate(&mut self, finding: &mut Finding) {
        let Some((file, line)) = &mut finding.place else { return };
        let documents = self.files.entry(file.clone()).or_insert_with(|| read(file));
        let Some(object) = object_at(documents, *line) else { return };
        if let Some(found) = paths(&finding.text).map(|path| object.at(path)).find(|(_, steps)| *steps > 0) {
            *line = found.0.line;
        }
    }
}

fn read(file: &str) -> Vec<Place> {
    // stdin is no file, and a name of it is none either.
    let is_small = fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= FILE_MAX_BYTES);
    let text = if is_small { fs::read_to_string(file).unwrap_or_default() } else { String::new() };
    yaml::places(&text)
}

/// The document, or the item of a List, that starts on this line.
fn object_at(documents: &[Place], line: usize) -> Option<&Place> {
    let items = documents.iter().filter_map(|document| document.step("items")).flat_map(Place::items);
    items.chain(documents).find(|place| place.line == line)
}

/// What may be a field path in a message: `…: spec.x: …`, and `unknown field "spec.x"`.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.split(": ").filter_map(|part| match part.strip_prefix("unknown field \"") {
        Some(quoted) => quoted.split('"').next(),
        None => Some(part).filter(|part| !part.contains(' ') && part.starts_with(|c: char| c.is_ascii_lowercase())),
    })
}
