//! The pods of a set as the planner reads them, from the index and from what this leader remembers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use engine::sidecarset::compiled::CompiledSet;

use crate::sidecarset::controller::evictions::{Allowance, Evictions};
use crate::sidecarset::controller::ledger::Ledger;
use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::memory::Memory;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::rollout::Rollout;
use crate::sidecarset::controller::upgradable::barred;
use crate::sidecarset::rollout::strategy::Strategy;
use crate::sidecarset::rollout::{EvictionsWait, Form, PodState, Waits};

/// The pods of a set.
#[derive(Debug)]
pub struct States<'m> {
    /// As the planner reads them, in the order of the members.
    pub pods: Vec<PodState<'m>>,
    // Why no pod is evicted at all.
    hold: Option<EvictionsWait>,
}

impl<'m> States<'m> {
    /// Of these members, as the index has them.
    pub fn of(
        rollout: Rollout<'_>,
        strategy: &Strategy,
        members: &'m [Member],
        (memory, ledger): (&mut Memory, &Ledger),
        hold: Option<EvictionsWait>,
        evictions: &Evictions,
    ) -> Self {
        let now = Instant::now();
        let state = |member| memory.state(rollout.form(), member, ledger, now);
        let mut pods: Vec<_> = members.iter().map(state).collect();
        let leaving = evictions.leaving();
        for (state, _) in pods.iter_mut().zip(members).filter(|(_, (_, pod))| leaving.contains(&pod.facts.uid)) {
            // In the budgets it counts as the place that it leaves.
            (state.form, state.is_ready, state.is_touched) = (Form::Updated, false, false);
        }
        memory.note_in_flight(&rollout.set.name, members, &mut pods, ledger, now);
        for (state, (_, pod)) in pods.iter_mut().zip(members) {
            if is_held_back(rollout.set, pod) && !matches!(state.form, Form::Updated | Form::OpenKruise) {
                state.form = Form::HeldBack;
            }
        }
        let keys = evictable(rollout.set, strategy, members, &mut pods, (evictions, &leaving));
        memory.note_evictable(keys);
        if hold.is_some() {
            pods.iter_mut().filter(|state| state.form == Form::Evictable).for_each(|state| state.form = Form::Awaiting);
        }
        Self { pods, hold }
    }

    /// The planner's reason, or a more general one.
    pub fn waits(&self, planned: Waits) -> Waits {
        match (&self.hold, planned) {
            (Some(hold), Waits::Evictions(EvictionsWait::Successors)) => Waits::Evictions(hold.clone()),
            (_, planned) => planned,
        }
    }
}

/// Why no pod of the set is evicted.
pub fn hold(
    rollout: Rollout<'_>,
    strategy: &Strategy,
    members: &[Member],
    pods: &PodIndex,
    evictions: &mut Evictions,
) -> Option<EvictionsWait> {
    if !strategy.recreate {
        return None;
    }
    let found = evictions.hold(rollout.set, members, pods, Instant::now());
    if rollout.new_pods_have_it { found } else { Some(EvictionsWait::NewPods) }
}

/// Says of pods that only a new pod can follow which of them may be evicted. Returns these, and those that are evicted.
fn evictable(
    set: &CompiledSet,
    strategy: &Strategy,
    members: &[Member],
    states: &mut [PodState<'_>],
    (evictions, leaving): (&Evictions, &HashSet<u64>),
) -> HashSet<PodKey> {
    let (mut keys, halted) = (HashSet::new(), evictions.halted(set, Instant::now()));
    for (state, (key, pod)) in states.iter_mut().zip(members) {
        match state.form {
            Form::Evictable => {}
            // It is evicted in turn as well, as soon as the API server does it.
            Form::Blocked if strategy.recreate => {
                keys.insert(key.clone());
                continue;
            }
            _ => {
                if leaving.contains(&pod.facts.uid) {
                    keys.insert(key.clone());
                }
                continue;
            }
        }
        // As the judgement has it; the pod is read again before.
        let is_created_again = strategy.recreate && pod.facts.owner != 0 && !pod.facts.ends;
        let allowance = evictions.allowance(set, pod.facts.owner);
        (state.form, state.is_first) = match allowance {
            _ if !is_created_again => (Form::NewPodOnly, false),
            Allowance::Barred(_) => (Form::NewPodOnly, false),
            _ if halted.contains(&*key.namespace) => (Form::Awaiting, false),
            Allowance::Awaiting => (Form::Awaiting, false),
            Allowance::First => (Form::Evictable, true),
            Allowance::Free => (Form::Evictable, false),
        };
        if state.form != Form::NewPodOnly {
            keys.insert(key.clone());
        }
    }
    keys
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
        let why = memory.why_replaceable(key, pod.facts.uid, &set.hash).filter(|_| !evictions.is_told(pod))?;
        Some((member.clone(), barred(bar, &set.hash, why)))
    });
    untold.take(most).collect()
}

/// The pods of a set by their records of this moment: other pods than before have to wait for the next plan.
pub fn current(Rollout { set, members, .. }: Rollout<'_>, pods: &PodIndex) -> Vec<Member> {
    let is_of_set = |before: &PodRecord, now: &PodRecord| {
        now.facts.uid == before.facts.uid
            && now.active
            && now.hash_of(&set.name).is_some()
            && set.selector.matches(&now.labels)
    };
    let now = members.carrying.iter().filter_map(|(key, before)| Some((key, before, pods.get(key)?)));
    now.filter(|(_, before, now)| is_of_set(before, now)).map(|(key, _, now)| (key.clone(), Arc::clone(now))).collect()
}

/// Whether new pods of the pod's workload get an older form of the set: a rollout would take this one to another than its successor.
fn is_held_back(set: &CompiledSet, pod: &PodRecord) -> bool {
    set.pin.as_ref().is_some_and(|pin| pin.is_by_workload() && pod.bucket_of(&set.name).is_some_and(|it| pin.keeps(it)))
}
