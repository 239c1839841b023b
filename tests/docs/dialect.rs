//! Pages, comments and messages use the words of Kubernetes' documentation, which calls, checks, reports, fixes and releases.

use std::fs;
use std::path::PathBuf;

use crate::book::{lines, pages, root};
use crate::list_sources;

/// Phrases of a private dialect, in pages, in comments and in messages.
const DIALECT: [&str; 16] = [
    "asked about",
    "sees to",
    "seen to",
    "see to",
    "mends",
    "let go of",
    "lets go of",
    "by one look",
    "whoever",
    "nobody",
    "asked to be left alone",
    "passes for a container",
    "taken as no match",
    "which no webhook does as well",
    "only says yes",
    "object of ours",
];

/// Further ones in comments and messages; a page may tell its readers something.
const OF_THE_CODE: [&str; 8] =
    ["tells", "told", "looks at", "look at", "looked at", "stands in", "stand in", "somebody else"];

/// Further ones in messages and pages, which users read.
const OF_USERS: [&str; 5] = ["asks about", "looked into", "stands", "somebody", "anybody"];

/// Words for what has a usual name, as parts of identifiers: a snapshot, a builder, a handler, connections, a grace period.
const OF_IDENTIFIERS: [&str; 17] = [
    "census",
    "contact",
    "crowd",
    "feed",
    "feeder",
    "feeds",
    "guarded",
    "intake",
    "leftovers",
    "ledger",
    "lives",
    "patience",
    "slim",
    "standing",
    "trouble",
    "troubles",
    "world",
];

/// The words of the identifiers of a source file: `SlimPod` and `slim_pod` have the same.
fn words_of_identifiers(source: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for char in code(source).chars() {
        let begins = !char.is_alphanumeric() || (char.is_uppercase() && !before.is_uppercase());
        if begins {
            words.push(String::new());
        }
        if char.is_alphanumeric() {
            words.last_mut().unwrap().extend(char.to_lowercase());
        }
        before = char;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The phrases that a text has, as whole words.
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

/// The string literals of a source file, without those of its tests.
fn literals(source: &str) -> String {
    // A line of a literal may go on in the next.
    literals_and_code(source).0.replace("\\\n", " ").replace("\\n", " ")
}

/// A source file without literals, comments and tests.
fn code(source: &str) -> String {
    literals_and_code(source).1
}

fn literals_and_code(source: &str) -> (String, String) {
    let (mut found, mut code) = (String::new(), String::new());
    let mut rest = source.split("\nmod tests {").next().unwrap_or_default();
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let before = &rest[..at];
        let here = &rest[at..];
        let (skipped, literal) = if here.starts_with("//") {
            (here.find('\n').unwrap_or(here.len()), None)
        } else if let Some(text) = here.strip_prefix('"') {
            let hashes = before.len() - before.trim_end_matches('#').len();
            let is_raw = before.trim_end_matches('#').ends_with('r');
            let end = format!("\"{}", "#".repeat(hashes));
            let length = if is_raw { text.find(&end) } else { end_of_text(text) };
            let length = length.unwrap_or(text.len());
            ((length + 2).min(here.len()), Some(&text[..length]))
        } else if let Some(text) = here.strip_prefix('\'') {
            // A character; otherwise a lifetime.
            let escaped = text.starts_with('\\');
            let body = text.chars().nth(usize::from(escaped)).map_or(0, char::len_utf8);
            let end = usize::from(escaped) + body;
            (if escaped || text[end..].starts_with('\'') { end + 2 } else { 1 }, None)
        } else {
            (1, None)
        };
        found.extend(literal.into_iter().flat_map(|literal| [literal, "\n"]));
        code.extend([before, " "]);
        rest = here.get(skipped..).unwrap_or_default();
    }
    code.push_str(rest);
    (found, code)
}

fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// Every Rust file below these folders, and its path from the root.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        list_sources(&root().join(folder), &mut files);
    }
    let rust = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let named = |path: &PathBuf| {
        (path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
    };
    rust.map(named).collect()
}

fn is_of_tests(file: &str) -> bool {
    file.split(['/', '.']).any(|part| part == "tests" || part == "testing" || part.ends_with("_tests"))
}

fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "write these in the usual words:\n{}", found.join("\n"));
}

#[test]
fn pages_use_the_words_of_kubernetes_documentation() {
    let mut found = Vec::new();
    let more = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(str::to_owned);
    for page in pages().into_iter().chain(more).chain(texts(&["charts/outrider"])) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let phrases = phrases(&lines(&text).join(" "), DIALECT.into_iter().chain(OF_USERS));
        found.extend(phrases.iter().map(|phrase| format!("{page}: {phrase:?}")));
    }
    assert_none(&found);
}

/// Files that are no code, by their names below these folders.
fn texts(folders: &[&str]) -> Vec<String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        list_sources(&root().join(folder), &mut files);
    }
    files.sort();
    files.iter().map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()).collect()
}

/// What `make help` prints, packaging with its workflows and the image, presets and values, and the help of every command, which
/// docs/cli.md is.
#[test]
fn help_packaging_and_the_chart_use_the_words_of_kubernetes_documentation() {
    let mut found = Vec::new();
    let more = ["Makefile", "Dockerfile", "book.toml", "docs/cli.md"].map(str::to_owned);
    for file in texts(&["packaging", ".github", "charts/outrider", "config"]).into_iter().chain(more) {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let phrases = phrases(&text, DIALECT.into_iter().chain(OF_THE_CODE).chain(OF_USERS));
        found.extend(phrases.iter().map(|phrase| format!("{file}: {phrase:?}")));
    }
    assert_none(&found);
}

#[test]
fn comments_use_the_words_of_kubernetes_documentation() {
    let mut found = Vec::new();
    for (file, source) in sources(&["src", "crates", "benches", "tests"]) {
        let phrases = phrases(&comments(&source), DIALECT.into_iter().chain(OF_THE_CODE));
        found.extend(phrases.iter().map(|phrase| format!("{file}: {phrase:?}")));
    }
    assert_none(&found);
}

/// Help, messages, log lines, conditions, events and the texts of definitions are literals, or comments of arguments.
#[test]
fn messages_use_the_words_of_kubernetes_documentation() {
    let all = || DIALECT.into_iter().chain(OF_THE_CODE).chain(OF_USERS);
    let mut found = Vec::new();
    for (file, source) in sources(&["src", "crates"]).iter().filter(|(file, _)| !is_of_tests(file)) {
        let phrases = phrases(&literals(source), all());
        found.extend(phrases.iter().map(|phrase| format!("{file}: {phrase:?}")));
    }
    let templates = fs::read_dir(root().join("charts/outrider/templates")).unwrap();
    for path in templates.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let phrases = phrases(&fs::read_to_string(&path).unwrap(), all());
        found.extend(phrases.iter().map(|phrase| format!("{}: {phrase:?}", path.display())));
    }
    assert_none(&found);
}

#[test]
fn identifiers_are_the_usual_words() {
    let mut found = Vec::new();
    for (file, source) in sources(&["src", "crates"]).iter().filter(|(file, _)| !is_of_tests(file)) {
        let words = words_of_identifiers(source);
        let old = OF_IDENTIFIERS.iter().filter(|old| words.iter().any(|word| word == *old));
        found.extend(old.map(|word| format!("{file}: {word:?}")));
    }
    assert_none(&found);
}

#[test]
fn words_of_identifiers_are_found_in_code_alone() {
    let source = "let slim_pod: SlimPod<'a> = f(\"world\", 'x'); ## feed\n".replace("##", "//");
    assert_eq!(words_of_identifiers(&source), ["let", "slim", "pod", "slim", "pod", "a", "f"]);
    assert_eq!(words_of_identifiers("CRDWorld x.WORLDS"), ["crdworld", "x", "worlds"]);
}

#[test]
fn a_phrase_is_found_in_comments_as_a_whole() {
    let source =
        "##! It is Told.\nlet untold = 1; ## Nobody-else, nobody\nlet told = \"looks at\";\n".replace("##", "//");
    assert_eq!(phrases(&comments(&source), ["told", "nobody", "looks at"]), ["told", "nobody"]);
}

#[test]
fn a_phrase_is_found_in_literals_of_any_form() {
    let of = |source: &str| phrases(&literals(source), ["told", "nobody", "let go of"]);
    for found in [
        "let a = \"is told\";",
        "let a = 'x'; b::<'a>(\"told\");",
        "let a = r#\"a \"quoted\" one is told\"#;",
        "let a = ['\"', '\\'', '\\\\']; let b = \"told\";",
        "let a = \"\\\"\"; let b = \"told\";",
    ] {
        assert_eq!(of(found), ["told"], "{found}");
    }
    assert_eq!(of("let a = \"it is let \\\n    go of\";"), ["let go of"]);
    for clean in [
        "let told = nobody('t');",
        "let a = \"untold\"; ## nobody\n".replace("##", "//").as_str(),
        "let a = \"x\";\n#[cfg(test)]\nmod tests {\n let b = \"told\"; }",
    ] {
        assert_eq!(of(clean), Vec::<&str>::new(), "{clean}");
    }
}
