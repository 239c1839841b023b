//! Rollouts against an API server that a test answers for.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response, StatusCode};
use kube::Resource as _;
use serde_json::{Value, json};

use super::*;
use crate::sidecarset::controller::injection_counts::tests::{set, snapshot};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::controller::record::tests::{labelled, pod, wanted};
use crate::sidecarset::controller::watched_pod::WatchedPod;
use crate::sidecarset::rollout::EvictionsWait;
use engine::sidecarset::injection::INJECTED_ANNOTATION;

#[test]
fn what_no_event_tells_of_is_looked_at_again() {
    let (memory, now) = (Memory::default(), Instant::now());
    let again = |waits: Waits| again(&waits, &memory, false, now);
    assert_eq!(again(Waits::Nothing), Some(Duration::ZERO));
    assert_eq!(again(Waits::Disruption(String::new(), String::new())), Some(DISRUPTION_PAUSE));
    assert_eq!(again(Waits::MaxUnavailable(1)), Some(IN_FLIGHT_PAUSE));
    assert_eq!(again(Waits::Evictions(EvictionsWait::Successors)), Some(EVICTIONS_PAUSE));
    assert_eq!(super::again(&Waits::Done, &memory, true, now), Some(EVICTIONS_PAUSE));
    for waits in [Waits::Done, Waits::Paused, Waits::NotUpdate, Waits::Kept, Waits::NewPodOnly] {
        assert_eq!(again(waits), None);
    }
}

/// Pods `p0`, `p1` and so on that carry the sets `a` and `b` in an older form, and what the API server has of them.
pub struct Stage {
    pub rollouts: Rollouts,
    pub pods: Arc<Mutex<PodIndex>>,
    pub snapshot: Snapshot,
    pub api: Arc<Mutex<ApiServer>>,
}

/// What the API server answers, and what it was asked.
pub struct ApiServer {
    pub budgets: Value,
    /// To the patch of a pod.
    pub patch: StatusCode,
    /// To an eviction.
    pub eviction: (StatusCode, Value),
    /// Of the stored pods.
    pub owner: Value,
    pub conditions: Vec<Value>,
    patches: usize,
    /// Names of pods.
    pub evicted: Vec<String>,
    /// What was written into the condition of pods.
    pub said: Vec<String>,
    /// The same with the names of the pods.
    pub told: Vec<(String, String)>,
    // Namespaces and owners of pods that have others than the rest.
    others: BTreeMap<String, (String, Value)>,
    // Pods that carry no set.
    bare: Vec<String>,
}

impl ApiServer {
    fn answer(&mut self, method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
        let of_pod = path.split_once("/pods/").map_or("", |(_, rest)| rest.split('/').next().unwrap());
        if path.contains("poddisruptionbudgets") {
            return (StatusCode::OK, self.budgets.clone());
        } else if path.ends_with("/eviction") {
            self.evicted.push(of_pod.to_owned());
            return self.eviction.clone();
        } else if path.ends_with("/status") {
            let written: Value = serde_json::from_slice(body).unwrap();
            let said = written["status"]["conditions"][0]["message"].as_str().unwrap().to_owned();
            self.told.push((of_pod.to_owned(), said.clone()));
            self.said.push(said);
        } else if method == Method::PATCH {
            self.patches += 1;
            if self.patch != StatusCode::OK {
                return (self.patch, refusal(self.patch, "no"));
            }
        }
        let mut stored = stored(of_pod);
        if self.bare.iter().any(|bare| bare == of_pod) {
            stored["metadata"]["annotations"] = json!({});
            stored["spec"]["containers"] = json!([{"name": "app", "image": "app:1"}]);
        }
        let (namespace, owner) = self.of(of_pod);
        (stored["metadata"]["namespace"], stored["metadata"]["ownerReferences"]) = (namespace.into(), owner);
        stored["status"]["conditions"].as_array_mut().unwrap().extend(self.conditions.clone());
        (StatusCode::OK, stored)
    }

    /// Namespace and owner of a pod.
    pub fn of(&self, pod: &str) -> (String, Value) {
        self.others.get(pod).cloned().unwrap_or_else(|| ("default".to_owned(), self.owner.clone()))
    }
}

/// The owner of a pod.
pub fn owned_by(name: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "s", "controller": true}])
}

impl Stage {
    /// With so many pods, a budget that allows so many disruptions, and this answer to the patch of a pod.
    fn new(count: usize, allowed: i32, answer: StatusCode) -> Self {
        Self::limited(count, 100, allowed, answer)
    }

    /// The same, with this `maxUnavailable`.
    fn limited(count: usize, max_unavailable: i32, allowed: i32, answer: StatusCode) -> Self {
        let stage =
            Self::of(count, &json!({"maxUnavailable": max_unavailable}), &json!({}), |n| owned_by(&format!("s{n}")));
        (locked(&stage.api).budgets, locked(&stage.api).patch) = (budgets(&[allowed]), answer);
        stage
    }

    /// With this strategy, containers of the sets that have these fields too, and these owners of the pods.
    pub fn of(count: usize, strategy: &Value, more: &Value, owner: impl Fn(usize) -> Value) -> Self {
        let new_form = |name: &str| {
            let mut container = json!({"name": format!("{name}-c"), "image": "proxy:2"});
            container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut set = set(&json!({"updateStrategy": strategy, "containers": [container]}));
            name.clone_into(&mut set.name);
            set
        };
        let snapshot = snapshot([new_form("a"), new_form("b")], &json!({}));
        let pods = Arc::new(Mutex::new(PodIndex::default()));
        locked(&pods).sets_are(&wanted(&["a", "b"]).sets);
        let api = Arc::new(Mutex::new(ApiServer {
            budgets: budgets(&[100]),
            patch: StatusCode::OK,
            eviction: (StatusCode::CREATED, json!({"kind": "Status", "status": "Success"})),
            owner: owner(0),
            conditions: Vec::new(),
            patches: 0,
            evicted: Vec::new(),
            said: Vec::new(),
            told: Vec::new(),
            others: BTreeMap::new(),
            bare: Vec::new(),
        }));
        let asked = Arc::clone(&api);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let asked = Arc::clone(&asked);
            async move {
                // Others get their turn, as they do while the network is busy.
                tokio::task::yield_now().await;
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (code, body) = locked(&asked).answer(&parts.method, parts.uri.path(), &body);
                let mut response = Response::new(http_body_util::Full::new(bytes::Bytes::from(body.to_string())));
                *response.status_mut() = code;
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let client = Client::new(service, "default");
        let mut rollouts = Rollouts::new(client.clone(), client, Arc::clone(&pods), Arc::default());
        // The leader is one for a while.
        rollouts.evictions = Mutex::new(Evictions::new(Instant::now().checked_sub(Duration::from_secs(60)).unwrap()));
        let stage = Self { rollouts, pods, snapshot, api };
        (0..count).for_each(|n| stage.show(&format!("p{n}"), "v1:old", true, owner(n)));
        stage
    }

    /// The watch shows a pod in this form.
    pub fn show(&self, name: &str, hash: &str, ready: bool, owner: Value) {
        self.show_in("default", name, hash, ready, owner);
    }

    /// The same, in this namespace.
    pub fn show_in(&self, namespace: &str, name: &str, hash: &str, ready: bool, owner: Value) {
        let mut pod = in_namespace(namespace, name, hash, ready);
        pod.meta_mut().owner_references = serde_json::from_value(owner.clone()).unwrap();
        if namespace != "default" {
            locked(&self.api).others.insert(name.to_owned(), (namespace.to_owned(), owner));
        }
        locked(&self.pods).update(&PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a", "b"])));
    }

    /// The watch shows a pod that carries no set.
    pub fn show_bare(&self, name: &str, owner: Value) {
        let mut pod = pod(name, "web", &[], true);
        pod.meta_mut().uid = Some(name.to_owned());
        pod.meta_mut().owner_references = serde_json::from_value(owner.clone()).unwrap();
        let mut api = locked(&self.api);
        api.others.insert(name.to_owned(), ("default".to_owned(), owner));
        api.bare.push(name.to_owned());
        let (key, record) = (PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a", "b"])));
        locked(&self.pods).update_by(&key, record, &self.snapshot);
    }

    /// The watch shows a pod in an older form, of this template of its Deployment.
    pub fn show_of(&self, name: &str, template: &str, owner: Value) {
        let labels = json!({"app": "web", "pod-template-hash": template});
        let mut pod = labelled(name, &labels, &[("a", "v1:old"), ("b", "v1:old")], true);
        pod.meta_mut().uid = Some(name.to_owned());
        pod.meta_mut().owner_references = serde_json::from_value(owner).unwrap();
        locked(&self.pods).update(&PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a", "b"])));
    }

    pub async fn run(&self, set: &str, is_current: impl Fn() -> bool) -> Result {
        self.run_while(set, true, is_current).await
    }

    pub async fn run_while(&self, set: &str, new_pods_have_it: bool, is_current: impl Fn() -> bool) -> Result {
        let set = self.snapshot.sets.get(set).unwrap();
        let members = {
            let mut pods = locked(&self.pods);
            let members = Members::of(set, &mut pods, &self.snapshot);
            if self.rollouts.strategy(set).repair { members.with_those_to_repair(set, &pods) } else { members }
        };
        let new_pods_lack_it = (!new_pods_have_it).then_some("no");
        let rollout = Rollout { set, members: &members, snapshot: &self.snapshot, new_pods_lack_it };
        self.rollouts.run(rollout, is_current).await
    }

    fn patches(&self) -> usize {
        locked(&self.api).patches
    }
}

/// A pod that carries this form of `a`, and an older one of `b`.
pub fn in_namespace(namespace: &str, name: &str, hash: &str, ready: bool) -> WatchedPod {
    let mut pod = pod(name, "web", &[("a", hash), ("b", "v1:old")], ready);
    pod.meta_mut().uid = Some(name.to_owned());
    pod.meta_mut().namespace = Some(namespace.to_owned());
    pod
}

/// A list of budgets that allow so many disruptions each.
pub fn budgets(allowed: &[i32]) -> Value {
    let budget = |(n, allowed): (usize, &i32)| {
        json!({
            "metadata": {"namespace": "default", "name": format!("b{n}"), "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": allowed},
        })
    };
    let budgets: Vec<Value> = allowed.iter().enumerate().map(budget).collect();
    json!({"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1", "metadata": {}, "items": budgets})
}

pub fn refusal(code: StatusCode, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "x", "code": code.as_u16()})
}

fn stored(name: &str) -> Value {
    let record = |set: &str| json!({"hash": "v1:old", "containers": [format!("{set}-c")]});
    let record = json!({"a": record("a"), "b": record("b")}).to_string();
    let container = |set: &str| json!({"name": format!("{set}-c"), "image": "proxy:1", "env": [{"name": "IS_INJECTED", "value": "true"}]});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "default", "name": name, "uid": name, "resourceVersion": "1", "labels": {"app": "web"},
            "annotations": {INJECTED_ANNOTATION: record},
        },
        "spec": {"restartPolicy": "Always", "containers": [container("a"), container("b"), {"name": "app", "image": "app:1"}]},
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
    let run = || {
        stage
            .rollouts
            .run(Rollout { set, members: &members, snapshot: &stage.snapshot, new_pods_lack_it: None }, || true)
    };
    run().await;
    assert_eq!(stage.patches(), 1);
    // The pod has the form and is down; another one is free, so that the first plan is not empty.
    let shown = |name: &str, hash: &str| {
        let mut pod = pod(name, "web", &[("a", hash), ("b", "v1:old")], false);
        pod.meta_mut().uid = Some(name.to_owned());
        let written = json!({"a": {"wasReady": hash != "v1:old"}}).to_string();
        pod.annotations.get_or_insert_default().in_place_state = Some(written.into());
        locked(&stage.pods).update(&PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a", "b"])));
    };
    let touched = {
        let (pods, expectations) = (locked(&stage.pods), locked(&stage.rollouts.expectations));
        expectations.in_flight(&pods).next().unwrap().0.name.to_string()
    };
    shown(&touched, &set.hash);
    let free = members.carrying.iter().find(|(key, _)| *key.name != *touched).unwrap().0.name.clone();
    shown(&free, "v1:old");
    // As they were read before the watch showed the first.
    let mut members = Members::of(set, &mut locked(&stage.pods), &stage.snapshot);
    for member in members.carrying.iter_mut().filter(|(key, _)| *key.name == *touched) {
        let mut old = pod(&touched, "web", &[("a", "v1:old"), ("b", "v1:old")], true);
        old.meta_mut().uid = Some(touched.clone());
        member.1 = Arc::new(PodRecord::of(&old, &wanted(&["a", "b"])).unwrap());
    }
    stage
        .rollouts
        .run(Rollout { set, members: &members, snapshot: &stage.snapshot, new_pods_lack_it: None }, || true)
        .await;
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
    let expectations = locked(&stage.rollouts.expectations);
    let is_changed = |n: &usize| {
        let key = PodKey::of(&pod(&format!("p{n}"), "web", &[], true));
        let pods = locked(&stage.pods);
        expectations.given(&key, pods.get(&key).unwrap().facts.uid, "a", Instant::now()).is_some()
    };
    (0..40).filter(is_changed).collect()
}

#[tokio::test]
async fn a_percentage_of_a_partial_injection_keeps_running_pods_of_the_workloads_whose_new_pods_get_the_older_form() {
    use engine::sidecarset::workload::Workload;
    let bucket = |n: &usize| Workload { namespace: "default", kind: "ReplicaSet", name: &format!("s{n}") }.bucket("a");
    let included: Vec<usize> = (0..40).filter(|n| bucket(n) >= 5_000).collect();
    assert!((1..40).contains(&included.len()));
    assert_eq!(changed_under("Partial", "50%").await, included);
    assert_eq!(changed_under("Partial", "100%").await, Vec::<usize>::new());
    // As in OpenKruise, running pods follow the rollout, whatever new ones get.
    assert_eq!(changed_under("Always", "50%").await.len(), 20);
}
