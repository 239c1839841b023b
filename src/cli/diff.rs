//! What changes between two texts.

use diffy::DiffOptions;

/// A unified diff with three lines around each change; empty when nothing changes.
pub fn unified(before: &str, after: &str, before_name: &str, after_name: &str) -> String {
    if before == after {
        return String::new();
    }
    let (before_name, after_name) = (before_name.to_owned(), after_name.to_owned());
    let mut options = DiffOptions::new();
    options.set_context_len(3).set_original_filename(before_name).set_modified_filename(after_name);
    options.create_patch(before, after).to_string()
}

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// A unified diff in the colours of git.
pub fn coloured(diff: &str) -> String {
    let colour = |line: &str| match line.get(..3).unwrap_or(line) {
        "---" | "+++" => BOLD,
        start if start.starts_with('-') => RED,
        start if start.starts_with('+') => GREEN,
        start if start.starts_with('@') => CYAN,
        _ => PLAIN,
    };
    diff.lines().flat_map(|line| [colour(line), line, PLAIN, "\n"]).collect()
}
