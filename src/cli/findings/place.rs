//! The line of the field that a finding is about, in place of the line on which its object starts.

use std::collections::HashMap;
use std::fs;

use engine::yaml::{self, Lines};

use super::Diagnostic;

/// Files larger than this are not read again for lines.
pub const FILE_MAX_BYTES: usize = 4 << 20;

/// Files that findings are about, read when the first one is.
#[derive(Default)]
pub struct Places {
    files: HashMap<String, Vec<Lines>>,
}

impl Places {
    /// Takes a text that was read already, as that of stdin.
    pub fn know(&mut self, file: &str, text: &str) {
        let places = if text.len() <= FILE_MAX_BYTES { yaml::places(text) } else { Vec::new() };
        self.files.insert(file.to_owned(), places);
    }

    /// Moves a finding from its object to its field, where the text names one that is there. The object is `below` the start of the
    /// document, or of the item of a List, by these steps.
    pub fn locate(&mut self, finding: &mut Diagnostic, below: &[&str]) {
        let Some(start) = self.start(finding) else { return };
        let object = walk(start, below);
        let named = paths(&finding.text).map(|path| object.at(path)).find(|(_, steps)| *steps > 0);
        let line = named.map_or(object, |(place, _)| place).line;
        move_to(finding, line);
    }

    /// Moves a finding to the field at the end of these steps, as far as they are there.
    pub fn put(&mut self, finding: &mut Diagnostic, steps: &[&str]) {
        let Some(line) = self.start(finding).map(|start| walk(start, steps).line) else { return };
        move_to(finding, line);
    }

    /// The document, or the item of a List, that a finding is about.
    fn start(&mut self, finding: &Diagnostic) -> Option<&Lines> {
        let (file, line) = finding.place.as_ref()?;
        let documents = self.files.entry(file.clone()).or_insert_with(|| read(file));
        object_at(documents, *line)
    }
}

fn move_to(finding: &mut Diagnostic, to: usize) {
    if let Some((_, line)) = &mut finding.place {
        *line = to;
    }
}

/// Follows steps as far as they are there.
fn walk<'p>(start: &'p Lines, steps: &[&str]) -> &'p Lines {
    let mut place = start;
    for step in steps {
        let Some(next) = place.step(step) else { break };
        place = next;
    }
    place
}

fn read(file: &str) -> Vec<Lines> {
    // stdin is no file, and a name of it is none either.
    let is_small =
        fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= FILE_MAX_BYTES as u64);
    let text = if is_small { fs::read_to_string(file).unwrap_or_default() } else { String::new() };
    yaml::places(&text)
}

/// The document, or the item of a List, that starts on this line; the only document, also from a line in front of it. Inside of it,
/// a finding has the line of its field already.
fn object_at(documents: &[Lines], line: usize) -> Option<&Lines> {
    let items = documents.iter().filter_map(|document| document.step("items")).flat_map(Lines::items);
    let at_line = items.chain(documents).find(|place| place.line == line);
    at_line.or_else(|| documents.first().filter(|only| documents.len() == 1 && line < only.line))
}

/// What may be a field path in a message: `…: spec.x: …`, `…: spec.x is empty`, and `unknown field "spec.x"`.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.split(": ").filter_map(|part| {
        if let Some(quoted) = part.strip_prefix("unknown field \"") {
            return quoted.split('"').next();
        }
        let word = part.split([' ', ',', ';']).next().unwrap_or_default();
        let is_path = word.len() == part.len() || word.contains('.');
        Some(word).filter(|word| is_path && word.starts_with(|c: char| c.is_ascii_lowercase()))
    })
}
