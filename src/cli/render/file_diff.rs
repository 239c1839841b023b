//! What changes in a file, in the file's own layout, so that `patch -p0` applies it.
//!
//! Objects are printed anew, and a file is rarely laid out like that. The change of the printed objects is merged into the text of the
//! file; where that leaves what was to come out, the file's own lines are compared. Otherwise the diff replaces the layout too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use diffy::{DiffOptions, Line, Patch};
use serde_json::Value;

use super::rendered::Rendered;
use crate::cli::diff::unified;
use crate::visible::is_hidden;
use engine::yaml::{self, Lists};

/// Lines of a file that are compared: the time grows with the square of what differs.
const MAX_LINES: usize = 5_000;

/// How lines end in files of some editors.
const RETURN: &str = "\r\n";

/// The change of a file.
pub struct FileDiff {
    /// As a unified diff, which applies to the file.
    pub text: String,
    /// Whether it changes nothing else. Otherwise it replaces the layout of the file and its comments.
    pub keeps_layout: bool,
}

/// The change of a file that all these objects are from; `None` where there is no such file, or it is too long.
pub fn of_file(file: &str, objects: &[&Rendered]) -> Option<FileDiff> {
    let text = fs::read_to_string(file).ok()?;
    if text.lines().count() > MAX_LINES {
        return None;
    }
    let [before, after] = [(|rendered| &rendered.before) as fn(&Rendered) -> &Value, |rendered| &rendered.after]
        .map(|value| objects.iter().map(|rendered| value(rendered).clone()).collect::<Vec<_>>());
    let in_its_layout = [Lists::AtKey, Lists::Indented].into_iter().find_map(|lists| {
        let [before, merged] = [&before, &after].map(|values| yaml::write_documents_with(values, lists));
        merge(&before, &text, &merged).filter(|merged| holds(merged, &after))
    });
    let keeps_layout = in_its_layout.is_some();
    let merged = in_its_layout.unwrap_or_else(|| yaml::write_documents(&after));
    let diff = ended_names(unified(&text, &merged, file, file), file);
    // What is hidden is written out where it is printed, so that the lines are no longer those of the file.
    let is_printed_as_it_is = !diff.replace(RETURN, "\n").contains(is_hidden);
    is_printed_as_it_is.then_some(FileDiff { text: diff, keeps_layout })
}

/// The same with a tab behind the names in the header, as `diff` writes it where one holds a space: patch reads it up to the first one.
fn ended_names(diff: String, file: &str) -> String {
    match diff.strip_prefix(&format!("--- {file}\n+++ {file}\n")) {
        Some(hunks) if file.contains(' ') => format!("--- {file}\t\n+++ {file}\t\n{hunks}"),
        _ => diff,
    }
}

/// Whether a text is these objects.
fn holds(text: &str, objects: &[Value]) -> bool {
    yaml::read(text).is_ok_and(|read| read.iter().map(|document| &document.value).eq(objects))
}

/// Makes in `text` the change from `before` to `after`. An added line goes behind the line that precedes it in `after`, or in front
/// of the one that follows, whichever the text has.
fn merge(before: &str, text: &str, after: &str) -> Option<String> {
    let places = places(before, &text.replace(RETURN, "\n"));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // An added line ends as the lines of the file do.
    let end = if text.contains(RETURN) { RETURN } else { "\n" };
    let mut added: BTreeMap<usize, String> = BTreeMap::new();
    let mut removed = BTreeSet::new();
    let mut at: usize = 0;
    for line in whole(before, after).hunks().iter().flat_map(diffy::Hunk::lines) {
        match line {
            Line::Context(_) => at = at.checked_add(1)?,
            Line::Delete(_) => {
                removed.insert((*places.get(at)?)?);
                at = at.checked_add(1)?;
            }
            Line::Insert(line) => {
                let behind = at.checked_sub(1).and_then(|at| *places.get(at)?).and_then(|place| place.checked_add(1));
                let in_front = if at == places.len() { Some(lines.len()) } else { *places.get(at)? };
                added.entry(behind.or(in_front)?).or_default().push_str(&line.replace('\n', end));
            }
        }
    }
    let mut merged = String::with_capacity(text.len().saturating_add(after.len()));
    for (index, line) in lines.iter().enumerate() {
        merged.push_str(added.get(&index).map_or("", String::as_str));
        if !removed.contains(&index) {
            merged.push_str(line);
        }
    }
    if let Some(last) = added.get(&lines.len()) {
        if !merged.is_empty() && !merged.ends_with('\n') {
            merged.push_str(end);
        }
        merged.push_str(last);
    }
    Some(merged)
}

/// For each line of `before`, where it is in `text`.
fn places(before: &str, text: &str) -> Vec<Option<usize>> {
    let (mut places, mut at) = (Vec::new(), 0_usize);
    if before == text {
        return (0..before.lines().count()).map(Some).collect();
    }
    for line in whole(before, text).hunks().iter().flat_map(diffy::Hunk::lines) {
        match line {
            Line::Context(_) => {
                places.push(Some(at));
                at = at.saturating_add(1);
            }
            Line::Delete(_) => places.push(None),
            Line::Insert(_) => at = at.saturating_add(1),
        }
    }
    places
}

/// The change with every line of both texts.
fn whole<'t>(before: &'t str, after: &'t str) -> Patch<'t, str> {
    let mut options = DiffOptions::new();
    options.set_context_len(before.len());
    options.create_patch(before, after)
}

/// The file of a source, which is `file:line`.
pub fn file_of(rendered: &Rendered) -> &str {
    rendered.source.rsplit_once(':').map_or(rendered.source.as_str(), |(file, _)| file)
}
