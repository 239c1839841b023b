//! How commands about manifests report what they found.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use clap::{Args, ValueEnum};

use super::findings::{Diagnostic, FILE_MAX_BYTES, Level, Places, Summary, json, sarif};
use super::streams::CommandOutcome;
use crate::input::STDIN;
use crate::standalone::Unusable;

/// How findings are reported.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Print errors and refusals only: no warnings, no notes, no summary
    #[arg(short, long)]
    pub quiet: bool,
}

/// What is wrong with manifests, with the line of each field, for those who print no report.
pub fn located(unusable: &Unusable) -> Vec<Diagnostic> {
    let args = ReportArgs { quiet: false };
    let mut report = CommandReport::new(&args);
    report.unusable(unusable);
    report.findings()
}

/// What findings are printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// A line for each on stderr: `FILE:LINE: severity: text`
    Text,
    /// One object with all of them and the numbers
    Json,
    /// A SARIF 2.1.0 log, for code scanning
    Sarif,
}

/// Findings of one severity that are listed: more would not be read, and a file may have hundreds of thousands of faults.
const LISTED: usize = 1000;

/// What is read, with a copy of its text as far as that is read for lines.
struct Copied<'r> {
    from: &'r mut dyn Read,
    text: Vec<u8>,
}

impl Read for Copied<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        // One byte more than the limit, so that it is known to be beyond it.
        let room = (FILE_MAX_BYTES + 1).saturating_sub(self.text.len());
        self.text.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
        Ok(count)
    }
}

/// Findings of a command, and how they are printed.
pub struct CommandReport<'a> {
    args: &'a ReportArgs,
    places: Places,
    all: Vec<Diagnostic>,
    counts: BTreeMap<Level, usize>,
}

impl<'a> CommandReport<'a> {
    /// Without findings.
    pub fn new(args: &'a ReportArgs) -> Self {
        Self { args, places: Places::default(), all: Vec::new(), counts: BTreeMap::new() }
    }

    /// Takes a text that was read already, for the lines in it.
    pub fn know(&mut self, file: &str, text: &str) {
        self.places.know(file, text);
    }

    /// Reads standard input, and takes its text for the lines in it.
    pub fn reading<T>(&mut self, stdin: &mut dyn Read, read: impl FnOnce(&mut dyn Read) -> T) -> T {
        let mut copied = Copied { from: stdin, text: Vec::new() };
        let result = read(&mut copied);
        if let Ok(text) = std::str::from_utf8(&copied.text)
            && !text.is_empty()
        {
            self.know(STDIN, text);
        }
        result
    }

    /// Takes a finding, with the line of its field.
    pub fn add(&mut self, finding: Diagnostic) {
        self.add_below(finding, &[]);
    }

    /// Takes a finding about an object that is in another one, at the end of these steps.
    pub fn add_below(&mut self, mut finding: Diagnostic, steps: &[&str]) {
        if self.is_listed(finding.severity) {
            self.places.locate(&mut finding, steps);
            self.all.push(finding);
        }
    }

    /// Takes a finding about the field at the end of these steps.
    pub fn add_at(&mut self, mut finding: Diagnostic, steps: &[&str]) {
        if self.is_listed(finding.severity) {
            self.places.put(&mut finding, steps);
            self.all.push(finding);
        }
    }

    /// How many findings are listed so far.
    pub const fn listed(&self) -> usize {
        self.all.len()
    }

    /// Brings the findings behind the first `count` of them, which are about one file, into the order of its lines.
    pub fn sort_by_line(&mut self, count: usize) {
        let line = |finding: &Diagnostic| finding.place.as_ref().map(|(_, line)| *line);
        self.all.get_mut(count..).unwrap_or_default().sort_by_key(line);
    }

    /// Counts a finding; whether it is listed.
    fn is_listed(&mut self, severity: Level) -> bool {
        let count = self.counts.entry(severity).or_default();
        *count += 1;
        *count <= LISTED
    }

    /// Takes a message of the given severity, which may hold several findings.
    pub fn read(&mut self, severity: Level, message: &str) {
        for finding in Diagnostic::read(severity, message) {
            self.add(finding);
        }
    }

    /// Takes what is wrong with manifests.
    pub fn unusable(&mut self, unusable: &Unusable) {
        for warning in &unusable.warnings {
            self.read(Level::Warning, warning);
        }
        self.errors(&unusable.errors);
    }

    /// Takes errors.
    pub fn errors(&mut self, errors: &[impl ToString]) {
        for error in errors {
            self.read(Level::Error, &error.to_string());
        }
    }

    /// Every finding so far that is listed, and how many of each severity are not.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let left_out = |(severity, count): (&Level, &usize)| {
            let more = count.checked_sub(LISTED).filter(|more| *more > 0)?;
            Some(Diagnostic::bare(*severity, format!("and {more} more, which are not listed")))
        };
        self.all.iter().cloned().chain(self.counts.iter().filter_map(left_out)).collect()
    }

    /// How many findings are of this severity.
    pub fn count(&self, severity: Level) -> usize {
        self.counts.get(&severity).copied().unwrap_or_default()
    }

    /// How a command ends with these findings.
    pub fn outcome(&self, warnings_as_errors: bool) -> CommandOutcome {
        match self.all.iter().map(|finding| finding.severity).max() {
            Some(Level::Error | Level::Refused) => CommandOutcome::Refused,
            Some(Level::Warning) if warnings_as_errors => CommandOutcome::Refused,
            _ => CommandOutcome::Fine,
        }
    }

    /// Prints everything: as text to stderr, in another format to stdout.
    ///
    /// # Errors
    /// When a stream cannot be written.
    pub fn print(
        &self,
        format: FindingsFormat,
        command: &str,
        summary: &Summary,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> io::Result<()> {
        match format {
            FindingsFormat::Json => stdout.write_all(json(&self.findings(), summary).as_bytes()),
            FindingsFormat::Sarif => stdout.write_all(sarif(&self.findings(), command).as_bytes()),
            FindingsFormat::Text => {
                self.print_text(stderr)?;
                self.sum_up(summary, stderr)
            }
        }
    }

    /// Prints every finding as text.
    ///
    /// # Errors
    /// When `stderr` cannot be written.
    pub fn print_text(&self, stderr: &mut dyn Write) -> io::Result<()> {
        let is_told = |finding: &&Diagnostic| !self.args.quiet || finding.severity >= Level::Refused;
        self.findings().iter().filter(is_told).try_for_each(|finding| writeln!(stderr, "{finding}"))
    }

    /// Prints the numbers.
    ///
    /// # Errors
    /// When `stderr` cannot be written.
    pub fn sum_up(&self, summary: &Summary, stderr: &mut dyn Write) -> io::Result<()> {
        if self.args.quiet { Ok(()) } else { writeln!(stderr, "{}", summary.text()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_findings_some_are_listed_and_all_are_counted() {
        let args = ReportArgs { quiet: false };
        let mut report = CommandReport::new(&args);
        for _ in 0..LISTED + 7 {
            report.add(Diagnostic::bare(Level::Error, "x"));
        }
        report.add(Diagnostic::bare(Level::Warning, "y"));
        assert_eq!((report.count(Level::Error), report.count(Level::Warning)), (LISTED + 7, 1));
        let mut text = Vec::new();
        report.print_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), LISTED + 2);
        assert!(text.ends_with("warning: y\nerror: and 7 more, which are not listed\n"), "{text}");
        assert_eq!(report.outcome(false), CommandOutcome::Refused);
    }
}
