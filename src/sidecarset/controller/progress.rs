//! How far the rollout of a set is, and what it waits for, in words.

use crate::sidecarset::controller::conditions::{Found, counted, named, shortened};
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::rollout::{EvictionsWait, Waits};

/// Status, reason and message.
pub fn of(found: &Found<'_>) -> (&'static str, &'static str, String) {
    let Counts { matched_pods, updated_ready_pods, .. } = found.counts;
    let so_far = so_far(found);
    match &found.waits {
        Waits::Done if updated_ready_pods == matched_pods => {
            ("True", "Complete", format!("{so_far}, and all of them are ready."))
        }
        Waits::Done => ("True", "WaitingForPods", format!("{so_far}; {updated_ready_pods} of them are ready.")),
        Waits::NotUpdate => {
            let why = "running pods are not updated (spec.updateStrategy.type: NotUpdate)";
            ("False", "NotUpdate", format!("{so_far}; {why}."))
        }
        Waits::Paused => ("False", "Paused", format!("{so_far}; the rollout is paused (spec.updateStrategy.paused).")),
        Waits::Kept => {
            let why = "spec.updateStrategy keeps the others (partition, selector)";
            ("False", "Kept", format!("{so_far}; {why}."))
        }
        Waits::MaxUnavailable(most) => {
            let why =
                format!("{most} may be unavailable at a time, and as many are (spec.updateStrategy.maxUnavailable)");
            ("True", "WaitingForPods", format!("{so_far}; {why}."))
        }
        Waits::MaxUnavailablePerOwner => {
            let why =
                "of one workload as many pods are unavailable as may be (spec.updateStrategy.maxUnavailablePerOwner)";
            ("True", "WaitingForPods", format!("{so_far}; {why}."))
        }
        Waits::Disruption(namespace, name) => {
            let why = format!("PodDisruptionBudget {namespace}/{name} allows no further disruption now");
            ("True", "WaitingForDisruptionBudget", format!("{so_far}; {why}."))
        }
        Waits::SeveralDisruptions(namespace, first, second) => {
            let what = format!("PodDisruptionBudgets {first} and {second} select one pod in namespace {namespace}");
            let why = "the Eviction API evicts no pod of several budgets: remove or narrow one of them";
            ("False", "SeveralDisruptionBudgets", format!("{so_far}; {what}, and {why}."))
        }
        Waits::Evictions(waits) => evictions(waits, found, &so_far),
        Waits::NewPodOnly => {
            let why = "the others can only be created anew";
            ("False", "NewPodsOnly", format!("{so_far}; {why}."))
        }
        Waits::OpenKruise => {
            let why = "the others were injected by OpenKruise and stay as they are until they are created anew";
            ("False", "InjectedByOpenKruise", format!("{so_far}; {why}."))
        }
        Waits::Failed => {
            ("False", "Failing", format!("{so_far}; the others could not be changed and are tried again."))
        }
        Waits::UnknownDisruptions(why) => {
            let why = format!("no pod is changed while PodDisruptionBudgets cannot be listed: {}", shortened(why));
            ("False", "Failing", format!("{so_far}; {why}."))
        }
        Waits::Unreadable => {
            let why = "no pod is changed, as spec.updateStrategy cannot be read (selector, partition); correct it";
            ("False", "InvalidStrategy", format!("{so_far}; {why}."))
        }
        Waits::Nothing => ("True", "RollingOut", format!("{so_far}.")),
    }
}

fn so_far(found: &Found<'_>) -> String {
    let Counts { matched_pods, updated_pods, uninjected_pods, .. } = found.counts;
    // Those that stay as they are degrade the set.
    let lacking = match found.uninjected {
        None if uninjected_pods > 0 => {
            format!(", and {} the set", counted(uninjected_pods, "selected pod lacks", "selected pods lack"))
        }
        _ => String::new(),
    };
    let upgrading = match found.upgrading {
        (pods @ 1.., Some(first)) => {
            let what = "a new container has not taken over yet (hot upgrade)";
            format!("; in {} {what}, {} first", counted(pods, "pod", "pods"), named(first))
        }
        _ => String::new(),
    };
    format!("{updated_pods} of {matched_pods} pods carry the current form{lacking}{upgrading}")
}

fn evictions(waits: &EvictionsWait, found: &Found<'_>, so_far: &str) -> (&'static str, &'static str, String) {
    match waits {
        EvictionsWait::Successors => {
            let why = "new pods in place of evicted ones are waited for";
            ("True", "WaitingForPods", format!("{so_far}; {why}."))
        }
        EvictionsWait::NewPods(why) => {
            let what = "no pod is evicted until new pods get the current form";
            let why = shortened(why);
            ("True", "WaitingForReady", format!("{so_far}; {what}: {}.", why.trim_end_matches('.')))
        }
        EvictionsWait::EarlierLeader => {
            let why = "no pod is evicted until what an earlier leader may have evicted is back";
            ("True", "WaitingForPods", format!("{so_far}; {why}."))
        }
        EvictionsWait::Failures { namespaces, is_all, are_lost } => {
            let (reason, what) = if *are_lost {
                ("PodsNotReplaced", "have not replaced a pod")
            } else {
                ("NewPodsOutdated", "have replaced a pod by one without the current form")
            };
            let scope = if *is_all { "no pod is evicted" } else { "no more of their pods are evicted" };
            let namespaces = counted(*namespaces, "namespace", "namespaces");
            let what = format!("workloads of {namespaces} {what} within the last hour, and {scope}");
            let how = "see why new pods are not created, or what else changes them";
            ("False", reason, format!("{so_far}; {what}: {how}."))
        }
        EvictionsWait::Rolling => {
            let why = "no pod is evicted of workloads whose controllers are replacing all of their pods themselves";
            ("True", "WaitingForPods", format!("{so_far}; {why}."))
        }
        EvictionsWait::Blocked => {
            let said = found.memory.blocked().1.map_or("", |(_, why)| why);
            let why = format!("the API server does not evict a pod now: {}", shortened(said).trim_end_matches('.'));
            ("True", "WaitingForDisruptionBudget", format!("{so_far}; {why}."))
        }
        EvictionsWait::Forbidden(said) => {
            let why = "the service account may not evict pods (create pods/eviction), which the chart's value rollouts.evict allows";
            ("False", "EvictionForbidden", format!("{so_far}; {why}: {}", shortened(said)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::sidecarset::controller::bar::Barred;
    use crate::sidecarset::controller::memory::Memory;
    use crate::sidecarset::controller::pods::PodKey;
    use crate::sidecarset::controller::record::tests::pod;
    use crate::sidecarset::controller::replicas::Knowledge;
    use engine::findings::Refused;

    #[test]
    fn what_evictions_wait_for_is_said() {
        let mut memory = Memory::default();
        let (key, now) = (PodKey::of(&pod("p", "web", &[], true)), Instant::now());
        memory.note_blocked(&key, 1, "h", ("Cannot evict pod.".to_owned(), std::time::Duration::ZERO), now);
        let counts = Counts { matched_pods: 3, updated_pods: 1, ..Counts::default() };
        let (barred, knowledge) = (Barred::default(), Knowledge::All(1));
        let said = |waits: Waits| {
            let (status, reason, message) = of(&Found {
                counts,
                waits,
                barred: &barred,
                memory: &memory,
                upgrading: (0, None),
                uninjected: None,
                paused: false,
                no_revision: None,
                knowledge: &knowledge,
                covered: None,
                conflicts: &[],
                refused: &Refused::default(),
            });
            format!("{status} {reason}: {message}")
        };
        let several = Waits::SeveralDisruptions("shop".to_owned(), "a".to_owned(), "b".to_owned());
        let so_far = "1 of 3 pods carry the current form";
        for (waits, expected) in [
            (
                several,
                format!(
                    "False SeveralDisruptionBudgets: {so_far}; PodDisruptionBudgets a and b select one pod in namespace shop, and the \
                     Eviction API evicts no pod of several budgets: remove or narrow one of them."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::Successors),
                format!("True WaitingForPods: {so_far}; new pods in place of evicted ones are waited for."),
            ),
            (
                Waits::Evictions(EvictionsWait::NewPods("see the condition Ready".to_owned())),
                format!(
                    "True WaitingForReady: {so_far}; no pod is evicted until new pods get the current form: see the condition Ready."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::EarlierLeader),
                format!(
                    "True WaitingForPods: {so_far}; no pod is evicted until what an earlier leader may have evicted is back."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::Failures { namespaces: 3, is_all: true, are_lost: true }),
                format!(
                    "False PodsNotReplaced: {so_far}; workloads of 3 namespaces have not replaced a pod within the last hour, and no pod \
                     is evicted: see why new pods are not created, or what else changes them."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::Failures { namespaces: 1, is_all: false, are_lost: false }),
                format!(
                    "False NewPodsOutdated: {so_far}; workloads of 1 namespace have replaced a pod by one without the current form \
                     within the last hour, and no more of their pods are evicted: see why new pods are not created, or what else \
                     changes them."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::Rolling),
                format!(
                    "True WaitingForPods: {so_far}; no pod is evicted of workloads whose controllers are replacing all of their pods \
                     themselves."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::Blocked),
                format!(
                    "True WaitingForDisruptionBudget: {so_far}; the API server does not evict a pod now: Cannot evict pod."
                ),
            ),
            (
                Waits::Evictions(EvictionsWait::Forbidden("no".to_owned())),
                format!(
                    "False EvictionForbidden: {so_far}; the service account may not evict pods (create pods/eviction), which the \
                     chart's value rollouts.evict allows: no"
                ),
            ),
        ] {
            assert_eq!(said(waits), expected);
        }
    }
}
