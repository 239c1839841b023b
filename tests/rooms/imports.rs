//! Which modules of the crate a source file imports, read from its text.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file and where its module is in the crate.
#[derive(Debug)]
pub struct Source {
    /// The file, as messages name it.
    pub file: String,
    /// Path of the module, empty for the root.
    pub module: Vec<String>,
    /// The text without comments and tests.
    text: String,
}

/// Every source file below `folder`, by name. Tests may import what they like, and are left out.
pub fn sources(root: &Path, folder: &str) -> Vec<Source> {
    let (mut found, mut folders) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "rs" && !is_test(&path) => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found.iter().map(|path| source(root, &root.join(folder), path)).collect()
}

fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    matches!(stem, "tests" | "testing" | "test_objects")
        || stem.ends_with("_tests")
        || path.iter().any(|part| part == "tests")
}

fn source(root: &Path, base: &Path, path: &Path) -> Source {
    let relative: PathBuf = path.strip_prefix(base).unwrap().with_extension("");
    let mut module: Vec<String> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text
        .lines()
        .take_while(|line| !line.ends_with("mod tests {"))
        .map(|line| line.split("//").next().unwrap_or_default());
    Source {
        file: path.strip_prefix(root).unwrap().display().to_string(),
        module,
        text: code.collect::<Vec<_>>().join("\n"),
    }
}

impl Source {
    /// The text without comments and tests.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the file names something of this crate.
    pub fn names_crate(&self, name: &str) -> bool {
        self.text.match_indices(&format!("{name}::")).any(|(at, _)| self.starts_a_path(at))
    }

    fn starts_a_path(&self, at: usize) -> bool {
        let before = self.text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$'))
    }

    /// Paths of the crate that the file names, from the crate's root.
    pub fn imports(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for (at, keyword) in ["crate::", "super::"].iter().flat_map(|word| self.text.match_indices(word)) {
            if !self.starts_a_path(at) {
                continue;
            }
            let mut path = &self.text[at + keyword.len()..];
            let start = if keyword == "crate::" {
                Vec::new()
            } else {
                let mut up = 1;
                while let Some(rest) = path.strip_prefix("super::") {
                    (up, path) = (up + 1, rest);
                }
                self.module[..self.module.len().saturating_sub(up)].to_vec()
            };
            expand(&start, path, &mut found);
        }
        found
    }
}

/// Adds the paths that a path or a tree of them, as in `a::{b, c::d}`, names below `start`.
fn expand(start: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let mut path = start.to_vec();
    let mut rest = tree.trim_start();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            for branch in branches(inner) {
                expand(&path, branch, found);
            }
            return;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end > 0 {
            path.push(rest[..end].to_owned());
        }
        match rest[end..].strip_prefix("::") {
            Some(next) => rest = next,
            None => return found.push(path),
        }
    }
}

/// The branches of a tree, up to the bracket that closes it.
fn branches(inner: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' => {
                found.push(&inner[start..at]);
                break;
            }
            ',' if depth == 0 => {
                found.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|branch| !branch.trim().is_empty());
    found
}

#[test]
fn trees_of_imports_are_expanded() {
    let text = "use crate::{a::{self, B}, c};\nuse super::super::d::E;\nlet x = crate::f::g();\nuse super::H;\n";
    let source = Source { file: String::new(), module: vec!["m".into(), "n".into(), "o".into()], text: text.into() };
    let paths: Vec<String> = source.imports().iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["a::self", "a::B", "c", "f::g", "m::d::E", "m::n::H"]);
}
