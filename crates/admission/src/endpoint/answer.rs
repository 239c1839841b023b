//! The outcome of a request: the reply, and what to log about it.

use serde_json::value::RawValue;

use crate::bounded::beginning;
use crate::raw;
use crate::reason::Reason;
use crate::registry::Rule;
use crate::reply::{Count, Denial, Outcome, Verdict};
use crate::review::{NAME_MAX_BYTES, Operation, ParseError, Request, Review};
use crate::unserved::Unserved;

/// The decision in one word, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Allowed as it is.
    Allowed,
    /// Allowed with a patch.
    Patched,
    /// The request is refused.
    Denied,
}

impl Decision {
    /// The word for it in log lines and as a value of the label `verdict`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Patched => "patched",
            Self::Denied => "denied",
        }
    }
}

/// What the log says about a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The request's uid.
    pub uid: String,
    /// `<kind>.<group>`, or the kind alone in the core group.
    pub kind: String,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Name, empty where the API server has not chosen one yet.
    pub name: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
    /// Nothing will be stored.
    pub dry_run: bool,
}

impl Summary {
    fn of<O>(request: &Request<'_, O>) -> Self {
        let kind = if request.kind.group.is_empty() {
            request.kind.kind.to_string()
        } else {
            format!("{}.{}", request.kind.kind, request.kind.group)
        };
        Self {
            uid: request.uid.to_string(),
            kind,
            namespace: request.namespace.to_string(),
            name: request.name.to_string(),
            operation: request.operation.as_str(),
            dry_run: request.dry_run,
        }
    }
}

/// A reply, ready to send, and what to log about it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The body of the reply.
    pub body: Vec<u8>,
    /// What the reply says, for logs and metrics.
    pub decision: Decision,
    /// The reason code.
    pub reason: Reason,
    /// The sentence of a denial, empty otherwise.
    pub message: String,
    /// What else is counted.
    pub counts: Vec<Count>,
    /// What was asked.
    pub summary: Summary,
}

impl Answer {
    pub(super) fn to<O>(review: &Review<'_, O>, verdict: Verdict) -> Self {
        let body = review.reply(&verdict);
        let (decision, message) = told(verdict.outcome);
        let (reason, counts) = (verdict.reason, verdict.counts);
        Self { body, decision, reason, message, counts, summary: Summary::of(&review.request) }
    }

    /// The path serves other objects: a refusal with code 400.
    pub(super) fn not_served<O>(review: &Review<'_, O>, rule: &Rule) -> Self {
        let message = format!("this path serves {}, and the review is about {}", rule.served(), about(&review.request));
        Self::to(review, Verdict::deny(Reason::NOT_SERVED, Denial::bad_request(message)))
    }

    /// The object cannot be decoded, the uid can be read: a refusal with code 400. Where `is_decodable` decides on the old object too,
    /// one that could not be decoded before may have other metadata and another status.
    pub(super) fn undecodable<'a>(
        rule: &Rule,
        body: &'a [u8],
        error: ParseError,
        is_decodable: Option<&dyn Fn(&'a RawValue) -> bool>,
    ) -> Result<Self, Unserved> {
        if let Ok(review) = Review::<&RawValue>::parse(body) {
            if !rule.serves(&review.request) {
                return Ok(Self::not_served(&review, rule));
            }
            if let Some(old) = stored_and_the_same(&review.request) {
                if is_terminating(old) {
                    return Ok(Self::to(&review, Verdict::allow(Reason::TERMINATING)));
                }
                if is_decodable.is_some_and(|is_decodable| !is_decodable(old)) {
                    return Ok(Self::to(&review, Verdict::allow(Reason::ALLOWED)));
                }
            }
        }
        let message = error.to_string();
        let reason = if matches!(error, ParseError::TooLarge { .. }) { Reason::TOO_LARGE } else { Reason::UNDECODABLE };
        let reply = error.into_reply()?;
        let summary = Review::<&RawValue>::parse(body).map_or_else(|_| Summary::default(), |r| Summary::of(&r.request));
        Ok(Self { body: reply, decision: Decision::Denied, reason, message, counts: Vec::new(), summary })
    }
}

/// What a request is about, in the words of [`Rule::served`].
fn about<O>(request: &Request<'_, O>) -> String {
    let short = |text: &str| beginning(text, NAME_MAX_BYTES).to_owned();
    let joined = |separator: &str, text: &str| {
        if text.is_empty() { String::new() } else { format!("{separator}{}", short(text)) }
    };
    let (kind, resource) = (&request.kind, &request.resource);
    format!(
        "{}{}{} ({} {})",
        short(&resource.resource),
        joined(".", if resource.resource.is_empty() { &kind.group } else { &resource.group }),
        joined("/", &request.sub_resource),
        short(&kind.version),
        short(&kind.kind),
    )
}

/// The old object, where metadata or status alone change. What cannot be decoded may have been stored before it was validated; were
/// its update refused, its finalizers could never be added or removed, its namespace would stay, and controllers would try for ever.
fn stored_and_the_same<'a>(request: &Request<'a, &'a RawValue>) -> Option<&'a RawValue> {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object) else {
        return None;
    };
    (checked(new) == checked(old)).then_some(old)
}

/// All that is written in an object but its metadata and status, by name: of an object that is written twice, both.
fn checked(object: &RawValue) -> Vec<(String, &str)> {
    let mut members = Vec::new();
    raw::members(object, |key, value| {
        if !matches!(key.name(), "metadata" | "status") {
            members.push((key.name().to_owned(), value.get()));
        }
    });
    members.sort_unstable();
    members
}

fn is_terminating(object: &RawValue) -> bool {
    let time = raw::member(object, "metadata").and_then(|metadata| raw::member(metadata, "deletionTimestamp"));
    time.is_some_and(|time| time.get() != "null")
}

fn told(outcome: Outcome) -> (Decision, String) {
    match outcome {
        Outcome::Allowed => (Decision::Allowed, String::new()),
        Outcome::Patched(patch) if patch.is_empty() => (Decision::Allowed, String::new()),
        Outcome::Patched(_) => (Decision::Patched, String::new()),
        Outcome::Denied(denial) => (Decision::Denied, denial.message),
    }
}
