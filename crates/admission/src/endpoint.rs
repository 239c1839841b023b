//! What a kind implements, and how an implementation becomes bytes in, bytes out.
//!
//! `W` is the read model that decisions are taken from: one immutable value a review. Implementations must not block, wait or
//! ask anybody: what an answer needs is in `W`.

mod answer;
mod serve;

pub use self::answer::{Answer, Decision, Summary};
pub use self::serve::Endpoint;
pub(crate) use self::serve::{DefaultingEndpoint, MutatingEndpoint, ValidatingEndpoint};

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::field::ErrorList;
use crate::limit::ObjectLimit;
use crate::patch::{PatchBuilder, PatchError};
use crate::reason::Reason;
use crate::reply::{Count, Denial, Verdict};
use crate::review::{Operation, Request, is_terminating};
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
    /// What `object` and `oldObject` are decoded into.
    type Object<'a>: Deserialize<'a>;

    /// Whether objects are decoded in the pass that reads the review: faster, with ten times the code. See
    /// [`Review::parse_in_two_passes`](crate::Review::parse_in_two_passes).
    const IN_ONE_PASS: bool = false;

    /// Decides on a request.
    ///
    /// # Errors
    /// [`Unserved`] when no decision is possible.
    fn mutate<'a>(&self, request: &Request<'a, Self::Object<'a>>, snapshot: &W) -> Result<Verdict, Unserved>;
}

/// Fills in missing fields. Only new and changed objects are passed to it, and none that is larger than its limit.
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
    /// How much of an object is decoded; a larger one is refused with code 422.
    const LIMIT: ObjectLimit = ObjectLimit::STORABLE;

    /// Adds what is missing to the object, which is the document of `patch` and no longer in `request`. Must be a fixed point:
    /// on its own result it adds nothing.
    ///
    /// # Errors
    /// [`PatchError`] when the object's shape leaves no place for a default; the object is then refused as undecodable.
    fn default(&self, request: &Request<'_, Value>, patch: &mut PatchBuilder, snapshot: &W) -> Result<(), PatchError>;
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

    /// The most that is decoded of an object; one that is larger is refused. `None` where the type itself bounds what is built.
    const LIMIT: Option<ObjectLimit> = Some(ObjectLimit::STORABLE);

    /// Whether objects without a limit are decoded in the pass that reads the review, as in [`Mutating::IN_ONE_PASS`].
    const IN_ONE_PASS: bool = false;

    /// Checks a new object.
    fn create<'a>(
        &self,
        object: &Self::Object<'a>,
        request: &Request<'a, Self::Object<'a>>,
        snapshot: &W,
        findings: &mut Findings,
    ) {
        let _ = (object, request, snapshot, findings);
    }

    /// Checks a change.
    fn update<'a>(
        &self,
        object: &Self::Object<'a>,
        old: &Self::Object<'a>,
        request: &Request<'a, Self::Object<'a>>,
        snapshot: &W,
        findings: &mut Findings,
    ) {
        let _ = (object, old, request, snapshot, findings);
    }

    /// Checks whether the object may go.
    fn delete<'a>(
        &self,
        old: &Self::Object<'a>,
        request: &Request<'a, Self::Object<'a>>,
        snapshot: &W,
        findings: &mut Findings,
    ) {
        let _ = (old, request, snapshot, findings);
    }

    /// Decides about the request as a whole, which is about a resource or a sub-resource that the rule names. The default handles
    /// each operation, leaves CONNECT alone, and refuses a request that lacks the object which its operation is about.
    ///
    /// # Errors
    /// [`Unserved`] when no decision is possible.
    fn validate<'a>(
        &self,
        request: &Request<'a, Self::Object<'a>>,
        snapshot: &W,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        match (request.operation, &request.object, &request.old_object) {
            (Operation::Create, Some(object), _) => self.create(object, request, snapshot, findings),
            (Operation::Update, Some(object), Some(old)) => self.update(object, old, request, snapshot, findings),
            (Operation::Delete, _, Some(old)) => self.delete(old, request, snapshot, findings),
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
    /// Faults. Any fault refuses the object, and the refusal lists all of them.
    pub errors: ErrorList,
    /// Sentences for the user, whatever the outcome.
    pub warnings: Vec<String>,
    /// Entries for the audit log.
    pub audit: Vec<(Cow<'static, str>, String)>,
    /// Why, when there is no fault.
    pub reason: Reason,
    /// A refusal of its own, for what is not a fault of a field.
    pub denial: Option<(Reason, Denial)>,
    /// What a server counts beside the decision itself.
    pub counts: Vec<Count>,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            errors: ErrorList::default(),
            warnings: Vec::new(),
            audit: Vec::new(),
            reason: Reason::ALLOWED,
            denial: None,
            counts: Vec::new(),
        }
    }
}

impl Findings {
    /// Refuses a request that lacks the object which its operation is about: what cannot be checked must not pass unchecked.
    pub fn lacks<O>(&mut self, field: &str, request: &Request<'_, O>) {
        self.denial = Some((Reason::UNDECODABLE, lacking(field, request.operation)));
    }

    /// The object as a request stores it and, of an update, as it is stored. None where the request stores none, and where an object is
    /// missing that there must be, which refuses it.
    pub fn stored<'r, O>(&mut self, request: &'r Request<'_, O>) -> Option<(&'r O, Option<&'r O>)> {
        match (request.operation, &request.object, &request.old_object) {
            (Operation::Create, Some(new), _) => return Some((new, None)),
            (Operation::Update, Some(new), Some(old)) => return Some((new, Some(old))),
            (Operation::Create | Operation::Update, None, _) => self.lacks("object", request),
            (Operation::Update, Some(_), None) => self.lacks("oldObject", request),
            _ => {}
        }
        None
    }

    /// Checks a new object, unless it is that of one that is being deleted (see [`Request::is_of_leaving`]).
    pub fn of_new(&mut self, object: &Value, request: &Request<'_, Value>, check: impl FnOnce(&mut Self)) {
        if request.is_of_leaving(object) {
            self.reason = Reason::TERMINATING;
        } else {
            check(self);
        }
    }

    /// Checks a changed object where its spec changes: metadata and status of one that an older build let through can be written. No
    /// webhook may keep an object from being deleted, and finalizers are removed by an update.
    pub fn of_changed_spec(&mut self, object: &Value, old: &Value, check: impl FnOnce(&mut Self)) {
        if is_terminating(old) {
            self.reason = Reason::TERMINATING;
        } else if object.get("spec") != old.get("spec") {
            check(self);
        }
    }

    fn into_verdict<O>(self, request: &Request<'_, O>) -> Verdict {
        let mut verdict = match self.denial {
            Some((reason, denial)) => Verdict::deny(reason, denial),
            None if self.errors.is_empty() => Verdict::allow(self.reason),
            None => Verdict::deny(Reason::INVALID, Denial::invalid(request, &self.errors)),
        };
        verdict.warnings = self.warnings;
        verdict.audit = self.audit;
        verdict.counts = self.counts;
        verdict
    }
}

fn lacking(field: &str, operation: Operation) -> Denial {
    Denial::bad_request(format!("the review has no {field}, which {} must have", operation.as_str()))
}
