//! Whether two selectors can select the same object.

use std::collections::{BTreeMap, BTreeSet};

use super::compiled::contains;
use super::{Requirement, Selector};

/// All that is asked of one label.
#[derive(Default)]
struct Constraint<'a> {
    must_be_absent: bool,
    must_be_present: bool,
    /// The values that all `In` agree on; `None` without an `In`.
    allowed: Option<BTreeSet<&'a str>>,
    forbidden: Vec<&'a [String]>,
}

impl Selector {
    /// Whether some set of labels is selected by both, exactly: `true` means that there is one, `false` that
    /// there can be none.
    ///
    /// Labels are independent of each other, so it is enough to check each key alone.
    pub fn overlaps(&self, other: &Self) -> bool {
        let mut constraints = BTreeMap::<&str, Constraint<'_>>::new();
        for requirement in self.requirements().iter().chain(other.requirements()) {
            constraints.entry(requirement.key()).or_default().add(requirement);
        }
        constraints.values().all(Constraint::is_satisfiable)
    }
}

impl<'a> Constraint<'a> {
    fn add(&mut self, requirement: &'a Requirement) {
        match requirement {
            Requirement::In(_, values) => {
                self.must_be_present = true;
                match &mut self.allowed {
                    Some(allowed) => allowed.retain(|value| contains(values, value)),
                    None => self.allowed = Some(values.iter().map(String::as_str).collect()),
                }
            }
            Requirement::NotIn(_, values) => self.forbidden.push(values),
            Requirement::Exists(_) => self.must_be_present = true,
            Requirement::DoesNotExist(_) => self.must_be_absent = true,
        }
    }

    fn is_satisfiable(&self) -> bool {
        if self.must_be_absent {
            return !self.must_be_present;
        }
        match &self.allowed {
            Some(allowed) => allowed.iter().any(|value| self.forbidden.iter().all(|values| !contains(values, value))),
            // There are about 10^113 label values, more than any object can forbid.
            None => true,
        }
    }
}
