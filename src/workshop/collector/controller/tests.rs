//! The controller against a scripted API server.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::controller::Own;
use crate::controller::leader_term::LeaderTerm;
use crate::controller::options::ControllerOptions;
use crate::metrics::{Freshness, Metrics};
use crate::watch::coverage::Coverage;
use crate::watch::read_model::ReadModel;
use engine::snapshot::Exclusion;
use engine::snapshot::builder::SnapshotBuilder;

/// What is stored, and what watches report.
#[derive(Default)]
struct Content {
    collector: Value,
    deployments: Vec<Value>,
    pods: Vec<Value>,
    /// The events of each watch of a resource, in order; when there are no more, watches are silent.
    watches: HashMap<&'static str, VecDeque<Vec<Value>>>,
    /// The events of every watch of one Deployment, and since when they were asked for.
    missed: Vec<Value>,
    asked_since: Vec<String>,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Content>>);

impl Server {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body = server.content().answer(&parts.method, &parts.uri.to_string(), &body);
                Ok::<_, Infallible>(Response::new(body))
            }
        });
        Client::new(service, "default")
    }

    fn events(&self) -> Value {
        self.content().collector["status"]["events"].clone()
    }

    /// Runs the controller until the status is so.
    async fn run_until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let term = LeaderTerm::default();
        let context = Context {
            client: self.client(),
            client_without_retries: self.client(),
            metrics: Metrics::new(Freshness::default()),
            options: ControllerOptions::default(),
            term: term.clone(),
            model: ReadModel::of(&SnapshotBuilder::new(Exclusion::default(), true)),
            own: Own::default(),
            coverage: tokio::sync::watch::Sender::new(Coverage::Off).subscribe(),
            in_order: tokio::sync::watch::Sender::default().subscribe(),
        };
        let controller = tokio::spawn(start(context));
        let begin = Instant::now();
        while !holds(&self.content().collector["status"]) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}: {}", self.content().collector["status"]);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        term.end();
        controller.await.unwrap();
    }
}

impl Content {
    fn answer(&mut self, method: &Method, uri: &str, body: &[u8]) -> UnsyncBoxBody<Bytes, Infallible> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let resource = path.rsplit('/').find(|part| !["status", "c"].contains(part)).unwrap();
        if *method == Method::PATCH {
            json_patch::merge(&mut self.collector, &serde_json::from_slice(body).unwrap());
            return whole(&self.collector);
        }
        if query.contains("fieldSelector") {
            let since = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
            self.asked_since.push(since.unwrap().to_owned());
            return lines(&self.missed, false);
        }
        if query.contains("watch=true") {
            let events = self.watches.get_mut(resource).and_then(VecDeque::pop_front);
            return lines(events.as_deref().unwrap_or_default(), events.is_none());
        }
        let items = match resource {
            "collectors" => vec![self.collector.clone()],
            "deployments" => self.deployments.clone(),
            _ => self.pods.clone(),
        };
        whole(&json!({"metadata": {"resourceVersion": "1"}, "items": items}))
    }
}

fn whole(value: &Value) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::new(Bytes::from(value.to_string())).boxed_unsync()
}

/// Events, and then the end of the watch or silence.
fn lines(events: &[Value], open: bool) -> UnsyncBoxBody<Bytes, Infallible> {
    if !open {
        // In the API server's order (`metav1.WatchEvent`): fields before the type are decoded by another code path.
        let line = |event: &Value| format!("{{\"type\":{},\"object\":{}}}", event["type"], event["object"]);
        let lines: Vec<String> = events.iter().map(line).collect();
        return Full::new(Bytes::from(lines.join("\n") + "\n")).boxed_unsync();
    }
    StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>()).boxed_unsync()
}

fn deployment(version: u64) -> Value {
    json!({"metadata": {"namespace": "n", "name": "web", "uid": "d", "resourceVersion": version.to_string()},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}}})
}

fn event(type_: &str, object: &Value) -> Value {
    json!({"type": type_, "object": object})
}

fn modified(version: u64) -> Value {
    event("MODIFIED", &deployment(version))
}

fn too_old() -> Value {
    event("ERROR", &json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}))
}

/// A Collector of the Deployment `web` that has counted seven events, the last of which made this version.
fn server(version: Option<u64>) -> Server {
    let server = Server::default();
    let mut events = json!({"deployment": "web", "total": 7, "added": 1, "modified": 6, "deleted": 0});
    if let Some(version) = version {
        events["lastResourceVersion"] = version.to_string().into();
    }
    server.content().collector = json!({
        "metadata": {"namespace": "n", "name": "c", "uid": "c", "generation": 1},
        "spec": {"target": {"name": "web"}},
        "status": {"events": events},
    });
    server
}

#[tokio::test]
async fn a_watch_that_is_closed_with_410_gone_counts_nothing_twice() {
    let server = server(Some(10));
    {
        let mut content = server.content();
        content.deployments = vec![deployment(10)];
        // Each 410 is followed by a list with version 10; then come two events that are new, one of them twice.
        let watches =
            [vec![modified(10), too_old()], vec![too_old()], vec![modified(11), modified(12)], vec![modified(12)]];
        content.watches.insert("deployments", watches.into());
        // In case all of that is reported before the count begins.
        content.missed = vec![modified(11), modified(12)];
    }
    server
        .run_until("two more events", |status| status["events"]["total"] == 9 && status.get("conditions").is_some())
        .await;
    let counted = server.events();
    assert_eq!((&counted["modified"], &counted["lastResourceVersion"]), (&json!(8), &json!("12")));
}

#[tokio::test]
async fn a_restart_counts_what_was_missed_once() {
    let gone = |version| event("DELETED", &deployment(version));
    let (some, none) = (Some(9), None);
    // The last version counted, the version in the list, what the API server remembers; total, added, modified, deleted.
    let cases = [
        (some, Some(9), vec![], [7, 1, 6, 0]),
        (some, Some(12), vec![modified(10), modified(11), modified(12), modified(13)], [10, 1, 9, 0]),
        (some, Some(12), vec![gone(10), event("ADDED", &deployment(12))], [9, 2, 6, 1]),
        (some, None, vec![modified(10), gone(11)], [9, 1, 7, 1]),
        (some, Some(99), vec![too_old()], [8, 1, 7, 0]),
        (some, None, vec![too_old()], [8, 1, 6, 1]),
        (none, Some(12), vec![], [8, 2, 6, 0]),
        (none, None, vec![], [7, 1, 6, 0]),
    ];
    for (last, listed, missed, expected) in cases {
        let server = server(last);
        server.content().deployments = listed.map(deployment).into_iter().collect();
        server.content().missed.clone_from(&missed);
        server.run_until(&format!("the report of {missed:?}"), |status| status.get("conditions").is_some()).await;
        let events = server.events();
        assert_eq!(["total", "added", "modified", "deleted"].map(|field| events[field].as_i64().unwrap()), expected);
        let version = listed.map_or(Value::Null, |version| version.to_string().into());
        assert_eq!(events["lastResourceVersion"], version, "{missed:?}");
        let asked = server.content().asked_since.clone();
        assert_eq!(asked, vec!["9"; usize::from(!missed.is_empty())]);
    }
}

#[tokio::test]
async fn another_reset_or_target_begins_at_zero() {
    for spec in [json!({"target": {"name": "web"}, "reset": "again"}), json!({"target": {"name": "other"}})] {
        let server = server(Some(9));
        {
            let mut content = server.content();
            content.deployments = vec![deployment(9)];
            let mut changed = content.collector.clone();
            changed["metadata"]["resourceVersion"] = "2".into();
            changed["spec"] = spec.clone();
            content.watches.insert("collectors", [vec![event("MODIFIED", &changed)]].into());
        }
        server.run_until("zero", |status| status["events"]["total"] == 0).await;
        let events = server.events();
        let name = &spec["target"]["name"];
        let (reset, version) = (spec["reset"].clone(), if name == "web" { json!("9") } else { Value::Null });
        assert_eq!((&events["deployment"], &events["reset"]), (name, &reset));
        assert_eq!((&events["modified"], &events["lastResourceVersion"]), (&json!(0), &version));
    }
}

#[tokio::test]
async fn a_pod_is_reported_as_long_as_its_labels_are_selected() {
    let pod = |name: &str, version: &str, app: &str| {
        json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": version, "labels": {"app": app}},
            "status": {"podIP": "10.0.0.1"}})
    };
    let server = server(None);
    {
        let mut content = server.content();
        content.collector["spec"] = json!({"selector": {"matchLabels": {"app": "web"}}});
        content.pods = vec![pod("b", "1", "web"), pod("a", "2", "web"), pod("c", "3", "other")];
        let leaves_and_comes = vec![event("MODIFIED", &pod("b", "4", "old")), event("MODIFIED", &pod("c", "5", "web"))];
        content.watches.insert("pods", [leaves_and_comes].into());
    }
    let names = |status: &Value| -> Vec<String> {
        let ips = status["ips"].as_array().cloned().unwrap_or_default();
        ips.iter().map(|address| address["pod"].as_str().unwrap().to_owned()).collect()
    };
    server.run_until("a and c", |status| names(status) == ["a", "c"]).await;
    let status = server.content().collector["status"].clone();
    assert_eq!((&status["matchedPods"], &status["readyPods"], status.get("events")), (&json!(2), &json!(0), None));
    assert_eq!(status["conditions"][0]["message"], "0 of 2 pods are ready");
}

#[tokio::test]
async fn conditions_say_what_is_missing() {
    let found = json!({"target": {"name": "web"}});
    let missing = json!({"target": {"name": "other"}});
    for (spec, ready, target) in [
        (found, "True Collected", Some("False DeploymentFound")),
        (missing, "False TargetNotFound", Some("True DeploymentNotFound")),
        (json!({"selector": {"matchLabels": {"app": "web"}}}), "True Collected", None),
        (json!({}), "False InvalidSpec", None),
    ] {
        let server = server(None);
        server.content().collector["spec"] = spec;
        server.content().deployments = vec![deployment(1)];
        server.run_until("the report", |status| status.get("conditions").is_some()).await;
        let conditions = server.content().collector["status"]["conditions"].clone();
        let said = |type_: &str| {
            let condition = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == type_)?;
            Some(format!("{} {}", condition["status"].as_str()?, condition["reason"].as_str()?))
        };
        assert_eq!((said("Ready").as_deref(), said("TargetNotFound").as_deref()), (Some(ready), target));
    }
}
