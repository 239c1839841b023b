//! Entries of the on-demand configurations: those that exist only while an accepted object needs them.

use std::collections::BTreeSet;

use admission::format::selector::Selector;
use admission::registry::{FailurePolicy, Phase, Rule};

/// An entry that accepted objects need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// When the API server calls.
    pub phase: Phase,
    /// What it calls for. Its path is served, as the registry has the same rule.
    pub rule: Rule,
    /// Name of the entry.
    pub name: String,
    /// What happens to a request when the webhook does not answer.
    pub failure_policy: FailurePolicy,
    /// How long the API server waits, in seconds.
    pub timeout_seconds: u8,
    /// Namespaces that are left alone beside those of the installation.
    pub excluded_namespaces: BTreeSet<String>,
    /// The labels of namespaces that are called for; all where absent. Not for namespaces themselves.
    pub namespaces: Option<Selector>,
    /// Name and CEL expression of each condition beside those of the rule.
    pub match_conditions: Vec<(String, String)>,
}

impl Demand {
    /// The entry as its rule says.
    pub fn of(phase: Phase, rule: Rule) -> Self {
        Self {
            phase,
            name: rule.name.to_owned(),
            failure_policy: rule.failure_policy,
            timeout_seconds: rule.timeout_seconds,
            excluded_namespaces: BTreeSet::new(),
            namespaces: None,
            match_conditions: Vec::new(),
            rule,
        }
    }
}
