//! Findings as other programs read them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Diagnostic, Level};

/// What came of everything, in numbers: `12 injected, 3 unchanged, 1 refused`.
#[derive(Debug, Clone, Default)]
pub struct Summary(pub Vec<(&'static str, usize)>);

impl Summary {
    /// In words; a number of 0 is left out, unless all are.
    pub fn text(&self) -> String {
        let told: Vec<String> =
            self.0.iter().filter(|(_, count)| *count > 0).map(|(word, count)| counted(*count, word)).collect();
        match (told.is_empty(), self.0.first()) {
            (true, Some((word, _))) => format!("0 {word}"),
            _ => told.join(", "),
        }
    }
}

/// `1 error`, `2 errors`: the words are plural where there is a singular.
fn counted(count: usize, words: &str) -> String {
    let (noun, rest) = words.split_once(' ').map_or((words, String::new()), |(noun, rest)| (noun, format!(" {rest}")));
    let noun = if count == 1 { noun.strip_suffix('s').unwrap_or(noun) } else { noun };
    format!("{count} {noun}{rest}")
}

/// `objectsChecked`: the words as a key of JSON.
fn key(words: &str) -> String {
    let mut words = words.split(' ');
    let mut key = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        key.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        key.push_str(letters.as_str());
    }
    key
}

/// One JSON object with every finding and the numbers.
pub fn json(findings: &[Diagnostic], summary: &Summary) -> String {
    let findings: Vec<Value> = findings.iter().map(finding).collect();
    let summary: serde_json::Map<String, Value> =
        summary.0.iter().map(|(words, count)| (key(words), (*count).into())).collect();
    format!("{:#}\n", json!({"findings": findings, "summary": summary}))
}

fn finding(finding: &Diagnostic) -> Value {
    let mut object = json!({"severity": finding.severity.word(), "message": finding.text});
    if let Some((file, line)) = &finding.place {
        object["file"] = file.as_str().into();
        object["line"] = (*line).into();
    }
    object
}

/// A log in SARIF 2.1.0, as code scanning takes it. `command` is the rule that each finding is of.
pub fn sarif(findings: &[Diagnostic], command: &str) -> String {
    let result = |finding: &Diagnostic| {
        let level = match finding.severity {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Refused | Level::Error => "error",
        };
        let mut result = json!({"ruleId": command, "level": level, "message": {"text": finding.text}});
        if let Some((file, line)) = &finding.place {
            result["locations"] = json!([{"physicalLocation": {
                "artifactLocation": {"uri": uri(file)}, "region": {"startLine": line},
            }}]);
        }
        result
    };
    let driver = json!({
        "name": "outrider",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": [{"id": command, "shortDescription": {"text": format!("outrider {command}")}}],
    });
    let run = json!({"tool": {"driver": driver}, "results": findings.iter().map(result).collect::<Vec<_>>()});
    let schema = "https://json.schemastore.org/sarif-2.1.0.json";
    format!("{:#}\n", json!({"$schema": schema, "version": "2.1.0", "runs": [run]}))
}

/// A path as a relative URI: what means something else there is escaped.
fn uri(file: &str) -> String {
    let mut uri = String::new();
    for byte in file.strip_prefix("./").unwrap_or(file).bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// A case of a test, and why it failed.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file of the test.
    pub file: String,
    /// `file:line` of the document that the case is in.
    pub source: String,
    /// Its name.
    pub name: String,
    /// What was not as expected; empty for a case that passed.
    pub failures: Vec<CaseFailure>,
}

/// Why a case failed.
#[derive(Debug, Clone)]
pub struct CaseFailure {
    /// The expectation, by its steps in the file.
    pub at: Vec<String>,
    /// What was found in its place.
    pub text: String,
}

/// Cases as `JUnit` XML, a suite for each file.
pub fn junit(cases: &[Case]) -> String {
    let failed = |cases: &[Case]| cases.iter().filter(|case| !case.failures.is_empty()).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "<testsuites tests=\"{}\" failures=\"{}\">", cases.len(), failed(cases));
    for suite in cases.chunk_by(|one, other| one.file == other.file) {
        let name = escaped(suite.first().map(|case| case.file.as_str()).unwrap_or_default());
        let _ = writeln!(xml, "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\">", suite.len(), failed(suite));
        for case in suite {
            let _ = write!(xml, "    <testcase classname=\"{name}\" name=\"{}\"", escaped(&case.name));
            if case.failures.is_empty() {
                xml.push_str("/>\n");
                continue;
            }
            xml.push_str(">\n");
            for failure in &case.failures {
                let _ = writeln!(xml, "      <failure message=\"{}\"/>", escaped(&failure.text));
            }
            xml.push_str("    </testcase>\n");
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// Text as the value of an attribute. XML 1.0 has no form for control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
