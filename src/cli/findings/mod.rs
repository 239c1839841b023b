//! What commands say about manifests: one form for all, in text, JSON, SARIF and `JUnit`.

mod place;
mod print;

pub use place::{FILE_MAX_BYTES, Places};
pub use print::{Case, CaseFailure, Summary, json, junit, sarif};

use std::fmt;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is wrong.
    Note,
    /// Something may be wrong.
    Warning,
    /// A pod or a set would be refused.
    Refused,
    /// Something is wrong.
    Error,
}

impl Level {
    /// The word in a line of text.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Refused => "refused",
            Self::Error => "error",
        }
    }
}

/// Something that a user should know. As text: `FILE:LINE: severity: text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// File, and the line in it, counted from 1.
    pub place: Option<(String, usize)>,
    /// How much it matters.
    pub severity: Level,
    /// Which object, which field, and what to do.
    pub text: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}: {}", self.file_and_line(), self.severity.word(), self.text)
    }
}

impl Diagnostic {
    /// One about the object that `source`, as in `app.yaml:3`, names.
    pub fn of(severity: Level, source: &str, text: impl Into<String>) -> Self {
        let place = source.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
        Self { place, severity, text: text.into() }
    }

    /// `FILE:LINE: text`, for a log, whose lines have a level.
    pub fn without_severity(&self) -> String {
        format!("{}{}", self.file_and_line(), self.text)
    }

    fn file_and_line(&self) -> String {
        self.place.as_ref().map(|(file, line)| format!("{file}:{line}: ")).unwrap_or_default()
    }

    /// One without a place.
    pub fn bare(severity: Level, text: impl Into<String>) -> Self {
        Self { place: None, severity, text: text.into() }
    }

    /// Those of a message that may begin with `file:line: ` and may have a line for each fault, as errors of manifests do.
    pub fn read(severity: Level, message: &str) -> Vec<Self> {
        let (place, text) = match source(message) {
            Some((file, line, text)) => (Some((file.to_owned(), line)), text),
            None => (None, message),
        };
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let faults: Vec<&str> = lines.collect();
        let one = |text: String| Self { place: place.clone(), severity, text };
        if faults.is_empty() || !faults.iter().all(|fault| fault.starts_with("  ")) {
            return vec![one(text.to_owned())];
        }
        faults.iter().map(|fault| one(format!("{head} {}", fault.trim_start()))).collect()
    }
}

/// The `file:line` that a message begins with, and what follows; of a column there is no more use.
fn source(message: &str) -> Option<(&str, usize, &str)> {
    let mut colons = message.match_indices(':').map(|(at, _)| at);
    let file_end = colons.find(|at| {
        let rest = message.get(at + 1..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest.get(digits..).is_some_and(|rest| rest.starts_with(':'))
    })?;
    let (file, rest) = (message.get(..file_end)?, message.get(file_end + 1..)?);
    let (line, rest) = rest.split_once(':')?;
    // Nothing of a sentence: `Namespace "a": x:3: y`.
    if file.is_empty() || file.contains(": ") {
        return None;
    }
    let text = match rest.split_once(':') {
        Some((column, text)) if !column.is_empty() && column.bytes().all(|byte| byte.is_ascii_digit()) => text,
        _ => rest,
    };
    Some((file, line.parse().ok()?, text.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::{Diagnostic, Level};

    #[test]
    fn a_message_gives_its_place_and_a_finding_for_each_fault() {
        let told = |message: &str| -> Vec<String> {
            Diagnostic::read(Level::Error, message).iter().map(ToString::to_string).collect()
        };
        assert_eq!(told("a.yaml:3: x: y"), ["a.yaml:3: error: x: y"]);
        assert_eq!(told("a.yaml:3:7: syntax"), ["a.yaml:3: error: syntax"]);
        assert_eq!(told("C:/a.yaml:3: x"), ["C:/a.yaml:3: error: x"]);
        assert_eq!(told("no such file"), ["error: no such file"]);
        assert_eq!(
            told("a.yaml:3: Set \"a\" is invalid:\n  spec.x: odd\n  spec.y: even"),
            [
                "a.yaml:3: error: Set \"a\" is invalid: spec.x: odd",
                "a.yaml:3: error: Set \"a\" is invalid: spec.y: even"
            ]
        );
    }
}
