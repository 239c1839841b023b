//! `PodDisruptionBudget`s, and what is left of them.

use std::collections::HashMap;

use admission::format::Selector;

use super::Waits;
use crate::sidecarset::controller::packed::Packed;

/// A `PodDisruptionBudget`.
#[derive(Debug, Clone)]
pub struct Disruption {
    /// It is about pods here alone.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pods that it is about.
    pub selector: Selector,
    /// How many more of these may be disrupted now.
    pub allowed: i32,
}

/// What a budget reads of a pod.
#[derive(Debug, Clone, Copy)]
pub struct Disrupted<'p> {
    /// Namespace.
    pub namespace: &'p str,
    /// Labels.
    pub labels: &'p Packed,
    /// Whether these may not be all of them: then every budget of the namespace is about the pod.
    pub some_left_out: bool,
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

    /// What is left of each beyond pods that are on their way down: of these the budgets may not know yet.
    pub fn beyond<'p>(&self, in_flight: impl Iterator<Item = Disrupted<'p>>) -> Left<'_> {
        let mut left = Left { all: self, taken: HashMap::new() };
        for pod in in_flight {
            left.take(pod);
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
    fn about(&self, pod: Disrupted<'_>) -> Vec<((&'d str, usize), &'d Disruption)> {
        let Some((namespace, all)) = self.all.0.get_key_value(pod.namespace) else { return Vec::new() };
        let is_about = |disruption: &Disruption| pod.some_left_out || disruption.selector.matches(pod.labels);
        let about = all.iter().enumerate().filter(|(_, disruption)| is_about(disruption));
        about.map(|(position, disruption)| ((namespace.as_str(), position), disruption)).collect()
    }

    /// Whether each budget about the pod allows one more.
    pub(super) fn check(&self, pod: Disrupted<'_>) -> Result<(), Waits> {
        let is_spent = |(place, disruption): &((&str, usize), &Disruption)| {
            disruption.allowed <= self.taken.get(place).copied().unwrap_or_default()
        };
        match self.about(pod).into_iter().find(is_spent) {
            Some((_, spent)) => Err(Waits::Disruption(spent.namespace.clone(), spent.name.clone())),
            None => Ok(()),
        }
    }

    /// Whether at most one budget is about the pod, as far as its labels are known: the Eviction API evicts no other.
    pub(super) fn check_one(&self, pod: Disrupted<'_>) -> Result<(), Waits> {
        match self.about(pod).as_slice() {
            // Which of them are about it only the API server knows.
            _ if pod.some_left_out => Ok(()),
            [(_, first), (_, second), ..] => {
                let names = (first.name.clone(), second.name.clone());
                Err(Waits::SeveralDisruptions(first.namespace.clone(), names.0, names.1))
            }
            _ => Ok(()),
        }
    }

    /// Takes a place in each budget about the pod.
    pub(super) fn take(&mut self, pod: Disrupted<'_>) {
        for (place, _) in self.about(pod) {
            let taken = self.taken.entry(place).or_default();
            *taken = taken.saturating_add(1);
        }
    }
}
