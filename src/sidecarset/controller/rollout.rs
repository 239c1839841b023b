//! Carries out rollouts: asks the planner which pods are next, and changes these.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Client;

use crate::sidecarset::controller::budgets::DisruptionBudgets;
use crate::sidecarset::controller::change::{AsPlanned, Outcome, PodChanger};
use crate::sidecarset::controller::ledger::Ledger;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::{Member, Members};
use crate::sidecarset::controller::memory::{Memory, What};
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::rollout::strategy::Strategy;
use crate::sidecarset::rollout::{Disrupted, Disruptions, Form, Plan, PodState, Waits, plan};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// Pods of one set that are changed at one time.
const AT_ONCE: usize = 8;
/// Pods that one reconcile of a set changes, or tries to change, at most: other sets wait for their turn.
const MOST: usize = 64;
/// After so long no more pods are begun in one reconcile.
const WORK_FOR: Duration = Duration::from_secs(5);
/// When a set that waits for a `PodDisruptionBudget` is reconciled again: budgets are not watched.
const DISRUPTION_PAUSE: Duration = Duration::from_secs(2);
/// When a set with pods in flight is reconciled again, in case the watch never reports them.
const IN_FLIGHT_PAUSE: Duration = Duration::from_secs(30);

/// What came of looking at a set.
#[derive(Debug)]
pub struct Result {
    /// Why no more pods are touched now.
    pub waits: Waits,
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
}

impl<'r> Rollout<'r> {
    fn form(&self) -> (&'r str, &'r str) {
        (&self.set.name, &self.set.hash)
    }
}

/// A pod that is to be changed, and whether it takes a place in the budget: it serves, or did so when a rollout touched it last.
type Chosen = (Member, bool);

/// The pods that are changed next, and why it is not more.
struct Next {
    update: Vec<Chosen>,
    waits: Waits,
}

/// Carries out rollouts.
pub struct Rollouts {
    changer: PodChanger,
    pods: Arc<Mutex<PodIndex>>,
    // Held from reading what budgets allow until it is taken.
    budgets: tokio::sync::Mutex<DisruptionBudgets>,
    ledger: Mutex<Ledger>,
    sets: Mutex<BTreeMap<Arc<str>, OfSet>>,
}

/// What is kept of a set.
#[derive(Default)]
struct OfSet {
    memory: Arc<Mutex<Memory>>,
    // Compiled from this form.
    strategy: Option<(Weak<CompiledSet>, Arc<Strategy>)>,
    // What the disruption budgets made it wait for, and when.
    waits: Option<(Instant, Waits)>,
}

impl OfSet {
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
    /// With this client, for pods of this index.
    pub fn new(client: Client, pods: Arc<Mutex<PodIndex>>) -> Self {
        Self {
            changer: PodChanger::new(client.clone()),
            pods,
            budgets: tokio::sync::Mutex::new(DisruptionBudgets::new(client)),
            ledger: Mutex::default(),
            sets: Mutex::default(),
        }
    }

    /// What is remembered of the pods of a set.
    pub fn memory(&self, set: &str) -> Arc<Mutex<Memory>> {
        Arc::clone(&locked(&self.sets).entry(set.into()).or_default().memory)
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        locked(&self.sets).remove(set);
    }

    /// Touches the pods of a set that are next, while `is_current` says that it is still the same.
    pub async fn run(&self, rollout: Rollout<'_>, is_current: impl Fn() -> bool) -> Result {
        let set = rollout.set;
        let memory = self.memory(&set.name);
        let strategy = locked(&self.sets).entry(set.name.as_str().into()).or_default().strategy(set);
        let Next { update, waits } = match self.plan(rollout, &strategy, &memory).await {
            Ok(next) => next,
            // Without the budgets nothing is touched.
            Err(why) => {
                let waits = Waits::UnknownDisruptions(why);
                self.pause_for(&set.name, &waits);
                return Result { waits, again: Some(DISRUPTION_PAUSE) };
            }
        };
        let are_changed = self.carry_out(rollout, &update, &memory, is_current).await;
        // Others may take the places of those that were not changed.
        let waits = if are_changed { waits } else { Waits::Nothing };
        self.clear(rollout).await;
        let again = again(&waits, &locked(&memory), Instant::now());
        Result { waits, again }
    }

    /// Clears the condition of pods that have the current form: the set may have got back the one that they have.
    async fn clear(&self, Rollout { set, members, .. }: Rollout<'_>) {
        let has_it = |pod: &PodRecord| pod.is_refused(&set.name) && pod.hash_of(&set.name) == Some(&*set.hash);
        let pods = members.carrying.iter().filter(|(_, pod)| has_it(pod)).take(MOST);
        let cleared: Vec<_> = pods.map(|(key, pod)| self.changer.clear(&set.name, key, pod.facts.uid)).collect();
        futures::stream::iter(cleared).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    /// The next pods, entered in the ledger.
    ///
    /// # Errors
    /// Why the disruption budgets are not known.
    async fn plan(
        &self,
        rollout: Rollout<'_>,
        strategy: &Strategy,
        memory: &Mutex<Memory>,
    ) -> std::result::Result<Next, String> {
        {
            let mut memory = locked(memory);
            let members = &rollout.members.carrying;
            memory.prune(rollout.form(), members, rollout.snapshot);
            // Most sets have nothing to do, and need no budgets.
            let none = Disruptions::default();
            let states = states(rollout, members, &mut memory, &locked(&self.ledger));
            let planned = plan(&states, strategy, none.beyond(std::iter::empty()));
            if planned.update.is_empty() {
                return Ok(Next { update: Vec::new(), waits: planned.waits });
            }
        }
        if let Some(waits) = self.pause(&rollout.set.name) {
            return Ok(Next { update: Vec::new(), waits });
        }
        let mut budgets = self.budgets.lock().await;
        let disruptions = budgets.fresh().await?;
        let now = Instant::now();
        let (pods, mut memory) = (locked(&self.pods), locked(memory));
        let mut ledger = locked(&self.ledger);
        // The ledger forgets what these records show, so the plan has to be made from the same ones.
        let members = current(rollout, &pods);
        ledger.prune(&pods, now);
        let in_flight = ledger.in_flight(&pods).map(|(key, pod)| Disrupted {
            namespace: &key.namespace,
            labels: &pod.labels,
            some_left_out: pod.some_left_out,
        });
        let left = disruptions.beyond(in_flight);
        // The plan is of these records, and the watch waits for the index.
        drop(pods);
        let states = states(rollout, &members, &mut memory, &ledger);
        let Plan { update, waits } = plan(&states, strategy, left);
        let takes_place = |state: &PodState<'_>| state.is_available() || state.is_in_flight();
        let chosen = |at: usize| Some((members.get(at)?.clone(), takes_place(states.get(at)?)));
        let mut update: Vec<Chosen> = update.into_iter().filter_map(chosen).collect();
        let waits = if update.len() > MOST { Waits::Nothing } else { waits };
        update.truncate(MOST);
        for ((key, pod), takes_place) in &update {
            ledger.enter(key, pod.facts.uid, rollout.form(), *takes_place, now);
        }
        if update.is_empty() && matches!(waits, Waits::Disruption(..)) {
            self.pause_for(&rollout.set.name, &waits);
        }
        Ok(Next { update, waits })
    }

    /// Changes these pods. Returns whether all of them are changed.
    async fn carry_out(
        &self,
        rollout: Rollout<'_>,
        update: &[Chosen],
        memory: &Mutex<Memory>,
        is_current: impl Fn() -> bool,
    ) -> bool {
        let (started, mut are_changed) = (Instant::now(), true);
        for batch in update.chunks(AT_ONCE) {
            if started.elapsed() > WORK_FOR || !is_current() {
                for ((key, _), _) in batch {
                    self.give_back(key, &rollout.set.name);
                }
                are_changed = false;
                continue;
            }
            let changes: Vec<_> = batch.iter().map(|chosen| self.change(rollout, chosen)).collect();
            let mut changes = futures::stream::iter(changes).buffer_unordered(AT_ONCE);
            while let Some((chosen, outcome)) = changes.next().await {
                are_changed &= outcome == Outcome::Changed;
                self.note(rollout, chosen, outcome, memory);
            }
        }
        are_changed
    }

    async fn change<'m>(&self, rollout: Rollout<'_>, chosen: &'m Chosen) -> (&'m Chosen, Outcome) {
        let ((key, pod), takes_place) = chosen;
        let as_planned = AsPlanned { uid: pod.facts.uid, is_free: !pod.ready, takes_place: *takes_place };
        (chosen, self.changer.update(rollout.set, key, as_planned, rollout.snapshot).await)
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

    fn give_back(&self, key: &PodKey, set: &str) {
        locked(&self.ledger).strike(key, set);
    }

    /// Takes in what became of a pod.
    fn note(&self, rollout: Rollout<'_>, chosen: &Chosen, outcome: Outcome, memory: &Mutex<Memory>) {
        let (member, takes_place) = chosen;
        let (Rollout { set, snapshot, .. }, (key, pod), now) = (rollout, member, Instant::now());
        let (namespace, name, uid) = (&*key.namespace, &*key.name, pod.facts.uid);
        tracing::debug!(namespace, name, ?outcome, "Pod of a rollout");
        if outcome == Outcome::Changed {
            // The watch has not shown yet what it has.
            locked(&self.ledger).enter(key, uid, rollout.form(), *takes_place, now);
            return;
        }
        self.give_back(key, &set.name);
        let mut memory = locked(memory);
        match outcome {
            Outcome::HasIt => memory.note_judgement(member, &set.hash, What::HasIt, snapshot),
            Outcome::OpenKruise => memory.note_judgement(member, &set.hash, What::OpenKruise, snapshot),
            Outcome::NewPodOnly(why) => memory.note_judgement(member, &set.hash, What::NewPodOnly(why), snapshot),
            // The watch shows it soon: planned again then.
            Outcome::Changed | Outcome::Gone | Outcome::Stale => memory.note_wait(key, uid, &set.hash, now),
            Outcome::Failed(why) => {
                tracing::warn!(namespace, name, why, "A pod cannot be changed, trying again");
                memory.note_failure(key, uid, &set.hash, why, now);
            }
        }
    }
}

/// The pods of a set by their records of this moment: other pods than before have to wait for the next plan.
fn current(Rollout { set, members, .. }: Rollout<'_>, pods: &PodIndex) -> Vec<Member> {
    let is_of_set = |before: &PodRecord, now: &PodRecord| {
        now.facts.uid == before.facts.uid
            && now.active
            && now.hash_of(&set.name).is_some()
            && set.selector.matches(&now.labels)
    };
    let now = members.carrying.iter().filter_map(|(key, before)| Some((key, before, pods.get(key)?)));
    now.filter(|(_, before, now)| is_of_set(before, now)).map(|(key, _, now)| (key.clone(), Arc::clone(now))).collect()
}

fn states<'m>(rollout: Rollout<'_>, members: &'m [Member], memory: &mut Memory, ledger: &Ledger) -> Vec<PodState<'m>> {
    let now = Instant::now();
    let mut states: Vec<_> = members.iter().map(|member| memory.state(rollout.form(), member, ledger, now)).collect();
    memory.note_in_flight(&rollout.set.name, members, &mut states, ledger, now);
    for (state, (_, pod)) in states.iter_mut().zip(members) {
        if is_held_back(rollout.set, pod) && !matches!(state.form, Form::Updated | Form::OpenKruise) {
            state.form = Form::HeldBack;
        }
    }
    states
}

/// Whether new pods of the pod's workload get an older form of the set: a rollout would take this one to another than its successor.
fn is_held_back(set: &CompiledSet, pod: &PodRecord) -> bool {
    set.pin.as_ref().is_some_and(|pin| pin.is_by_workload() && pod.bucket_of(&set.name).is_some_and(|it| pin.keeps(it)))
}

/// When to look again.
fn again(waits: &Waits, memory: &Memory, now: Instant) -> Option<Duration> {
    let by_state = match waits {
        Waits::Nothing => Some(Duration::ZERO),
        Waits::Disruption(..) | Waits::UnknownDisruptions(_) => Some(DISRUPTION_PAUSE),
        Waits::MaxUnavailable(_) | Waits::MaxUnavailablePerOwner => Some(IN_FLIGHT_PAUSE),
        _ => None,
    };
    let paused = memory.next_try().map(|until| until.saturating_duration_since(now));
    [by_state, paused].into_iter().flatten().min()
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
