//! The next pods, within all budgets.

use std::collections::HashMap;

use super::order::sort;
use super::strategy::Strategy;
use super::{Form, Left, PodState};

/// Why no more pods are touched now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// Every pod carries the current form.
    Done,
    /// Running pods are not updated.
    NotUpdate,
    /// The rollout is paused.
    Paused,
    /// The others are to stay, by `partition` or `selector`.
    Kept,
    /// As many pods are unavailable as may be: so many.
    MaxUnavailable(usize),
    /// As many pods of one workload are unavailable as may be.
    MaxUnavailablePerOwner,
    /// A `PodDisruptionBudget` allows no more: its namespace and name.
    Disruption(String, String),
    /// The others can only be created anew.
    NewPodOnly,
    /// The others were injected by `OpenKruise`.
    OpenKruise,
    /// Pods that could not be changed are tried again.
    Failed,
    /// `PodDisruptionBudget`s cannot be listed; why.
    UnknownDisruptions(String),
    /// Which pods are to follow cannot be read from the set.
    Unreadable,
    /// The rollout goes on.
    Nothing,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Positions of the pods to change in place, in order.
    pub update: Vec<usize>,
    /// Why it is not more.
    pub waits: Waits,
}

/// Which of the pods that carry a set are touched next.
///
/// `pods` are all that count for the set. Shares of pods that may be unavailable are of those that serve, or would but for a rollout. A ready pod takes a place in the budget of `maxUnavailable`,
/// in that of its workload and in each `PodDisruptionBudget` about it; one that is not ready takes none, as nothing is lost by
/// touching it. Pods that were touched and are not back keep their places; of each `PodDisruptionBudget` `disruptions` is what is left
/// beyond these.
pub fn plan<'p>(pods: &[PodState<'p>], strategy: &Strategy, disruptions: Left<'p>) -> Plan {
    let nothing = |waits| Plan { update: Vec::new(), waits };
    let outdated = pods.iter().filter(|pod| pod.form != Form::Updated).count();
    let of_openkruise = pods.iter().filter(|pod| pod.form == Form::OpenKruise).count();
    if outdated == of_openkruise {
        return nothing(if outdated == 0 { Waits::Done } else { Waits::OpenKruise });
    } else if strategy.is_unreadable {
        return nothing(Waits::Unreadable);
    } else if strategy.not_update {
        return nothing(Waits::NotUpdate);
    } else if strategy.paused {
        return nothing(Waits::Paused);
    }
    let may_change = outdated.saturating_sub(strategy.kept_of(pods.len()));
    let mut candidates = candidates(pods, strategy);
    sort(&mut candidates, pods, strategy);
    let skipped_for = if candidates.is_empty() { left(pods, strategy) } else { None };
    let mut budgets = Budgets::new(pods, strategy, disruptions);
    let mut plan = nothing(Waits::Nothing);
    let mut taken = 0_usize;
    for position in candidates {
        let Some(pod) = pods.get(position) else { continue };
        if taken == may_change {
            plan.waits = Waits::Kept;
            break;
        }
        // One that is not ready may still go.
        if let Err(waits) = budgets.take(pod) {
            plan.waits = if plan.waits == Waits::Nothing { waits } else { plan.waits };
            continue;
        }
        taken = taken.saturating_add(1);
        plan.update.push(position);
    }
    if plan.update.is_empty() && plan.waits == Waits::Nothing {
        plan.waits = skipped_for.unwrap_or(Waits::Kept);
    }
    plan
}

/// Positions of the pods that could be touched.
fn candidates(pods: &[PodState<'_>], strategy: &Strategy) -> Vec<usize> {
    let is_candidate = |pod: &PodState<'_>| pod.form == Form::Outdated && strategy.selects(pod.labels);
    pods.iter().enumerate().filter(|(_, pod)| is_candidate(pod)).map(|(position, _)| position).collect()
}

/// Why none of the outdated pods could be touched.
fn left(pods: &[PodState<'_>], strategy: &Strategy) -> Option<Waits> {
    let has = |form| pods.iter().any(|pod| pod.form == form && strategy.selects(pod.labels));
    if has(Form::Failed) {
        Some(Waits::Failed)
    } else if has(Form::NewPodOnly) {
        Some(Waits::NewPodOnly)
    } else {
        None
    }
}

/// What is left of every budget.
struct Budgets<'b> {
    // Of how many.
    max_unavailable: usize,
    left: usize,
    by_owner: Option<HashMap<u64, usize>>,
    // How many pods of a namespace are not back for long.
    overdue: HashMap<&'b str, usize>,
    disruptions: Left<'b>,
}

impl<'b> Budgets<'b> {
    fn new(pods: &[PodState<'b>], strategy: &Strategy, disruptions: Left<'b>) -> Self {
        let (mut in_flight, mut serving, mut overdue) = (0_usize, 0_usize, HashMap::<_, usize>::new());
        for pod in pods {
            let is_in_flight = pod.is_in_flight();
            serving = serving.saturating_add(usize::from(is_in_flight || pod.is_available()));
            if is_in_flight && pod.is_overdue {
                let of_namespace = overdue.entry(pod.namespace).or_default();
                *of_namespace = of_namespace.saturating_add(1);
            } else if is_in_flight {
                in_flight = in_flight.saturating_add(1);
            }
        }
        let max_unavailable = strategy.unavailable_of(serving);
        Self {
            max_unavailable,
            left: max_unavailable.saturating_sub(in_flight),
            by_owner: strategy.max_unavailable_per_owner.as_ref().map(|_| by_owner(pods, strategy)),
            overdue,
            disruptions,
        }
    }

    /// Takes a place for the pod in every budget, or in none.
    fn take(&mut self, pod: &PodState<'_>) -> Result<(), Waits> {
        if !pod.is_available() {
            return Ok(());
        }
        let overdue = self.overdue.get(pod.namespace).copied().unwrap_or_default();
        if self.left == 0 || overdue >= self.max_unavailable {
            return Err(Waits::MaxUnavailable(self.max_unavailable));
        }
        let of_owner = self.by_owner.as_ref().and_then(|by_owner| by_owner.get(&pod.owner));
        if of_owner == Some(&0) {
            return Err(Waits::MaxUnavailablePerOwner);
        }
        self.disruptions.check(pod.disrupted())?;
        self.left = self.left.saturating_sub(1);
        if let Some(left) = self.by_owner.as_mut().and_then(|by_owner| by_owner.get_mut(&pod.owner)) {
            *left = left.saturating_sub(1);
        }
        self.disruptions.take(pod.disrupted());
        Ok(())
    }
}

/// What is left for each workload. Pods without a controller have no such budget.
fn by_owner(pods: &[PodState<'_>], strategy: &Strategy) -> HashMap<u64, usize> {
    let mut counted: HashMap<u64, (usize, usize)> = HashMap::new();
    for pod in pods.iter().filter(|pod| pod.owner != 0) {
        let (all, in_flight) = counted.entry(pod.owner).or_default();
        *all = all.saturating_add(usize::from(pod.is_available() || pod.is_in_flight()));
        *in_flight = in_flight.saturating_add(usize::from(pod.is_in_flight()));
    }
    let left = |(owner, (all, in_flight)): (u64, (usize, usize))| {
        (owner, strategy.unavailable_per_owner_of(all).unwrap_or(all).saturating_sub(in_flight))
    };
    counted.into_iter().map(left).collect()
}
