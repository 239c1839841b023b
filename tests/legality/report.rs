//! What came of all questions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::judge::Outcome;
use crate::versions::{FIELDS, Newer, VALUES, missing};

/// Why we may refuse what the API server takes, and when: our words, and the pod that it takes.
pub type Policy = (&'static str, fn(&str, &Value) -> bool);

/// What came of all questions.
pub struct Report {
    /// Of the API server.
    minor: u32,
    policies: &'static [Policy],
    counts: BTreeMap<String, usize>,
    agreed: Vec<String>,
    broken: String,
    over_refused: String,
}

impl Report {
    pub fn new(minor: u32, policies: &'static [Policy]) -> Self {
        let (counts, agreed) = (BTreeMap::new(), Vec::new());
        Self { minor, policies, counts, agreed, broken: String::new(), over_refused: String::new() }
    }

    pub fn take(&mut self, question: &str, outcome: Outcome) {
        let what = match outcome {
            Outcome::PodIllegal => "pod illegal by itself".to_owned(),
            Outcome::Untouched(reason) => format!("not touched: {reason}"),
            Outcome::Injected(false, _) => "injected, and legal".to_owned(),
            Outcome::Injected(true, pod) => {
                list(&mut self.over_refused, question, "warned of, and legal", &pod);
                "WARNED OF, AND LEGAL".to_owned()
            }
            Outcome::Refused(ours) => {
                let reason = ours.split(':').next().unwrap().to_owned();
                self.agreed.push(ours);
                format!("refused by both: {reason}")
            }
            Outcome::Broken(theirs, warned, pod) => {
                if let Some(Newer { since, words }) = missing(VALUES, self.minor, &theirs).filter(|_| warned) {
                    format!("injected, warned of, and illegal before 1.{since}: {words}")
                } else {
                    list(&mut self.broken, question, &theirs, &pod);
                    "INJECTED, AND ILLEGAL".to_owned()
                }
            }
            Outcome::OverRefusal(ours, pod) => {
                if let Some((why, _)) = self.policies.iter().find(|(_, covers)| covers(&ours, &pod)) {
                    format!("refused by us alone: {why}")
                } else if let Some(Newer { since, words }) = missing(FIELDS, self.minor, &ours) {
                    format!("refused by us alone, as the field is dropped before 1.{since}: {words}")
                } else {
                    list(&mut self.over_refused, question, &ours, &pod);
                    "REFUSED BY US ALONE".to_owned()
                }
            }
        };
        *self.counts.entry(what).or_default() += 1;
    }

    /// How often something came out, by the words of the printed list.
    pub fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Prints what came out how often.
    ///
    /// # Panics
    /// With a list of the disagreements, if there are any.
    pub fn demand_agreement(&self) {
        for (what, count) in &self.counts {
            println!("{count:5} {what}");
        }
        assert!(
            self.broken.is_empty() && self.over_refused.is_empty(),
            "we inject, and the API server refuses:\n{}we refuse, and the API server does not:\n{}",
            self.broken,
            self.over_refused
        );
    }

    /// Those of the words that no refusal which both agree on has said, although the API server knows what they are about.
    pub fn unheard(&self, words: &[&'static str]) -> Vec<&'static str> {
        let is_known = |words: &&&str| missing(FIELDS, self.minor, words).is_none();
        let is_unheard = |words: &&&str| !self.agreed.iter().any(|said| said.contains(**words));
        words.iter().filter(is_known).filter(is_unheard).copied().collect()
    }
}

fn list(list: &mut String, question: &str, words: &str, pod: &Value) {
    const LONGEST: usize = 4000;
    let pod = Some(pod.to_string()).filter(|pod| pod.len() < LONGEST).unwrap_or_else(|| "(a long pod)".to_owned());
    writeln!(list, "- {question}: {words}\n  {pod}").unwrap();
}
