//! The pages as a book: every link and every anchor is there, and the table of contents lists every page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONTENTS: &str = "docs/SUMMARY.md";

/// Pages outside `docs/`.
const OTHERS: [&str; 9] = [
    "README.md",
    "README.zh-CN.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "benches/README.md",
    "certs/README.md",
    "charts/outrider/README.md",
    "crates/admission/README.md",
];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages in `docs/`, the table of contents included, from the root of the repository.
pub(crate) fn pages() -> Vec<String> {
    let folders = ["docs", "docs/plugins"];
    let entries = folders.into_iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut pages: Vec<String> =
        pages.map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()).collect();
    pages.sort();
    pages
}

/// The lines of a page that are no code block.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let is_text = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    };
    text.lines().filter(is_text).collect()
}

/// Targets of the links and images of a page; what is in code is no link.
fn links(text: &str) -> Vec<String> {
    let lines = lines(text).join("\n");
    let without_code: String = lines.split('`').step_by(2).collect();
    let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in lines(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let mut numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = if anchors.contains(&anchor) { numbered.find(|it| !anchors.contains(it)) } else { Some(anchor) };
        anchors.extend(free);
    }
    anchors
}

/// The links of a page that lead nowhere.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let leads_somewhere = |link: &String| {
        let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        let Some(anchor) = anchor else { return target.exists() };
        let there = if file.is_empty() { Ok(text.to_owned()) } else { fs::read_to_string(target) };
        there.is_ok_and(|there| anchors(&there).contains(anchor))
    };
    links(text).into_iter().filter(|link| !leads_somewhere(link)).collect()
}

#[test]
fn every_link_leads_to_a_file_and_to_a_heading_in_it() {
    let mut faults = Vec::new();
    for page in pages().into_iter().chain(OTHERS.map(str::to_owned)) {
        let path = root().join(&page);
        let links = broken(&path, &fs::read_to_string(&path).unwrap());
        faults.extend(links.iter().map(|link| format!("{page} links to {link}, which is not there")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_to_a_file_or_a_heading_that_is_not_there_is_found() {
    let text = "# One page\n## 2. `make` it, twice\n## Again\n## Again\n\
                [a](#one-page) [b](#2-make-it-twice) [c](#again-1) [d](book.rs) [e](https://kubernetes.io/none)\n\
                [f](#again-2) [g](none.md) [h](readme.rs#none) ![i](none.svg \"title\") `[code](none.md)`\n\
                ```text\n# In code\n[code](none.md)\n```\n[j](#in-code)\n";
    let page: PathBuf = root().join("tests/docs/page.md");
    assert_eq!(broken(&page, text), ["#again-2", "none.md", "readme.rs#none", "none.svg", "#in-code"]);
}

#[test]
fn the_table_of_contents_lists_every_page_once() {
    let text = fs::read_to_string(root().join(CONTENTS)).unwrap();
    let mut listed: Vec<String> = links(&text).into_iter().map(|link| format!("docs/{link}")).collect();
    listed.sort();
    let pages: Vec<String> = pages().into_iter().filter(|page| page != CONTENTS).collect();
    assert_eq!(listed, pages, "{CONTENTS} lists the left; in docs/ are the right");
}

/// What is outside `docs/` is no part of the book.
#[test]
fn pages_of_the_book_link_to_nothing_outside_it() {
    for page in pages() {
        let links = links(&fs::read_to_string(root().join(&page)).unwrap());
        let folders = page.matches('/').count() - 1;
        let is_outside = |link: &&String| link.split('/').take_while(|step| *step == "..").count() > folders;
        let outside: Vec<&String> = links.iter().filter(is_outside).collect();
        assert!(outside.is_empty(), "{page} links to {outside:?}: name the file in code, without a link");
    }
}

#[test]
fn make_book_says_how_to_install_what_it_needs() {
    let mut make = Command::new("make");
    // A path on which no program is.
    make.args(["--no-print-directory", "book", "SHELL=/bin/bash", "PATH=/nonexistent"]).current_dir(root());
    let output = make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{stderr}");
    assert!(stderr.starts_with("mdbook is not installed: cargo install mdbook --locked\n"), "{stderr}");
}
