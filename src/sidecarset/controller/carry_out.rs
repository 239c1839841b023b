//! Carries out what is planned for pods of a set, and takes in what became of them.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use engine::sidecarset::compiled::CompiledSet;
use futures::StreamExt as _;

use crate::sidecarset::controller::change::{AsPlanned, PodOutcome};
use crate::sidecarset::controller::evicted::Answer;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::memory::{Memory, PodFact};
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::rollout::{AT_ONCE, Chosen, MOST, Rollout, Rollouts};

/// After so long no more pods are begun in one reconcile.
const WORK_FOR: Duration = Duration::from_secs(5);
impl Rollouts {
    /// Reads the pods of the set whose eviction got no answer, and that the watch shows as they were: whether it came is not left to guess.
    pub(super) async fn verify(&self, set: &CompiledSet) {
        let doubtful = {
            let (pods, evictions) = (locked(&self.pods), locked(&self.evictions));
            evictions.doubtful(&set.name, &pods, Instant::now())
        };
        let asked: Vec<_> = doubtful
            .into_iter()
            .map(|member| async move { (self.changer.is_there(&member.0, member.1.facts.uid).await, member) })
            .collect();
        let mut answers = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
        while let Some((is_there, member)) = answers.next().await {
            let mut evictions = locked(&self.evictions);
            match is_there {
                Some(true) => evictions.undo(&member),
                Some(false) => evictions.answered(&set.name, &member, Answer::Evicted(0)),
                None => {}
            }
        }
    }

    /// Clears the condition of pods that have the current form: the set may have got back the one that they have.
    pub(super) async fn clear(&self, Rollout { set, members, .. }: Rollout<'_>) {
        let has_it = |pod: &PodRecord| pod.is_refused(&set.name) && pod.hash_of(&set.name) == Some(&*set.hash);
        let pods = members.carrying.iter().filter(|(_, pod)| has_it(pod)).take(MOST);
        let cleared: Vec<_> = pods.map(|(key, pod)| self.changer.clear(&set.name, key, pod.facts.uid)).collect();
        futures::stream::iter(cleared).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    /// Says in the conditions of pods that they are not evicted. Returns whether all of them say so.
    pub(super) async fn tell(&self, Rollout { set, .. }: Rollout<'_>, untold: &[(Member, String)]) -> bool {
        let told = untold
            .iter()
            .map(|((key, pod), why)| async move { (pod, self.changer.tell(&set.name, key, pod.facts.uid, why).await) });
        let told: Vec<_> = told.collect();
        let told: Vec<_> = futures::stream::iter(told).buffer_unordered(AT_ONCE).collect().await;
        let mut evictions = locked(&self.evictions);
        let are_all_told = told.iter().all(|(_, is_told)| *is_told);
        told.into_iter().filter(|(_, is_told)| *is_told).for_each(|(pod, _)| evictions.note_told(&set.name, pod));
        are_all_told
    }

    /// Changes these pods. Returns whether all of them are changed.
    pub(super) async fn carry_out(
        &self,
        rollout: Rollout<'_>,
        update: &[Chosen],
        memory: &Mutex<Memory>,
        is_current: impl Fn() -> bool,
    ) -> bool {
        let (started, mut are_changed) = (Instant::now(), true);
        for batch in update.chunks(AT_ONCE) {
            if started.elapsed() > WORK_FOR || !is_current() {
                for chosen in batch {
                    self.give_back(chosen, &rollout.set.name);
                }
                are_changed = false;
                continue;
            }
            let changes: Vec<_> = batch.iter().map(|chosen| self.change(rollout, chosen)).collect();
            let mut changes = futures::stream::iter(changes).buffer_unordered(AT_ONCE);
            while let Some((chosen, outcome)) = changes.next().await {
                are_changed &= matches!(outcome, PodOutcome::Changed | PodOutcome::Evicted(_));
                self.note(rollout, chosen, outcome, memory);
            }
        }
        are_changed
    }

    async fn change<'m>(&self, rollout: Rollout<'_>, chosen: &'m Chosen) -> (&'m Chosen, PodOutcome) {
        let (key, pod) = &chosen.member;
        let (uid, is_free) = (pod.facts.uid, !pod.ready);
        let Chosen { takes_place, is_evicted, is_first, is_replaced, .. } = *chosen;
        let as_planned = AsPlanned { uid, is_free, takes_place, is_replaced, is_evicted, is_first };
        (chosen, self.changer.update(rollout.set, key, as_planned, rollout.snapshot).await)
    }

    fn give_back(&self, chosen: &Chosen, set: &str) {
        locked(&self.expectations).strike(&chosen.member.0, set);
        if chosen.is_evicted {
            locked(&self.evictions).undo(&chosen.member);
        }
    }

    /// Takes in what became of a pod.
    fn note(&self, rollout: Rollout<'_>, chosen: &Chosen, outcome: PodOutcome, memory: &Mutex<Memory>) {
        let Chosen { member, takes_place, .. } = chosen;
        let (Rollout { set, snapshot, .. }, (key, pod), now) = (rollout, member, Instant::now());
        let (namespace, name, uid) = (&*key.namespace, &*key.name, pod.facts.uid);
        tracing::debug!(namespace, name, ?outcome, "Pod of a rollout");
        if outcome == PodOutcome::Changed {
            // The watch has not shown yet what it has.
            locked(&self.expectations).enter(key, uid, rollout.form(), *takes_place, now);
            return;
        }
        if let PodOutcome::Evicted(answer) = outcome {
            tracing::info!(set = set.name, namespace, name, "Evicted a pod for the current form of a SidecarSet");
            locked(&self.evictions).answered(&set.name, member, answer);
            return;
        }
        self.give_back(chosen, &set.name);
        if let PodOutcome::Barred(_, bar) = &outcome {
            let pods = locked(&self.pods);
            locked(&self.evictions).resume(set, member, *bar, &pods, now);
        }
        let mut memory = locked(memory);
        match outcome {
            PodOutcome::HasIt => memory.note_judgement(member, &set.hash, PodFact::HasIt, snapshot),
            PodOutcome::OpenKruise => memory.note_judgement(member, &set.hash, PodFact::OpenKruise, snapshot),
            PodOutcome::NewPodOnly(why) => memory.note_judgement(member, &set.hash, PodFact::NewPodOnly(why), snapshot),
            PodOutcome::Replaceable(why) | PodOutcome::Barred(why, _) => {
                memory.note_judgement(member, &set.hash, PodFact::Replaceable(why), snapshot);
            }
            // The watch shows it soon: planned again then.
            PodOutcome::Changed | PodOutcome::Evicted(_) | PodOutcome::Gone | PodOutcome::Stale => {
                memory.note_wait(key, uid, &set.hash, now);
            }
            PodOutcome::Forbidden(why) => {
                tracing::warn!(
                    namespace,
                    name,
                    why,
                    "No pod of the namespace may be evicted; allow it by the chart's value rollouts.evict"
                );
                locked(&self.evictions).forbid(&key.namespace, why.clone(), now);
                // Others come first where the right is there.
                memory.note_blocked(key, uid, &set.hash, (why, Duration::ZERO), now);
            }
            PodOutcome::Blocked(why, after) => memory.note_blocked(key, uid, &set.hash, (why, after), now),
            PodOutcome::Failed(why) => {
                tracing::warn!(namespace, name, why, "A pod cannot be changed, trying again");
                memory.note_failure(key, uid, &set.hash, why, now);
            }
        }
    }
}
