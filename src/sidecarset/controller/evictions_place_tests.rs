//! Whose place an evicted pod leaves, and who has it by when.

use kube::Resource as _;
use serde_json::json;

use super::tests::{OLD, Stage, at, of};
use super::*;
use crate::sidecarset::controller::evicted::NOT_REPLACED_AFTER;
use crate::sidecarset::controller::injection_counts::tests::set;

impl Stage {
    /// The set has another form.
    fn changes(&mut self, image: &str) {
        self.set = set(&json!({"containers": [{"name": "a-c", "image": image}]}));
    }

    /// As [`Self::evict`], for this set.
    fn evict_for(&mut self, set: &CompiledSet, name: &str, served: bool) {
        let member = self.member(name);
        assert!(self.evictions.begin(set, &member, served, (&self.index, &mut HashSet::new()), self.start));
        let created = Answer::Evicted(at("2026-01-01T00:00:10Z"));
        self.evictions.answered(&set.name, &member, created);
    }

    fn vacant_for(&mut self, set: &CompiledSet, time: Duration) -> usize {
        self.evictions.update(set, true, &self.index, self.start + time);
        self.evictions.vacancies(set, &self.index, self.start + time).len()
    }
}

/// A form whose pods do not start is corrected: its pods are evicted in their turn.
#[test]
fn a_new_pod_that_is_evicted_keeps_the_place_that_it_was_in_and_one_more_new_pod_takes_it() {
    for does_old_pod_end in [true, false] {
        let mut stage = Stage::of(&["p", "left"]);
        stage.evict("p");
        if does_old_pod_end {
            stage.gone("p");
        } else {
            stage.ends("p");
        }
        let bad = stage.current();
        stage.comes("new", &bad, false);
        assert_eq!(stage.vacant(), 1);
        stage.changes("proxy:3");
        assert_eq!((stage.vacant(), stage.allowance()), (1, Allowance::First));
        let set = set(&json!({"containers": [{"name": "a-c", "image": "proxy:3"}]}));
        stage.evict_for(&set, "new", false);
        stage.gone("new");
        stage.gone("p");
        assert_eq!(stage.vacant(), 1, "the workload lacks one pod");
        let (good, late) = (stage.current(), NOT_REPLACED_AFTER * 2);
        stage.comes("newer", &good, false);
        assert_eq!(
            (stage.vacant_after(late), stage.allowance()),
            (1, Allowance::Free),
            "not one that was not replaced"
        );
        stage.comes("newer", &good, true);
        assert_eq!((stage.vacant_after(late), stage.barred()), (0, Barred::default()));
    }
}

/// The new pod served not, but the pod before it did: edits of a form that does not start give no further places.
#[test]
fn the_place_of_a_pod_that_served_stays_one_however_often_the_pod_in_it_is_evicted() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    for n in 3..6 {
        let form = stage.current();
        let name = format!("new-{n}");
        stage.comes(&name, &form, false);
        stage.vacant();
        stage.changes(&format!("proxy:{n}"));
        let set = set(&json!({"containers": [{"name": "a-c", "image": format!("proxy:{n}")}]}));
        stage.vacant();
        stage.evict_for(&set, &name, false);
        stage.gone(&name);
        let places = stage.vacancies_after(Duration::ZERO);
        assert_eq!(places.iter().map(|it| it.served).collect::<Vec<_>>(), [true]);
    }
}

#[test]
fn a_new_pod_that_is_not_evicted_after_all_stays_in_its_place() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("new", &current, false);
    stage.vacant();
    let member = stage.asked("new");
    stage.evictions.undo(&member);
    assert_eq!(stage.vacant(), 1);
    stage.comes("new", &current, true);
    assert_eq!(stage.vacant(), 0);
}

/// Each judges the new pods in the places of its own, whichever takes them in first.
#[test]
fn a_new_pod_that_another_set_sees_first_is_judged_by_the_set_that_it_came_for() {
    let mut stage = Stage::of(&["p", "q", "left"]);
    let mut other = set(&json!({"containers": [{"name": "b-c", "image": "proxy:1"}]}));
    "b".clone_into(&mut other.name);
    stage.evict("q");
    stage.evict_for(&other, "p", true);
    stage.gone("p");
    stage.gone("q");
    let current = stage.current();
    // They have the form of `a`, and not that of `b`.
    stage.comes("new-1", &current, true);
    stage.comes("new-2", &current, true);
    assert_eq!((stage.vacant(), stage.allowance()), (0, Allowance::Free));
    let new = stage.member("new-2").1;
    assert!(stage.evictions.unjudged().contains(&new.facts.uid), "it stays until that is known");
    assert_eq!(stage.vacant_for(&other, Duration::ZERO), 0);
    let owner = new.facts.owner;
    assert_eq!(stage.evictions.allowance(&other, owner), Allowance::Barred(Bar::Outdated));
    assert_eq!((stage.vacant(), stage.allowance()), (0, Allowance::Free));
    assert!(!stage.evictions.unjudged().contains(&new.facts.uid));
}

#[test]
fn a_place_that_another_set_takes_over_is_one_of_both() {
    let mut stage = Stage::of(&["p", "left"]);
    let mut other = set(&json!({"containers": [{"name": "b-c", "image": "proxy:1"}]}));
    "b".clone_into(&mut other.name);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("new", &current, false);
    stage.vacant();
    stage.evict_for(&other, "new", false);
    stage.gone("new");
    assert_eq!((stage.vacant(), stage.vacant_for(&other, Duration::ZERO)), (1, 1));
    stage.comes("newer", &current, true);
    stage.vacant_for(&other, Duration::ZERO);
    assert_eq!(stage.vacant(), 0);
}

/// A user deletes it, or its node is drained.
#[test]
fn a_new_pod_that_is_late_and_goes_leaves_the_place_to_the_next_one_for_as_long_as_any() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("new", &current, false);
    stage.vacant();
    let late = OVERDUE_AFTER * 2;
    assert_eq!(stage.vacant_after(late), 1);
    stage.gone("new");
    assert_eq!((stage.vacant_after(late), stage.allowance()), (1, Allowance::Free), "it has a minute");
    assert_eq!(stage.vacant_after(late + NOT_REPLACED_AFTER / 2), 1);
    stage.comes("newer", &current, false);
    assert_eq!((stage.vacant_after(late + NOT_REPLACED_AFTER), stage.barred()), (1, Barred::default()));
}

/// Two API servers, or a proxy that sets the date, differ by more than seconds.
#[test]
fn a_pod_that_was_first_seen_after_the_eviction_is_the_new_one_whatever_the_clocks_say() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    let mut new = of("web", "new", &current, true);
    new.meta_mut().creation_timestamp = serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
    stage.show(&new);
    assert_eq!(stage.vacant(), 1, "it may have been there");
    assert_eq!((stage.vacant_after(NOT_REPLACED_AFTER), stage.allowance()), (0, Allowance::Free));
    assert_eq!(stage.barred(), Barred::default());
}

#[test]
fn a_set_that_is_gone_leaves_the_places_of_its_evictions_to_the_next_one_of_its_name() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    stage.vacant();
    stage.evictions.forget("a");
    assert!(stage.evictions.sets.is_empty());
    let current = stage.current();
    stage.comes("new", &current, false);
    assert_eq!(stage.vacant(), 1);
    let mut other = set(&json!({"containers": [{"name": "b-c", "image": "proxy:1"}]}));
    "b".clone_into(&mut other.name);
    stage.comes("new", &current, true);
    assert_eq!(stage.vacant_for(&other, Duration::ZERO), 0);
    assert!(stage.evictions.workloads.is_empty(), "any set ends them");
}

#[test]
fn of_pods_that_are_told_why_they_stay_only_those_are_kept_that_are_there() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    stage.comes("new", OLD, true);
    stage.vacant();
    assert_eq!(stage.allowance(), Allowance::Barred(Bar::Outdated));
    let (new, left) = (stage.member("new").1, stage.member("left").1);
    for pod in [&new, &left] {
        stage.evictions.note_told("a", pod);
    }
    assert!(stage.evictions.is_told("a", &new) && !stage.evictions.is_told("b", &new), "each set says its own");
    stage.gone("new");
    stage.vacant();
    assert!(!stage.evictions.is_told("a", &new) && stage.evictions.is_told("a", &left));
    stage.gone("left");
    stage.vacant();
    assert!(stage.evictions.workloads.is_empty());
}

#[test]
fn a_workload_that_replaced_no_pod_of_one_set_is_named_by_each_set_whose_pods_it_has() {
    let mut stage = Stage::of(&["p", "left"]);
    let mut other = set(&json!({}));
    "b".clone_into(&mut other.name);
    stage.evict("p");
    stage.gone("p");
    stage.vacant();
    stage.vacant_after(NOT_REPLACED_AFTER);
    let owner = stage.member("left").1.facts.owner;
    let of = |owners: &[u64]| stage.evictions.barred(&other, &owners.iter().copied().collect()).not_replaced.0;
    assert_eq!((of(&[owner]), of(&[owner + 1])), (1, 0));
}

#[test]
fn who_deletes_new_pods_that_are_not_ready_again_and_again_holds_up_others_no_longer_for_it() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.show(&of("other", "o", &current, true));
    for n in 0..4 {
        let (name, time) = (format!("new-{n}"), OVERDUE_AFTER / 3 * n);
        stage.comes(&name, &current, false);
        let places = stage.vacancies_after(time);
        assert_eq!(places.iter().map(|it| it.is_overdue).collect::<Vec<_>>(), [n == 3], "{n}");
        stage.gone(&name);
    }
}
