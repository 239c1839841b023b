//! An API server with one `CronJob` and its Jobs, as far as the controller asks for it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::workshop::cronjob::api::CronJob;
use crate::workshop::cronjob::reconcile::{ChildJob, is_child};

/// What is stored, and what was asked.
pub struct Content {
    /// The `CronJob`, while it is there.
    pub cronjob: Option<Value>,
    /// Jobs by name.
    pub jobs: BTreeMap<String, Value>,
    /// `Reason: note` of each event.
    pub events: Vec<String>,
    /// `VERB what` of each request.
    pub requests: Vec<String>,
    /// Answers requests that begin so with this code and message.
    pub refusal: Option<(&'static str, u16, &'static str)>,
    /// Bodies of deletions.
    pub deletions: Vec<Value>,
    /// Whether `outrider uninstall` has been here.
    pub retired: bool,
}

/// Clones share their content.
#[derive(Clone)]
pub struct Api(Arc<Mutex<Content>>);

impl Api {
    /// A namespace `a` with one `CronJob`.
    pub fn with(cronjob: Value) -> Self {
        Self(Arc::new(Mutex::new(Content {
            cronjob: Some(cronjob),
            jobs: BTreeMap::new(),
            events: Vec::new(),
            requests: Vec::new(),
            refusal: None,
            deletions: Vec::new(),
            retired: false,
        })))
    }

    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
                let (code, reply) = api.content().answer(&parts.method, parts.uri.path(), &body);
                let reply = Response::builder().status(code).body(Full::new(Bytes::from(reply.to_string())));
                Ok::<_, Infallible>(reply.unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// What was asked since this was last called.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.content().requests)
    }
}

impl Content {
    /// The `CronJob` and its Jobs, as watches that are not behind report them.
    pub fn watched(&self) -> (CronJob, Vec<ChildJob>) {
        let cronjob: CronJob = serde_json::from_value(self.cronjob.clone().unwrap()).unwrap();
        let jobs = self.jobs.values().map(|job| serde_json::from_value::<Job>(job.clone()).unwrap());
        let children = jobs
            .filter(|job| is_child(&job.metadata, &cronjob))
            .map(|job| ChildJob::of(&job.metadata, job.status.as_ref()))
            .collect();
        (cronjob, children)
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        if path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cronjobs.batch.outrider.dev" {
            return (200, definition(self.retired));
        }
        let parts: Vec<&str> = path.split('/').skip(6).collect();
        let request = format!("{method} {}", parts.join("/"));
        self.requests.push(request.clone());
        if let Some((_, code, message)) = self.refusal.filter(|(refused, _, _)| request.starts_with(refused)) {
            return status(code, message);
        }
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["cronjobs", _]) => found(self.cronjob.as_ref()),
            ("PATCH", ["cronjobs", _, ..]) => self.patch(body),
            ("POST", ["jobs"]) => self.create(body),
            ("GET", ["jobs"]) => (200, json!({"metadata": {}, "items": self.jobs.values().collect::<Vec<_>>()})),
            ("GET", ["jobs", name]) => found(self.jobs.get(*name)),
            ("DELETE", ["jobs", name]) => {
                self.deletions.push(body.clone());
                found(self.jobs.remove(*name).as_ref())
            }
            ("POST" | "PATCH", ["events", ..]) => {
                self.events.push(format!("{}: {}", text(&body["reason"]), text(&body["note"])));
                (200, body.clone())
            }
            _ => panic!("{method} {path} is not known here"),
        }
    }

    fn patch(&mut self, patch: &Value) -> (u16, Value) {
        let Some(cronjob) = &mut self.cronjob else { return status(404, "not found") };
        let version = cronjob["metadata"]["resourceVersion"].clone();
        if patch["metadata"]["resourceVersion"] != version {
            return status(409, "the object has been modified");
        }
        json_patch::merge(cronjob, patch);
        let next = text(&version).parse::<u64>().unwrap() + 1;
        cronjob["metadata"]["resourceVersion"] = next.to_string().into();
        (200, cronjob.clone())
    }

    fn create(&mut self, job: &Value) -> (u16, Value) {
        let name = text(&job["metadata"]["name"]);
        if self.jobs.contains_key(name) {
            return status(409, "already exists");
        }
        let mut stored = job.clone();
        stored["metadata"]["uid"] = format!("uid-of-{name}").into();
        self.jobs.insert(name.to_owned(), stored.clone());
        (201, stored)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn definition(retired: bool) -> Value {
    let version = |name: &str, served: bool| json!({"name": name, "served": served, "storage": name == "v1"});
    let spec = json!({"group": "batch.outrider.dev", "scope": "Namespaced", "names": {"kind": "CronJob", "plural": "cronjobs"},
        "versions": [version("v1", true), version("v2", !retired)]});
    json!({"metadata": {"name": "cronjobs.batch.outrider.dev"}, "spec": spec})
}

fn found(object: Option<&Value>) -> (u16, Value) {
    object.map_or_else(|| status(404, "not found"), |object| (200, object.clone()))
}

fn status(code: u16, message: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": "Test"}))
}
