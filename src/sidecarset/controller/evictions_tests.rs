use kube::Resource as _;
use serde_json::json;

use super::*;
use crate::sidecarset::controller::brakes::FAILED_FOR;
use crate::sidecarset::controller::evicted::{ANSWERED_AFTER, NOT_REPLACED_AFTER};
use crate::sidecarset::controller::injection_counts::tests::set;
use crate::sidecarset::controller::record::tests::{pod, wanted};
use crate::sidecarset::controller::watched_pod::WatchedPod;

pub const OLD: &str = "v1:old";

/// A pod of the `ReplicaSet` of this name, which carries this form of the set `a`.
pub fn of(workload: &str, name: &str, hash: &str, ready: bool) -> WatchedPod {
    let mut pod = pod(name, "web", &[("a", hash)], ready);
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": workload, "uid": "r", "controller": true}]);
    pod.meta_mut().uid = Some(name.to_owned());
    pod.meta_mut().owner_references = serde_json::from_value(owner).unwrap();
    pod.meta_mut().creation_timestamp = serde_json::from_value(json!("2026-01-01T00:00:10Z")).unwrap();
    pod
}

pub fn at(time: &str) -> u32 {
    u32::try_from(time.parse::<jiff::Timestamp>().unwrap().as_second()).unwrap()
}

/// The index of pods of a set, and what was evicted of it.
pub struct Stage {
    pub set: CompiledSet,
    pub index: PodIndex,
    pub evictions: Evictions,
    pub start: Instant,
}

impl Stage {
    /// With these pods of `web` in an older form.
    pub fn of(names: &[&str]) -> Self {
        let start = Instant::now();
        let (set, index) = (set(&json!({})), PodIndex::default());
        let mut stage = Self { set, index, evictions: Evictions::new(start), start };
        stage.index.sets_are(&wanted(&["a"]).sets);
        for name in names {
            stage.show(&of("web", name, OLD, true));
        }
        stage
    }

    pub fn show(&mut self, pod: &WatchedPod) {
        self.index.update(&PodKey::of(pod), PodRecord::of(pod, &wanted(&["a"])));
    }

    /// The watch shows a new pod of this form.
    pub fn comes(&mut self, name: &str, hash: &str, ready: bool) {
        self.show(&of("web", name, hash, ready));
    }

    pub fn current(&self) -> String {
        self.set.hash.clone()
    }

    pub fn ends(&mut self, name: &str) {
        let mut pod = of("web", name, OLD, true);
        pod.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        self.show(&pod);
    }

    pub fn gone(&mut self, name: &str) {
        self.index.update(&PodKey::of(&of("web", name, "", true)), None);
    }

    pub fn member(&self, name: &str) -> Member {
        let key = PodKey::of(&of("web", name, "", true));
        let record = Arc::clone(self.index.get(&key).unwrap());
        (key, record)
    }

    pub fn asked(&mut self, name: &str) -> Member {
        let member = self.member(name);
        assert!(self.evictions.begin(&self.set, &member, true, (&self.index, &mut HashSet::new()), self.start));
        member
    }

    /// Evicted, and the API server said so.
    pub fn evict(&mut self, name: &str) {
        let member = self.asked(name);
        self.evictions.answered("a", &member, Answer::Evicted(at("2026-01-01T00:00:10Z")));
    }

    /// How many places evictions take after so long.
    pub fn vacant_after(&mut self, time: Duration) -> usize {
        self.vacancies_after(time).len()
    }

    pub fn vacancies_after(&mut self, time: Duration) -> Vec<Vacancy> {
        self.evictions.update(&self.set, true, &self.index, self.start + time);
        self.evictions.vacancies(&self.set, &self.index, self.start + time)
    }

    pub fn vacant(&mut self) -> usize {
        self.vacant_after(Duration::ZERO)
    }

    pub fn allowance(&self) -> Allowance {
        self.evictions.allowance(&self.set, self.member("left").1.facts.owner)
    }

    pub fn barred(&self) -> Barred {
        self.evictions.barred(&self.set, &HashSet::new())
    }

    pub fn hold_after(&mut self, time: Duration) -> Option<EvictionsWait> {
        self.evictions.update(&self.set, true, &self.index, self.start + time);
        self.evictions.hold(&self.set, &self.index, self.start + time)
    }
}

#[test]
fn a_place_is_kept_until_the_old_pod_is_gone_and_one_new_pod_serves() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    let current = stage.current();
    assert_eq!(stage.vacant(), 1, "the watch is late");
    stage.comes("new", &current, true);
    assert_eq!(stage.vacant(), 1, "it runs on, as far as is known");
    stage.ends("p");
    assert_eq!(stage.vacant(), 1, "it ends slowly");
    stage.comes("new", &current, false);
    stage.gone("p");
    assert_eq!(stage.vacant(), 1, "the new one does not serve");
    stage.comes("new", &current, true);
    assert_eq!((stage.vacant(), stage.allowance()), (0, Allowance::Free));
    stage.comes("new", &current, false);
    assert_eq!(stage.vacant(), 0, "one that was there and fails later fails by itself");
}

#[test]
fn of_two_evictions_each_has_a_new_pod_of_its_own() {
    let mut stage = Stage::of(&["p", "q", "left"]);
    stage.evict("p");
    stage.evict("q");
    let current = stage.current();
    stage.gone("p");
    stage.gone("q");
    assert_eq!(stage.vacant(), 2);
    stage.comes("new", &current, true);
    assert_eq!(stage.vacant(), 1);
    assert_eq!(stage.vacant(), 1, "and it stays one");
    // It is replaced in its turn, and takes no second place.
    stage.comes("newer", &current, false);
    assert_eq!(stage.vacant(), 1);
    stage.comes("newer", &current, true);
    assert_eq!(stage.vacant(), 0);
}

#[test]
fn pods_that_were_there_before_or_are_of_another_workload_or_older_replace_none() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("left", &current, true);
    stage.show(&of("other", "o", &current, true));
    let mut older = of("web", "late", &current, true);
    older.meta_mut().creation_timestamp = serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
    stage.show(&older);
    assert_eq!(stage.vacant(), 1);
    // Created between the plan and the eviction, while the index had it already.
    let mut stage = Stage::of(&["p", "left"]);
    stage.comes("between", &current, true);
    stage.evict("p");
    stage.gone("p");
    assert_eq!(stage.vacant(), 1);
}

#[test]
fn a_new_pod_that_is_gone_again_replaces_none() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("new", &current, false);
    assert_eq!(stage.vacant(), 1);
    stage.gone("new");
    stage.comes("newer", &current, true);
    assert_eq!(stage.vacant(), 0);
}

#[test]
fn a_pod_that_was_not_evicted_leaves_no_vacancy() {
    let mut stage = Stage::of(&["p", "left"]);
    let member = stage.asked("p");
    assert!(stage.evictions.leaving().contains(&member.1.facts.uid));
    stage.evictions.undo(&member);
    assert!(!stage.evictions.leaving().contains(&member.1.facts.uid));
    assert_eq!(stage.vacant(), 0);
    // The API server did not answer, and the pod is still there.
    stage.asked("p");
    stage.evictions.answered("a", &member, Answer::Unknown);
    let doubtful = |stage: &Stage, time| stage.evictions.doubtful("a", &stage.index, stage.start + time).len();
    assert_eq!((doubtful(&stage, ANSWERED_AFTER / 2), doubtful(&stage, ANSWERED_AFTER)), (0, 1));
    assert_eq!(stage.vacant_after(ANSWERED_AFTER * 100), 1, "until it is known");
    stage.ends("p");
    assert_eq!(doubtful(&stage, ANSWERED_AFTER), 0, "it came");
}

#[test]
fn an_eviction_without_an_answer_that_came_all_the_same_is_seen_by_the_pods_end() {
    let mut stage = Stage::of(&["p", "left"]);
    let member = stage.asked("p");
    stage.evictions.answered("a", &member, Answer::Unknown);
    let current = stage.current();
    stage.comes("new", &current, true);
    stage.ends("p");
    assert_eq!((stage.vacant_after(ANSWERED_AFTER), stage.allowance()), (1, Allowance::Free));
    stage.gone("p");
    assert_eq!(stage.vacant_after(ANSWERED_AFTER), 0);
}

#[test]
fn a_pod_that_is_another_by_now_is_not_begun() {
    let mut stage = Stage::of(&["p", "left"]);
    let member = stage.member("p");
    stage.ends("p");
    assert!(!stage.evictions.begin(&stage.set, &member, true, (&stage.index, &mut HashSet::new()), stage.start));
    stage.gone("p");
    assert!(!stage.evictions.begin(&stage.set, &member, true, (&stage.index, &mut HashSet::new()), stage.start));
}

#[test]
fn the_first_pod_of_a_workload_goes_alone_until_its_new_pod_is_seen() {
    let mut stage = Stage::of(&["p", "q", "left"]);
    assert_eq!(stage.allowance(), Allowance::First);
    stage.evict("p");
    stage.vacant();
    assert_eq!(stage.allowance(), Allowance::Awaiting);
    let current = stage.current();
    stage.comes("new", &current, false);
    stage.vacant();
    assert_eq!(stage.allowance(), Allowance::Free);
}

/// As where it was scaled down, or its controller is paused or gone.
#[test]
fn a_workload_that_replaces_no_pod_is_barred_until_it_has_a_new_one() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    stage.vacant();
    assert_eq!(stage.vacant_after(NOT_REPLACED_AFTER), 1);
    assert_eq!(stage.allowance(), Allowance::Barred(Bar::NotReplaced(at("2026-01-01T00:00:10Z"))));
    let barred = stage.barred();
    assert_eq!((barred.not_replaced.0, barred.not_replaced.1.unwrap().name.to_string()), (1, "p".to_owned()));
    // Its place is given up after a while, and it is barred still.
    assert_eq!(stage.vacant_after(OVERDUE_AFTER), 0);
    assert_eq!(stage.vacant_after(OVERDUE_AFTER * 100), 0);
    assert!(matches!(stage.allowance(), Allowance::Barred(_)));
    let current = stage.current();
    stage.comes("new", &current, true);
    stage.vacant_after(OVERDUE_AFTER * 100);
    assert_eq!(stage.allowance(), Allowance::First);
    assert_eq!(stage.barred(), Barred::default());
}

#[test]
fn of_a_workload_that_has_no_pod_any_more_nothing_is_kept_but_that_it_replaced_none_for_an_hour() {
    let mut stage = Stage::of(&["p"]);
    stage.evict("p");
    stage.gone("p");
    assert_eq!((stage.vacant(), stage.vacant_after(NOT_REPLACED_AFTER)), (1, 0));
    assert_eq!(stage.barred().not_replaced.0, 1);
    assert_eq!(stage.vacant_after(NOT_REPLACED_AFTER + FAILED_FOR), 0);
    assert!(stage.evictions.workloads.is_empty());
}

#[test]
fn of_a_workload_that_has_no_pod_any_more_and_replaced_all_nothing_is_kept() {
    let mut stage = Stage::of(&["p"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("new", &current, true);
    assert_eq!((stage.vacant(), stage.evictions.workloads.len()), (0, 1), "others of it may go");
    stage.gone("new");
    stage.vacant();
    assert!(stage.evictions.workloads.is_empty());
}

/// As where the template of the workload brings an older form of the container, or no webhook answers.
#[test]
fn no_further_pods_of_a_workload_are_evicted_whose_new_pods_lack_the_form() {
    for newer in [of("web", "new", "v1:older", true), {
        let mut without = of("web", "new", "", true);
        (without.annotations, without.spec) = (None, pod("new", "web", &[], true).spec);
        without
    }] {
        let mut stage = Stage::of(&["p", "left"]);
        stage.evict("p");
        stage.gone("p");
        stage.show(&newer);
        assert_eq!((stage.vacant(), stage.allowance()), (0, Allowance::Barred(Bar::Outdated)));
        assert_eq!(stage.barred().outdated.0, 1);
        // Whatever other pods have.
        let current = stage.current();
        stage.comes("newest", &current, true);
        stage.vacant();
        assert_eq!(stage.allowance(), Allowance::Barred(Bar::Outdated));
        // Another form may be one that they get.
        stage.set = set(&json!({"containers": [{"name": "a-c", "image": "proxy:3"}]}));
        stage.vacant();
        assert_eq!(stage.allowance(), Allowance::First);
    }
}

#[test]
fn a_new_pod_of_a_form_that_was_in_between_bars_nothing() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    stage.vacant();
    let first = std::mem::replace(&mut stage.set, set(&json!({"containers": [{"name": "a-c", "image": "proxy:3"}]})));
    stage.vacant();
    let between = stage.current();
    stage.set = first;
    stage.comes("new", &between, true);
    assert_eq!((stage.vacant(), stage.allowance()), (0, Allowance::First));
}

#[test]
fn a_new_pod_that_does_not_serve_holds_up_its_own_alone_after_ten_minutes_if_the_form_serves_elsewhere() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    let current = stage.current();
    stage.comes("new", &current, false);
    let is_overdue =
        |stage: &mut Stage, time| stage.vacancies_after(time).iter().map(|it| it.is_overdue).collect::<Vec<_>>();
    stage.vacant();
    assert_eq!(is_overdue(&mut stage, OVERDUE_AFTER), [false], "the form may be at fault");
    stage.show(&of("other", "o", &current, true));
    assert_eq!(is_overdue(&mut stage, OVERDUE_AFTER / 2), [false]);
    assert_eq!(is_overdue(&mut stage, OVERDUE_AFTER), [true]);
}

#[test]
fn a_place_says_whether_one_of_the_sets_pods_is_in_it() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    let is_counted = |stage: &mut Stage| stage.vacancies_after(Duration::ZERO)[0].is_counted;
    assert!(is_counted(&mut stage), "it is active");
    stage.ends("p");
    assert!(!is_counted(&mut stage));
    let current = stage.current();
    stage.comes("new", &current, false);
    assert!(is_counted(&mut stage));
}

/// Its author keeps it there by a finalizer, or it has a long time to end.
#[test]
fn a_pod_that_does_not_end_takes_a_place_of_its_own_namespace_alone_after_ten_minutes() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.ends("p");
    let overdue =
        |stage: &mut Stage, time| stage.vacancies_after(time).iter().map(|it| it.is_overdue).collect::<Vec<_>>();
    assert_eq!(overdue(&mut stage, OVERDUE_AFTER / 2), [false]);
    assert_eq!(overdue(&mut stage, OVERDUE_AFTER), [true]);
    let current = stage.current();
    stage.comes("new", &current, true);
    assert_eq!(overdue(&mut stage, OVERDUE_AFTER * 10), [true], "it keeps that one");
}
