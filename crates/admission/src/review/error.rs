//! Errors of reading a review, and the reply to each.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Envelope, Review, ReviewVersion, Text};
use crate::reason::Reason;
use crate::reply::{self, Denial, Verdict};
use crate::unserved::Unserved;

/// Why a body could not be read as a review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not an `AdmissionReview` at all: there is no uid to answer to.
    #[error("{0}")]
    Unreadable(String),
    /// The review is fine, its object is not what the endpoint expects.
    #[error("the object could not be decoded: {message}")]
    Object {
        /// The request's uid, for the reply.
        uid: String,
        /// The wire version that asked.
        version: ReviewVersion,
        /// What the decoder found.
        message: String,
    },
    /// The review is fine, its object is larger than what is decoded.
    #[error("{message}")]
    TooLarge {
        /// The request's uid, for the reply.
        uid: String,
        /// The wire version that asked.
        version: ReviewVersion,
        /// The limit, and what was found.
        message: String,
    },
}

/// Distinguishes an unreadable body from a readable review whose object is wrong, by reading it again with raw objects.
pub(super) fn blame<'a, O: Deserialize<'a>>(body: &'a str, error: &serde_json::Error) -> ParseError {
    match serde_json::from_str::<Envelope<'a, &'a RawValue>>(body).map(Review::from_envelope) {
        Ok(Ok(Review { version, request, .. })) => {
            let fault = |field, raw: Option<&'a RawValue>| {
                let error = serde_json::from_str::<O>(raw?.get()).err()?;
                Some(format!("{field}: {}", without_position(&error)))
            };
            let message = fault("object", request.object)
                .or_else(|| fault("oldObject", request.old_object))
                .unwrap_or_else(|| without_position(error));
            ParseError::Object { uid: request.uid.to_string(), version, message }
        }
        Ok(Err(message)) => ParseError::Unreadable(message),
        Err(raw_error) => ParseError::Unreadable(unreadable(body, &raw_error, "an AdmissionReview")),
    }
}

/// What was found in place of a word, for a sentence.
pub(crate) fn found(word: &Text<'_>) -> String {
    if word.is_empty() { "missing".to_owned() } else { format!("{:?}", word.as_str()) }
}

/// As much of a name from a review as is said again: the longest that a name can be.
pub(crate) const NAME_MAX_BYTES: usize = 253;

/// The text of a body.
///
/// # Errors
/// What was found where, when it is not UTF-8, as JSON must be (RFC 8259, section 8.1).
pub(crate) fn utf8<'a>(body: &'a [u8], expected: &str) -> Result<&'a str, String> {
    std::str::from_utf8(body)
        .map_err(|error| format!("byte {} of it is not UTF-8, expected {expected} in JSON", error.valid_up_to() + 1))
}

/// What is wrong with a body that is not `expected`, for a user who sent it by hand.
pub(crate) fn unreadable(body: &str, error: &serde_json::Error, expected: &str) -> String {
    if body.trim_ascii().is_empty() {
        format!("it is empty, expected {expected} in JSON")
    } else if error.is_data() && body.trim_ascii_start().starts_with('[') {
        // serde reads a list as the fields of a struct in their order, and complains of what does not fit.
        format!("it is a list, expected {expected}")
    } else if error.is_data() {
        error.to_string()
    } else {
        format!("it is not JSON: {error}")
    }
}

/// The user wrote another text than the body of the review, so its lines and columns say nothing.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&position).unwrap_or(&message).to_owned()
}

impl ParseError {
    /// The reply that this error deserves: a refusal with code 400 where there is a uid to answer to.
    ///
    /// Endpoints in a [`Registry`](crate::Registry) do this by themselves.
    ///
    /// # Errors
    /// [`Unserved::Unreadable`] where there is no uid to answer to.
    pub fn into_reply(self) -> Result<Vec<u8>, Unserved> {
        match self {
            Self::Unreadable(message) => Err(Unserved::Unreadable(message)),
            Self::Object { ref uid, version, .. } => {
                let verdict = Verdict::deny(Reason::UNDECODABLE, Denial::bad_request(self.to_string()));
                Ok(reply::write(version, uid, &verdict))
            }
            Self::TooLarge { ref uid, version, .. } => {
                let denial = Denial::too_large(self.to_string());
                Ok(reply::write(version, uid, &Verdict::deny(Reason::TOO_LARGE, denial)))
            }
        }
    }
}
