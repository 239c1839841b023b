//! The pods of a set as the planner reads them, from the index and from what this leader remembers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::bar::Allowance;
use crate::sidecarset::controller::evictions::Evictions;
use crate::sidecarset::controller::expectations::Expectations;
use crate::sidecarset::controller::facts::PodFacts;
use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::memory::Memory;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::refusals::Refusals;
use crate::sidecarset::controller::rollout::Rollout;
use crate::sidecarset::controller::signs::{is_replaced, is_rolling, serves};
use crate::sidecarset::controller::upgradable::barred;
use crate::sidecarset::rollout::strategy::Strategy;
use crate::sidecarset::rollout::{EvictionsWait, Form, PodState, Waits};

/// The pods of a set.
#[derive(Debug)]
pub struct States<'m> {
    /// As the planner reads them, in the order of the members.
    pub pods: Vec<PodState<'m>>,
    // What pods that are to be evicted wait for, other than new pods in the places of others.
    stop: Option<EvictionsWait>,
    // It is about all of them, or none waits for a new pod.
    is_all: bool,
}

/// What keeps pods from being evicted that could be otherwise.
#[derive(Debug, Default)]
pub struct Hold {
    /// Why no pod is evicted at all.
    pub all: Option<EvictionsWait>,
    /// Workloads whose controllers are replacing their pods themselves.
    pub rolling: HashSet<u64>,
    /// Workloads whose controllers may create no new pod now, as one of their pods does not serve.
    pub stuck: HashSet<u64>,
    /// Namespaces that refuse new pods in place of those that lack the set, or of others, and why.
    pub refusing: HashMap<(Arc<str>, bool), String>,
}

impl<'m> States<'m> {
    /// Of these members, as the index has them.
    pub fn of(
        rollout: Rollout<'_>,
        strategy: &Strategy,
        members: &'m [Member],
        (memory, expectations): (&mut Memory, &Expectations),
        hold: Hold,
        evictions: &Evictions,
    ) -> Self {
        let now = Instant::now();
        let state = |member| memory.state(rollout.form(), member, expectations, now);
        let mut pods: Vec<_> = members.iter().map(state).collect();
        let leaving = evictions.leaving();
        for (state, _) in pods.iter_mut().zip(members).filter(|(_, (_, pod))| leaving.contains(&pod.facts.uid)) {
            // In the budgets it counts as the place that it leaves.
            (state.form, state.is_ready, state.is_touched) = (Form::Updated, false, false);
        }
        memory.note_in_flight(&rollout.set.name, members, &mut pods, expectations, now);
        for (state, (_, pod)) in pods.iter_mut().zip(members) {
            if is_held_back(rollout.set, pod) && !matches!(state.form, Form::Updated | Form::OpenKruise) {
                state.form = Form::HeldBack;
            }
        }
        let is_all = hold.all.is_some();
        let mut candidates = Candidates::new(rollout.set, hold, evictions, now);
        for (state, member) in pods.iter_mut().zip(members) {
            if leaving.contains(&member.1.facts.uid) {
                candidates.keys.insert(member.0.clone());
            } else if strategy.replaces(lacks(rollout.set, &member.1)) {
                candidates.judge(state, member);
            } else if state.form == Form::Evictable {
                state.form = Form::NewPodOnly;
            }
        }
        let Candidates { keys, stop, awaits_new_pods, .. } = candidates;
        memory.note_evictable(keys);
        Self { pods, stop, is_all: is_all || !awaits_new_pods }
    }

    /// The planner's reason, or a more exact one. `some_are_evicted`, and new pods in their places are waited for.
    pub fn waits(&self, planned: Waits, some_are_evicted: bool) -> Waits {
        match (&self.stop, planned) {
            (Some(stop), Waits::Evictions(EvictionsWait::Successors)) if self.is_all && !some_are_evicted => {
                Waits::Evictions(stop.clone())
            }
            (_, planned) => planned,
        }
    }
}

/// What keeps pods of the set from being evicted.
pub fn hold(
    rollout: Rollout<'_>,
    strategy: &Strategy,
    members: &[Member],
    pods: &PodIndex,
    (evictions, refusals): (&mut Evictions, &Refusals),
) -> Hold {
    if !strategy.evicts() {
        return Hold::default();
    }
    let found = evictions.hold(rollout.set, pods, Instant::now());
    let is_old =
        |(_, pod): &&Member| pod.facts.owner != 0 && pod.hash_of(&rollout.set.name) != Some(&*rollout.set.hash);
    let owners: HashSet<u64> = members.iter().filter(is_old).map(|(_, pod)| pod.facts.owner).collect();
    let namespaces: HashSet<(&str, bool)> =
        members.iter().filter(is_old).map(|(key, pod)| (&*key.namespace, lacks(rollout.set, pod))).collect();
    let refusing = refusals.in_place_of(rollout.set, rollout.snapshot, namespaces.into_iter());
    let is_stuck = |owner: &u64| {
        let mut pods = pods.of_workload(*owner).filter(|(_, pod)| pod.active && pod.facts.is_ordered);
        pods.any(|(_, pod)| !serves(pod))
    };
    Hold {
        stuck: owners.iter().copied().filter(is_stuck).collect(),
        all: rollout.new_pods_lack_it.map(|why| EvictionsWait::NewPods(why.to_owned())).or(found),
        refusing: refusing.into_iter().map(|((namespace, is_bare), why)| ((namespace.into(), is_bare), why)).collect(),
        rolling: owners.into_iter().filter(|owner| is_rolling(pods, *owner)).collect(),
    }
}

/// The pods of a set that may be evicted.
struct Candidates<'c> {
    set: &'c CompiledSet,
    hold: Hold,
    evictions: &'c Evictions,
    halted: HashSet<&'c str>,
    unjudged: HashSet<u64>,
    now: Instant,
    // Those that are evicted, or are to be in turn, or would be but that new pods of their workloads are no help: the set names these.
    keys: HashSet<PodKey>,
    // Why some of them are not evicted now.
    stop: Option<EvictionsWait>,
    // Others wait for a new pod.
    awaits_new_pods: bool,
}

impl<'c> Candidates<'c> {
    fn new(set: &'c CompiledSet, hold: Hold, evictions: &'c Evictions, now: Instant) -> Self {
        let halted = evictions.brakes().halted(&set.name, now);
        let unjudged = evictions.unjudged();
        Self { set, hold, evictions, halted, unjudged, now, keys: HashSet::new(), stop: None, awaits_new_pods: false }
    }

    /// Says of a pod that only a new one can follow whether it may be evicted.
    fn judge(&mut self, state: &mut PodState<'_>, (key, pod): &Member) {
        let is_blocked = state.form == Form::Blocked;
        if !is_blocked && state.form != Form::Evictable {
            return;
        }
        let allowance = self.evictions.allowance(self.set, pod.facts.owner);
        // As the judgement has it; the pod is read again before.
        if !is_replaced(pod) {
            state.form = Form::NewPodOnly;
            return;
        }
        self.keys.insert(key.clone());
        if matches!(allowance, Allowance::Barred(_)) {
            state.form = Form::NewPodOnly;
            return;
        }
        if let Some(stop) = self.stop_of(key, pod) {
            state.form = Form::Awaiting;
            self.stop.get_or_insert(stop);
        } else if is_blocked {
            // It is evicted in turn as well, as soon as the API server does it.
        } else if allowance == Allowance::Awaiting || self.has_to_wait(pod) {
            state.form = Form::Awaiting;
            self.awaits_new_pods = true;
        } else {
            state.is_first = allowance == Allowance::First || pod.facts.is_ordered;
        }
    }

    /// Whether another set has to see first what the pod has, or the workload is to create other pods before this one.
    fn has_to_wait(&self, pod: &PodRecord) -> bool {
        let PodFacts { uid, owner, is_ordered, .. } = pod.facts;
        let is_stuck = serves(pod) && self.hold.stuck.contains(&owner);
        self.unjudged.contains(&uid) || (is_ordered && (is_stuck || self.evictions.has_places(owner)))
    }

    fn stop_of(&self, key: &PodKey, pod: &PodRecord) -> Option<EvictionsWait> {
        let brakes = self.evictions.brakes();
        if let Some(all) = &self.hold.all {
            Some(all.clone())
        } else if let Some(why) = brakes.forbidden(&key.namespace, self.now) {
            Some(EvictionsWait::Forbidden(why.to_owned()))
        } else if self.halted.contains(&*key.namespace) {
            Some(brakes.why_halted(&self.set.name, self.halted.len(), self.now))
        } else if let Some(why) = self.hold.refusing.get(&(Arc::clone(&key.namespace), lacks(self.set, pod))) {
            Some(EvictionsWait::Refused(why.clone()))
        } else {
            self.hold.rolling.contains(&pod.facts.owner).then_some(EvictionsWait::Rolling)
        }
    }
}

/// Of the pods that are not evicted as their workloads are barred, those whose condition does not say so yet, with what it is to say.
pub fn untold(
    set: &CompiledSet,
    members: &[Member],
    memory: &Memory,
    evictions: &Evictions,
    most: usize,
) -> Vec<(Member, String)> {
    let untold = members.iter().filter_map(|member| {
        let (key, pod) = member;
        let Allowance::Barred(bar) = evictions.allowance(set, pod.facts.owner) else { return None };
        let why =
            memory.why_replaceable(key, pod.facts.uid, &set.hash).filter(|_| !evictions.is_told(&set.name, pod))?;
        Some((member.clone(), barred(bar, &set.hash, why)))
    });
    untold.take(most).collect()
}

/// Whether the pod, which is one of the set's, does not carry it.
pub fn lacks(set: &CompiledSet, pod: &PodRecord) -> bool {
    pod.hash_of(&set.name).is_none()
}

/// The pods of a set by their records of this moment: other pods than before have to wait for the next plan.
pub fn current(Rollout { set, members, .. }: Rollout<'_>, pods: &PodIndex) -> Vec<Member> {
    let is_of_set = |before: &PodRecord, now: &PodRecord| {
        now.facts.uid == before.facts.uid
            && now.active
            && lacks(set, now) == lacks(set, before)
            && set.selector.matches(&now.labels)
    };
    let all = members.carrying.iter().chain(&members.to_repair);
    let now = all.filter_map(|(key, before)| Some((key, before, pods.get(key)?)));
    now.filter(|(_, before, now)| is_of_set(before, now)).map(|(key, _, now)| (key.clone(), Arc::clone(now))).collect()
}

/// Whether new pods of the pod's workload get an older form of the set: a rollout would take this one to another than its successor.
fn is_held_back(set: &CompiledSet, pod: &PodRecord) -> bool {
    set.pin.as_ref().is_some_and(|pin| pin.is_by_workload() && pod.bucket_of(&set.name).is_some_and(|it| pin.keeps(it)))
}
