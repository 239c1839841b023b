//! What a kind implements, and how an implementation becomes bytes in, bytes out.
//!
//! `W` is the read model that decisions are taken from: one immutable value a review. Implementations must not block, wait or
//! ask anybody: what an answer needs is in `W`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::deadline::Deadline;
use crate::field::ErrorList;
use crate::limit::ObjectLimit;
use crate::patch::{PatchBuilder, PatchError};
use crate::question::Answers;
use crate::raw;
use crate::reason::Reason;
use crate::registry::Rule;
use crate::reply::{Denial, Outcome, Verdict};
use crate::review::{NAME_MAX_BYTES, Operation, ParseError, Request, Review, beginning};
use crate::unserved::Unserved;

#[cfg(test)]
mod tests;

/// The general form of a mutating webhook: any decision, any patch.
///
/// Decode only what the decision reads: `Object` may borrow from the body, and what it does not name is skipped.
///
/// ```
/// use admission::patch::Present;
/// use admission::{Mutating, PatchWriter, Reason, Request, Unserved, Verdict};
/// use serde::Deserialize;
/// use serde_json::{Map, Value};
///
/// #[derive(Deserialize)]
/// struct Labelled { metadata: Metadata }
/// #[derive(Deserialize)]
/// struct Metadata { labels: Option<Map<String, Value>> }
///
/// /// Marks every object with the team that owns its namespace; the read model is the list of owners.
/// struct MarkOwner;
///
/// impl Mutating<Vec<(String, String)>> for MarkOwner {
///     type Object<'a> = Labelled;
///
///     fn mutate<'a>(&self, request: &Request<'a, Labelled>, owners: &Vec<(String, String)>) -> Result<Verdict, Unserved> {
///         let Some(object) = &request.object else { return Ok(Verdict::allow(Reason::ALLOWED)) };
///         let Some((_, team)) = owners.iter().find(|(namespace, _)| *namespace == *request.namespace) else {
///             return Err(Unserved::NamespaceUnknown(request.namespace.to_string()));
///         };
///         let labels = object.metadata.labels.as_ref().map_or(Present::Absent, |labels| Present::Len(labels.len()));
///         let mut patch = PatchWriter::default();
///         patch.set_members("/metadata/labels", labels, [("acme.example/team", admission::patch::quoted(team).as_str())]);
///         Ok(Verdict::patch(Reason::new("Marked"), patch))
///     }
/// }
/// ```
pub trait Mutating<W>: Send + Sync + 'static {
    /// What `object` and `oldObject` are decoded into, in the pass that reads the review.
    type Object<'a>: Deserialize<'a>;

    /// Decides.
    ///
    /// # Errors
    /// [`Unserved`] when no decision is possible.
    fn mutate<'a>(&self, request: &Request<'a, Self::Object<'a>>, world: &W) -> Result<Verdict, Unserved>;
}

/// Fills in missing fields. Only new and changed objects are passed to it, and none that is larger than [`ObjectLimit::STORABLE`].
///
/// ```
/// use admission::{Defaulting, PatchBuilder, PatchError, Request};
/// use serde_json::{Value, json};
///
/// struct Backups;
///
/// impl Defaulting<()> for Backups {
///     fn default(&self, _: &Request<'_, Value>, patch: &mut PatchBuilder, (): &()) -> Result<(), PatchError> {
///         patch.default("/spec/keep", json!(7))?;
///         patch.default("/spec/schedule/minutes", json!(60))
///     }
/// }
/// ```
pub trait Defaulting<W>: Send + Sync + 'static {
    /// Adds what is missing to the object, which is the document of `patch` and no longer in `request`. Must be a fixed point:
    /// on its own result it adds nothing.
    ///
    /// # Errors
    /// [`PatchError`] when the object's shape leaves no place for a default; the object is then refused as undecodable.
    fn default(&self, request: &Request<'_, Value>, patch: &mut PatchBuilder, world: &W) -> Result<(), PatchError>;
}

/// A validating webhook. The three operations have methods of their own; what a kind does not override, it allows.
///
/// ```
/// use admission::field::{Error, Path};
/// use admission::{Findings, Request, Validating};
///
/// #[derive(serde::Deserialize)]
/// struct Backup { volume: String }
///
/// struct Backups;
///
/// impl Validating<()> for Backups {
///     type Object<'a> = Backup;
///
///     fn update(&self, new: &Backup, old: &Backup, _: &Request<'_, Backup>, (): &(), findings: &mut Findings) {
///         if new.volume != old.volume {
///             findings.errors.push(Error::forbidden(&Path::new("volume"), "may not change; make another Backup"));
///         }
///     }
/// }
/// ```
pub trait Validating<W>: Send + Sync + 'static {
    /// What `object` and `oldObject` are decoded into.
    type Object<'a>: Deserialize<'a>;

    /// The most that is decoded of an object; one that is larger is refused. `None` where the type itself bounds what is built, and
    /// the object is decoded in the pass that reads the review.
    const LIMIT: Option<ObjectLimit> = Some(ObjectLimit::STORABLE);

    /// Checks a new object.
    fn create<'a>(
        &self,
        object: &Self::Object<'a>,
        request: &Request<'a, Self::Object<'a>>,
        world: &W,
        findings: &mut Findings,
    ) {
        let _ = (object, request, world, findings);
    }

    /// Checks a change.
    fn update<'a>(
        &self,
        object: &Self::Object<'a>,
        old: &Self::Object<'a>,
        request: &Request<'a, Self::Object<'a>>,
        world: &W,
        findings: &mut Findings,
    ) {
        let _ = (object, old, request, world, findings);
    }

    /// Checks whether the object may go.
    fn delete<'a>(
        &self,
        old: &Self::Object<'a>,
        request: &Request<'a, Self::Object<'a>>,
        world: &W,
        findings: &mut Findings,
    ) {
        let _ = (old, request, world, findings);
    }

    /// Decides about the request as a whole, which is about a resource or a sub-resource that the rule names. The default goes by the
    /// operation, leaves CONNECT alone, and refuses a request that lacks the object which its operation is about.
    ///
    /// # Errors
    /// [`Unserved`] when no decision is possible.
    fn validate<'a>(
        &self,
        request: &Request<'a, Self::Object<'a>>,
        world: &W,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        match (request.operation, &request.object, &request.old_object) {
            (Operation::Create, Some(object), _) => self.create(object, request, world, findings),
            (Operation::Update, Some(object), Some(old)) => self.update(object, old, request, world, findings),
            (Operation::Delete, _, Some(old)) => self.delete(old, request, world, findings),
            (Operation::Connect, ..) => {}
            (Operation::Delete, ..) | (Operation::Update, Some(_), None) => findings.lacks("oldObject", request),
            (Operation::Create | Operation::Update, ..) => findings.lacks("object", request),
        }
        Ok(())
    }
}

/// What a validation found.
#[derive(Debug)]
pub struct Findings {
    /// Faults. Any fault refuses the object, with all of them told at once.
    pub errors: ErrorList,
    /// Sentences for the user, whatever the outcome.
    pub warnings: Vec<String>,
    /// Entries for the audit log.
    pub audit: Vec<(&'static str, String)>,
    /// Why, when there is no fault.
    pub reason: Reason,
    /// A refusal of its own, for what is not a fault of a field.
    pub denial: Option<(Reason, Denial)>,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            errors: ErrorList::default(),
            warnings: Vec::new(),
            audit: Vec::new(),
            reason: Reason::ALLOWED,
            denial: None,
        }
    }
}

impl Findings {
    /// Refuses a request that lacks the object which its operation is about: what cannot be looked at must not pass unlooked at.
    pub fn lacks<O>(&mut self, field: &str, request: &Request<'_, O>) {
        self.denial = Some((Reason::UNDECODABLE, lacking(field, request.operation)));
    }

    fn into_verdict<O>(self, request: &Request<'_, O>) -> Verdict {
        let mut verdict = match self.denial {
            Some((reason, denial)) => Verdict::deny(reason, denial),
            None if self.errors.is_empty() => Verdict::allow(self.reason),
            None => Verdict::deny(Reason::INVALID, Denial::invalid(request, &self.errors)),
        };
        verdict.warnings = self.warnings;
        verdict.audit = self.audit;
        verdict
    }
}

fn lacking(field: &str, operation: Operation) -> Denial {
    Denial::bad_request(format!("the review has no {field}, which {} must have", operation.as_str()))
}

/// The decision in one word, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Allowed as it is.
    Allowed,
    /// Allowed with a patch.
    Patched,
    /// Refused.
    Denied,
}

impl Decision {
    /// The word.
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
    /// The decision.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// The sentence of a denial, empty otherwise.
    pub message: String,
    /// What was asked.
    pub summary: Summary,
}

impl Answer {
    fn to<O>(review: &Review<'_, O>, verdict: Verdict) -> Self {
        let body = review.reply(&verdict);
        let (decision, message) = told(verdict.outcome);
        Self { body, decision, reason: verdict.reason, message, summary: Summary::of(&review.request) }
    }

    /// The path serves other objects: a refusal with code 400.
    fn not_served<O>(review: &Review<'_, O>, rule: &Rule) -> Self {
        let message = format!("this path serves {}, and the review is about {}", rule.served(), about(&review.request));
        Self::to(review, Verdict::deny(Reason::NOT_SERVED, Denial::bad_request(message)))
    }

    /// The object cannot be decoded, the uid can be read: a refusal with code 400.
    fn undecodable(rule: &Rule, body: &[u8], error: ParseError) -> Result<Self, Unserved> {
        if let Ok(review) = Review::<&RawValue>::parse(body) {
            if !rule.serves(&review.request) {
                return Ok(Self::not_served(&review, rule));
            }
            if only_leaves(&review.request) {
                return Ok(Self::to(&review, Verdict::allow(Reason::TERMINATING)));
            }
        }
        let message = error.to_string();
        let reason = if matches!(error, ParseError::TooLarge { .. }) { Reason::TOO_LARGE } else { Reason::UNDECODABLE };
        let reply = error.into_reply()?;
        let summary =
            Review::<IgnoredAny>::parse(body).map_or_else(|_| Summary::default(), |r| Summary::of(&r.request));
        Ok(Self { body: reply, decision: Decision::Denied, reason, message, summary })
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

/// Whether an object that is being deleted changes in its metadata or status alone. What cannot be decoded may have been stored
/// while nobody judged it; were its update refused, its finalizers could never be removed, and its namespace would stay.
fn only_leaves(request: &Request<'_, &RawValue>) -> bool {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object) else {
        return false;
    };
    let time = raw::member(old, "metadata").and_then(|metadata| raw::member(metadata, "deletionTimestamp"));
    let is_terminating = time.is_some_and(|time| time.get() != "null");
    let spec = |object| raw::member(object, "spec").map(RawValue::get);
    is_terminating && spec(new) == spec(old)
}

fn told(outcome: Outcome) -> (Decision, String) {
    match outcome {
        Outcome::Allowed => (Decision::Allowed, String::new()),
        Outcome::Patched(patch) if patch.is_empty() => (Decision::Allowed, String::new()),
        Outcome::Patched(_) => (Decision::Patched, String::new()),
        Outcome::Denied(denial) => (Decision::Denied, denial.message),
    }
}

/// One webhook path: the whole body in, the whole reply out.
pub trait Endpoint<W>: Send + Sync {
    /// Answers a review with what is known of what the decision may ask, unless nobody waits for it any more.
    ///
    /// # Errors
    /// [`Unserved`] when there is no verdict to give, and [`Unserved::Unanswered`] with further questions.
    fn answer_with<'a>(
        &self,
        body: &'a [u8],
        world: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved>;

    /// Answers a review.
    ///
    /// # Errors
    /// [`Unserved`] when there is no verdict to give.
    fn answer(&self, body: &[u8], world: &W) -> Result<Answer, Unserved> {
        self.answer_with(body, world, Answers::NONE, Deadline::default())
    }

    /// Whether objects are decoded as a whole: what is decided on one takes many times as long as to read its text.
    fn decodes_objects(&self) -> bool;
}

pub(crate) struct MutatingEndpoint<M>(pub Rule, pub M);

impl<W, M: Mutating<W>> Endpoint<W> for MutatingEndpoint<M> {
    fn decodes_objects(&self) -> bool {
        false
    }

    fn answer_with<'a>(
        &self,
        body: &'a [u8],
        world: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved> {
        match Review::<M::Object<'a>>::parse(body) {
            Ok(review) if !self.0.serves(&review.request) => Ok(Answer::not_served(&review, &self.0)),
            Ok(mut review) => {
                review.request.answers = Some(answers);
                review.request.deadline = deadline;
                Ok(Answer::to(&review, self.1.mutate(&review.request, world)?))
            }
            Err(error) => Answer::undecodable(&self.0, body, error),
        }
    }
}

pub(crate) struct DefaultingEndpoint<D>(pub Rule, pub D);

impl<W, D: Defaulting<W>> Endpoint<W> for DefaultingEndpoint<D> {
    fn decodes_objects(&self) -> bool {
        true
    }

    fn answer_with<'a>(
        &self,
        body: &'a [u8],
        world: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved> {
        let mut review = match Review::<Value>::parse_within(body, ObjectLimit::STORABLE) {
            Ok(review) if !self.0.serves(&review.request) => return Ok(Answer::not_served(&review, &self.0)),
            Ok(review) => review,
            Err(error) => return Answer::undecodable(&self.0, body, error),
        };
        review.request.answers = Some(answers);
        review.request.deadline = deadline;
        // Decoded, it may be the largest thing in the process: there is one of it.
        let object = review.request.object.take();
        let request = &review.request;
        let verdict = match (object, request.operation) {
            (Some(object), Operation::Create | Operation::Update) => {
                let mut patch = PatchBuilder::of(object);
                match self.1.default(request, &mut patch, world) {
                    Ok(()) => defaulted(patch.finish()),
                    Err(error) => Verdict::deny(Reason::UNDECODABLE, Denial::bad_request(error.to_string())),
                }
            }
            (None, operation @ (Operation::Create | Operation::Update)) => {
                Verdict::deny(Reason::UNDECODABLE, lacking("object", operation))
            }
            (_, Operation::Delete | Operation::Connect) => Verdict::allow(Reason::ALLOWED),
        };
        Ok(Answer::to(&review, verdict))
    }
}

fn defaulted(patch: crate::patch::PatchWriter) -> Verdict {
    let reason = if patch.is_empty() { Reason::ALLOWED } else { Reason::DEFAULTED };
    Verdict::patch(reason, patch)
}

pub(crate) struct ValidatingEndpoint<V>(pub Rule, pub V);

impl<W, V: Validating<W>> Endpoint<W> for ValidatingEndpoint<V> {
    fn decodes_objects(&self) -> bool {
        V::LIMIT.is_some()
    }

    fn answer_with<'a>(
        &self,
        body: &'a [u8],
        world: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved> {
        let review = match V::LIMIT {
            Some(limit) => Review::<V::Object<'a>>::parse_within(body, limit),
            None => Review::parse(body),
        };
        match review {
            Ok(review) if !self.0.serves(&review.request) => Ok(Answer::not_served(&review, &self.0)),
            Ok(mut review) => {
                review.request.answers = Some(answers);
                review.request.deadline = deadline;
                let mut findings = Findings::default();
                let request = &review.request;
                match (&request.object, request.operation) {
                    // What cannot be compared is judged as if it were new, and never kept from going.
                    (Some(object), Operation::Update) if review.lacks_old => {
                        self.1.create(object, request, world, &mut findings);
                    }
                    (_, Operation::Delete) if review.lacks_old => {}
                    _ => self.1.validate(request, world, &mut findings)?,
                }
                let verdict = findings.into_verdict(&review.request);
                Ok(Answer::to(&review, verdict))
            }
            Err(error) => Answer::undecodable(&self.0, body, error),
        }
    }
}
