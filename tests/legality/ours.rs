//! Our judgement, through the endpoints that the server serves.

use std::sync::Arc;

use admission::Registry;
use admission::registry::Phase;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::sidecarset::api::{GROUP, KIND, PLURAL, SidecarSet};
use engine::sidecarset::canonical::{sorted_json, strict_volume};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use engine::sidecarset::injection::INJECTED_ANNOTATION;
use engine::sidecarset::{mutating_rule, validating_rule};
use engine::snapshot::Snapshot;
use outrider::kinds::Kinds;
use outrider::registry::registry;
use serde_json::{Value, json};

use crate::pair::push;

/// What we do with a pod.
#[derive(Debug)]
pub enum Answer {
    /// Let in, changed.
    Injected(Value),
    /// Let in as it is, for this reason.
    Untouched(String),
    /// Refused, or let in without the set, for this reason.
    Refused { reason: String, message: String },
}

/// The endpoints and the sets.
pub struct Outrider {
    registry: Registry<Snapshot>,
    sets: Vec<Arc<CompiledSet>>,
    snapshot: Snapshot,
}

impl Outrider {
    /// With the sets as they would be stored.
    pub fn with(sets: &[Value]) -> Self {
        let registry = registry(&Kinds::default());
        let sets: Vec<Arc<CompiledSet>> = sets
            .iter()
            .map(|set| changed(set, &reply(&registry, &mutating_rule().path(Phase::Mutating), &review_of_set(set))))
            .map(|set| serde_json::from_value::<SidecarSet>(set).unwrap())
            .map(|set| Arc::new(CompiledSet::compile(&set).unwrap()))
            .collect();
        let snapshot = Snapshot { sets: Arc::new(SetIndex::build(sets.iter().cloned())), ..Snapshot::default() };
        Self { registry, sets, snapshot }
    }

    pub fn answer(&self, pod: &Value, namespace: &str) -> Answer {
        let endpoint = &self.registry.find("/mutate--v1-pod").unwrap().endpoint;
        let answer = endpoint.answer(&review("", "Pod", "pods", namespace, pod), &self.snapshot).unwrap();
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        let reason = answer.reason.to_string();
        match reply["response"]["allowed"] {
            Value::Bool(false) => Answer::Refused { reason, message: answer.message },
            _ if reply["response"]["patch"].is_null() => Answer::Untouched(reason),
            _ => Answer::Injected(changed(pod, &reply)),
        }
    }

    /// The pod with the first set in it, whatever we think of that.
    pub fn forced(&self, pod: &Value) -> Value {
        let set = &self.sets[0];
        let mut pod = pod.clone();
        let carried: Value = pod["metadata"]["annotations"][INJECTED_ANNOTATION]
            .as_str()
            .map_or_else(|| json!({}), |record| serde_json::from_str(record).unwrap());
        for (list, pieces) in [("initContainers", &set.init_containers), ("containers", &set.containers)] {
            let is_carried = |name: &str| {
                let has_name = |item: &Value| item["name"] == name;
                let recorded = carried[&set.name][list].as_array().is_some_and(|list| list.contains(&json!(name)));
                recorded && pod["spec"][list].as_array().is_some_and(|list| list.iter().any(has_name))
            };
            let missing = |piece: &&engine::sidecarset::compiled::Piece| !is_carried(&piece.name);
            let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap();
            let before: Vec<Value> = pieces.before.iter().filter(missing).map(|piece| parsed(&piece.json)).collect();
            let after: Vec<Value> = pieces.after.iter().filter(missing).map(|piece| parsed(&piece.json)).collect();
            let own = pod["spec"][list].as_array().cloned().unwrap_or_default();
            let all: Vec<Value> = before.into_iter().chain(own).chain(after).collect();
            if !all.is_empty() {
                pod["spec"][list] = json!(all);
            }
        }
        for volume in &set.volumes {
            let ours: Value = serde_json::from_str(&volume.json).unwrap();
            let is_there = |theirs: &Value| {
                let theirs = theirs.as_object().unwrap().clone();
                sorted_json(&Value::Object(strict_volume(theirs))) == *volume.canonical
            };
            if !pod["spec"]["volumes"].as_array().is_some_and(|list| list.iter().any(is_there)) {
                push(&mut pod["spec"]["volumes"], ours);
            }
        }
        for secret in &set.secrets {
            push(&mut pod["spec"]["imagePullSecrets"], json!({"name": secret.name}));
        }
        let mut record = carried;
        record[&set.name] = serde_json::from_str(&set.entry()).unwrap();
        pod["metadata"]["annotations"][INJECTED_ANNOTATION] = json!(record.to_string());
        pod
    }
}

/// What we say about a set when it is written: what is wrong with it, if anything.
pub fn refusal_of_set(set: &Value) -> Option<String> {
    let response = response_to_set(set, &Snapshot::default());
    (response["allowed"] != true).then(|| response["status"]["message"].as_str().unwrap().to_owned())
}

/// Whether we warn of a set, when it is written, that an API server of this minor version refuses its pods.
pub fn is_warned_of(set: &Value, minor: u32) -> bool {
    let response = response_to_set(set, &Snapshot { minor_version: Some(minor), ..Snapshot::default() });
    let warnings = response["warnings"].as_array().into_iter().flatten();
    warnings.into_iter().any(|warning| warning.as_str().unwrap().contains("the API server refuses pods with"))
}

fn response_to_set(set: &Value, snapshot: &Snapshot) -> Value {
    let registry = registry(&Kinds::default());
    let set = changed(set, &reply(&registry, &mutating_rule().path(Phase::Mutating), &review_of_set(set)));
    let review = review_of_set(&set);
    let endpoint = &registry.find(&validating_rule().path(Phase::Validating)).unwrap().endpoint;
    let answer: Value = serde_json::from_slice(&endpoint.answer(&review, snapshot).unwrap().body).unwrap();
    answer["response"].clone()
}

fn reply(registry: &Registry<Snapshot>, path: &str, review: &[u8]) -> Value {
    let answer = registry.find(path).unwrap().endpoint.answer(review, &Snapshot::default()).unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

/// The object with the patch of a reply, if it has one.
fn changed(object: &Value, reply: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = reply["response"]["patch"].as_str() {
        let patch: json_patch::Patch = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}

fn review_of_set(set: &Value) -> Vec<u8> {
    review(GROUP, KIND, PLURAL, "", set)
}

fn review(group: &str, kind: &str, resource: &str, namespace: &str, object: &Value) -> Vec<u8> {
    let version = if group.is_empty() { "v1" } else { "v1alpha1" };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource},
            "namespace": namespace, "operation": "CREATE", "userInfo": {"username": "admin"},
            "object": object,
        },
    })
    .to_string()
    .into_bytes()
}
