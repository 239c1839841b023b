//! The second half of hot upgrades: once the containers that were started serve, they take over, and the others wait for the next one.
//!
//! What is to be done follows from the pod alone, so that any leader ends what another has begun.

use std::time::Duration;

use engine::pod::in_place::hand_over;
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::Patch;
use serde::Deserialize as _;

use crate::field_managers::{SIDECARSET, patching};
use crate::sidecarset::controller::change::{PodChanger, PodOutcome, in_time};
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::Member;
use crate::sidecarset::controller::pod_patch::patch;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::rollout::{AT_ONCE, MOST, Rollout, Rollouts};
use crate::sidecarset::controller::watched_pod::WatchedPod;
use crate::sidecarset::rollout::strategy::Strategy;

/// When pods are tried again whose containers could not take over.
const PAUSE: Duration = Duration::from_secs(5);

impl Rollouts {
    /// Lets new containers of the set take over in the pods where they serve, while `is_current` says that the set is still the same. A pod
    /// has its place in the budgets already, and keeps it until both containers run what they are to. Returns when to try again.
    pub(super) async fn hand_over(
        &self,
        rollout: Rollout<'_>,
        strategy: &Strategy,
        is_current: impl Fn() -> bool,
    ) -> Option<Duration> {
        let (set, memory) = (rollout.set, self.memory(&rollout.set.name));
        if strategy.not_update || strategy.paused {
            locked(&memory).prune_hand_overs(&[]);
            return None;
        }
        let mut due: Vec<&Member> = rollout.members.carrying.iter().filter(|(_, pod)| is_due(set, pod)).collect();
        locked(&memory).prune_hand_overs(&due);
        due.truncate(MOST);
        let mut again = (due.len() == MOST).then_some(Duration::ZERO);
        for batch in due.chunks(AT_ONCE) {
            if !is_current() {
                return Some(Duration::ZERO);
            }
            let all: Vec<_> = batch
                .iter()
                .map(|member| async move { (member, self.changer.hand_over(set, member, rollout.snapshot).await) })
                .collect();
            let mut all = futures::stream::iter(all).buffer_unordered(AT_ONCE);
            while let Some(((key, pod), outcome)) = all.next().await {
                let (namespace, name) = (&*key.namespace, &*key.name);
                tracing::debug!(namespace, name, ?outcome, "Pod in the middle of a hot upgrade");
                if let PodOutcome::Failed(why) = &outcome {
                    tracing::warn!(namespace, name, why, "A hot upgrade cannot be ended, trying again");
                }
                if matches!(outcome, PodOutcome::Failed(_) | PodOutcome::Stale) {
                    again = again.or(Some(PAUSE));
                }
                match outcome {
                    PodOutcome::Failed(why) => locked(&memory).note_hand_over(key, pod.facts.uid, Some(why)),
                    // Another client writes it at the same time.
                    PodOutcome::Stale => {}
                    _ => locked(&memory).note_hand_over(key, pod.facts.uid, None),
                }
            }
        }
        again
    }
}

/// Into a pod that has an older form of a must, only the current form may come.
fn is_due(set: &CompiledSet, pod: &PodRecord) -> bool {
    pod.is_due(&set.name) && !(set.is_must() && pod.recorded_hash_of(&set.name) != Some(&*set.hash))
}

impl PodChanger {
    async fn hand_over(&self, set: &CompiledSet, (key, record): &Member, snapshot: &Snapshot) -> PodOutcome {
        let pod = match self.read(key, record.facts.uid).await {
            Ok(Some(pod)) => pod,
            Ok(None) => return PodOutcome::Gone,
            Err(failure) => return failure.outcome(),
        };
        // As it is stored, which the watch may not have shown yet.
        let due = WatchedPod::deserialize(&pod).ok().and_then(|pod| pod.due().remove(&set.name));
        let Some(started) = due else { return PodOutcome::HasIt };
        let change = match hand_over(&pod, &key.namespace, &set.name, &started, snapshot) {
            Ok(Some(change)) => change,
            Ok(None) => return PodOutcome::HasIt,
            Err(unserved) => return PodOutcome::Failed(unserved.to_string()),
        };
        let patch = patch(&pod, set, &change, record.is_touched(&set.name), Timestamp::now());
        let (params, patch) = (patching(SIDECARSET), Patch::Strategic(&patch));
        match in_time(self.pods(&key.namespace).patch(&key.name, &params, &patch)).await {
            Ok(_) => PodOutcome::Changed,
            Err(failure) => failure.outcome(),
        }
    }
}

#[cfg(test)]
#[path = "hand_over_tests.rs"]
#[allow(clippy::needless_pass_by_value)]
mod tests;
