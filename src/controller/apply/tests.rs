//! When an owned object is written, and when it is not.

use std::sync::Mutex;

use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::core::Status;
use serde_json::json;

use super::*;

async fn refused(status: Value) -> Error {
    let status: Status = serde_json::from_value(status).unwrap();
    let key = Key { namespace: "n".to_owned(), name: "c".to_owned() };
    let answer = async { Err::<(), _>(kube::Error::Api(Box::new(status))) };
    request::<ConfigMap, _>(&key, answer).await.unwrap_err()
}

#[tokio::test]
async fn a_refusal_is_told_in_the_api_servers_words_and_tried_again_unless_the_namespace_ends() {
    let invalid = json!({"code": 422, "status": "Failure", "reason": "Invalid", "message": "it is invalid"});
    let error = refused(invalid).await;
    assert_eq!(error.to_string(), "ConfigMap \"c\": it is invalid");
    assert!(error.again().is_err());
    let ends = json!({"code": 403, "status": "Failure", "reason": "Forbidden", "message": "it ends",
        "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}});
    assert_eq!(refused(ends).await.again().unwrap(), None);
    let forbidden = json!({"code": 403, "status": "Failure", "reason": "Forbidden", "message": "no"});
    assert!(refused(forbidden).await.again().is_err());
}

#[test]
fn what_others_added_is_no_difference_and_what_they_changed_is() {
    let wanted = json!({"a": 1, "list": [{"name": "x", "v": 1}, {"name": "y"}], "args": ["1", "2"], "map": {"k": "v"}});
    assert!(contains(&wanted, &wanted));
    let mut live = wanted.clone();
    live["b"] = json!(2);
    live["map"]["other"] = json!("w");
    live["list"] = json!([{"name": "injected"}, {"name": "y", "z": 0}, {"name": "x", "v": 1, "w": 2}]);
    assert!(contains(&live, &wanted));
    for (pointer, value) in [
        ("/a", json!(2)),
        ("/a", json!("1")),
        ("/map/k", json!("other")),
        ("/map", json!({})),
        ("/list", json!([{"name": "x", "v": 1}])),
        ("/list/2/v", json!(2)),
        ("/args", json!(["1", "2", "3"])),
        ("/args", json!(["2", "1"])),
        ("/args", json!(null)),
    ] {
        let mut live = live.clone();
        *live.pointer_mut(pointer).unwrap() = value.clone();
        assert!(!contains(&live, &wanted), "{pointer} {value}");
    }
}

/// An API server that has one answer to reads, keeps what is applied, and lists every request.
#[derive(Clone, Default)]
struct FakeServer {
    stored: Option<Value>,
    requests: Arc<Mutex<Vec<(Method, String, Value)>>>,
}

impl FakeServer {
    fn applier(&self, watched: Option<&Value>) -> Applier<ConfigMap> {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, std::io::Error>(server.answer(request).await) }
        });
        Applier::new(Client::new(service, "default"), "tester", store_of(watched))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (code, answer) = match (&self.stored, &head.method) {
            (_, &Method::PATCH) => (200, sent.clone()),
            (Some(stored), _) => (200, stored.clone()),
            (None, _) => (404, json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"})),
        };
        self.requests.lock().unwrap().push((head.method, head.uri.to_string(), sent));
        Response::builder().status(code).body(Full::from(answer.to_string())).unwrap()
    }

    /// The methods of all requests so far.
    fn methods(&self) -> Vec<Method> {
        self.requests.lock().unwrap().iter().map(|(method, ..)| method.clone()).collect()
    }
}

fn config(data: &str, owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": data}, "metadata": {"name": "c", "namespace": "n",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Thing", "name": "t", "uid": owner, "controller": true}]}})
}

fn with_uid(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("live");
    object
}

fn typed(object: &Value) -> ConfigMap {
    serde_json::from_value(object.clone()).unwrap()
}

fn store_of(object: Option<&Value>) -> Store<Owned<ConfigMap>> {
    let store = Store::default();
    if let Some(object) = object {
        let object = Arc::new(serde_json::from_value::<Owned<_>>(object.clone()).unwrap());
        store.put(Key::of(&*object), object);
    }
    store
}

#[tokio::test]
async fn an_object_is_written_only_when_it_is_missing_or_differs_and_is_ours() {
    let wanted = config("v", "us");
    let (ours, changed) = (with_uid(wanted.clone()), with_uid(config("w", "us")));
    let mut ending = changed.clone();
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let foreign = with_uid(config("v", "them"));
    let mut nobodys = ours.clone();
    nobodys["metadata"]["ownerReferences"] = json!([]);
    let (get, patch) = (Method::GET, Method::PATCH);
    for (case, watched, stored, requests, refused) in [
        ("as wanted", Some(&ours), Some(&ours), vec![], false),
        ("as wanted, and not watched", None, Some(&ours), vec![get.clone()], false),
        ("missing", None, None, vec![get.clone(), patch.clone()], false),
        ("changed", Some(&changed), Some(&changed), vec![patch], false),
        ("being deleted", Some(&ending), Some(&ending), vec![], false),
        ("of another controller", None, Some(&foreign), vec![get.clone()], true),
        ("of nobody", None, Some(&nobodys), vec![get], true),
        ("given up by us", Some(&nobodys), Some(&nobodys), vec![], true),
    ] {
        let server = FakeServer { stored: stored.cloned(), ..FakeServer::default() };
        let applied = server.applier(watched).apply(&typed(&wanted)).await;
        assert_eq!(server.methods(), requests, "{case}");
        assert_eq!(matches!(applied, Err(Error::Foreign { .. })), refused, "{case}");
        assert_eq!(applied.is_err(), refused, "{case}");
    }
}

#[tokio::test]
async fn what_is_applied_is_forced_and_meets_no_other_object_of_the_name() {
    let wanted = config("v", "us");
    let changed = with_uid(config("w", "us"));
    let server = FakeServer { stored: Some(changed.clone()), ..FakeServer::default() };
    let applied = server.applier(Some(&changed)).apply(&typed(&wanted)).await.unwrap();
    assert!(applied.contains(&json!({"data": {"k": "v"}})));
    let requests = server.requests.lock().unwrap();
    let [(_, uri, sent)] = requests.as_slice() else { panic!("one request, not {requests:?}") };
    assert!(uri.starts_with("/api/v1/namespaces/n/configmaps/c?"), "{uri}");
    assert!(uri.contains("force=true") && uri.contains("fieldManager=tester"), "{uri}");
    assert_eq!(*sent, with_uid(wanted));
}

#[tokio::test]
async fn an_object_without_a_controller_is_never_sent() {
    let mut orphan = config("v", "us");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let server = FakeServer::default();
    let refused = server.applier(None).apply(&typed(&orphan)).await.unwrap_err();
    assert_eq!((refused.to_string().as_str(), server.methods().len()), ("ConfigMap \"c\" would have no controller", 0));
}
