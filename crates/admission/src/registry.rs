//! The one list that both the router and the manifests are made from.

use std::collections::HashMap;

use crate::conversion::Conversion;
use crate::endpoint::{
    Defaulting, DefaultingEndpoint, Endpoint, Mutating, MutatingEndpoint, Validating, ValidatingEndpoint,
};

mod rule;
#[cfg(test)]
mod tests;

pub use rule::{FailurePolicy, MatchCondition, MatchPolicy, Namespaces, Resource, Rule, Scope};

/// When the API server calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Before validation; the reply may hold a patch.
    Mutating,
    /// At the end; the reply never holds a patch.
    Validating,
}

/// An endpoint with its rule.
pub struct Entry<W> {
    /// When it is called.
    pub phase: Phase,
    /// What it is called for.
    pub rule: Rule,
    /// Where it is called.
    pub path: String,
    /// What answers.
    pub endpoint: Box<dyn Endpoint<W>>,
}

/// All endpoints of a server.
///
/// ```
/// use admission::registry::{Resource, Rule};
/// use admission::{Operation, Registry, Validating};
///
/// struct AllGoes;
///
/// impl Validating<()> for AllGoes {
///     type Object<'a> = serde::de::IgnoredAny;
/// }
///
/// const BACKUPS: &[Resource] =
///     &[Resource { group: "acme.example", version: "v1", resource: "backups", kind: "Backup" }];
/// let rule = Rule::new("backup.acme.example", BACKUPS, &[Operation::Create]);
/// let registry = Registry::default().validating(rule, AllGoes);
/// let entry = registry.find("/validate-acme-example-v1-backup").expect("registered above");
/// let answer = entry.endpoint.answer(br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
///     "request":{"uid":"1","operation":"CREATE","object":{}}}"#, &())?;
/// assert_eq!(answer.body, br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"1","allowed":true}}"#);
/// # Ok::<(), admission::Unserved>(())
/// ```
pub struct Registry<W> {
    entries: Vec<Entry<W>>,
    by_path: HashMap<String, usize>,
    conversions: Vec<Conversion>,
}

impl<W> Default for Registry<W> {
    fn default() -> Self {
        Self { entries: Vec::new(), by_path: HashMap::new(), conversions: Vec::new() }
    }
}

impl<W: 'static> Registry<W> {
    /// Adds a mutating endpoint.
    #[must_use]
    pub fn mutating<M: Mutating<W>>(self, rule: Rule, mutating: M) -> Self {
        self.with(Phase::Mutating, rule, Box::new(MutatingEndpoint(rule, mutating)))
    }

    /// Adds a defaulting endpoint.
    #[must_use]
    pub fn defaulting<D: Defaulting<W>>(self, rule: Rule, defaulting: D) -> Self {
        self.with(Phase::Mutating, rule, Box::new(DefaultingEndpoint(rule, defaulting)))
    }

    /// Adds a validating endpoint.
    #[must_use]
    pub fn validating<V: Validating<W>>(self, rule: Rule, validating: V) -> Self {
        self.with(Phase::Validating, rule, Box::new(ValidatingEndpoint(rule, validating)))
    }

    /// Adds the conversion of a kind, in place of an earlier one of the same kind.
    #[must_use]
    pub fn converting(mut self, conversion: Conversion) -> Self {
        self.conversions.retain(|earlier| (earlier.group(), earlier.kind()) != (conversion.group(), conversion.kind()));
        self.conversions.push(conversion);
        self
    }

    /// A later entry of the same path replaces the earlier one.
    fn with(mut self, phase: Phase, rule: Rule, endpoint: Box<dyn Endpoint<W>>) -> Self {
        let path = rule.path(phase);
        let entry = Entry { phase, rule, path: path.clone(), endpoint };
        if let Some(place) = self.by_path.get(&path).and_then(|&index| self.entries.get_mut(index)) {
            *place = entry;
        } else {
            self.by_path.insert(path, self.entries.len());
            self.entries.push(entry);
        }
        self
    }

    /// Every endpoint, in the order of registration.
    pub fn entries(&self) -> &[Entry<W>] {
        &self.entries
    }

    /// The endpoint at a path.
    pub fn find(&self, path: &str) -> Option<&Entry<W>> {
        self.by_path.get(path).and_then(|&index| self.entries.get(index))
    }

    /// Every kind with more than one version.
    pub fn conversions(&self) -> &[Conversion] {
        &self.conversions
    }
}
