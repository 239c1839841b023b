//! Admits objects without an API server: does around the webhooks what the API server does around them.
//!
//! The very endpoints of the server decide, from the bytes of a review that is made here.

mod reply;

pub use reply::{Cause, Details, Patch, Reply, ReplyError, Status};

use std::borrow::Cow;

use admission::registry::{Entry, Phase, Resource, Scope};
use admission::{Answer, Answers, Deadline, Endpoint, Known, Operation, Question, Reason, Registry, Rule, Unserved};
use serde_json::{Value, json};

use crate::limitrange::endpoints::AUDIT as OF_RANGES;
use crate::offline::manifest::group;
use crate::plugins::Plugin;
use crate::plugins::endpoints::{AUDIT, entries};
use crate::podsecurityprofile::endpoints::AUDIT as OF_PROFILES;
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
        // What an object or a group of resources is, is more than a yes can say.
        let is_open = |one: &Question| matches!(one, Question::Object(_) | Question::Resources(_));
        let (open, others): (Vec<_>, Vec<_>) = asked.into_iter().partition(is_open);
        if !open.is_empty() {
            return Err(Unserved::Unanswered(open));
        }
        for question in others {
            let yes = match &question {
                Question::Tokens(tokens) => Known::Tokens(vec![true; tokens.len()]),
                _ => Known::Allowed(true, String::new()),
            };
            answers.insert(question, yes);
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
        /// Whether nothing had been added to the object by then: fields that the status names have their places in it.
        is_as_sent: bool,
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
    /// What ranges, admission plugins and profiles did to it: a list of `<object>=<code>`, as in the audit log.
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
        for Call { entry, place, is_own } in calls(registry, phase, creation.object, snapshot) {
            let body = review_of(&place, creation.namespace, &allowed.object);
            let answer = answer(&*entry.endpoint, &body, snapshot, creation.questions)?;
            let mut reply = Reply::read(&answer.body)?;
            // A profile that allows what is stored is that which filled it in.
            let of_profiles = (phase == Phase::Mutating).then_some(OF_PROFILES);
            let keys = [OF_RANGES, AUDIT].into_iter().chain(of_profiles);
            for said in keys.filter_map(|key| reply.audit.remove(key)) {
                allowed.plugins =
                    Some(allowed.plugins.map_or_else(|| said.clone(), |before| format!("{before},{said}")));
            }
            for warning in reply.warnings {
                if !allowed.warnings.contains(&warning) {
                    allowed.warnings.push(warning);
                }
            }
            if let Some(status) = reply.status {
                let (reason, warnings) = (answer.reason, allowed.warnings);
                let is_as_sent = allowed.patch.is_empty();
                return Ok(Admitted::Refused { reason, status: Box::new(status), warnings, is_as_sent });
            }
            if let Some(patch) = reply.patch {
                patch.apply(&mut allowed.object)?;
                allowed.patch.extend(patch.operations);
            }
            if is_own {
                allowed.reason.get_or_insert(answer.reason);
            }
        }
    }
    Ok(Admitted::Allowed(Box::new(allowed)))
}

/// A webhook to ask about an object.
struct Call<'r> {
    entry: &'r Entry<Snapshot>,
    place: ServedAs<'r>,
    /// Whether it is the webhook of the kind, and not one about every kind.
    is_own: bool,
}

/// Where the API server serves objects of a kind.
struct ServedAs<'a> {
    group: &'a str,
    version: &'a str,
    resource: Cow<'a, str>,
    kind: &'a str,
}

impl From<Resource> for ServedAs<'_> {
    fn from(served: Resource) -> Self {
        let Resource { group, version, resource, kind } = served;
        Self { group, version, resource: resource.into(), kind }
    }
}

/// Whether only plugins and ranges decide on the object, and one of them may.
pub fn is_left_to_plugins(registry: &Registry<Snapshot>, object: &Value, snapshot: &Snapshot) -> bool {
    let called = || {
        let phases = [Phase::Mutating, Phase::Validating].into_iter();
        phases.flat_map(|phase| calls(registry, phase, object, snapshot)).map(|call| call.entry.rule)
    };
    called().all(|rule| rule.on_demand) && called().any(|rule| entries::may_be_called(rule.name, snapshot))
}

/// Whether the kind of an object is one that a rule names as a kind of objects in namespaces.
pub fn is_in_a_namespace(registry: &Registry<Snapshot>, object: &Value) -> bool {
    let rules = registry.entries().iter().map(|entry| &entry.rule);
    rules.filter(|rule| rule.scope == Scope::Namespaced).any(|rule| resource_of(rule, object).is_some())
}

/// Whether a plugin or a range may decide on claims, as those that controllers make from templates.
pub fn decides_on_claims(snapshot: &Snapshot) -> bool {
    snapshot.plugins.iter().any(|one| one.plugin == Plugin::DefaultStorageClass)
        || snapshot.limit_ranges.iter().any(|range| range.bounds_claims())
}

/// The webhook of an object's kind, and the on-demand ones about it, or about every kind, that accepted objects need.
fn calls<'r>(registry: &'r Registry<Snapshot>, phase: Phase, object: &'r Value, snapshot: &Snapshot) -> Vec<Call<'r>> {
    let of_kind = registry.entries().iter().filter(|entry| entry.phase == phase);
    let of_kind = of_kind.filter_map(|entry| Some((entry, resource_of(&entry.rule, object)?)));
    let creates = |rule: &Rule| rule.operations.is_empty() || rule.operations.contains(&Operation::Create);
    let is_called = |rule: &Rule| rule.on_demand && creates(rule) && entries::may_be_called(rule.name, snapshot);
    let own = of_kind
        .enumerate()
        .filter(|(place, (entry, _))| *place == 0 || is_called(&entry.rule))
        .map(|(place, (entry, served))| Call { entry, place: served.into(), is_own: place == 0 })
        .collect::<Vec<_>>();
    let of_any =
        |entry: &&Entry<Snapshot>| entry.phase == phase && entry.rule.resources.iter().any(|it| it.kind == "*");
    let is_needed = |entry: &&Entry<Snapshot>| {
        snapshot.plugins.iter().any(|one| entries::is_of(one.plugin, entry.rule.name, snapshot))
    };
    let others = registry.entries().iter().filter(of_any).filter(is_needed);
    let (group, version, kind) = identity(object);
    let others = others.map(|entry| {
        let resource = plural(kind).into();
        Call { entry, place: ServedAs { group, version, resource, kind }, is_own: false }
    });
    own.into_iter().chain(others).collect()
}

/// Group, version and kind of an object.
fn identity(object: &Value) -> (&str, &str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    (group(api_version), api_version.rsplit('/').next().unwrap_or_default(), kind)
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
    review_of(&served.into(), namespace, object)
}

fn review_of(place: &ServedAs<'_>, namespace: &str, object: &Value) -> Vec<u8> {
    let kind = json!({"group": place.group, "version": place.version, "kind": place.kind});
    let resource = json!({"group": place.group, "version": place.version, "resource": place.resource});
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

/// The plural of a kind, guessed as `UnsafeGuessKindToResource` of k8s.io/apimachinery/pkg/api/meta does: there is no discovery.
fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}
