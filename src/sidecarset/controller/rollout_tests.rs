//! Rollouts against an API server that a test answers for.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::sidecarset::controller::injection_counts::tests::{set, snapshot};
use crate::sidecarset::controller::record::tests::{pod, wanted};
use engine::sidecarset::injection::INJECTED_ANNOTATION;

#[test]
fn what_no_event_tells_of_is_looked_at_again() {
    let (memory, now) = (Memory::default(), Instant::now());
    let again = |waits: Waits| again(&waits, &memory, now);
    assert_eq!(again(Waits::Nothing), Some(Duration::ZERO));
    assert_eq!(again(Waits::Disruption(String::new(), String::new())), Some(DISRUPTION_PAUSE));
    assert_eq!(again(Waits::MaxUnavailable(1)), Some(IN_FLIGHT_PAUSE));
    for waits in [Waits::Done, Waits::Paused, Waits::NotUpdate, Waits::Kept, Waits::NewPodOnly] {
        assert_eq!(again(waits), None);
    }
}

/// Pods `p0`, `p1` and so on that carry the sets `a` and `b` in an older form, and what the API server has of them.
struct Stage {
    rollouts: Rollouts,
    pods: Arc<Mutex<PodIndex>>,
    snapshot: Snapshot,
    patches: Arc<AtomicUsize>,
}

impl Stage {
    /// With so many pods, a budget that allows so many disruptions, and this answer to the patch of a pod.
    fn new(count: usize, allowed: i32, answer: StatusCode) -> Self {
        Self::limited(count, 100, allowed, answer)
    }

    /// The same, with this `maxUnavailable`.
    fn limited(count: usize, max_unavailable: i32, allowed: i32, answer: StatusCode) -> Self {
        let new_form = |name: &str| {
            let spec = json!({
                "updateStrategy": {"maxUnavailable": max_unavailable},
                "containers": [{"name": format!("{name}-c"), "image": "proxy:2"}],
            });
            let mut set = set(&spec);
            name.clone_into(&mut set.name);
            set
        };
        let snapshot = snapshot([new_form("a"), new_form("b")], &json!({}));
        let pods = Arc::new(Mutex::new(PodIndex::default()));
        locked(&pods).sets_are(&wanted(&["a", "b"]).sets);
        for n in 0..count {
            let pod = pod(&format!("p{n}"), "web", &[("a", "v1:old"), ("b", "v1:old")], true);
            locked(&pods).update(&PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a", "b"])));
        }
        let patches = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&patches);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            if method == Method::PATCH {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            async move {
                // Others get their turn, as they do while the network is busy.
                tokio::task::yield_now().await;
                let name = path.rsplit('/').next().unwrap_or_default();
                let body = if path.contains("poddisruptionbudgets") { budgets(allowed) } else { stored(name) };
                let code = if method == Method::PATCH { answer } else { StatusCode::OK };
                let body = if code == StatusCode::OK { body } else { refusal(code) };
                let mut response = Response::new(http_body_util::Full::new(bytes::Bytes::from(body.to_string())));
                *response.status_mut() = code;
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let client = Client::new(service, "default");
        Self { rollouts: Rollouts::new(client, Arc::clone(&pods)), pods, snapshot, patches }
    }

    async fn run(&self, set: &str, is_current: impl Fn() -> bool) -> Result {
        let set = self.snapshot.sets.get(set).unwrap();
        let members = Members::of(set, &mut locked(&self.pods), &self.snapshot);
        self.rollouts.run(Rollout { set, members: &members, snapshot: &self.snapshot }, is_current).await
    }

    fn patches(&self) -> usize {
        self.patches.load(Ordering::SeqCst)
    }
}

fn budgets(allowed: i32) -> Value {
    let budget = json!({
        "metadata": {"namespace": "default", "name": "b", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": allowed},
    });
    json!({"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1", "metadata": {}, "items": [budget]})
}

fn refusal(code: StatusCode) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "x", "code": code.as_u16()})
}

fn stored(name: &str) -> Value {
    let record = |set: &str| json!({"hash": "v1:old", "containers": [format!("{set}-c")]});
    let record = json!({"a": record("a"), "b": record("b")}).to_string();
    let container = |set: &str| json!({"name": format!("{set}-c"), "image": "proxy:1", "env": [{"name": "IS_INJECTED", "value": "true"}]});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "default", "name": name, "uid": "", "resourceVersion": "1", "labels": {"app": "web"},
            "annotations": {INJECTED_ANNOTATION: record},
        },
        "spec": {"containers": [container("a"), container("b"), {"name": "app", "image": "app:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

#[tokio::test]
async fn two_sets_do_not_spend_one_disruption_budget_twice() {
    for allowed in [0, 1, 3] {
        let stage = Stage::new(4, allowed, StatusCode::OK);
        let (first, second) = tokio::join!(stage.run("a", || true), stage.run("b", || true));
        assert_eq!(stage.patches(), usize::try_from(allowed).unwrap());
        let is_spent = |result: &Result| matches!(result.waits, Waits::Disruption(..));
        assert!(is_spent(&first) && is_spent(&second), "{first:?} {second:?}");
        // So it stays until the watch shows the pods.
        assert!(is_spent(&stage.run("a", || true).await));
        assert_eq!(stage.patches(), usize::try_from(allowed).unwrap());
    }
}

#[tokio::test]
async fn a_pod_that_could_not_be_changed_gives_its_place_back() {
    let stage = Stage::new(3, 1, StatusCode::FORBIDDEN);
    for tried in 1..=3 {
        let found = stage.run("a", || true).await;
        assert_eq!((stage.patches(), found.waits, found.again), (tried, Waits::Nothing, Some(Duration::ZERO)));
    }
    let found = stage.run("a", || true).await;
    assert_eq!((stage.patches(), found.waits), (3, Waits::Failed), "all of them wait before the next try");
}

#[tokio::test]
async fn a_pod_that_may_have_been_changed_keeps_its_place() {
    let stage = Stage::new(3, 1, StatusCode::GATEWAY_TIMEOUT);
    for _ in 0..2 {
        assert!(matches!(stage.run("a", || true).await.waits, Waits::Disruption(..)));
        assert_eq!(stage.patches(), 1);
    }
}

/// The watch shows what the last reconcile wrote between reading the pods and planning.
#[tokio::test]
async fn the_plan_is_made_from_the_records_that_the_ledger_is_compared_with() {
    let stage = Stage::limited(4, 1, 100, StatusCode::OK);
    let set = stage.snapshot.sets.get("a").unwrap();
    let members = Members::of(set, &mut locked(&stage.pods), &stage.snapshot);
    let run = || stage.rollouts.run(Rollout { set, members: &members, snapshot: &stage.snapshot }, || true);
    run().await;
    assert_eq!(stage.patches(), 1);
    // The pod has the form and is down; another one is free, so that the first plan is not empty.
    let shown = |name: &str, hash: &str| {
        let mut pod = pod(name, "web", &[("a", hash), ("b", "v1:old")], false);
        let written = json!({"a": {"wasReady": hash != "v1:old"}}).to_string();
        pod.annotations.get_or_insert_default().in_place_state = Some(written.into());
        locked(&stage.pods).update(&PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a", "b"])));
    };
    let touched = {
        let (pods, ledger) = (locked(&stage.pods), locked(&stage.rollouts.ledger));
        ledger.in_flight(&pods).next().unwrap().0.name.to_string()
    };
    shown(&touched, &set.hash);
    let free = members.carrying.iter().find(|(key, _)| *key.name != *touched).unwrap().0.name.clone();
    shown(&free, "v1:old");
    // As they were read before the watch showed the first.
    let mut members = Members::of(set, &mut locked(&stage.pods), &stage.snapshot);
    for member in members.carrying.iter_mut().filter(|(key, _)| *key.name == *touched) {
        let old = pod(&touched, "web", &[("a", "v1:old"), ("b", "v1:old")], true);
        member.1 = Arc::new(PodRecord::of(&old, &wanted(&["a", "b"])).unwrap());
    }
    stage.rollouts.run(Rollout { set, members: &members, snapshot: &stage.snapshot }, || true).await;
    // The API server says that the free one is ready by now: nothing more is patched.
    assert_eq!(stage.patches(), 1);
}

/// The set is paused, or gone, while a batch is on its way.
#[tokio::test]
async fn no_further_pods_are_begun_for_a_set_that_has_changed() {
    let stage = Stage::new(30, 100, StatusCode::OK);
    let batches = AtomicUsize::new(0);
    let found = stage.run("a", || batches.fetch_add(1, Ordering::SeqCst) == 0).await;
    assert_eq!((stage.patches(), found.waits), (AT_ONCE, Waits::Nothing));
    // Those that were not begun have given their places back.
    stage.run("a", || true).await;
    assert_eq!(stage.patches(), 30);
}

/// 40 pods of 40 workloads under this policy, and the pods that the rollout changes.
async fn changed_under(policy: &str, partition: &str) -> Vec<usize> {
    let spec = json!({
        "containers": [{"name": "a-c", "image": "proxy:2"}],
        "updateStrategy": {"maxUnavailable": 100, "partition": partition},
        "injectionStrategy": {"revision": {"customVersion": "old", "policy": policy}},
    });
    let stage = Stage { snapshot: snapshot([set(&spec)], &json!({})), ..Stage::new(40, 100, StatusCode::OK) };
    stage.run("a", || true).await;
    let ledger = locked(&stage.rollouts.ledger);
    let is_changed = |n: &usize| {
        let key = PodKey::of(&pod(&format!("p{n}"), "web", &[], true));
        let pods = locked(&stage.pods);
        ledger.given(&key, pods.get(&key).unwrap().facts.uid, "a", Instant::now()).is_some()
    };
    (0..40).filter(is_changed).collect()
}

#[tokio::test]
async fn a_percentage_of_a_partial_injection_keeps_running_pods_of_the_workloads_whose_new_pods_get_the_older_form() {
    use engine::sidecarset::workload::Workload;
    let bucket = |n: &usize| Workload { namespace: "default", kind: "Pod", name: &format!("p{n}") }.bucket("a");
    let included: Vec<usize> = (0..40).filter(|n| bucket(n) >= 5_000).collect();
    assert!((1..40).contains(&included.len()));
    assert_eq!(changed_under("Partial", "50%").await, included);
    assert_eq!(changed_under("Partial", "100%").await, Vec::<usize>::new());
    // As in OpenKruise, running pods follow the rollout, whatever new ones get.
    assert_eq!(changed_under("Always", "50%").await.len(), 20);
}
