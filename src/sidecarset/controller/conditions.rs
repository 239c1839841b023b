//! The conditions of a set, from what was found. Pure; the texts are what `kubectl describe` shows.

use std::fmt;

use jiff::Timestamp;

use crate::controller::conditions::{since, whole_seconds};
use crate::sidecarset::controller::bar::Barred;
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::controller::memory::{Memory, OVERDUE_AFTER};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::progress;
use crate::sidecarset::controller::replicas::Knowledge;
use crate::sidecarset::rollout::Waits;
use engine::findings::Refused;
use engine::sidecarset::api::{Condition, SidecarSetStatus};

/// Whether the next pod that the set selects gets it: every replica that answers goes by this generation.
pub const READY: &str = "Ready";
/// Whether every pod that carries the set serves.
pub const AVAILABLE: &str = "Available";
/// Whether running pods follow the set, or have followed it.
pub const PROGRESSING: &str = "Progressing";
/// Whether pods go without the set, or without its current form, and stay so unless somebody does something.
pub const DEGRADED: &str = "Degraded";
/// Whether another set brings something that this one brings as well.
pub const CONFLICT: &str = "Conflict";

/// The longest text of another source that is repeated, in characters.
const LONGEST: usize = 512;

/// What the conditions are made from.
#[derive(Debug)]
pub struct Found<'f> {
    /// The numbers.
    pub counts: Counts,
    /// Why no more pods are touched now.
    pub waits: Waits,
    /// Workloads of which no more pods are evicted.
    pub barred: &'f Barred,
    /// What is remembered of pods.
    pub memory: &'f Memory,
    /// How many pods are in the middle of a hot upgrade, and the first of them.
    pub upgrading: (usize, Option<&'f PodKey>),
    /// The first pod that lacks the set and stays as it is.
    pub uninjected: Option<&'f PodKey>,
    /// Whether injection is paused.
    pub paused: bool,
    /// Why new pods cannot have the older form that the set names for them.
    pub no_revision: Option<&'f str>,
    /// What the replicas know.
    pub knowledge: &'f Knowledge,
    /// Whether the API server is known to ask about its pods; nothing where it asks about all.
    pub covered: Option<bool>,
    /// Other sets, and what they bring as well.
    pub conflicts: &'f [(String, String)],
    /// Namespaces that refuse new pods with the set.
    pub refused: &'f Refused,
}

/// A condition without the time.
struct SetStatement {
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The conditions. The time of each stays as it was unless its status changed.
pub fn conditions(found: &Found<'_>, stored: Option<&SidecarSetStatus>, now: Timestamp) -> Vec<Condition> {
    let stored = stored.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let all = [ready(found, stored), available(found), progressing(found), degraded(found), conflict(found)];
    let generation = Some(found.counts.observed_generation);
    let condition = |SetStatement { type_, status, reason, message }: SetStatement| {
        let before = stored.iter().find(|before| before.type_ == type_);
        let before = before.map(|before| (before.status.as_str(), before.last_transition_time.clone()));
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            observed_generation: generation,
            last_transition_time: since(before, status, whole_seconds(now).0.to_string()),
            reason: reason.to_owned(),
            message,
        }
    };
    all.into_iter().map(condition).collect()
}

fn ready(found: &Found<'_>, stored: &[Condition]) -> SetStatement {
    let statement =
        |status, reason, message: &str| SetStatement { type_: READY, status, reason, message: message.to_owned() };
    if found.paused {
        let message = "Injection is paused (spec.injectionStrategy.paused): new pods go without the set.";
        return statement("False", "InjectionPaused", message);
    }
    if let Some(why) = found.no_revision {
        return statement("False", "RevisionUnusable", &format!("New pods cannot have the set: {}.", shortened(why)));
    }
    if found.covered == Some(false) {
        let message = "The webhook configuration does not cover the set yet: new pods go without it.";
        return statement("False", "NotProgrammed", message);
    }
    match found.knowledge {
        Knowledge::All(replicas) => {
            let who = if *replicas == 1 { "The replica".to_owned() } else { format!("All {replicas} replicas") };
            let message = format!("{who} of Outrider inject this generation into new pods.");
            statement("True", "Known", &message.replace("replica of Outrider inject ", "replica of Outrider injects "))
        }
        Knowledge::AsTold => {
            let told = stored.iter().find(|condition| condition.type_ == READY);
            statement("True", "Known", told.map_or("", |told| told.message.as_str()))
        }
        Knowledge::Lacking(replica) => {
            let message = format!("The replica at {replica} does not know this generation yet.");
            statement("False", "ReplicaBehind", &message)
        }
        Knowledge::NotRegistered => {
            let message =
                "The webhook configuration outrider-mutating has no entry for pods: new pods go without the set.";
            statement("False", "NotRegistered", message)
        }
        Knowledge::Unknown(why) => statement("Unknown", "ReplicasUnknown", &shortened(why)),
    }
}

fn available(found: &Found<'_>) -> SetStatement {
    let Counts { matched_pods, ready_pods, .. } = found.counts;
    let (status, reason) = if ready_pods == matched_pods { ("True", "PodsReady") } else { ("False", "PodsNotReady") };
    let message = format!("{ready_pods} of {matched_pods} pods that carry the set are ready.");
    SetStatement { type_: AVAILABLE, status, reason, message }
}

fn progressing(found: &Found<'_>) -> SetStatement {
    let (status, reason, message) = progress::of(found);
    SetStatement { type_: PROGRESSING, status, reason, message }
}

fn degraded(found: &Found<'_>) -> SetStatement {
    let mut reasons = Vec::new();
    let mut texts = Vec::new();
    if let (pods @ 1.., Some(first)) = (found.counts.uninjected_pods, found.uninjected) {
        reasons.push("PodsUninjected");
        let how = "Pods that run already are never injected: create them anew";
        let lack = counted(pods, "selected pod lacks", "selected pods lack");
        texts.push(format!("{lack} the set, {} first. {how}.", named(first)));
    }
    if let (pods @ 1.., Some((first, why))) = found.memory.new_pods_only() {
        reasons.push("NotUpdatableInPlace");
        let first = format!("{} first ({})", named(first), shortened(why));
        let pods = counted(pods, "pod", "pods");
        texts.push(format!("{pods} cannot take the current form while running, {first}. Create such pods anew."));
    }
    if let (workloads @ 1.., Some(first)) = &found.barred.not_replaced {
        reasons.push("PodsNotReplaced");
        let workloads = counted(*workloads, "workload has", "workloads have");
        let what = format!("{workloads} not replaced a pod that was evicted, {} first", named(first));
        texts.push(format!("{what}. No more of their pods are evicted until they have a new one."));
    }
    if let (workloads @ 1.., Some(first)) = &found.barred.outdated {
        reasons.push("NewPodsOutdated");
        let workloads = counted(*workloads, "workload", "workloads");
        let what = format!("New pods of {workloads} lack the current form, as {}", named(first));
        let how = "Look for an older form of the set in their templates, or for another webhook";
        texts.push(format!("{what}. No more of their pods are evicted until the set changes. {how}."));
    }
    if let (pods @ 1.., Some((first, why))) = found.memory.failures() {
        reasons.push("PodsFailing");
        let pods = counted(pods, "pod", "pods");
        texts.push(format!("{pods} could not be changed, {} first: {}.", named(first), shortened(why)));
    }
    if let (pods @ 1.., Some((first, why))) = found.memory.not_ended() {
        reasons.push("PodsFailing");
        let what = format!("The hot upgrade of {} cannot be ended", counted(pods, "pod", "pods"));
        texts.push(format!("{what}, {} first: {}. Both containers of the pair run on.", named(first), shortened(why)));
    }
    if let (pods @ 1.., Some(first)) = found.memory.overdue() {
        reasons.push("PodsFailing");
        let minutes = OVERDUE_AFTER.as_secs() / 60;
        let pods = counted(pods, "pod is", "pods are");
        let what = format!("{pods} not ready {minutes} minutes after the change");
        texts.push(format!("{what}, {} first. Correct the set, or see what the pod waits for.", named(first)));
    }
    if let Refused { namespaces: namespaces @ 1.., first } = found.refused {
        reasons.push("NewPodsRefused");
        let namespaces = counted(*namespaces, "namespace", "namespaces");
        let what = format!("New pods are refused in {namespaces}: {}", first.join("; "));
        texts.push(format!("{what}. Correct the set, or exclude these namespaces from it."));
    }
    match reasons.first() {
        Some(reason) => SetStatement { type_: DEGRADED, status: "True", reason, message: texts.join(" ") },
        None => SetStatement { type_: DEGRADED, status: "False", reason: "AsExpected", message: String::new() },
    }
}

fn conflict(found: &Found<'_>) -> SetStatement {
    match found.conflicts.first() {
        None => SetStatement { type_: CONFLICT, status: "False", reason: "NoConflict", message: String::new() },
        Some((_, what)) => {
            let others = counted(found.conflicts.len(), "SidecarSet", "SidecarSets");
            let message = format!("{} (with {others}; in a pod of both the earlier wins)", shortened(what));
            SetStatement { type_: CONFLICT, status: "True", reason: "SetConflict", message }
        }
    }
}

/// A number, and the words for one or for many.
pub fn counted<N: fmt::Display + Copy + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let words = if number == N::from(1) { one } else { many };
    format!("{number} {words}")
}

/// Namespace and name.
pub fn named(pod: &PodKey) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// The text, or its beginning.
pub fn shortened(text: &str) -> String {
    admission::bounded::ellipsis(text, LONGEST)
}

/// Whether a set is said to be in conflict with another.
pub fn has_conflict(status: Option<&SidecarSetStatus>) -> bool {
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == CONFLICT && condition.status == "True")
}

/// What has just begun, from the stored conditions and the new ones: type, reason and message of an event, and whether it warns.
/// Each is reported once while it lasts.
pub fn news(old: &[Condition], new: &[Condition]) -> Vec<(bool, String, String)> {
    let mut news = Vec::new();
    for condition in new {
        let before = old.iter().find(|before| before.type_ == condition.type_);
        let changed =
            before.is_none_or(|before| (&before.status, &before.reason) != (&condition.status, &condition.reason));
        let warns = match (condition.type_.as_str(), condition.status.as_str(), condition.reason.as_str()) {
            (DEGRADED | CONFLICT, "True", _)
            | (
                PROGRESSING,
                "False",
                "Failing"
                | "InvalidStrategy"
                | "NewPodsOnly"
                | "EvictionForbidden"
                | "SeveralDisruptionBudgets"
                | "PodsNotReplaced"
                | "NewPodsOutdated",
            ) => true,
            (PROGRESSING, "False", "Paused") | (READY, "False", "InjectionPaused") => false,
            // Not for a set that has never had a pod to follow.
            (PROGRESSING, "True", "Complete") if before.is_some_and(|before| before.reason != "Complete") => false,
            _ => continue,
        };
        if changed {
            let reason = if condition.reason == "Complete" { "RolloutComplete" } else { condition.reason.as_str() };
            news.push((warns, reason.to_owned(), condition.message.clone()));
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sidecarset::controller::memory::PodFact;
    use crate::sidecarset::controller::record::tests::pod;

    const COUNTS: Counts = Counts {
        observed_generation: 2,
        matched_pods: 3,
        updated_pods: 3,
        ready_pods: 3,
        updated_ready_pods: 3,
        uninjected_pods: 0,
    };

    const NONE: &Barred = &Barred { outdated: (0, None), not_replaced: (0, None) };

    const NOTHING_REFUSED: &Refused = &Refused { namespaces: 0, first: Vec::new() };

    fn found<'f>(memory: &'f Memory, knowledge: &'f Knowledge) -> Found<'f> {
        Found {
            counts: COUNTS,
            waits: Waits::Done,
            barred: NONE,
            memory,
            upgrading: (0, None),
            uninjected: None,
            paused: false,
            no_revision: None,
            knowledge,
            covered: None,
            conflicts: &[],
            refused: NOTHING_REFUSED,
        }
    }

    fn texts(found: &Found<'_>) -> Vec<String> {
        let all = conditions(found, None, Timestamp::UNIX_EPOCH);
        all.iter().map(|it| format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message)).collect()
    }

    #[test]
    fn a_set_in_order_says_so_in_every_condition() {
        let (memory, knowledge) = (Memory::default(), Knowledge::All(2));
        assert_eq!(
            texts(&found(&memory, &knowledge)),
            [
                "Ready=True Known: All 2 replicas of Outrider inject this generation into new pods.",
                "Available=True PodsReady: 3 of 3 pods that carry the set are ready.",
                "Progressing=True Complete: 3 of 3 pods carry the current form, and all of them are ready.",
                "Degraded=False AsExpected: ",
                "Conflict=False NoConflict: ",
            ]
        );
    }

    #[test]
    fn ready_is_true_only_when_the_next_pod_has_the_set() {
        let memory = Memory::default();
        let (all, behind) = (Knowledge::All(1), Knowledge::Lacking("10.0.0.1:8081".to_owned()));
        let unknown = Knowledge::Unknown("nobody answers".to_owned());
        let ready = |found: &Found<'_>| texts(found).swap_remove(0);
        assert_eq!(
            ready(&found(&memory, &all)),
            "Ready=True Known: The replica of Outrider injects this generation into new pods."
        );
        for (found, expected) in [
            (Found { paused: true, ..found(&memory, &all) }, "Ready=False InjectionPaused"),
            (
                Found { no_revision: Some("it is gone"), ..found(&memory, &all) },
                "Ready=False RevisionUnusable: New pods cannot have the set: it is gone.",
            ),
            (Found { covered: Some(false), ..found(&memory, &all) }, "Ready=False NotProgrammed"),
            (Found { covered: Some(true), ..found(&memory, &all) }, "Ready=True"),
            (found(&memory, &behind), "Ready=False ReplicaBehind: The replica at 10.0.0.1:8081 does not know"),
            (found(&memory, &Knowledge::NotRegistered), "Ready=False NotRegistered"),
            (found(&memory, &unknown), "Ready=Unknown ReplicasUnknown: nobody answers"),
        ] {
            assert!(ready(&found).starts_with(expected), "{}", ready(&found));
        }
    }

    #[test]
    fn degraded_names_the_first_pod_and_why() {
        let (mut memory, knowledge) = (Memory::default(), Knowledge::All(1));
        let key = PodKey::of(&pod("p", "web", &[], true));
        memory.note(&key, 1, "h", PodFact::NewPodOnly("container \"a\" differs in env".to_owned()));
        let found = Found {
            counts: Counts { uninjected_pods: 2, ..COUNTS },
            uninjected: Some(&key),
            ..found(&memory, &knowledge)
        };
        assert_eq!(
            texts(&found)[3],
            "Degraded=True PodsUninjected: 2 selected pods lack the set, default/p first. Pods that run already are never injected: \
             create them anew. 1 pod cannot take the current form while running, default/p first (container \"a\" differs in env). \
             Create such pods anew."
        );
    }

    #[test]
    fn a_hot_upgrade_that_cannot_be_ended_degrades_the_set() {
        let (mut memory, knowledge) = (Memory::default(), Knowledge::All(1));
        let key = PodKey::of(&pod("p", "web", &[], true));
        for _ in 0..2 {
            memory.note_hand_over(&key, 1, Some("denied by a webhook".to_owned()));
        }
        assert_eq!(
            texts(&found(&memory, &knowledge))[3],
            "Degraded=True PodsFailing: The hot upgrade of 1 pod cannot be ended, default/p first: denied by a webhook. Both containers \
             of the pair run on."
        );
    }

    #[test]
    fn workloads_whose_pods_are_not_evicted_any_more_are_named_and_why() {
        let (memory, knowledge) = (Memory::default(), Knowledge::All(1));
        let key = |name: &str| Some(PodKey::of(&pod(name, "web", &[], true)));
        let barred = Barred { outdated: (1, key("new")), not_replaced: (2, key("old")) };
        let found = Found { barred: &barred, ..found(&memory, &knowledge) };
        assert_eq!(
            texts(&found)[3],
            "Degraded=True PodsNotReplaced: 2 workloads have not replaced a pod that was evicted, default/old first. No more of their \
             pods are evicted until they have a new one. New pods of 1 workload lack the current form, as default/new. No more of \
             their pods are evicted until the set changes. Look for an older form of the set in their templates, or for another webhook."
        );
    }

    #[test]
    fn namespaces_that_refuse_new_pods_degrade_the_set() {
        let (memory, knowledge) = (Memory::default(), Knowledge::All(1));
        let first = ["n1", "n2"].map(|name| format!("namespace {name} enforces the pod security level baseline: why"));
        let one = Refused { namespaces: 1, first: vec!["why".to_owned()] };
        let conflicts = [("b".to_owned(), "spec.x".to_owned())];
        let of_one = texts(&Found { refused: &one, conflicts: &conflicts, ..found(&memory, &knowledge) });
        assert!(of_one[3].contains(": New pods are refused in 1 namespace: why."), "{of_one:?}");
        assert!(of_one[4].ends_with(": spec.x (with 1 SidecarSet; in a pod of both the earlier wins)"), "{of_one:?}");
        let refused = Refused { namespaces: 7, first: first.into() };
        let found = Found { refused: &refused, ..found(&memory, &knowledge) };
        assert_eq!(
            texts(&found)[3],
            "Degraded=True NewPodsRefused: New pods are refused in 7 namespaces: namespace n1 enforces the pod security level \
             baseline: why; namespace n2 enforces the pod security level baseline: why. Correct the set, or exclude these namespaces \
             from it."
        );
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_alone() {
        let (memory, knowledge) = (Memory::default(), Knowledge::All(1));
        let found = found(&memory, &knowledge);
        let first = conditions(&found, None, "2026-01-01T00:00:00.5Z".parse().unwrap());
        assert_eq!(first[0].last_transition_time, "2026-01-01T00:00:00Z");
        let stored: SidecarSetStatus = serde_json::from_value(json!({"conditions": first})).unwrap();
        let later: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        assert_eq!(conditions(&found, Some(&stored), later), first);
        let changed = conditions(&Found { paused: true, ..found }, Some(&stored), later);
        assert_eq!(changed[0].last_transition_time, "2026-01-01T00:01:00Z");
        assert_eq!(changed[1], first[1]);
    }

    #[test]
    fn an_event_tells_what_begins_and_once() {
        let (mut memory, knowledge) = (Memory::default(), Knowledge::All(1));
        let all = |found: &Found<'_>| conditions(found, None, Timestamp::UNIX_EPOCH);
        let fine = all(&found(&memory, &knowledge));
        assert_eq!(news(&[], &fine), []);
        let rolling = all(&Found { waits: Waits::Nothing, ..found(&memory, &knowledge) });
        assert_eq!(news(&fine, &rolling), []);
        let done = news(&rolling, &fine);
        assert_eq!((done.len(), done[0].0, done[0].1.as_str()), (1, false, "RolloutComplete"));
        let paused = all(&Found { waits: Waits::Paused, ..found(&memory, &knowledge) });
        assert_eq!(news(&rolling, &paused).len(), 1);

        memory.note(&PodKey::of(&pod("p", "web", &[], true)), 1, "h", PodFact::NewPodOnly("why".to_owned()));
        let degraded = all(&found(&memory, &knowledge));
        let told = news(&fine, &degraded);
        assert_eq!((told.len(), told[0].0, told[0].1.as_str()), (1, true, "NotUpdatableInPlace"));
        assert_eq!(news(&degraded, &degraded), [], "while it lasts it is not told again");
    }
}
