//! Rollouts of sets that replace pods that lack them, against an API server that a test answers for.

use engine::snapshot::namespace::Namespaces;
use kube::Resource as _;
use serde_json::{Value, json};

use super::tests::{Stage, owned_by};
use super::*;
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::record::tests::{pod, wanted};
use crate::sidecarset::rollout::EvictionsWait;

/// They were there before the set, or were created while no webhook answered.
#[tokio::test]
async fn pods_that_lack_the_set_are_evicted_where_it_repairs_them_within_the_same_limits() {
    let successors = Waits::Evictions(EvictionsWait::Successors);
    for (strategy, evicted, waits) in [
        (json!({"maxUnavailable": 2, "repair": "Evict"}), 3, successors.clone()),
        (json!({"maxUnavailable": 2, "repair": "Evict", "recreate": true}), 3, successors),
        (json!({"maxUnavailable": 1, "repair": "Evict"}), 2, Waits::MaxUnavailable(1)),
        (json!({"maxUnavailable": 2, "repair": "Evict", "partition": 2}), 1, Waits::Kept),
        (json!({"maxUnavailable": 2, "repair": "Evict", "paused": true}), 0, Waits::Paused),
        (json!({"maxUnavailable": 2, "repair": "Evict", "type": "NotUpdate"}), 0, Waits::NotUpdate),
        (json!({"maxUnavailable": 2, "repair": "Never"}), 0, Waits::Done),
        (json!({"maxUnavailable": 2, "recreate": true}), 0, Waits::Done),
    ] {
        let stage = Stage::of(0, &strategy, &json!({}), |_| owned_by("s"));
        (0..3).for_each(|n| stage.show_bare(&format!("p{n}"), owned_by("s")));
        stage.settle().await;
        assert_eq!(stage.evictions(), evicted.min(1), "{strategy}: the first of the workload goes alone");
        if evicted > 0 {
            stage.end_evicted();
            stage.show("new", &stage.current(), true, owned_by("s"));
        }
        let found = stage.settle().await;
        assert_eq!((stage.evictions(), found.waits), (evicted, waits), "{strategy}");
    }
}

#[tokio::test]
async fn a_set_that_repairs_evicts_no_pod_in_an_older_form_and_none_that_no_workload_replaces() {
    let env = json!({"env": [{"name": "A", "value": "b"}]});
    let stage = Stage::of(2, &json!({"maxUnavailable": 9, "repair": "Evict"}), &env, |_| owned_by("s"));
    stage.show_bare("bare", json!([]));
    let found = stage.settle().await;
    assert_eq!((stage.evictions(), found.waits), (0, Waits::NewPodOnly));
    let said = locked(&stage.api).said.clone();
    assert_eq!(said.iter().filter(|said| said.contains("not evicted: it has no controller")).count(), 1, "{said:?}");
    assert_eq!(locked(&stage.rollouts.memory("a")).new_pods_only().0, 3, "somebody has to create them anew");
}

/// By its condition it is known that the last one may have evicted it.
#[tokio::test]
async fn a_pod_that_ends_as_it_lacked_the_set_keeps_its_place_under_the_next_leader_which_waits_for_it() {
    for (max_unavailable, waits) in [(1, Waits::MaxUnavailable(1)), (2, Waits::Evictions(EvictionsWait::Successors))] {
        let strategy = json!({"maxUnavailable": max_unavailable, "repair": "Evict"});
        let stage = Stage::of(0, &strategy, &json!({}), |_| owned_by("s"));
        let mut ending = pod("p", "web", &[], true);
        ending.meta_mut().uid = Some("p".to_owned());
        ending.meta_mut().owner_references = serde_json::from_value(owned_by("s")).unwrap();
        ending.meta_mut().deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        let message = json!({"a": "the pod has no record"}).to_string();
        let conditions = json!([
            {"type": "Ready", "status": "True"},
            {"type": crate::names::UPGRADABLE, "status": "False", "message": message},
        ]);
        ending.status = serde_json::from_value(json!({"phase": "Running", "conditions": conditions})).unwrap();
        locked(&stage.pods).update(&PodKey::of(&ending), PodRecord::of(&ending, &wanted(&["a", "b"])));
        stage.show_bare("q", owned_by("t"));
        let found = stage.settle().await;
        assert_eq!((stage.evictions(), found.waits), (0, waits));
        locked(&stage.pods).update(&PodKey::of(&ending), None);
        stage.settle().await;
        assert_eq!(stage.evictions(), 1);
    }
}

fn labelled(namespaces: &[(&str, Value)]) -> Arc<Namespaces> {
    let mut known = Namespaces::default();
    for (name, labels) in namespaces {
        known.insert((*name).to_owned(), serde_json::from_value(labels.clone()).unwrap());
    }
    Arc::new(known)
}

const REPAIR: &str = r#"{"maxUnavailable": 9, "repair": "Evict"}"#;
const RECREATE: &str = r#"{"maxUnavailable": 9, "recreate": true}"#;

/// It would be gone, and no other would come in its place.
#[tokio::test]
async fn no_pod_is_evicted_in_a_namespace_that_refuses_new_pods_with_the_set() {
    let privileged = json!({"securityContext": {"privileged": true}});
    for strategy in [REPAIR, RECREATE] {
        let mut stage = Stage::of(0, &serde_json::from_str(strategy).unwrap(), &privileged, |_| owned_by("s"));
        let free = stage.snapshot.namespaces.clone();
        stage.snapshot.namespaces =
            labelled(&[("default", json!({"pod-security.kubernetes.io/enforce": "baseline"})), ("free", json!({}))]);
        let is_repair = strategy == REPAIR;
        if is_repair {
            stage.show_bare("p", owned_by("s"));
        } else {
            stage.show("p", "v1:old", true, owned_by("s"));
            stage.show_in("free", "q", "v1:old", true, owned_by("t"));
        }
        let found = stage.settle().await;
        let evicted = locked(&stage.api).evicted.clone();
        assert_eq!(evicted, if is_repair { vec![] } else { vec!["q".to_owned()] }, "{strategy}");
        let why = "namespace default enforces the pod security level baseline: container a-c: privileged is true";
        if is_repair {
            assert_eq!(found.waits, Waits::Evictions(EvictionsWait::Refused(why.to_owned())));
        }
        stage.snapshot.namespaces = free;
        stage.settle().await;
        assert!(locked(&stage.api).evicted.contains(&"p".to_owned()), "{strategy}: once it is not refused any more");
    }
}

/// A pod that carries an older form gives back what that form takes; one that lacks the set, nothing of what the set needs.
#[tokio::test]
async fn a_quota_keeps_a_pod_only_where_it_is_known_to_refuse_the_next_one() {
    let asking = json!({"env": [{"name": "A", "value": "b"}], "resources": {"requests": {"cpu": "500m"}}});
    for (strategy, hard, used, is_evicted) in [
        (REPAIR, "2", "1", true),
        (REPAIR, "2", "1800m", false),
        (RECREATE, "2", "2", true),
        (RECREATE, "400m", "0", false),
    ] {
        let stage = Stage::of(0, &serde_json::from_str(strategy).unwrap(), &asking, |_| owned_by("s"));
        stage.rollouts.refusals.quota("default", hard, used);
        if strategy == REPAIR {
            stage.show_bare("p", owned_by("s"));
        } else {
            stage.show("p", "v1:old", true, owned_by("s"));
        }
        let found = stage.settle().await;
        assert_eq!(stage.evictions(), usize::from(is_evicted), "{strategy} {hard} {used}: {found:?}");
        let waits_for_it = matches!(found.waits, Waits::Evictions(EvictionsWait::Refused(_)));
        assert_eq!(waits_for_it, !is_evicted, "{strategy} {hard} {used}: {found:?}");
    }
}
