//! Carries out rollouts: asks the planner which pods are next, and changes these.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use kube::Client;

use crate::sidecarset::controller::bar::Barred;
use crate::sidecarset::controller::budgets::DisruptionBudgets;
use crate::sidecarset::controller::change::PodChanger;
use crate::sidecarset::controller::evictions::Evictions;
use crate::sidecarset::controller::expectations::Expectations;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::{Member, Members};
use crate::sidecarset::controller::memory::Memory;
use crate::sidecarset::controller::pods::PodIndex;
use crate::sidecarset::controller::refusals::Refusals;
use crate::sidecarset::controller::states::{States, current, hold, lacks, untold};
use crate::sidecarset::rollout::strategy::Strategy;
use crate::sidecarset::rollout::{Disrupted, Disruptions, Form, Plan, Waits, plan};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// Pods of one set that are changed at one time.
pub(super) const AT_ONCE: usize = 8;
/// Pods that one reconcile of a set changes, or tries to change, at most: other sets wait for their turn.
pub(super) const MOST: usize = 64;
/// When a set that waits for a `PodDisruptionBudget` is reconciled again: budgets are not watched.
const DISRUPTION_PAUSE: Duration = Duration::from_secs(2);
/// When a set with pods in flight is reconciled again, in case the watch never reports them.
const IN_FLIGHT_PAUSE: Duration = Duration::from_secs(30);
/// When a set that waits for evictions is reconciled again: for some of it there is no event.
const EVICTIONS_PAUSE: Duration = Duration::from_secs(5);

/// What came of looking at a set.
#[derive(Debug, Default)]
pub struct Result {
    /// Why no more pods are touched now.
    pub waits: Waits,
    /// Workloads of which no more pods are evicted.
    pub barred: Barred,
    /// When to look again if nothing happens before.
    pub again: Option<Duration>,
}

/// A set, the pods that it has, and what decides on these.
#[derive(Clone, Copy)]
pub struct Rollout<'r> {
    /// The set, of this snapshot.
    pub set: &'r Arc<CompiledSet>,
    /// Its pods.
    pub members: &'r Members,
    /// What decisions read.
    pub snapshot: &'r Snapshot,
    /// Why not every replica may give new pods this form. Nothing of it is known if pods may be evicted for it.
    pub new_pods_lack_it: Option<&'r str>,
}

impl<'r> Rollout<'r> {
    /// Name and hash of the set.
    pub fn form(&self) -> (&'r str, &'r str) {
        (&self.set.name, &self.set.hash)
    }
}

/// A pod that is to be changed.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
pub(super) struct Chosen {
    pub(super) member: Member,
    // It serves, or did so when a rollout touched it last.
    pub(super) takes_place: bool,
    // A new pod is to take its place.
    pub(super) is_evicted: bool,
    // It is the first of its workload.
    pub(super) is_first: bool,
    // The set evicts pods such as this one.
    pub(super) is_replaced: bool,
}

/// The pods that are changed next, and why it is not more.
#[derive(Default)]
struct NextChanges {
    update: Vec<Chosen>,
    waits: Waits,
    // Pods whose conditions are to say that they are not evicted.
    untold: Vec<(Member, String)>,
}

/// Carries out rollouts.
pub struct Rollouts {
    pub(super) changer: PodChanger,
    pub(super) pods: Arc<Mutex<PodIndex>>,
    // Held from reading what budgets allow until it is taken.
    budgets: tokio::sync::Mutex<DisruptionBudgets>,
    pub(super) expectations: Mutex<Expectations>,
    pub(super) evictions: Mutex<Evictions>,
    sets: Mutex<BTreeMap<Arc<str>, SetRollout>>,
    refusals: Arc<Refusals>,
}

/// What is kept of a set.
#[derive(Default)]
struct SetRollout {
    memory: Arc<Mutex<Memory>>,
    // Compiled from this form.
    strategy: Option<(Weak<CompiledSet>, Arc<Strategy>)>,
    // What the disruption budgets made it wait for, and when.
    waits: Option<(Instant, Waits)>,
}

impl SetRollout {
    fn strategy(&mut self, set: &Arc<CompiledSet>) -> Arc<Strategy> {
        if let Some((of, strategy)) = &self.strategy
            && of.as_ptr() == Arc::as_ptr(set)
        {
            return Arc::clone(strategy);
        }
        let strategy = Arc::new(Strategy::of(set));
        self.strategy = Some((Arc::downgrade(set), Arc::clone(&strategy)));
        strategy
    }
}

impl Rollouts {
    /// With this client, and one that sends each request once, for pods of this index, and what refuses new ones.
    pub fn new(client: Client, evicting: Client, pods: Arc<Mutex<PodIndex>>, refusals: Arc<Refusals>) -> Self {
        Self {
            changer: PodChanger::new(client.clone(), evicting),
            pods,
            budgets: tokio::sync::Mutex::new(DisruptionBudgets::new(client)),
            expectations: Mutex::default(),
            evictions: Mutex::new(Evictions::new(Instant::now())),
            sets: Mutex::default(),
            refusals,
        }
    }

    /// What is remembered of the pods of a set.
    pub fn memory(&self, set: &str) -> Arc<Mutex<Memory>> {
        Arc::clone(&locked(&self.sets).entry(set.into()).or_default().memory)
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        locked(&self.sets).remove(set);
        locked(&self.evictions).forget(set);
    }

    /// Touches the pods of a set that are next, while `is_current` says that it is still the same.
    pub async fn run(&self, rollout: Rollout<'_>, is_current: impl Fn() -> bool) -> Result {
        let set = rollout.set;
        self.verify(set).await;
        let memory = self.memory(&set.name);
        let strategy = self.strategy(set);
        let end_again = self.hand_over(rollout, &strategy, &is_current).await;
        let NextChanges { update, waits, untold } = match self.plan(rollout, &strategy, &memory).await {
            Ok(next) => next,
            // Without the budgets nothing is touched.
            Err(why) => {
                let waits = Waits::UnknownDisruptions(why);
                self.pause_for(&set.name, &waits);
                return Result { waits, again: Some(DISRUPTION_PAUSE), ..Result::default() };
            }
        };
        let are_changed = self.carry_out(rollout, &update, &memory, is_current).await;
        // Others may take the places of those that were not changed.
        let waits = if are_changed { waits } else { Waits::Nothing };
        self.clear(rollout).await;
        let are_told = self.tell(rollout, &untold).await;
        let (memory, evictions) = (locked(&memory), locked(&self.evictions));
        let owners = || rollout.members.all().iter().map(|(_, pod)| pod.facts.owner).collect();
        let barred = if strategy.evicts() { evictions.barred(set, &owners()) } else { Barred::default() };
        let again = again(&waits, &memory, evictions.are_of(&set.name), Instant::now());
        let again = [again, tell_again(untold.len(), are_told), end_again].into_iter().flatten().min();
        Result { waits, barred, again }
    }

    /// How running pods follow the set.
    pub fn strategy(&self, set: &Arc<CompiledSet>) -> Arc<Strategy> {
        locked(&self.sets).entry(set.name.as_str().into()).or_default().strategy(set)
    }

    /// The next pods, entered in the expectations.
    ///
    /// # Errors
    /// Why the disruption budgets are not known.
    async fn plan(
        &self,
        rollout: Rollout<'_>,
        strategy: &Strategy,
        memory: &Mutex<Memory>,
    ) -> std::result::Result<NextChanges, String> {
        if let Some(nothing) = self.nothing_to_do(rollout, strategy, memory) {
            return Ok(nothing);
        }
        if let Some(waits) = self.pause(&rollout.set.name) {
            return Ok(NextChanges { waits, ..NextChanges::default() });
        }
        let mut budgets = self.budgets.lock().await;
        let disruptions = budgets.fresh().await?;
        let mut next = self.plan_within(rollout, strategy, memory, &disruptions);
        self.begin(rollout, &mut next);
        if next.update.is_empty() && matches!(next.waits, Waits::Disruption(..) | Waits::SeveralDisruptions(..)) {
            self.pause_for(&rollout.set.name, &next.waits);
        }
        Ok(next)
    }

    /// What there is to say of a set of which no pod is next, whatever the budgets are: most sets need none.
    fn nothing_to_do(&self, rollout: Rollout<'_>, strategy: &Strategy, memory: &Mutex<Memory>) -> Option<NextChanges> {
        let (none, now) = (Disruptions::default(), Instant::now());
        let (pods, mut memory) = (locked(&self.pods), locked(memory));
        let (expectations, mut evictions) = (locked(&self.expectations), locked(&self.evictions));
        let members = rollout.members.all();
        memory.prune(rollout.form(), &members, rollout.snapshot);
        evictions.update(rollout.set, strategy.evicts(), &pods, now);
        let hold = hold(rollout, strategy, &members, &pods, (&mut evictions, &self.refusals));
        let vacancies = evictions.vacancies(rollout.set, &pods, now);
        drop(pods);
        let states = States::of(rollout, strategy, &members, (&mut memory, &expectations), hold, &evictions);
        let Plan { update, waits } = plan(&states.pods, &vacancies, strategy, none.beyond(std::iter::empty()));
        let untold =
            if strategy.evicts() { untold(rollout.set, &members, &memory, &evictions, MOST) } else { Vec::new() };
        update.is_empty().then(|| {
            let waits = states.waits(waits, !vacancies.is_empty());
            NextChanges { update: Vec::new(), waits, untold }
        })
    }

    /// The next pods within these budgets, entered in the expectations.
    fn plan_within(
        &self,
        rollout: Rollout<'_>,
        strategy: &Strategy,
        memory: &Mutex<Memory>,
        disruptions: &Disruptions,
    ) -> NextChanges {
        let now = Instant::now();
        let (pods, mut memory) = (locked(&self.pods), locked(memory));
        let (mut expectations, mut evictions) = (locked(&self.expectations), locked(&self.evictions));
        // The expectations forget what these records show, so the plan has to be made from the same ones.
        let members = current(rollout, &pods);
        expectations.prune(&pods, now);
        evictions.update(rollout.set, strategy.evicts(), &pods, now);
        let in_flight = expectations.in_flight(&pods).map(|(key, pod)| Disrupted {
            namespace: &key.namespace,
            labels: &pod.labels,
            some_left_out: pod.some_left_out,
        });
        let left = disruptions.beyond(in_flight);
        let hold = hold(rollout, strategy, &members, &pods, (&mut evictions, &self.refusals));
        let vacancies = evictions.vacancies(rollout.set, &pods, now);
        // The plan is of these records, and the watch waits for the index.
        drop(pods);
        let states = States::of(rollout, strategy, &members, (&mut memory, &expectations), hold, &evictions);
        let Plan { update, waits } = plan(&states.pods, &vacancies, strategy, left);
        let waits = if update.len() > MOST { Waits::Nothing } else { states.waits(waits, !vacancies.is_empty()) };
        let chosen = |at: usize| {
            let (member, state) = (members.get(at)?.clone(), states.pods.get(at)?);
            let takes_place = state.is_available() || state.is_in_flight();
            let (is_evicted, is_first) = (state.form == Form::Evictable, state.is_first);
            let is_replaced = strategy.replaces(lacks(rollout.set, &member.1));
            Some(Chosen { member, takes_place, is_evicted, is_first, is_replaced })
        };
        let update: Vec<Chosen> = update.into_iter().take(MOST).filter_map(chosen).collect();
        for Chosen { member, takes_place, .. } in &update {
            expectations.enter(&member.0, member.1.facts.uid, rollout.form(), *takes_place, now);
        }
        let untold =
            if strategy.evicts() { untold(rollout.set, &members, &memory, &evictions, MOST) } else { Vec::new() };
        NextChanges { update, waits, untold }
    }

    /// Enters the evictions among what comes next, with the pods that their workloads have at this moment. One that is not as it was
    /// planned any more is left out.
    fn begin(&self, Rollout { set, .. }: Rollout<'_>, next: &mut NextChanges) {
        let (pods, now) = (locked(&self.pods), Instant::now());
        let (mut expectations, mut evictions) = (locked(&self.expectations), locked(&self.evictions));
        let mut noted = HashSet::new();
        next.update.retain(|Chosen { member, takes_place, is_evicted, .. }| {
            let stays = !is_evicted || evictions.begin(set, member, *takes_place, (&*pods, &mut noted), now);
            if !stays {
                expectations.strike(&member.0, &set.name);
            }
            stays
        });
    }

    /// What the set waits for without a further list: what no event reports is not listed for in each reconcile.
    fn pause(&self, set: &str) -> Option<Waits> {
        let sets = locked(&self.sets);
        let (at, waits) = sets.get(set)?.waits.as_ref()?;
        (at.elapsed() < DISRUPTION_PAUSE).then(|| waits.clone())
    }

    fn pause_for(&self, set: &str, waits: &Waits) {
        if let Some(of_set) = locked(&self.sets).get_mut(set) {
            of_set.waits = Some((Instant::now(), waits.clone()));
        }
    }
}

/// When to look again. `are_evicted`: pods of the set are, and not over.
fn again(waits: &Waits, memory: &Memory, are_evicted: bool, now: Instant) -> Option<Duration> {
    let by_state = match waits {
        Waits::Nothing => Some(Duration::ZERO),
        Waits::Disruption(..) | Waits::SeveralDisruptions(..) | Waits::UnknownDisruptions(_) => Some(DISRUPTION_PAUSE),
        Waits::MaxUnavailable(_) | Waits::MaxUnavailablePerOwner => Some(IN_FLIGHT_PAUSE),
        Waits::Evictions(_) => Some(EVICTIONS_PAUSE),
        _ => None,
    };
    let by_evictions = are_evicted.then_some(EVICTIONS_PAUSE);
    let paused = memory.next_try(now).map(|until| until.saturating_duration_since(now));
    [by_state, by_evictions, paused].into_iter().flatten().min()
}

/// When to say of more pods why they are not evicted: `asked` of so many was it tried, and of `all` of them it is said by now.
const fn tell_again(asked: usize, all: bool) -> Option<Duration> {
    if !all {
        Some(EVICTIONS_PAUSE)
    } else if asked == MOST {
        Some(Duration::ZERO)
    } else {
        None
    }
}

#[cfg(test)]
#[path = "rollout_eviction_tests.rs"]
mod eviction_tests;
#[cfg(test)]
#[path = "rollout_repair_tests.rs"]
mod repair_tests;
#[cfg(test)]
#[path = "rollout_tests.rs"]
#[allow(clippy::needless_pass_by_value)]
mod tests;
