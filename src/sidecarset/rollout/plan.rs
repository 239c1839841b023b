//! The next pods, within all budgets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::order::sort;
use super::strategy::Strategy;
use super::{Form, Left, PodState};

/// Why no more pods are touched now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// Several `PodDisruptionBudget`s select one pod, which the Eviction API then never evicts: their namespace, and the names of two.
    SeveralDisruptions(String, String, String),
    /// The others can only be created anew.
    NewPodOnly,
    /// The others are to be evicted, and not yet.
    Evictions(EvictionsWait),
    /// The others were injected by `OpenKruise`.
    OpenKruise,
    /// Pods that could not be changed are tried again.
    Failed,
    /// `PodDisruptionBudget`s cannot be listed; why.
    UnknownDisruptions(String),
    /// Which pods are to follow cannot be read from the set.
    Unreadable,
    /// The rollout goes on.
    #[default]
    Nothing,
}

impl Waits {
    /// Whether the reason that another pod is not touched says more of the rollout: that one will be.
    const fn is_weaker(&self) -> bool {
        matches!(self, Self::Nothing | Self::SeveralDisruptions(..))
    }
}

/// What evictions wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictionsWait {
    /// New pods in place of evicted ones.
    Successors,
    /// That every replica gives new pods the form; why that is not known.
    NewPods(String),
    /// Pods that an earlier leader may have evicted.
    EarlierLeader,
    /// Workloads have not replaced a pod lately, or have replaced it by one without the form: whatever creates pods may be at fault.
    Failures {
        /// In so many namespaces.
        namespaces: usize,
        /// No pod is evicted at all, or else none of these.
        is_all: bool,
        /// Some have not replaced a pod.
        are_lost: bool,
    },
    /// Controllers that are replacing all pods of their workloads themselves.
    Rolling,
    /// The API server, which refuses at this time.
    Blocked,
    /// The right to evict pods; what the API server said.
    Forbidden(String),
    /// Namespaces that refuse new pods with the set; why one of them does.
    Refused(String),
}

/// A place that an eviction takes.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vacancy {
    /// Namespace of the pod that was evicted.
    pub namespace: Arc<str>,
    /// Its workload.
    pub owner: u64,
    /// Whether it served.
    pub served: bool,
    /// Whether it is still there, on its way out.
    pub ends: bool,
    /// Whether its successor is not ready for so long that it holds up its own workload and namespace alone.
    pub is_overdue: bool,
    /// Whether it is not known if it was evicted at all: by an earlier leader, if so.
    pub is_guess: bool,
    /// Whether the pod, or its successor, is among those that count for the set.
    pub is_counted: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Positions of the pods to change in place, or to evict, in order.
    pub update: Vec<usize>,
    /// Why it is not more.
    pub waits: Waits,
}

/// Which of the pods that carry a set are touched next.
///
/// `pods` are all that count for the set. Shares of pods that may be unavailable are of those that serve, or would but for a rollout. A ready pod takes a place in the budget of `maxUnavailable`,
/// in that of its workload and in each `PodDisruptionBudget` about it; one that is not ready takes none, as nothing is lost by
/// touching it. Pods that were touched and are not back keep their places, and so do `vacancies`: pods that were evicted and that no
/// ready one has replaced yet. Of each `PodDisruptionBudget` `disruptions` is what is left beyond these.
///
/// Of pods that do not serve, as many are evicted at a time as may be unavailable: they are lost if their workloads do not replace them.
pub fn plan<'p>(pods: &[PodState<'p>], vacancies: &'p [Vacancy], strategy: &Strategy, disruptions: Left<'p>) -> Plan {
    let nothing = |waits| Plan { update: Vec::new(), waits };
    let outdated = pods.iter().filter(|pod| pod.form != Form::Updated).count();
    let of_openkruise = pods.iter().filter(|pod| pod.form == Form::OpenKruise).count();
    if outdated == of_openkruise {
        // One that ends for ever is nothing that the rollout could wait for.
        let lacks_pods = vacancies.iter().any(|vacancy| !(vacancy.ends && vacancy.is_overdue));
        return nothing(match outdated {
            0 if lacks_pods => Waits::Evictions(EvictionsWait::Successors),
            0 => Waits::Done,
            _ => Waits::OpenKruise,
        });
    } else if strategy.is_unreadable {
        return nothing(Waits::Unreadable);
    } else if strategy.not_update {
        return nothing(Waits::NotUpdate);
    } else if strategy.paused {
        return nothing(Waits::Paused);
    }
    let not_there = vacancies.iter().filter(|vacancy| !vacancy.is_counted).count();
    let may_change = outdated.saturating_sub(strategy.kept_of(pods.len().saturating_add(not_there)));
    let mut candidates = candidates(pods, strategy);
    sort(&mut candidates, pods, strategy);
    let skipped_for = if candidates.is_empty() { left(pods, strategy) } else { None };
    let mut budgets = Budgets::new(pods, vacancies, strategy, disruptions);
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
            plan.waits = if plan.waits.is_weaker() { waits } else { plan.waits };
            continue;
        }
        taken = taken.saturating_add(1);
        plan.update.push(position);
    }
    if plan.update.is_empty() && plan.waits == Waits::Nothing {
        plan.waits = skipped_for.unwrap_or(Waits::Kept);
    }
    if matches!(plan.waits, Waits::SeveralDisruptions(..)) {
        // It goes on elsewhere.
        if !plan.update.is_empty() {
            plan.waits = Waits::Nothing;
        } else if !vacancies.is_empty() {
            plan.waits = Waits::Evictions(EvictionsWait::Successors);
        }
    }
    plan
}

/// Positions of the pods that could be touched.
fn candidates(pods: &[PodState<'_>], strategy: &Strategy) -> Vec<usize> {
    let is_candidate =
        |pod: &PodState<'_>| matches!(pod.form, Form::Outdated | Form::Evictable) && strategy.selects(pod.labels);
    pods.iter().enumerate().filter(|(_, pod)| is_candidate(pod)).map(|(position, _)| position).collect()
}

/// Why none of the outdated pods could be touched.
fn left(pods: &[PodState<'_>], strategy: &Strategy) -> Option<Waits> {
    let has = |form| pods.iter().any(|pod| pod.form == form && strategy.selects(pod.labels));
    // First what goes on by itself.
    if has(Form::Awaiting) {
        Some(Waits::Evictions(EvictionsWait::Successors))
    } else if has(Form::Blocked) {
        Some(Waits::Evictions(EvictionsWait::Blocked))
    } else if has(Form::Failed) {
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
    // Of pods that do not serve and are evicted.
    left_unready: usize,
    // Workloads of which the first pod is evicted.
    first: HashSet<u64>,
    by_owner: Option<HashMap<u64, usize>>,
    // How many pods of a namespace are not back for long.
    overdue: HashMap<&'b str, usize>,
    disruptions: Left<'b>,
}

impl<'b> Budgets<'b> {
    fn new(pods: &[PodState<'b>], vacancies: &'b [Vacancy], strategy: &Strategy, disruptions: Left<'b>) -> Self {
        let (mut in_flight, mut serving, mut overdue) = (0_usize, 0_usize, HashMap::<_, usize>::new());
        let served = vacancies.iter().filter(|vacancy| vacancy.served);
        let guesses = served.clone().filter(|vacancy| vacancy.is_guess && !vacancy.is_overdue).count();
        let vacant = served.clone().map(|vacancy| (&*vacancy.namespace, true, true, vacancy.is_overdue));
        let there = pods.iter().map(|pod| (pod.namespace, pod.is_in_flight(), pod.is_available(), pod.is_overdue));
        for (namespace, is_in_flight, is_available, is_overdue) in vacant.chain(there) {
            serving = serving.saturating_add(usize::from(is_in_flight || is_available));
            if is_in_flight && is_overdue {
                let of_namespace = overdue.entry(namespace).or_default();
                *of_namespace = of_namespace.saturating_add(1);
            } else if is_in_flight {
                in_flight = in_flight.saturating_add(1);
            }
        }
        let max_unavailable = strategy.unavailable_of(serving);
        let unready = vacancies.len().saturating_sub(served.count());
        // Places that may be none do not take the last one. If the new pod there serves, it shows that the form does.
        let probe = usize::from(in_flight == guesses).min(max_unavailable);
        Self {
            max_unavailable,
            left: max_unavailable.saturating_sub(in_flight).max(probe),
            left_unready: max_unavailable.saturating_sub(unready),
            first: HashSet::new(),
            by_owner: strategy.max_unavailable_per_owner.as_ref().map(|_| by_owner(pods, vacancies, strategy)),
            overdue,
            disruptions,
        }
    }

    /// Takes a place for the pod in every budget, or in none.
    fn take(&mut self, pod: &PodState<'_>) -> Result<(), Waits> {
        let is_evicted = pod.form == Form::Evictable;
        if is_evicted {
            self.check_eviction(pod)?;
        }
        if pod.is_available() {
            self.take_of_serving(pod)?;
        } else if is_evicted {
            let left = self.left_unready.checked_sub(1).ok_or(Waits::MaxUnavailable(self.max_unavailable))?;
            self.left_unready = left;
        }
        if is_evicted && pod.is_first {
            self.first.insert(pod.owner);
        }
        Ok(())
    }

    /// Whether the Eviction API evicts the pod at all, and its workload is not to be tried with another one first.
    fn check_eviction(&self, pod: &PodState<'_>) -> Result<(), Waits> {
        if pod.is_first && self.first.contains(&pod.owner) {
            return Err(Waits::Evictions(EvictionsWait::Successors));
        }
        self.disruptions.check_one(pod.disrupted())
    }

    fn take_of_serving(&mut self, pod: &PodState<'_>) -> Result<(), Waits> {
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
fn by_owner(pods: &[PodState<'_>], vacancies: &[Vacancy], strategy: &Strategy) -> HashMap<u64, usize> {
    let mut counted: HashMap<u64, (usize, usize)> = HashMap::new();
    for pod in pods.iter().filter(|pod| pod.owner != 0) {
        let (all, in_flight) = counted.entry(pod.owner).or_default();
        *all = all.saturating_add(usize::from(pod.is_available() || pod.is_in_flight()));
        *in_flight = in_flight.saturating_add(usize::from(pod.is_in_flight()));
    }
    for vacancy in vacancies.iter().filter(|vacancy| vacancy.served) {
        let (all, in_flight) = counted.entry(vacancy.owner).or_default();
        (*all, *in_flight) = (all.saturating_add(1), in_flight.saturating_add(1));
    }
    let left = |(owner, (all, in_flight)): (u64, (usize, usize))| {
        (owner, strategy.unavailable_per_owner_of(all).unwrap_or(all).saturating_sub(in_flight))
    };
    counted.into_iter().map(left).collect()
}
