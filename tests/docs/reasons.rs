//! The page of reason codes, and that it says neither too much nor too little.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use engine::reasons;

#[test]
fn list_of_reasons_is_up_to_date() {
    let mut page = String::from(
        "# Reason codes\n\n\
         Every decision has one of these codes: in the audit annotation `reason`, in the metric\n\
         `outrider_reviews_total{path,verdict,reason,dry_run}`, and in the server's log, which names objects that were changed, refused\n\
         or warned of (with `--log-level debug` all of them). A warning about a set that a pod goes without names its code too.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    for (reason, meaning) in reasons::ALL {
        writeln!(page, "| `{reason}` | {meaning} |").unwrap();
    }
    page.push_str(
        "\n## Requests without a verdict\n\n\
         What is no review, or cannot be answered, gets an HTTP status and no review, so that the webhook's `failurePolicy` decides. These\n\
         codes are in the metric, with the verdict `unserved`, and in the log but for `NotFound` and `MethodNotAllowed`, which no API\n\
         server sends.\n\n\
         | code | HTTP status | meaning |\n|---|---|---|\n",
    );
    for (code, status, meaning) in reasons::TRANSPORT {
        writeln!(page, "| `{code}` | {status} | {meaning} |").unwrap();
    }
    super::hold("docs/reasons.md", &page);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the engine, the framework and the process, and its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("src"), root().join("crates"), root().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files
}

fn is_of_tests(path: &Path) -> bool {
    let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    path.split(['/', '.']).any(|part| part == "tests" || part.ends_with("_tests"))
}

/// `NoMatch` as the constant `NO_MATCH`; each word of a code begins with a capital letter.
fn constant(code: &str) -> String {
    let mut name = String::new();
    for (index, letter) in code.replace("OpenKruise", "Openkruise").char_indices() {
        if index > 0 && letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

fn names(text: &str, code: &str) -> bool {
    let name = constant(code);
    let is_word = |at: usize, end: usize| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !text[..at].bytes().next_back().is_some_and(is_part) && !text[end..].bytes().next().is_some_and(is_part)
    };
    text.match_indices(&name).any(|(at, found)| is_word(at, at + found.len()))
}

/// The parts of the code that may only name codes: the list, and what counts.
fn gives(path: &Path) -> bool {
    let path = path.to_string_lossy();
    !is_of_tests(Path::new(path.as_ref()))
        && !path.ends_with("reasons.rs")
        && !path.ends_with("reason.rs")
        && !path.contains("/src/metrics/")
}

/// `tests/offline/fixtures.rs` runs each of them.
#[test]
fn every_listed_code_is_given_by_the_code() {
    let sources = sources();
    for (reason, _) in reasons::ALL {
        let code = reason.as_str();
        assert!(sources.iter().any(|(path, text)| gives(path) && names(text, code)), "nothing gives {code}");
    }
    for (reason, _) in reasons::RESERVED {
        let giver = sources.iter().find(|(path, text)| gives(path) && names(text, reason.as_str()));
        assert!(giver.is_none(), "{reason} is given by {:?}, and not listed", giver.map(|(path, _)| path));
    }
}

#[test]
fn every_code_that_is_given_is_listed() {
    let listed: Vec<&str> = reasons::ALL.iter().chain(reasons::RESERVED).map(|(reason, _)| reason.as_str()).collect();
    for (path, text) in sources().iter().filter(|(path, _)| gives(path)) {
        for (at, found) in text.match_indices("Reason::new(\"") {
            let code = text[at + found.len()..].split('"').next().unwrap();
            let in_tests = text.find("#[cfg(test)]").is_some_and(|tests| tests < at) || text[..at].ends_with("/// ");
            assert!(in_tests || listed.contains(&code), "{code} of {} is not listed", path.display());
        }
    }
}

/// The framework's words and statuses, and those that the server adds; `tests/server/replies.rs` sees each of them counted.
#[test]
fn every_code_without_a_verdict_is_listed_with_its_status_and_counted_in_a_test() {
    let text = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let framework = text("crates/admission/src/unserved.rs");
    let reasons_of_framework = framework.split("pub const fn reason").nth(1).unwrap().to_owned();
    let given = |text: &str, before: &str| -> Vec<String> {
        text.match_indices(before)
            .map(|(at, _)| text[at + before.len()..].split('"').next().unwrap().to_owned())
            .collect()
    };
    let mut all = given(&reasons_of_framework, "=> \"");
    let metrics = text("src/metrics/mod.rs") + &text("src/metrics/path.rs");
    all.extend(given(&metrics, "\"unserved\", \""));
    all.extend(given(&metrics, "verdict: \"unserved\", reason: \""));
    all.sort_unstable();
    // One code has two statuses.
    all.dedup();
    let mut listed: Vec<&str> = reasons::TRANSPORT.iter().map(|(code, ..)| *code).collect();
    listed.sort_unstable();
    assert_eq!(listed, all);
    let replies = text("tests/server/replies.rs");
    let demanded = replies.split("demand_unserved(&[").skip(1).filter_map(|rest| rest.split_once(']'));
    let counted: BTreeSet<&str> =
        demanded.flat_map(|(codes, _)| codes.split(',').map(|code| code.trim().trim_matches('"'))).collect();
    assert_eq!(counted, listed.iter().copied().collect());
    for (code, status, _) in reasons::TRANSPORT {
        let known = [(404, "NotFound"), (405, "MethodNotAllowed")].contains(&(*status, code));
        assert!(known || framework.contains(&format!("=> {status},")), "{code} is no {status}");
    }
}
