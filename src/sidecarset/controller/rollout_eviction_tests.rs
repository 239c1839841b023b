//! Rollouts of forms that only new pods can have, against an API server that a test answers for.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};

use super::tests::{Stage, budgets, in_namespace, owned_by, refusal};
use super::*;
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::tests::pod;
use crate::sidecarset::rollout::EvictionsWait;

/// Four pods, each of a workload of its own, of sets with this strategy whose form only new pods can have.
fn to_recreate(strategy: &Value) -> Stage {
    Stage::of(4, strategy, &json!({"env": [{"name": "A", "value": "b"}]}), |n| owned_by(&format!("s{n}")))
}

/// The same, of one workload.
fn of_one_workload(strategy: &Value) -> Stage {
    Stage::of(4, strategy, &json!({"env": [{"name": "A", "value": "b"}]}), |_| owned_by("s"))
}

fn recreate(max_unavailable: i32) -> Value {
    json!({"maxUnavailable": max_unavailable, "recreate": true})
}

impl Stage {
    pub fn evictions(&self) -> usize {
        locked(&self.api).evicted.len()
    }

    /// Reconciles `a` until it is known which pods only new ones can follow, and then once more.
    pub async fn settle(&self) -> Result {
        for _ in 0..4 {
            self.run("a", || true).await;
        }
        self.run("a", || true).await
    }

    /// The evicted pods are gone.
    pub fn end_evicted(&self) -> Vec<String> {
        let gone = locked(&self.api).evicted.clone();
        for name in &gone {
            locked(&self.pods).update(&PodKey::of(&pod(name, "web", &[], true)), None);
        }
        gone
    }

    pub fn current(&self) -> String {
        self.snapshot.sets.get("a").unwrap().hash.clone()
    }
}

#[tokio::test]
async fn pods_that_only_a_new_pod_can_follow_are_evicted_where_the_set_says_so() {
    let stage = to_recreate(&recreate(2));
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits), (2, Waits::MaxUnavailable(2)));
    // They are gone, and others are not there yet.
    let gone = stage.end_evicted();
    assert_eq!(stage.settle().await.waits, Waits::MaxUnavailable(2));
    assert_eq!(stage.evictions(), 2);
    assert_eq!(locked(&stage.rollouts.memory("a")).new_pods_only().0, 0, "nobody has to create them anew");
    // The rollout goes on with each new pod that serves, and ends.
    for (replaced, evicted) in [3, 4, 4, 4].into_iter().enumerate() {
        let names = locked(&stage.api).evicted.clone();
        stage.end_evicted();
        let of = owned_by(&names[replaced].replace('p', "s"));
        stage.show(&format!("new{replaced}"), &stage.current(), false, of.clone());
        let before = stage.evictions();
        stage.settle().await;
        assert_eq!(stage.evictions(), before, "the new one does not serve yet");
        stage.show(&format!("new{replaced}"), &stage.current(), true, of);
        stage.settle().await;
        assert_eq!(stage.evictions(), evicted, "after {replaced} of {gone:?}");
    }
    assert_eq!(stage.run("a", || true).await.waits, Waits::Done);
}

#[tokio::test]
async fn pods_are_evicted_only_while_new_ones_get_the_form_and_the_rollout_includes_them() {
    let new_pods = Waits::Evictions(EvictionsWait::NewPods("no".to_owned()));
    for (strategy, new_pods_have_it, expected) in [
        (json!({"maxUnavailable": 9}), true, Waits::NewPodOnly),
        (json!({"maxUnavailable": 9, "recreate": false}), true, Waits::NewPodOnly),
        (recreate(9), false, new_pods),
        (json!({"maxUnavailable": 9, "recreate": true, "paused": true}), true, Waits::Paused),
        (json!({"maxUnavailable": 9, "recreate": true, "type": "NotUpdate"}), true, Waits::NotUpdate),
        (json!({"maxUnavailable": 9, "recreate": true, "partition": "100%"}), true, Waits::Kept),
        (json!({"maxUnavailable": 9, "recreate": true, "selector": {"matchLabels": {"app": "x"}}}), true, Waits::Kept),
    ] {
        let stage = to_recreate(&strategy);
        let mut found = None;
        for _ in 0..4 {
            found = Some(stage.run_while("a", new_pods_have_it, || true).await);
        }
        assert_eq!(found.unwrap().waits, expected, "{strategy}");
        assert_eq!(stage.evictions(), 0, "{strategy}, {new_pods_have_it}");
    }
}

#[tokio::test]
async fn a_partition_keeps_pods_from_eviction() {
    let stage = to_recreate(&json!({"maxUnavailable": 9, "recreate": true, "partition": 3}));
    stage.settle().await;
    assert_eq!(stage.evictions(), 1);
    stage.end_evicted();
    stage.settle().await;
    assert_eq!(stage.evictions(), 1);
}

#[tokio::test]
async fn an_eviction_that_is_refused_for_now_is_tried_again_after_a_pause_and_degrades_nothing() {
    let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    for answer in [
        (StatusCode::TOO_MANY_REQUESTS, refusal(StatusCode::TOO_MANY_REQUESTS, "Cannot evict pod.")),
        (StatusCode::INTERNAL_SERVER_ERROR, refusal(StatusCode::INTERNAL_SERVER_ERROR, two)),
        (StatusCode::CREATED, refusal(StatusCode::INTERNAL_SERVER_ERROR, two)),
    ] {
        let stage = to_recreate(&recreate(9));
        locked(&stage.api).eviction = answer;
        let found = stage.settle().await;
        assert_eq!((stage.evictions(), found.waits), (4, Waits::Evictions(EvictionsWait::Blocked)));
        assert!(found.again.unwrap() > Duration::ZERO);
        let memory = stage.rollouts.memory("a");
        let memory = locked(&memory);
        assert_eq!((memory.blocked().0, memory.failures().0, memory.new_pods_only().0), (4, 0, 0));
        assert!(!locked(&stage.rollouts.evictions).are_of("a"), "they run on");
    }
}

#[tokio::test]
async fn of_pods_that_two_disruption_budgets_select_none_is_evicted_and_it_is_said() {
    let stage = to_recreate(&recreate(9));
    locked(&stage.api).budgets = budgets(&[9, 9]);
    let found = stage.settle().await;
    let expected = Waits::SeveralDisruptions("default".to_owned(), "b0".to_owned(), "b1".to_owned());
    assert_eq!((stage.evictions(), found.waits), (0, expected));
}

#[tokio::test]
async fn without_the_right_to_evict_it_is_said_and_no_further_pod_is_tried() {
    let stage = to_recreate(&recreate(1));
    let why = "pods \"p\" is forbidden: User \"u\" cannot create resource \"pods/eviction\" in API group \"\"";
    locked(&stage.api).eviction = (StatusCode::FORBIDDEN, refusal(StatusCode::FORBIDDEN, why));
    stage.settle().await;
    let found = stage.run("a", || true).await;
    let expected = Waits::Evictions(EvictionsWait::Forbidden(why.to_owned()));
    assert_eq!((stage.evictions(), found.waits), (1, expected));
    // Another namespace is tried all the same.
    stage.show_in("shop", "q0", "v1:old", true, owned_by("t"));
    stage.settle().await;
    let tried = locked(&stage.api).evicted.clone();
    assert_eq!((tried.len(), tried[1].as_str()), (2, "q0"));
}

#[tokio::test]
async fn a_pod_that_may_have_been_evicted_keeps_its_place_and_is_not_evicted_twice() {
    let stage = to_recreate(&recreate(1));
    locked(&stage.api).eviction = (StatusCode::GATEWAY_TIMEOUT, Value::Null);
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits), (1, Waits::MaxUnavailable(1)));
}

#[tokio::test]
async fn pods_without_a_controller_and_pods_that_end_are_never_evicted_and_their_condition_says_so() {
    let job = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]);
    let not_controlling = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"}]);
    for (owner, expected) in [
        (json!([]), "it has no controller"),
        (not_controlling, "it has no controller"),
        (job, "it is to end by itself"),
    ] {
        let env = json!({"env": [{"name": "A", "value": "b"}]});
        let stage = Stage::of(2, &recreate(9), &env, |_| owner.clone());
        let found = stage.settle().await;
        assert_eq!((stage.evictions(), found.waits), (0, Waits::NewPodOnly), "{owner}");
        let said = locked(&stage.api).said.clone();
        assert!(said.iter().all(|said| said.contains(&format!("not evicted: {expected}"))), "{said:?}");
        assert_eq!(locked(&stage.rollouts.memory("a")).new_pods_only().0, 2, "somebody has to create them anew");
    }
}

#[tokio::test]
async fn the_first_pod_of_a_workload_is_evicted_alone_and_others_once_its_new_pod_has_the_form() {
    let stage = of_one_workload(&recreate(9));
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits), (1, Waits::Evictions(EvictionsWait::Successors)));
    stage.end_evicted();
    stage.show("new", &stage.current(), false, owned_by("s"));
    stage.settle().await;
    assert_eq!(stage.evictions(), 4);
}

/// As where the workload's template has an older form of the container.
#[tokio::test]
async fn a_new_pod_that_lacks_the_form_ends_the_evictions_of_its_workload_and_all_of_its_pods_say_so() {
    let stage = of_one_workload(&recreate(9));
    stage.settle().await;
    stage.end_evicted();
    stage.show("new", "v1:older", true, owned_by("s"));
    for _ in 0..3 {
        let found = stage.settle().await;
        assert_eq!((stage.evictions(), found.waits), (1, Waits::NewPodOnly), "the new one is not evicted either");
        assert_eq!((found.barred.outdated.0, found.barred.not_replaced.0), (1, 0));
    }
    let expected = format!("not evicted: new pods of its workload lack {}; ", stage.current());
    let said = locked(&stage.api).said.clone();
    assert_eq!(said.iter().filter(|said| said.contains(&expected)).count(), 4, "{said:?}");
    let to_create_anew = locked(&stage.rollouts.memory("a")).new_pods_only().0;
    assert_eq!(to_create_anew, 0, "others would lack the form as well: the set names the workload");
}

#[tokio::test]
async fn the_next_leader_evicts_no_pod_whose_condition_says_that_its_workload_is_barred() {
    let stage = of_one_workload(&recreate(9));
    let text = json!({"a": format!("not evicted: new pods of its workload lack {}; env", stage.current())}).to_string();
    let condition = json!({"type": crate::names::UPGRADABLE, "status": "False", "message": text});
    locked(&stage.api).conditions = vec![condition];
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits, found.barred.outdated.0), (0, Waits::NewPodOnly, 1));
}

#[tokio::test]
async fn two_sets_that_evict_of_one_workload_never_count_one_new_pod_twice() {
    let stage = of_one_workload(&recreate(9));
    stage.settle().await;
    stage.end_evicted();
    // For the set `b`, whose pods are others of the same workload, nothing is known of new pods.
    stage.show("new", &stage.current(), true, owned_by("s"));
    stage.run("a", || true).await;
    for _ in 0..3 {
        stage.run("b", || true).await;
    }
    let evicted = stage.end_evicted();
    let vacant = |set: &str| {
        let (pods, set) = (locked(&stage.pods), stage.snapshot.sets.get(set).unwrap());
        let mut evictions = locked(&stage.rollouts.evictions);
        evictions.update(set, true, &pods, Instant::now());
        evictions.vacancies(set, &pods, Instant::now()).len()
    };
    assert_eq!(vacant("a") + vacant("b"), evicted.len() - 1, "one of them is replaced");
}

/// The watch is late: what it has not shown does not lead to a second eviction.
#[tokio::test]
async fn nothing_more_is_evicted_while_the_watch_shows_nothing() {
    let stage = to_recreate(&recreate(2));
    for _ in 0..5 {
        stage.settle().await;
    }
    assert_eq!(stage.evictions(), 2);
}

#[tokio::test]
async fn a_new_leader_waits_before_its_first_eviction() {
    let mut stage = to_recreate(&recreate(2));
    stage.rollouts.evictions = Mutex::new(Evictions::new(Instant::now()));
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits), (0, Waits::Evictions(EvictionsWait::EarlierLeader)));
    assert!(found.again.is_some());
}

/// Of one set new pods have the form, and of the other they do not. Whichever is first to take the new pod in, it is not evicted.
#[tokio::test]
async fn two_sets_that_evict_of_one_workload_evict_no_new_pod_for_ever() {
    for order in [["a", "b"], ["b", "a"]] {
        let stage = of_one_workload(&recreate(1));
        let mut names: BTreeSet<String> = BTreeSet::new();
        for round in 0..8 {
            for set in order.iter().cycle().take(6) {
                stage.run(set, || true).await;
            }
            for name in stage.end_evicted() {
                if names.insert(name.clone()) {
                    // It has the form of `a`, and an older one of `b`.
                    stage.show(&format!("new-{round}-{name}"), &stage.current(), true, owned_by("s"));
                }
            }
        }
        let new: Vec<_> = names.iter().filter(|name| name.starts_with("new")).collect();
        assert!(new.len() <= 1, "{order:?}: {new:?}");
        let barred = stage.run("b", || true).await.barred;
        assert_eq!(barred.outdated.0, 1, "{order:?}: it is seen that new pods lack the form of b");
    }
}

#[tokio::test]
async fn new_pods_without_the_form_in_three_namespaces_stop_the_evictions_of_the_set() {
    let stage = to_recreate(&recreate(1));
    for (n, namespace) in ["x", "y", "z", "w"].into_iter().enumerate() {
        stage.show_in(namespace, &format!("q{n}"), "v1:old", true, owned_by(&format!("t{n}")));
    }
    for round in 0..8 {
        stage.settle().await;
        let (evicted, api) = (stage.end_evicted(), Arc::clone(&stage.api));
        let Some(last) = evicted.last().filter(|_| evicted.len() == round + 1) else { break };
        let owner = owned_by(&last.replace('p', "s").replace('q', "t"));
        let namespace = locked(&api).of(last).0;
        locked(&stage.pods).update(&PodKey::of(&in_namespace(&namespace, last, "", true)), None);
        stage.show_in(&namespace, &format!("new{round}"), "v1:older", true, owner);
    }
    let found = stage.settle().await;
    let expected = EvictionsWait::Failures { namespaces: 3, is_all: true, are_lost: false };
    assert_eq!(found.waits, Waits::Evictions(expected));
    assert!(stage.evictions() <= 6, "{:?}", locked(&stage.api).evicted);
}

#[tokio::test]
async fn no_pod_is_evicted_of_a_deployment_that_is_replacing_its_pods_itself() {
    let stage = of_one_workload(&recreate(9));
    let rolling = |template: &str| json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("s-{template}"), "uid": "r", "controller": true}]);
    locked(&stage.api).owner = rolling("1");
    for (name, template) in [("p0", "1"), ("p1", "1"), ("p2", "2"), ("p3", "2")] {
        stage.show_of(name, template, rolling(template));
    }
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits), (0, Waits::Evictions(EvictionsWait::Rolling)));
    for name in ["p2", "p3"] {
        locked(&stage.pods).update(&PodKey::of(&pod(name, "web", &[], true)), None);
    }
    stage.settle().await;
    assert_eq!(stage.evictions(), 1, "it is over");
}

#[tokio::test]
async fn pods_that_are_not_told_yet_why_they_stay_are_told_at_once() {
    let text = |hash: &str| json!({"a": format!("not evicted: new pods of its workload lack {hash}; env")}).to_string();
    let env = json!({"env": [{"name": "A", "value": "b"}]});
    let stage = Stage::of(MOST + 8, &recreate(9), &env, |_| owned_by("s"));
    stage.settle().await;
    stage.end_evicted();
    stage.show("new", "v1:older", true, owned_by("s"));
    let mut again = Some(Duration::ZERO);
    let mut rounds = 0;
    while again == Some(Duration::ZERO) {
        again = stage.run("a", || true).await.again;
        rounds += 1;
        assert!(rounds < 20);
    }
    let expected = text(&stage.current()).replace("env\"}", "");
    let said: BTreeSet<String> = locked(&stage.api)
        .told
        .iter()
        .filter(|(_, said)| said.starts_with(&expected))
        .map(|(name, _)| name.clone())
        .collect();
    assert_eq!(said.len(), MOST + 8, "all but the evicted one, and the new one");
}

/// Its controller creates one pod after the other, and none while another one is not ready.
#[tokio::test]
async fn pods_of_a_stateful_set_are_evicted_one_at_a_time_while_all_others_serve() {
    let mut owner = owned_by("s");
    owner[0]["kind"] = "StatefulSet".into();
    let env = json!({"env": [{"name": "A", "value": "b"}]});
    let stage = Stage::of(4, &recreate(9), &env, |_| owner.clone());
    for round in 1..=3 {
        let found = stage.settle().await;
        assert_eq!((stage.evictions(), found.waits), (round, Waits::Evictions(EvictionsWait::Successors)));
        stage.end_evicted();
        stage.show(&format!("new{round}"), &stage.current(), false, owner.clone());
        stage.settle().await;
        assert_eq!(stage.evictions(), round, "the new one does not serve");
        stage.show(&format!("new{round}"), &stage.current(), true, owner.clone());
    }
    // A pod that fails by itself keeps the controller from creating others.
    stage.show("new1", &stage.current(), false, owner.clone());
    stage.settle().await;
    assert_eq!(stage.evictions(), 3);
}
