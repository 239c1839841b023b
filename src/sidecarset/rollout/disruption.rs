//! `PodDisruptionBudget`s, and what is left of them.

use std::collections::HashMap;

use admission::format::Selector;

use super::{PodState, Waits};
use crate::sidecarset::controller::packed::Packed;

/// A `PodDisruptionBudget`.
#[derive(Debug, Clone)]
pub struct Disruption {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pods that it is about.
    pub selector: Selector,
    /// How many more of these may be disrupted now.
    pub allowed: i32,
}

/// All of them, by namespace.
#[derive(Debug, Default)]
pub struct Disruptions(HashMap<String, Vec<Disruption>>);

impl Disruptions {
    /// These.
    pub fn of(all: impl IntoIterator<Item = Disruption>) -> Self {
        let mut by_namespace: HashMap<String, Vec<Disruption>> = HashMap::new();
        for disruption in all {
            by_namespace.entry(disruption.namespace.clone()).or_default().push(disruption);
        }
        Self(by_namespace)
    }

    /// What is left of each beyond pods that are on their way down: of these, by namespace and labels, the budgets may not know yet.
    pub fn beyond<'p>(&self, in_flight: impl Iterator<Item = (&'p str, &'p Packed)>) -> Left<'_> {
        let mut left = Left { all: self, taken: HashMap::new() };
        for (namespace, labels) in in_flight {
            left.note(namespace, labels);
        }
        left
    }
}

/// What is left of the budgets.
#[derive(Debug)]
pub struct Left<'d> {
    all: &'d Disruptions,
    // By namespace and position there.
    taken: HashMap<(&'d str, usize), i32>,
}

impl<'d> Left<'d> {
    fn about(&self, namespace: &str, labels: &Packed) -> Vec<((&'d str, usize), &'d Disruption)> {
        let Some((namespace, all)) = self.all.0.get_key_value(namespace) else { return Vec::new() };
        let about = all.iter().enumerate().filter(|(_, disruption)| disruption.selector.matches(labels));
        about.map(|(position, disruption)| ((namespace.as_str(), position), disruption)).collect()
    }

    fn note(&mut self, namespace: &str, labels: &Packed) {
        for (place, _) in self.about(namespace, labels) {
            let taken = self.taken.entry(place).or_default();
            *taken = taken.saturating_add(1);
        }
    }

    /// Whether each budget about the pod allows one more.
    pub(super) fn check(&self, pod: &PodState<'_>) -> Result<(), Waits> {
        let is_spent = |(place, disruption): &((&str, usize), &Disruption)| {
            disruption.allowed <= self.taken.get(place).copied().unwrap_or_default()
        };
        match self.about(pod.namespace, pod.labels).into_iter().find(is_spent) {
            Some((_, spent)) => Err(Waits::Disruption(spent.namespace.clone(), spent.name.clone())),
            None => Ok(()),
        }
    }

    /// Takes a place in each budget about the pod.
    pub(super) fn take(&mut self, pod: &PodState<'_>) {
        self.note(pod.namespace, pod.labels);
    }
}
