//! Findings, and how they are printed.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde::Serialize;

use crate::doctor::facts::NotChecked;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It locks the cluster, or will as soon as a webhook does not answer.
    Critical,
    /// It costs requests, or makes a lock likelier.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Critical => "CRITICAL",
            Self::Warning => "WARNING",
        })
    }
}

/// What was looked for. The order is that of findings of one severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A webhook without a replica that answers.
    NobodyAnswers,
    /// A webhook whose certificate the API server does not trust.
    NotTrusted,
    /// A webhook that refuses, when it does not answer, what a cluster needs to come back.
    HoldsTheCluster,
    /// Our webhooks were turned to Ignore.
    BreakGlass,
    /// A certificate that ends soon.
    CertificateEnds,
    /// Rules without limits.
    MatchesEverything,
    /// A wait that is too long.
    LongTimeout,
    /// A configuration or a definition of ours that is not there.
    Missing,
    /// Definitions or replicas of different versions.
    VersionSkew,
    /// Something that the process may not do.
    MissingRight,
    /// A service account whose changes no policy limits.
    AccountNotLimited,
    /// A namespace that is excluded by a label which says no.
    ExcludedByNo,
    /// An admission plugin, a ClusterLimitRange or a PodSecurityProfile that cannot be used, is not called, or contradicts another.
    AdmissionPlugin,
    /// An annotation of a namespace that admission plugins cannot read.
    UnreadableAnnotation,
    /// Pods of which the leader does not keep everything that it would count by.
    PodClipped,
}

/// One problem to solve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked for.
    pub check: Check,
    /// Where, as kubectl takes it.
    pub object: String,
    /// Which webhook of a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// What was found.
    pub found: String,
    /// What to do.
    pub remedy: String,
}

impl Finding {
    /// Worst first.
    pub fn rank(&self) -> impl Ord + '_ {
        (self.severity, self.check, &self.object, &self.webhook)
    }
}

/// A certificate, and when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Age {
    /// The object that holds the certificate.
    pub of: String,
    /// When it ends.
    #[serde(serialize_with = "as_text")]
    pub not_after: Timestamp,
    /// Whole days until then; negative when it has ended.
    pub days_left: i64,
}

fn as_text<S: serde::Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(moment)
}

/// Everything that is reported about a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Certificates of ours, the first to end first.
    pub certificates: Vec<Age>,
    /// How many configurations were checked.
    pub configurations: usize,
    /// How many webhooks they hold.
    pub webhooks: usize,
    /// How many definitions have a converter.
    pub converters: usize,
    /// Whether anything of Outrider is in the cluster, or may be.
    pub outrider: bool,
    /// Whether it was removed: only definitions, and the sets that they hold, are left.
    pub uninstalled: bool,
    /// What could not be read.
    pub not_checked: Vec<NotChecked>,
}

/// How the examination ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterHealth {
    /// Nothing found.
    Healthy,
    /// Findings, none of them critical.
    Findings,
    /// Something that is needed could not be read, and nothing critical was found in the rest.
    CannotTell,
    /// A critical finding.
    Critical,
}

impl Report {
    /// How the examination ended.
    pub fn verdict(&self) -> ClusterHealth {
        if self.findings.iter().any(|finding| finding.severity == Severity::Critical) {
            ClusterHealth::Critical
        } else if self.not_checked.iter().any(|missing| missing.essential) {
            ClusterHealth::CannotTell
        } else if self.findings.is_empty() {
            ClusterHealth::Healthy
        } else {
            ClusterHealth::Findings
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for block in self.blocks() {
            for (place, finding) in block.iter().enumerate() {
                let webhook = finding.webhook.as_ref().map(|name| format!(", webhook {name}")).unwrap_or_default();
                let severity = if place == 0 { finding.severity.to_string() } else { String::new() };
                writeln!(out, "{severity:8}  {}{webhook}", finding.object)?;
            }
            let Some(first) = block.first() else { continue };
            writeln!(out, "          {}", first.found)?;
            writeln!(out, "          -> {}\n", first.remedy)?;
        }
        for age in &self.certificates {
            writeln!(out, "certificate  {}: {}", age.of, age.words())?;
        }
        for missing in &self.not_checked {
            writeln!(out, "not checked  {}: {}", missing.what, missing.why)?;
        }
        if !self.certificates.is_empty() || !self.not_checked.is_empty() {
            writeln!(out)?;
        }
        writeln!(out, "{}", self.summary())
    }

    /// Findings that say the same of several objects, together, where the first of them is.
    fn blocks(&self) -> Vec<Vec<&Finding>> {
        let mut blocks: Vec<Vec<&Finding>> = Vec::new();
        let mut places = HashMap::new();
        for finding in &self.findings {
            let key = (finding.severity, finding.check, &finding.found, &finding.remedy);
            let place = *places.entry(key).or_insert(blocks.len());
            match blocks.get_mut(place) {
                Some(block) => block.push(finding),
                None => blocks.push(vec![finding]),
            }
        }
        blocks
    }

    fn summary(&self) -> String {
        let count = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let looked = format!(
            "checked {} in {}",
            counted(self.webhooks, "webhook"),
            counted(self.configurations, "webhook configuration")
        );
        let mut found = match (count(Severity::Critical), count(Severity::Warning)) {
            (0, 0) => "Nothing found".to_owned(),
            (critical, warnings) => format!("{critical} critical, {}", counted(warnings, "warning")),
        };
        if self.not_checked.iter().any(|missing| missing.essential) {
            found.push_str(", but not everything could be read");
        }
        let outrider = match (self.outrider, self.uninstalled) {
            (_, true) => " Outrider is uninstalled; its definitions and sets remain.",
            (true, false) => "",
            (false, false) => " Outrider is not in this cluster.",
        };
        format!("{found}; {looked}.{outrider}")
    }
}

impl Age {
    fn words(&self) -> String {
        match self.days_left {
            left if left < 0 => format!("ended at {}", self.not_after),
            left => format!("ends at {}, in {}", self.not_after, counted(left.unsigned_abs(), "day")),
        }
    }
}

/// A number and its noun.
pub fn counted<N: fmt::Display + Copy + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let mut text = format!("{number} {noun}");
    if number != N::from(1) {
        let _ = write!(text, "s");
    }
    text
}
