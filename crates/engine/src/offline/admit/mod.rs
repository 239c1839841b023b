//! Admits objects without an API server: does around the webhooks what the API server does around them.
//!
//! The very endpoints of the server decide, from the bytes of a review that is made here.

mod reply;

pub use reply::{Cause, Details, Patch, Reply, ReplyError, Status};

use admission::registry::{Entry, Phase, Resource};
use admission::{Answer, Answers, Deadline, Endpoint, Known, Operation, Question, Reason, Registry, Rule, Unserved};
use serde_json::{Value, json};

use crate::offline::manifest::group;
use crate::plugins::endpoints::AUDIT;
use crate::snapshot::Snapshot;

/// What is to be created.
#[derive(Debug, Clone)]
pub struct Creation<'a> {
    /// The namespace of the request; empty for a kind without namespaces.
    pub namespace: &'a str,
    /// The object, with its `apiVersion` and `kind`.
    pub object: &'a Value,
    /// What is answered to questions of decisions.
    pub questions: Questions,
}

/// The answers to questions of decisions, which cannot be sent offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Questions {
    /// None: the decision is unknown.
    #[default]
    Open,
    /// Yes, to all about rights and images.
    Allowed,
}

/// Rounds of one review: a question may depend on the answer to an earlier one.
const ROUNDS: usize = 4;

/// What an endpoint answers, with these answers to its questions.
///
/// # Errors
/// [`Unserved`] when there is no verdict, [`Unserved::Unanswered`] when it depends on an answer that is missing.
pub fn answer(
    endpoint: &dyn Endpoint<Snapshot>,
    body: &[u8],
    snapshot: &Snapshot,
    questions: Questions,
) -> Result<Answer, Unserved> {
    let mut answers = Answers::default();
    for _ in 0..ROUNDS {
        let asked = match endpoint.answer_with(body, snapshot, &answers, Deadline::default()) {
            Err(Unserved::Unanswered(asked)) if questions == Questions::Allowed => asked,
            answered => return answered,
        };
        let (objects, others): (Vec<_>, Vec<_>) = asked.into_iter().partition(|one| matches!(one, Question::Object(_)));
        // That there is an object is more than a yes can say.
        if !objects.is_empty() {
            return Err(Unserved::Unanswered(objects));
        }
        for question in others {
            answers.insert(question, Known::Allowed(true, String::new()));
        }
    }
    endpoint.answer_with(body, snapshot, &answers, Deadline::default())
}

/// The outcome for an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Admitted {
    /// It may be created.
    Allowed(Box<Allowed>),
    /// It may not.
    Refused {
        /// Why, in a word.
        reason: Reason,
        /// What the user sees.
        status: Box<Status>,
        /// Warnings up to here.
        warnings: Vec<String>,
    },
}

/// An object that may be created.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed {
    /// The object after the patches.
    pub object: Value,
    /// The patches, one after the other.
    pub patch: Vec<Value>,
    /// Why the mutating webhook did what it did; the validating one's word where there is no mutating one.
    pub reason: Option<Reason>,
    /// Warnings of all webhooks, each once.
    pub warnings: Vec<String>,
    /// What admission plugins did to it: a list of `<object>=<code>`, as in the audit log.
    pub plugins: Option<String>,
}

/// Why nothing could be decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The endpoint gives no verdict.
    #[error(transparent)]
    Unserved(#[from] Unserved),
    /// The endpoint's reply makes no sense.
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

/// Asks the mutating webhook of the object's kind, applies its patch, and asks the validating one about the result. A kind
/// without webhooks is allowed.
///
/// # Errors
/// [`AdmitError`] when a webhook gives no verdict.
pub fn create(
    registry: &Registry<Snapshot>,
    creation: &Creation<'_>,
    snapshot: &Snapshot,
) -> Result<Admitted, AdmitError> {
    let object = creation.object.clone();
    let mut allowed = Allowed { object, patch: Vec::new(), reason: None, warnings: Vec::new(), plugins: None };
    for phase in [Phase::Mutating, Phase::Validating] {
        let Some(entry) = entry_of(registry, phase, creation.object) else { continue };
        let Some(served) = resource_of(&entry.rule, creation.object) else { continue };
        let body = review(served, creation.namespace, &allowed.object);
        let answer = answer(&*entry.endpoint, &body, snapshot, creation.questions)?;
        let mut reply = Reply::read(&answer.body)?;
        if let Some(said) = reply.audit.remove(AUDIT) {
            allowed.plugins = Some(allowed.plugins.map_or_else(|| said.clone(), |before| format!("{before},{said}")));
        }
        for warning in reply.warnings {
            if !allowed.warnings.contains(&warning) {
                allowed.warnings.push(warning);
            }
        }
        if let Some(status) = reply.status {
            let (reason, warnings) = (answer.reason, allowed.warnings);
            return Ok(Admitted::Refused { reason, status: Box::new(status), warnings });
        }
        if let Some(patch) = reply.patch {
            patch.apply(&mut allowed.object)?;
            allowed.patch.extend(patch.operations);
        }
        allowed.reason.get_or_insert(answer.reason);
    }
    Ok(Admitted::Allowed(Box::new(allowed)))
}

/// Group, version and kind of an object.
fn identity(object: &Value) -> (&str, &str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    (group(api_version), api_version.rsplit('/').next().unwrap_or_default(), kind)
}

/// The webhook of an object's group, version and kind.
fn entry_of<'r>(registry: &'r Registry<Snapshot>, phase: Phase, object: &Value) -> Option<&'r Entry<Snapshot>> {
    let (group, version, kind) = identity(object);
    find(registry, phase, group, version, kind)
}

/// The resource of a rule that the object is one of.
fn resource_of(rule: &Rule, object: &Value) -> Option<Resource> {
    let (group, version, kind) = identity(object);
    rule.resources.iter().copied().find(|served| served.has_kind(group, version, kind))
}

/// The webhook of a group, version and kind.
pub fn find<'r>(
    registry: &'r Registry<Snapshot>,
    phase: Phase,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<&'r Entry<Snapshot>> {
    registry.entries().iter().find(|entry| entry.phase == phase && entry.rule.has_kind(group, version, kind))
}

/// Offline, reviews have no identity, and the same input must give the same bytes.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// The review of a creation, as the API server sends it.
pub fn review(served: Resource, namespace: &str, object: &Value) -> Vec<u8> {
    let kind = json!({"group": served.group, "version": served.version, "kind": served.kind});
    let resource = json!({"group": served.group, "version": served.version, "resource": served.resource});
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut request = json!({
        "uid": UID,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": name,
        "operation": Operation::Create.as_str(),
        "userInfo": {"username": "outrider", "groups": ["system:authenticated"]},
        "object": object,
        "oldObject": null,
        "dryRun": true,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    });
    if !namespace.is_empty()
        && let Value::Object(fields) = &mut request
    {
        fields.insert("namespace".to_owned(), namespace.into());
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string().into_bytes()
}
