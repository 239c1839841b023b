use std::time::{Duration, Instant};

use kube::Resource as _;
use serde_json::json;

use super::*;
use crate::sidecarset::controller::injection_counts::tests::set;
use crate::sidecarset::controller::record::tests::{pod, wanted};
use crate::sidecarset::controller::watched_pod::WatchedPod;

/// A pod of the `ReplicaSet` `web`, which carries this form of the set `a`.
fn owned(name: &str, hash: &str) -> WatchedPod {
    let mut pod = pod(name, "web", &[("a", hash)], true);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true}]);
    pod.meta_mut().uid = Some(name.to_owned());
    pod.meta_mut().owner_references = serde_json::from_value(owner).unwrap();
    pod
}

/// The index of pods of a set, and what was evicted of it.
struct Stage {
    set: CompiledSet,
    index: PodIndex,
    evictions: Evictions,
    start: Instant,
}

impl Stage {
    /// With these pods in an older form.
    fn of(names: &[&str]) -> Self {
        let mut stage = Self {
            set: set(&json!({})),
            index: PodIndex::default(),
            evictions: Evictions::default(),
            start: Instant::now(),
        };
        stage.index.sets_are(&wanted(&["a"]).sets);
        names.iter().for_each(|name| stage.show(&owned(name, "v1:old")));
        stage
    }

    fn show(&mut self, pod: &WatchedPod) {
        self.index.update(&PodKey::of(pod), PodRecord::of(pod, &wanted(&["a"])));
    }

    fn ends(&mut self, name: &str) {
        let mut pod = owned(name, "v1:old");
        pod.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        self.show(&pod);
    }

    fn gone(&mut self, name: &str) {
        self.index.update(&PodKey::of(&owned(name, "")), None);
    }

    fn member(&self, name: &str) -> Member {
        let key = PodKey::of(&owned(name, ""));
        let record = Arc::clone(self.index.get(&key).unwrap());
        (key, record)
    }

    fn evict(&mut self, name: &str) {
        let members: Vec<Member> = self.index.carrying("a").map(|(key, pod)| (key.clone(), Arc::clone(pod))).collect();
        self.evictions.begin(&self.member(name), &members, &self.set.hash, self.start);
    }

    /// How many evicted pods no other has replaced after so long.
    fn vacant_after(&mut self, time: Duration) -> usize {
        self.evictions.update(&self.set, &self.index, self.start + time);
        self.evictions.vacancies().len()
    }

    fn vacant(&mut self) -> usize {
        self.vacant_after(Duration::ZERO)
    }

    fn is_barred(&self) -> bool {
        self.evictions.is_barred(self.member("left").1.facts.owner)
    }
}

#[test]
fn an_evicted_pod_is_vacant_until_its_workload_has_a_new_one() {
    let mut stage = Stage::of(&["p", "q", "left"]);
    stage.evict("p");
    stage.evict("q");
    assert_eq!(stage.vacant(), 2);
    stage.ends("p");
    assert_eq!(stage.vacant(), 2, "no matter whether it ends slowly");
    let current = String::from(&*stage.set.hash);
    stage.show(&owned("new", &current));
    assert_eq!(stage.vacant(), 1);
    stage.gone("p");
    stage.gone("q");
    assert_eq!(stage.vacant(), 1);
    stage.show(&owned("newer", &current));
    assert_eq!((stage.vacant(), stage.is_barred()), (0, false));
    assert!(stage.evictions.is_empty());
}

#[test]
fn a_pod_that_was_not_evicted_leaves_no_vacancy() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    let member = stage.member("p");
    assert!(stage.evictions.is_leaving(&member));
    stage.evictions.undo(&member);
    assert!(!stage.evictions.is_leaving(&member));
    assert_eq!(stage.vacant(), 0);
    // The API server did not answer, and the pod is still there.
    stage.evict("p");
    assert_eq!((stage.vacant(), stage.vacant_after(NOT_EVICTED_AFTER)), (1, 0));
    assert!(!stage.evictions.is_leaving(&member), "it may be tried again");
}

#[test]
fn a_pod_that_no_other_replaces_is_vacant_for_ten_minutes() {
    let mut stage = Stage::of(&["p", "left"]);
    stage.evict("p");
    stage.gone("p");
    assert_eq!((stage.vacant_after(OVERDUE_AFTER / 2), stage.vacant_after(OVERDUE_AFTER)), (1, 0));
}

/// As where the template of the workload brings an older form of the container, or no webhook answers.
#[test]
fn no_further_pods_of_a_workload_are_evicted_whose_new_pods_lack_the_form() {
    for newer in [owned("new", "v1:older"), {
        let mut without = owned("new", "");
        (without.annotations, without.spec) = (None, pod("new", "web", &[], true).spec);
        without
    }] {
        let mut stage = Stage::of(&["p", "left"]);
        stage.evict("p");
        stage.gone("p");
        stage.show(&newer);
        assert_eq!((stage.vacant(), stage.is_barred()), (0, true));
        // Another form may be one that they get.
        stage.set = set(&json!({"containers": [{"name": "a-c", "image": "proxy:3"}]}));
        stage.vacant();
        assert!(!stage.is_barred());
    }
}

#[test]
fn pods_that_an_earlier_leader_may_have_evicted_are_vacant_while_they_end() {
    let mut stage = Stage::of(&["p", "left"]);
    assert_eq!(stage.vacant(), 0);
    let mut ending = owned("p", "v1:old");
    ending.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    stage.show(&ending);
    assert_eq!(stage.vacant(), 0, "somebody else deletes it");
    let message = json!({"a": "env"}).to_string();
    let refused = json!([
        {"type": "Ready", "status": "True"},
        {"type": crate::names::UPGRADABLE, "status": "False", "message": message},
    ]);
    ending.status = serde_json::from_value(json!({"phase": "Running", "conditions": refused})).unwrap();
    stage.show(&ending);
    assert_eq!(stage.vacant(), 1);
    stage.gone("p");
    assert_eq!(stage.vacant(), 0);
}
