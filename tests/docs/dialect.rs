//! Pages and comments use the words of Kubernetes' documentation, which calls, checks, reports, fixes and releases.

use std::fs;

use crate::book::{lines, pages, root};
use crate::list_sources;

/// Phrases of a private dialect, in pages and in comments.
const DIALECT: [&str; 9] =
    ["asked about", "sees to", "seen to", "mends", "let go of", "lets go of", "by one look", "whoever", "nobody"];

/// Further ones in comments; a page may tell its readers something.
const OF_COMMENTS: [&str; 9] =
    ["tells", "told", "looks at", "look at", "looked at", "stands in", "stand in", "see to it", "somebody else"];

/// Pages that are generated from the texts of the code.
const GENERATED: [&str; 3] = ["docs/cli.md", "docs/configuration.md", "docs/reasons.md"];

/// The help of the command line is recorded, and a change of it is a change for users.
const HELP: [(&str, &str); 4] = [
    ("src/cli/doctor.rs", "looked at"),
    ("src/cli/mod.rs", "nobody"),
    ("src/cli/serve/args.rs", "tells"),
    ("src/cli/uninstall.rs", "let go of"),
];

/// The phrases that a text holds, as whole words.
fn phrases<'p>(text: &str, phrases: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
    let words: Vec<&str> =
        text.split(|char: char| !char.is_alphanumeric() && char != '-').filter(|it| !it.is_empty()).collect();
    let text = format!(" {} ", words.join(" ").to_lowercase());
    phrases.into_iter().filter(|phrase| text.contains(&format!(" {phrase} "))).collect()
}

/// The comments of a source file, without the code beside them.
fn comments(source: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        let behind_code = || line.split_once(" // ").map(|(_, comment)| comment.to_owned());
        line.strip_prefix("//").map(|comment| comment.trim_start_matches(['/', '!']).to_owned()).or_else(behind_code)
    };
    source.lines().filter_map(comment).collect::<Vec<_>>().join("\n")
}

#[test]
fn pages_use_the_words_of_kubernetes_documentation() {
    let by_hand = pages().into_iter().filter(|page| !GENERATED.contains(&page.as_str()));
    let mut found = Vec::new();
    for page in by_hand.chain(["README.md", "CONTRIBUTING.md", "charts/outrider/README.md"].map(str::to_owned)) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let phrases = phrases(&lines(&text).join(" "), DIALECT);
        found.extend(phrases.iter().map(|phrase| format!("{page}: {phrase:?}")));
    }
    assert!(found.is_empty(), "write these in the usual words:\n{}", found.join("\n"));
}

#[test]
fn comments_use_the_words_of_kubernetes_documentation() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "benches", "tests"] {
        list_sources(&root().join(folder), &mut files);
    }
    let mut found = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let comments = comments(&fs::read_to_string(path).unwrap());
        for phrase in phrases(&comments, DIALECT.into_iter().chain(OF_COMMENTS)) {
            if !HELP.contains(&(file, phrase)) {
                found.push(format!("{file}: {phrase:?}"));
            }
        }
    }
    assert!(found.is_empty(), "write these in the usual words:\n{}", found.join("\n"));
}

#[test]
fn a_phrase_is_found_in_comments_as_a_whole() {
    let source =
        "##! It is Told.\nlet untold = 1; ## Nobody-else, nobody\nlet told = \"looks at\";\n".replace("##", "//");
    assert_eq!(phrases(&comments(&source), ["told", "nobody", "looks at"]), ["told", "nobody"]);
}
