//! What changes between two texts.

use similar::TextDiff;

/// A unified diff with three lines around each change; empty when nothing changes.
pub fn unified(before: &str, after: &str, before_name: &str, after_name: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).header(before_name, after_name).to_string()
}
