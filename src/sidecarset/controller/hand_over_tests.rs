//! The second half of hot upgrades, against an API server that a test answers for.

use std::sync::{Arc, Mutex};

use engine::pod::in_place::{Change, NewImage};
use engine::sidecarset::index::SetIndex;
use http::{Method, Request, Response};
use kube::Client;
use serde_json::{Value, json};

use super::*;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::Members;
use crate::sidecarset::controller::pods::{PodIndex, PodKey};
use crate::sidecarset::controller::record::tests::wanted;
use crate::sidecarset::controller::records::IN_PLACE_STATE;

fn set(image: &str, more: Value) -> Arc<CompiledSet> {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "containers": [{"name": "c", "image": image, "upgradeStrategy": upgrade}],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let set = json!({"metadata": {"name": "a"}, "spec": spec});
    Arc::new(CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap())
}

/// A pod in the middle: the second container has the new image, and serves or not.
fn middle(set: &CompiledSet, serves: bool) -> Value {
    let injected = |name: &str, image: &str| {
        let piece = set.containers.iter().find(|piece| piece.name == name).unwrap();
        let mut container: Value = serde_json::from_str(&piece.json).unwrap();
        container["image"] = image.into();
        container
    };
    let status = |name: &str, image: &str, id: &str, ready: bool| json!({"name": name, "image": image, "imageID": image, "containerID": id, "ready": ready});
    let state = json!({"a": {
        "revision": &*set.hash, "updateTimestamp": "2026-01-01T00:00:00Z", "wasReady": true, "handOver": ["c-2"],
        "lastContainerStatuses": {"c-2": {"image": "empty:1", "imageID": "empty:1", "containerID": "two"}},
    }});
    let record = format!("{{\"a\":{}}}", set.entry());
    json!({
        "metadata": {
            "namespace": "default", "name": "p", "uid": "u", "resourceVersion": "7", "labels": {"app": "web"},
            "annotations": {
                "outrider.dev/injected": record, IN_PLACE_STATE: state.to_string(),
                "outrider.dev/sidecarset-working-hotupgrade-container": r#"{"c":"c-1"}"#,
            },
        },
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "app", "image": "app:1"}, injected("c-1", "c:1"), injected("c-2", "c:2")],
        },
        "status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": if serves { "True" } else { "False" }}],
            "containerStatuses": [
                status("app", "app:1", "zero", true), status("c-1", "c:1", "one", true), status("c-2", "c:2", "new", serves),
            ],
        },
    })
}

/// What is written where the watch shows one pod and the API server has another.
async fn written(set: &Arc<CompiledSet>, watched: &Value, stored: Value) -> (Vec<Value>, Option<Duration>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (seen, stored) = (Arc::clone(&seen), stored.clone());
        async move {
            let (parts, body) = request.into_parts();
            if parts.method == Method::PATCH {
                let bytes = body.collect_bytes().await.unwrap();
                locked(&seen).push(serde_json::from_slice::<Value>(&bytes).unwrap());
            }
            let body = http_body_util::Full::new(bytes::Bytes::from(stored.to_string()));
            Ok::<_, std::convert::Infallible>(Response::new(body))
        }
    });
    let client = Client::new(service, "default");
    let pods = Arc::new(Mutex::new(PodIndex::default()));
    locked(&pods).sets_are(&wanted(&["a"]).sets);
    let pod: WatchedPod = serde_json::from_value(watched.clone()).unwrap();
    locked(&pods).update(&PodKey::of(&pod), PodRecord::of(&pod, &wanted(&["a"])));
    let snapshot = Snapshot { sets: Arc::new(SetIndex::build([Arc::clone(set)])), ..Snapshot::default() };
    let members = Members::of(set, &mut locked(&pods), &snapshot);
    assert_eq!(members.carrying.len(), 1);
    let rollouts = Rollouts::new(client.clone(), client, pods, Arc::default());
    let strategy = rollouts.strategy(set);
    let rollout = Rollout { set, members: &members, snapshot: &snapshot, new_pods_lack_it: None };
    let again = rollouts.hand_over(rollout, &strategy, || true).await;
    let written = locked(&bodies).clone();
    (written, again)
}

#[tokio::test]
async fn the_new_container_takes_over_and_the_other_one_gets_the_empty_image_in_one_patch() {
    let set = set("c:2", json!({}));
    let pod = middle(&set, true);
    let (written, again) = written(&set, &pod, pod.clone()).await;
    let [patch] = &written[..] else { panic!("{written:?}") };
    assert_eq!(patch["spec"], json!({"containers": [{"name": "c-1", "image": "empty:1"}]}));
    assert_eq!((&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
    let annotations = patch["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations["outrider.dev/sidecarset-working-hotupgrade-container"], r#"{"c":"c-2"}"#);
    assert_eq!(annotations["version.sidecarset.outrider.dev/c-1"], "0");
    assert_eq!(annotations["versionalt.sidecarset.outrider.dev/c-2"], "0");
    let state: Value = serde_json::from_str(annotations[IN_PLACE_STATE].as_str().unwrap()).unwrap();
    assert_eq!((&state["a"]["handOver"], &state["a"]["wasReady"]), (&Value::Null, &json!(true)));
    let last = &state["a"]["lastContainerStatuses"];
    assert_eq!((&last["c-1"]["containerID"], &last["c-2"]["containerID"]), (&json!("one"), &json!("two")));
    assert_eq!(again, None);
}

#[tokio::test]
async fn nothing_takes_over_that_does_not_serve_nor_in_a_set_that_is_paused() {
    let due = set("c:2", json!({}));
    let serving = middle(&due, true);
    for (case, set, watched, stored) in [
        ("not ready", set("c:2", json!({})), middle(&due, false), middle(&due, false)),
        ("not ready any more", set("c:2", json!({})), serving.clone(), middle(&due, false)),
        ("paused", set("c:2", json!({"updateStrategy": {"paused": true}})), serving.clone(), serving.clone()),
        ("not updated", set("c:2", json!({"updateStrategy": {"type": "NotUpdate"}})), serving.clone(), serving.clone()),
        (
            "a must of which the pod has an older form",
            set("c:3", json!({"optOut": "Denied"})),
            serving.clone(),
            serving,
        ),
    ] {
        let (written, _) = written(&set, &watched, stored).await;
        assert!(written.is_empty(), "{case}: {written:?}");
    }
}

#[tokio::test]
async fn a_pod_that_says_wrongly_that_it_is_in_the_middle_is_corrected() {
    let set = set("c:2", json!({}));
    let mut pod = middle(&set, true);
    let state = pod["metadata"]["annotations"][IN_PLACE_STATE].as_str().unwrap().replace(r#"["c-2"]"#, r#"["app"]"#);
    pod["metadata"]["annotations"][IN_PLACE_STATE] = state.into();
    let (written, _) = written(&set, &pod, pod.clone()).await;
    let [patch] = &written[..] else { panic!("{written:?}") };
    let annotations = patch["metadata"]["annotations"].as_object().unwrap();
    assert_eq!((annotations.len(), patch.get("spec")), (1, None));
    assert!(!annotations[IN_PLACE_STATE].as_str().unwrap().contains("handOver"));
}

/// As other writes that the API server refuses: after the second time, the condition of the set names the pod and the reason.
#[tokio::test]
async fn a_hand_over_that_the_api_server_refuses_is_reported() {
    let set = set("c:2", json!({}));
    let pod = middle(&set, true);
    let stored = pod.clone();
    let is_refused = Arc::new(Mutex::new(true));
    let refuses = Arc::clone(&is_refused);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "admission webhook \"x\" denied the request", "reason": "Forbidden", "code": 403});
        let is_refused = request.method() == Method::PATCH && *locked(&refuses);
        let (code, body) = if is_refused { (403, refusal) } else { (200, stored.clone()) };
        async move {
            let mut response = Response::new(http_body_util::Full::new(bytes::Bytes::from(body.to_string())));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let client = Client::new(service, "default");
    let pods = Arc::new(Mutex::new(PodIndex::default()));
    locked(&pods).sets_are(&wanted(&["a"]).sets);
    let watched: WatchedPod = serde_json::from_value(pod).unwrap();
    locked(&pods).update(&PodKey::of(&watched), PodRecord::of(&watched, &wanted(&["a"])));
    let snapshot = Snapshot { sets: Arc::new(SetIndex::build([Arc::clone(&set)])), ..Snapshot::default() };
    let members = Members::of(&set, &mut locked(&pods), &snapshot);
    let rollouts = Rollouts::new(client.clone(), client, pods, Arc::default());
    let strategy = rollouts.strategy(&set);
    let rollout = Rollout { set: &set, members: &members, snapshot: &snapshot, new_pods_lack_it: None };
    let memory = rollouts.memory("a");
    let said = || locked(&memory).not_ended().1.map(|(key, why)| format!("{}: {why}", key.name));
    rollouts.hand_over(rollout, &strategy, || true).await;
    assert_eq!(said(), None, "it may be a conflict with another writer");
    assert_eq!(rollouts.hand_over(rollout, &strategy, || true).await, Some(PAUSE));
    assert!(said().is_some_and(|said| said.contains("p: ") && said.contains("webhook \"x\" denied")), "{:?}", said());
    *locked(&is_refused) = false;
    rollouts.hand_over(rollout, &strategy, || true).await;
    assert_eq!((said(), locked(&memory).not_ended().0), (None, 0));
}

/// The set gets another image for another container meanwhile: what was begun still has to be seen as begun.
#[test]
fn what_a_container_was_that_has_not_taken_over_yet_stays_with_another_form() {
    let older = set("c:2", json!({}));
    let newer = set("c:2", json!({"customVersion": "v2", "volumes": [{"name": "v"}]}));
    let mut pod = middle(&older, false);
    let state = pod["metadata"]["annotations"][IN_PLACE_STATE].as_str().unwrap().replace(&*older.hash, "v1:0");
    pod["metadata"]["annotations"][IN_PLACE_STATE] = state.into();
    let images = vec![NewImage { list: "containers", container: "app".to_owned(), image: "app:2".to_owned() }];
    let change = Change { images, hand_over: ["c-2".to_owned()].into(), ..Change::default() };
    let patch = patch(&pod, &newer, &change, true, Timestamp::UNIX_EPOCH);
    let state = patch["metadata"]["annotations"][IN_PLACE_STATE].as_str().unwrap();
    let state: Value = serde_json::from_str(state).unwrap();
    let last = state["a"]["lastContainerStatuses"].as_object().unwrap();
    assert_eq!(last.keys().collect::<Vec<_>>(), ["app", "c-2"]);
    assert_eq!(state["a"]["handOver"], json!(["c-2"]));
}

/// The images of a pair of a must are right in either order, and in the middle as long as the pod says that it is there.
#[test]
fn images_of_a_pair_are_the_sets_in_either_order_and_in_the_middle() {
    let set = set("c:2", json!({"optOut": "Denied"}));
    for (images, in_the_middle, is_right) in [
        (["c:2", "empty:1"], false, true),
        (["empty:1", "c:2"], false, true),
        (["c:1", "c:2"], true, true),
        (["c:1", "c:2"], false, false),
        (["c:1", "c:3"], true, false),
        (["empty:1", "empty:1"], true, false),
    ] {
        let mut pod = middle(&set, true);
        pod["spec"]["containers"][1]["image"] = images[0].into();
        pod["spec"]["containers"][2]["image"] = images[1].into();
        if !in_the_middle {
            pod["metadata"]["annotations"][IN_PLACE_STATE] = "{}".into();
        }
        let pod: WatchedPod = serde_json::from_value(pod).unwrap();
        assert_eq!(pod.has_images_of(&set), is_right, "{images:?} {in_the_middle}");
    }
}

/// The state is an annotation, which anybody may write who may update the pod.
#[test]
fn only_a_container_of_the_pair_itself_says_that_the_other_one_keeps_its_older_image() {
    let set = set("c:2", json!({}));
    for (started, has_images) in [(json!(["c-2"]), true), (json!(["app"]), false), (json!([]), false)] {
        let mut pod = middle(&set, true);
        let state = json!({"a": {"handOver": started}});
        pod["metadata"]["annotations"][IN_PLACE_STATE] = state.to_string().into();
        let pod = WatchedPod::deserialize(&pod).unwrap();
        assert_eq!(pod.has_images_of(&set), has_images, "{state}");
    }
}
