//! A file, and a function, is short enough to be read at once.

use std::fmt::Write as _;

use crate::imports::{Source, sources};
use crate::root;

/// Lines of a file, its tests aside.
const FILE: usize = 400;
/// Lines of a function, from its name to its last bracket.
const FUNCTION: usize = 60;

/// What is longer, its lines at most, and why. An entry that is no longer needed fails.
const LONGER: [(&str, usize, &str); 2] = [
    ("src/cli/plugins/convert.rs::run", 63, "one step after the other, each a few lines"),
    ("src/metrics/mod.rs::register", 71, "a list of all metrics"),
];

/// The functions of a source as rustfmt writes it, each with its lines.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end =
            lines[at..].iter().position(|line| line.strip_prefix(indent).is_some_and(|rest| rest.trim_end() == "}"));
        let is_in_one_line = line.trim_end().ends_with(['}', ';']);
        if let Some(end) = end.filter(|_| !is_in_one_line) {
            found.push((name, end + 1));
        }
    }
    found
}

/// The name of the function that a line begins.
fn name(line: &str) -> Option<&str> {
    let (before, rest) = line.trim_start().split_once("fn ")?;
    // `pub(in crate::a)` has a space in it.
    let (visibility, qualifiers) = before.split_once(") ").unwrap_or_else(|| before.split_at(0));
    let is_known = |word: &str| matches!(word, "pub" | "const" | "async");
    let begins = visibility.is_empty() || visibility.starts_with("pub(");
    (begins && qualifiers.split_whitespace().all(is_known)).then(|| rest.split(['(', '<']).next())?
}

/// Everything that is longer than it may be, as in [`LONGER`].
fn longer(sources: &[Source]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for source in sources {
        let lines = source.text().lines().count();
        if lines > FILE {
            found.push((source.file.clone(), lines));
        }
        let long = functions(source.text()).into_iter().filter(|(_, lines)| *lines > FUNCTION);
        found.extend(long.map(|(name, lines)| (format!("{}::{name}", source.file), lines)));
    }
    found
}

#[test]
fn files_and_functions_can_be_read_at_once() {
    let folders = ["src", "crates/engine/src", "crates/admission/src"];
    let found = longer(&folders.into_iter().flat_map(|folder| sources(root(), folder)).collect::<Vec<_>>());
    let mut faults = String::new();
    for (what, lines) in &found {
        match LONGER.iter().find(|(listed, ..)| listed == what) {
            Some((_, most, _)) if lines <= most => {}
            _ => writeln!(faults, "{what} has {lines} lines: divide it").unwrap(),
        }
    }
    for (listed, ..) in LONGER.iter().filter(|(listed, ..)| !found.iter().any(|(what, _)| what == listed)) {
        writeln!(faults, "{listed} is listed as long, and is not: remove it from the list").unwrap();
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn functions_are_found_with_their_lines() {
    let text = "fn a() {}\n\npub(crate) const fn b<T>(\n    x: T,\n) -> T {\n    x\n}\n\nimpl X {\n    pub(in crate::y) async fn c(&self) {\n        if z {\n        }\n    }\n}\n";
    assert_eq!(functions(text), [("b", 5), ("c", 4)]);
    let source = |lines: usize| format!("fn long() {{\n{}}}\n", "    x();\n".repeat(lines));
    assert_eq!(functions(&source(FUNCTION - 2)), [("long", FUNCTION)]);
    assert_eq!(name("    let f = fn_of(x);"), None);
}
