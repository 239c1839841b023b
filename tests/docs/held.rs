//! Tables that say which test holds what name tests that are there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::list_sources;

/// The rows of a table that begin with a number, cell by cell.
fn rows(page: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(page);
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    let all = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| number |"));
    all.map(cells).collect()
}

/// Each test that a row names, by the end of the path of its file and its function, is there. A file may have moved into a crate.
fn assert_tests_exist(page: &str, rows: &[Vec<String>]) {
    let mut files = Vec::new();
    for folder in ["src", "tests", "crates"] {
        list_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    let names: Vec<&str> = rows
        .iter()
        .flatten()
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|it| it.contains("::"))
        .collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let (file, test) = name.split_once("::").unwrap();
        let is_there =
            |path: &PathBuf| path.ends_with(file) && fs::read_to_string(path).unwrap().contains(&format!("fn {test}("));
        assert!(files.iter().any(is_there), "tests/{page} names {name}, which is no test");
    }
}

#[test]
fn tests_of_what_was_found_exist() {
    assert_tests_exist("found.md", &rows("found.md"));
}

/// The page has other tables, without tests.
#[test]
fn tests_of_bounds_on_what_is_stored_exist() {
    let names_a_test = |row: &Vec<String>| row.iter().any(|cell| cell.contains("::"));
    let rows: Vec<Vec<String>> = rows("../docs/security.md").into_iter().filter(names_a_test).collect();
    assert_tests_exist("../docs/security.md", &rows);
}

#[test]
fn every_case_of_openkruise_has_a_row_and_tests_that_exist() {
    let rows = rows("openkruise-cases.md");
    let numbers: Vec<usize> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=108).collect::<Vec<_>>());
    for row in &rows {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(!row[1].is_empty() && row[3].contains("::"), "{row:?}");
    }
    assert_tests_exist("openkruise-cases.md", &rows);
}
