//! How an implementation becomes bytes in, bytes out.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Answer, Defaulting, Findings, Mutating, Validating, lacking};
use crate::deadline::Deadline;
use crate::limit::ObjectLimit;
use crate::patch::{PatchBuilder, PatchWriter};
use crate::question::Answers;
use crate::reason::Reason;
use crate::registry::Rule;
use crate::reply::{Denial, Verdict};
use crate::review::{Operation, ParseError, Review};
use crate::unserved::Unserved;

/// One webhook path: the whole body in, the whole reply out.
pub trait Endpoint<W>: Send + Sync {
    /// Answers a review with what is known of what the decision may ask, unless the client is gone.
    ///
    /// # Errors
    /// [`Unserved`] when there is no verdict to give, and [`Unserved::Unanswered`] with further questions.
    fn answer_with<'a>(
        &self,
        body: &'a [u8],
        snapshot: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved>;

    /// Answers a review.
    ///
    /// # Errors
    /// [`Unserved`] when there is no verdict to give.
    fn answer(&self, body: &[u8], snapshot: &W) -> Result<Answer, Unserved> {
        self.answer_with(body, snapshot, Answers::NONE, Deadline::default())
    }

    /// Whether objects are decoded as a whole: what is decided on one takes many times as long as to read its text.
    fn decodes_objects(&self) -> bool;
}

/// Decides on what was read of a body, if it is about what the rule names. See [`Answer::undecodable`] of `is_decodable`.
fn decided<'a, O>(
    (rule, is_decodable): (&Rule, Option<&dyn Fn(&'a RawValue) -> bool>),
    body: &'a [u8],
    parsed: Result<Review<'a, O>, ParseError>,
    (answers, deadline): (&'a Answers, Deadline<'a>),
    decide: impl FnOnce(&mut Review<'a, O>) -> Result<Verdict, Unserved>,
) -> Result<Answer, Unserved> {
    match parsed {
        Ok(review) if !rule.serves(&review.request) => Ok(Answer::not_served(&review, rule)),
        Ok(mut review) => {
            review.request.answers = Some(answers);
            review.request.deadline = deadline;
            let verdict = decide(&mut review)?;
            Ok(Answer::to(&review, verdict))
        }
        Err(error) => Answer::undecodable(rule, body, error, is_decodable),
    }
}

fn is_within<'a, O: Deserialize<'a>>(object: &'a RawValue, limit: ObjectLimit) -> bool {
    limit.check(object).is_ok() && serde_json::from_str::<O>(object.get()).is_ok()
}

pub(crate) struct MutatingEndpoint<M>(pub Rule, pub M);

impl<W, M: Mutating<W>> Endpoint<W> for MutatingEndpoint<M> {
    fn decodes_objects(&self) -> bool {
        false
    }

    fn answer_with<'a>(
        &self,
        body: &'a [u8],
        snapshot: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved> {
        let review = if M::IN_ONE_PASS { Review::parse(body) } else { Review::parse_in_two_passes(body) };
        decided((&self.0, None), body, review, (answers, deadline), |review| self.1.mutate(&review.request, snapshot))
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
        snapshot: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved> {
        let review = Review::<Value>::parse_within(body, D::LIMIT);
        let is_decodable = |object: &'a RawValue| is_within::<Value>(object, D::LIMIT);
        decided((&self.0, Some(&is_decodable)), body, review, (answers, deadline), |review| {
            // Decoded, it may be the largest thing in the process: there is one of it.
            let object = review.request.object.take();
            let request = &review.request;
            Ok(match (object, request.operation) {
                (Some(object), Operation::Create | Operation::Update) => {
                    let mut patch = PatchBuilder::of(object);
                    match self.1.default(request, &mut patch, snapshot) {
                        Ok(()) => defaulted(patch.finish()),
                        Err(error) => Verdict::deny(Reason::UNDECODABLE, Denial::bad_request(error.to_string())),
                    }
                }
                (None, operation @ (Operation::Create | Operation::Update)) => {
                    Verdict::deny(Reason::UNDECODABLE, lacking("object", operation))
                }
                (_, Operation::Delete | Operation::Connect) => Verdict::allow(Reason::ALLOWED),
            })
        })
    }
}

fn defaulted(patch: PatchWriter) -> Verdict {
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
        snapshot: &W,
        answers: &'a Answers,
        deadline: Deadline<'a>,
    ) -> Result<Answer, Unserved> {
        let review = match V::LIMIT {
            Some(limit) => Review::<V::Object<'a>>::parse_within(body, limit),
            None if V::IN_ONE_PASS => Review::parse(body),
            None => Review::parse_in_two_passes(body),
        };
        let is_decodable =
            |object: &'a RawValue| V::LIMIT.is_none_or(|limit| is_within::<V::Object<'a>>(object, limit));
        decided((&self.0, Some(&is_decodable)), body, review, (answers, deadline), |review| {
            let mut findings = Findings::default();
            let request = &review.request;
            match (&request.object, request.operation) {
                // What cannot be compared is validated as if it were new, and never kept from being deleted.
                (Some(object), Operation::Update) if review.lacks_old => {
                    self.1.create(object, request, snapshot, &mut findings);
                }
                (_, Operation::Delete) if review.lacks_old => {}
                _ => self.1.validate(request, snapshot, &mut findings)?,
            }
            Ok(findings.into_verdict(request))
        })
    }
}
