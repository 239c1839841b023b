//! The rows of the table: how many sets exist, how many match, which pass.

use crate::error::BenchError;

/// Which `AdmissionPlugin` objects there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugins {
    /// None.
    None,
    /// One of each plugin of pods, for every namespace.
    OfPods,
    /// So many, all for other namespaces.
    Elsewhere(usize),
}

/// One situation that is measured, on every recorded review.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Name on the command line and in the reports.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// `SidecarSets` whose selector matches the recorded pods.
    pub matching: usize,
    /// `SidecarSets` altogether.
    pub sets: usize,
    /// `AdmissionPlugin` objects.
    pub plugins: Plugins,
    /// Whether the pod that is sent already carries the sidecars.
    pub second_pass: bool,
}

impl Row {
    /// Containers that the measured reply must add.
    pub const fn injects(&self) -> usize {
        if self.second_pass { 0 } else { self.matching }
    }
}

pub const ONE_OF_ONE: &str = "1-of-1";
pub const ONE_OF_5000: &str = "1-of-5000";

pub const PLUGINS: &str = "plugins";
pub const PLUGINS_ELSEWHERE: &str = "plugins-elsewhere";

pub const ROWS: [Row; 8] = [
    row("0-of-100", "no set matches (of 100)", 0, 100),
    row(ONE_OF_ONE, "1 of 1 set", 1, 1),
    row("3-of-100", "3 of 100 sets", 3, 100),
    row("1-of-1000", "1 of 1,000 sets", 1, 1_000),
    row(ONE_OF_5000, "1 of 5,000 sets", 1, 5_000),
    Row { plugins: Plugins::OfPods, ..row(PLUGINS, "1 of 1 set, pod plugins", 1, 1) },
    Row { plugins: Plugins::Elsewhere(1_000), ..row(PLUGINS_ELSEWHERE, "1 of 1 set, 1,000 others", 1, 1) },
    Row { second_pass: true, ..row("second-pass", "second pass (3 of 100)", 3, 100) },
];

const fn row(name: &'static str, title: &'static str, matching: usize, sets: usize) -> Row {
    Row { name, title, matching, sets, plugins: Plugins::None, second_pass: false }
}

/// The rows of these names in table order, all of them for no name.
///
/// # Errors
/// A name that no row has.
pub fn select(names: &[String]) -> Result<Vec<&'static Row>, BenchError> {
    if let Some(found) = names.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        return Err(BenchError::UnknownRow { found: found.clone(), known: ROWS.map(|row| row.name).join(", ") });
    }
    Ok(ROWS.iter().filter(|row| names.is_empty() || names.iter().any(|name| name == row.name)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_name_selects_every_row_and_a_name_only_its_own() {
        assert_eq!(select(&[]).unwrap().len(), ROWS.len());
        let chosen = select(&["second-pass".into(), "1-of-1".into()]).unwrap();
        let names: Vec<_> = chosen.iter().map(|row| row.name).collect();
        assert_eq!(names, ["1-of-1", "second-pass"]);
    }

    #[test]
    fn an_unknown_row_is_refused_with_the_known_ones() {
        let text = select(&["1-of-2".into()]).unwrap_err().to_string();
        assert!(text.contains("\"1-of-2\"") && text.contains("3-of-100"), "{text}");
    }
}
