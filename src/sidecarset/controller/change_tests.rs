//! Changes of pods, against an API server that a test answers for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use std::collections::BTreeMap;

use engine::pod::in_place::{Change, NewImage};
use engine::pod::resize::NewAmounts;
use engine::sidecarset::index::SetIndex;

use super::*;
use crate::sidecarset::controller::in_place_state::{ContainerStatus, unsettled};
use crate::sidecarset::controller::pod_patch::{in_place_state, resize_patch};
use crate::sidecarset::controller::records::IN_PLACE_STATE;
use crate::sidecarset::controller::requested::Requested;

fn set() -> CompiledSet {
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "c:2"}]});
    let set = json!({"metadata": {"name": "a"}, "spec": spec});
    CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap()
}

fn pod(annotations: Value, conditions: Value) -> Value {
    json!({
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
        "status": {
            "conditions": conditions,
            "containerStatuses": [{"name": "c", "image": "c:1", "imageID": "i1", "containerID": "c1", "state": {}}],
        },
    })
}

fn planned(is_free: bool) -> AsPlanned {
    AsPlanned {
        uid: hashed("u"),
        is_free,
        takes_place: !is_free,
        is_replaced: false,
        is_evicted: false,
        is_first: false,
    }
}

fn at() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn the_patch_holds_what_changes_and_the_version_that_was_read_and_nothing_else() {
    let change = Change {
        images: vec![NewImage { list: "containers", container: "c".to_owned(), image: "c:2".to_owned() }],
        annotations: vec![("outrider.dev/injected".to_owned(), "{}".to_owned())],
        ..Change::default()
    };
    let other = json!({"b": {"revision": "v1:b"}}).to_string();
    let (set, annotations) = (set(), json!({IN_PLACE_STATE: other, "of-the-app": "x"}));
    let patch = patch(&pod(annotations, json!([])), &set, &change, true, at());
    let state: Value =
        serde_json::from_str(patch["metadata"]["annotations"][IN_PLACE_STATE].as_str().unwrap()).unwrap();
    assert_eq!(
        state,
        json!({
            "a": {
                "revision": &*set.hash, "updateTimestamp": "2026-01-01T00:00:00Z", "wasReady": true,
                "lastContainerStatuses": {"c": {"image": "c:1", "imageID": "i1", "containerID": "c1"}},
            },
            "b": {"revision": "v1:b"},
        })
    );
    assert_eq!(patch["spec"], json!({"containers": [{"name": "c", "image": "c:2"}]}));
    assert_eq!((&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
    assert_eq!(patch["metadata"]["annotations"].as_object().unwrap().len(), 2);
}

#[test]
fn annotations_alone_restart_nothing_and_leave_the_state() {
    let change = Change { annotations: vec![("a".to_owned(), "b".to_owned())], ..Change::default() };
    let patch = patch(&pod(json!({}), json!([])), &set(), &change, true, at());
    assert_eq!(patch["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(patch.get("spec"), None);
}

/// A pod that carries the set, with this image.
fn injected(image: &str) -> Value {
    let mut stored = pod(json!({}), json!([]));
    let mut entry: Value = serde_json::from_str(&set().entry()).unwrap();
    if image != "c:2" {
        entry["hash"] = "v1:0".into();
    }
    stored["metadata"]["annotations"] = json!({"outrider.dev/injected": json!({"a": entry}).to_string()});
    stored["metadata"]["labels"] = json!({"app": "web"});
    let mut injected: Value = serde_json::from_str(&set().containers.iter().next().unwrap().json).unwrap();
    injected["image"] = image.into();
    stored["spec"]["containers"] = json!([{"name": "app", "image": "app:1"}, injected]);
    stored
}

fn snapshot() -> Arc<Snapshot> {
    let index = SetIndex::build([Arc::new(set())]);
    Arc::new(Snapshot { sets: Arc::new(index), ..Snapshot::default() })
}

fn key() -> PodKey {
    PodKey::of(&serde_json::from_value(json!({"metadata": {"namespace": "default", "name": "p"}})).unwrap())
}

/// An API server with this pod, which answers so many patches with a conflict; and how many requests it got.
fn answering(pod: Value, conflicts: usize) -> (PodChanger, Arc<AtomicUsize>) {
    let (requests, patches) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let is_conflict = request.method() == "PATCH" && patches.fetch_add(1, Ordering::SeqCst) < conflicts;
        let status = json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "Conflict", "code": 409});
        let body = if is_conflict { status.to_string() } else { pod.to_string() };
        let mut response = http::Response::new(http_body_util::Full::new(bytes::Bytes::from(body)));
        *response.status_mut() = if is_conflict { http::StatusCode::CONFLICT } else { http::StatusCode::OK };
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    let client = Client::new(service, "default");
    (PodChanger::new(client.clone(), client), requests)
}

/// Between the plan and the patch a pod that was starting may have become ready.
#[tokio::test]
async fn a_pod_that_was_free_and_is_ready_by_now_is_not_changed() {
    for (status, is_free, expected) in [("True", true, PodOutcome::Stale), ("False", true, PodOutcome::HasIt)] {
        let mut stored = injected("c:2");
        stored["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
        let (changer, requests) = answering(stored, 0);
        let found = changer.update(&set(), &key(), planned(is_free), &snapshot()).await;
        assert_eq!((found, requests.load(Ordering::SeqCst)), (expected, 1), "{status}: nothing is written");
    }
}

/// Case 100: a pod that is deleted between the decision and the write.
#[test]
fn case_100_a_pod_that_is_gone_is_no_failure() {
    let answer = |code| {
        let status = kube::core::Status::failure("no", "Reason").with_code(code);
        Failure::Answer(kube::Error::Api(Box::new(status))).outcome()
    };
    assert_eq!(answer(404), PodOutcome::Gone);
    assert_eq!(answer(403), PodOutcome::Failed("no".to_owned()));
}

#[test]
fn an_error_after_which_the_pod_may_have_been_written_is_no_answer() {
    let refused = "Internal error occurred: failed calling webhook \"a.b.c\": connection refused";
    for (code, message, is_answer) in [
        (403, "no", true),
        (409, "no", true),
        (500, refused, true),
        (500, "etcdserver: request timed out", false),
        (504, "no", false),
    ] {
        let status = kube::core::Status::failure(message, "Reason").with_code(code);
        let failure = Failure::from(kube::Error::Api(Box::new(status)));
        assert_eq!(matches!(failure, Failure::Answer(_)), is_answer, "{code} {message}");
    }
}

/// A pod whose status flaps: the first try has a version that is old by then.
#[tokio::test]
async fn a_pod_that_somebody_else_writes_is_read_once_more_at_once_and_then_planned_again() {
    for (conflicts, expected, requests) in [(1, PodOutcome::Changed, 4), (2, PodOutcome::Stale, 4)] {
        let mut stored = injected("c:1");
        stored["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        let (changer, asked) = answering(stored, conflicts);
        let key = key();
        let found = changer.update(&set(), &key, planned(false), &snapshot()).await;
        assert_eq!((found, asked.load(Ordering::SeqCst)), (expected, requests), "{conflicts} conflicts");
    }
}

/// Two sets say at one time that they cannot be updated in a pod.
#[tokio::test]
async fn a_condition_that_another_set_writes_meanwhile_is_read_again() {
    for (conflicts, requests) in [(0, 1), (1, 3)] {
        let (changer, asked) = answering(pod(json!({}), json!([])), conflicts);
        let noted = changer.note(&key(), &pod(json!({}), json!([])), "a", Some("env")).await;
        assert_eq!(noted, Ok(Noted { version: "7".to_owned(), is_as_read: conflicts == 0 }));
        assert_eq!(asked.load(Ordering::SeqCst), requests, "{conflicts} conflicts");
    }
}

/// The kubelet has not seen the first change when the second one takes it back.
#[test]
fn going_back_to_the_image_that_runs_is_settled_at_once() {
    let change = |image: &str| Change {
        images: vec![NewImage { list: "containers", container: "c".to_owned(), image: image.to_owned() }],
        ..Change::default()
    };
    let mut running = pod(json!({}), json!([]));
    for (image, is_settled) in [("c:2", false), ("c:3", false), ("c:1", true)] {
        let state = in_place_state(&running, &set(), &change(image), true, at());
        running["metadata"]["annotations"][IN_PLACE_STATE] = state.as_str().into();
        running["spec"]["containers"][0]["image"] = image.into();
        // Runtimes name the image in their own way.
        let mut status: ContainerStatus =
            serde_json::from_value(running["status"]["containerStatuses"][0].clone()).unwrap();
        status.image = "sha256:0123".to_owned();
        let requested = BTreeMap::from([("c", Requested { image, resources: None })]);
        let found = unsettled(&state, &requested, [status].iter(), false);
        assert_eq!(found.is_empty(), is_settled, "{image}");
    }
}

/// The set with requests, and a pod that carries an older form of it.
fn with_requests(request: &str) -> (Arc<CompiledSet>, Value) {
    let compiled = |request: &str, image: &str| {
        let container = json!({"name": "c", "image": image, "resources": {"requests": {"cpu": request}}});
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [container]});
        let set = json!({"metadata": {"name": "a"}, "spec": spec});
        Arc::new(CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap())
    };
    let older = compiled("1", "c:1");
    let mut stored = pod(json!({}), json!([{"type": "Ready", "status": "True"}]));
    let entry: Value = serde_json::from_str(&older.entry()).unwrap();
    stored["metadata"]["annotations"] = json!({"outrider.dev/injected": json!({"a": entry}).to_string()});
    stored["metadata"]["labels"] = json!({"app": "web"});
    let injected: Value = serde_json::from_str(&older.containers.iter().next().unwrap().json).unwrap();
    stored["spec"]["containers"] = json!([{"name": "app", "image": "app:1"}, injected]);
    (compiled(request, "c:2"), stored)
}

/// What requests are made to, and the spec that they write.
type Requests = std::sync::Mutex<Vec<(String, Value)>>;

/// An API server with this pod, which answers a resize with this code; and the requests that it got, with the spec that they write.
fn resizing(pod: Value, code: u16) -> (PodChanger, Arc<Requests>) {
    let requests = Arc::<Requests>::default();
    let noted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (pod, noted) = (pod.clone(), Arc::clone(&noted));
        async move {
            let (parts, body) = request.into_parts();
            let bytes = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
            let written: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let path = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
            noted.lock().unwrap().push((format!("{} {path}", parts.method), written["spec"].clone()));
            let code = if path == "resize" { code } else { 200 };
            let failure =
                json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "Some", "code": code});
            let body = if code == 200 { pod.to_string() } else { failure.to_string() };
            let mut response = http::Response::new(http_body_util::Full::new(bytes::Bytes::from(body)));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let client = Client::new(service, "default");
    (PodChanger::new(client.clone(), client), requests)
}

#[tokio::test]
async fn a_pod_is_resized_before_anything_else_of_it_changes_and_stays_as_it_is_where_that_is_refused() {
    let resized = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]});
    let image = json!({"containers": [{"name": "c", "image": "c:2"}]});
    for (code, expected, last) in [
        (200, PodOutcome::Changed, ("PATCH p", image)),
        (
            422,
            PodOutcome::NewPodOnly("the API server does not resize it: no".to_owned()),
            ("PATCH status", Value::Null),
        ),
        (403, PodOutcome::Failed("no".to_owned()), ("PATCH resize", resized.clone())),
    ] {
        let (set, stored) = with_requests("2");
        let index = Arc::new(SetIndex::build([Arc::clone(&set)]));
        let snapshot = Snapshot { sets: index, resizes_pods: true, ..Snapshot::default() };
        let (changer, requests) = resizing(stored, code);
        let found = changer.update(&set, &key(), planned(false), &snapshot).await;
        assert_eq!(found, expected, "{code}");
        let requests = requests.lock().unwrap().clone();
        let first: Vec<&str> = requests.iter().map(|(what, _)| what.as_str()).take(3).collect();
        assert_eq!(first, ["GET p", "PATCH p", "PATCH resize"], "{code}");
        assert_eq!((&requests[1].1, &requests[2].1), (&Value::Null, &resized), "what it was is written down first");
        assert_eq!(requests.last().map(|(what, spec)| (what.as_str(), spec.clone())), Some(last), "{code}");
    }
}

#[test]
fn a_resize_writes_amounts_alone_and_what_the_container_asked_for_before() {
    let resources = json!({"requests": {"cpu": "2"}});
    let resize =
        |restarts| NewAmounts { list: "containers", container: "c".to_owned(), resources: resources.clone(), restarts };
    let mut running = pod(json!({}), json!([{"type": "Ready", "status": "True"}]));
    running["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    for restarts in [false, true] {
        let change = Change { resources: vec![resize(restarts)], ..Change::default() };
        let patch = resize_patch(&running, &change);
        let metadata = json!({"uid": "u", "resourceVersion": "7"});
        let spec = json!({"containers": [{"name": "c", "resources": resources}]});
        assert_eq!(patch, json!({"metadata": metadata, "spec": spec}));
        let state: Value = serde_json::from_str(&in_place_state(&running, &set(), &change, true, at())).unwrap();
        let last = &state["a"]["lastContainerStatuses"]["c"];
        assert_eq!(last["resources"], json!({"requests": {"cpu": "1"}}));
        // What restarts nothing takes no place.
        assert_eq!((&last["restarts"] == true, state["a"]["wasReady"] == true), (restarts, restarts));
    }
}

/// The image follows in a patch of its own, maybe of another leader.
#[test]
fn what_was_written_down_before_a_resize_stays_until_the_pod_has_the_form() {
    let resources = json!({"requests": {"cpu": "2"}});
    let resize = NewAmounts { list: "containers", container: "c".to_owned(), resources, restarts: true };
    let image = NewImage { list: "containers", container: "c".to_owned(), image: "c:2".to_owned() };
    let mut running = pod(json!({}), json!([{"type": "Ready", "status": "True"}]));
    running["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    let both = Change { resources: vec![resize], images: vec![image.clone()], ..Change::default() };
    let first = in_place_state(&running, &set(), &both, true, at());
    running["metadata"]["annotations"][IN_PLACE_STATE] = first.as_str().into();
    running["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    let rest = Change { images: vec![image], ..Change::default() };
    let second = in_place_state(&running, &set(), &rest, true, at());
    assert_eq!(first, second);
}
