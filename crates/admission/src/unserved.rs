//! Answers that are not verdicts.
//!
//! A review with `allowed: false` is final: no `failurePolicy` softens it. Whatever kept us from deciding must
//! therefore not look like a verdict; it is a bare HTTP status, so that `failurePolicy` means what it says.

use crate::question::Question;

fn in_words(questions: &[Question]) -> String {
    questions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Why no decision was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unserved {
    /// The body is not a review, so there is no uid to answer to.
    #[error("the body is not a readable review: {0}")]
    Unreadable(String),
    /// The content type is not `application/json`.
    #[error("content type {0:?} is not served; send application/json")]
    ContentType(String),
    /// The body is longer than the limit, in bytes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// Too many reviews are in flight.
    #[error("too many reviews in flight; try again")]
    Overloaded,
    /// The server has not yet seen what it needs to decide.
    #[error("not ready: {0}")]
    NotReady(String),
    /// Another server has the endpoint of this path, or this one will soon.
    #[error("{0} is not served by this replica; another one may serve it during a rollout; try again")]
    Elsewhere(String),
    /// A selector needs the labels of a namespace that has not been seen yet.
    #[error("namespace {0:?} is not known yet; try again")]
    NamespaceUnknown(String),
    /// A selector needs labels of a namespace that has more than are kept.
    #[error(
        "namespace {0:?} has more labels than are read, and what is decided depends on the others; remove labels from it"
    )]
    NamespaceLabels(String),
    /// The decision must know something that the read model does not say. The caller of the endpoint gets the answers, and has it
    /// decide again.
    #[error("it is not known {}", in_words(.0))]
    Unanswered(Vec<Question>),
    /// The deadline of the request passed.
    #[error("the review could not be answered in time")]
    OutOfTime,
    /// An internal fault; details are in the log under the uid.
    #[error("internal fault; see the server's log")]
    Fault,
}

impl Unserved {
    /// The HTTP status to answer with.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Unreadable(_) => 400,
            Self::ContentType(_) => 415,
            Self::TooLarge(_) => 413,
            Self::NamespaceLabels(_) => 422,
            Self::Overloaded => 429,
            Self::NotReady(_) | Self::NamespaceUnknown(_) | Self::Elsewhere(_) | Self::Unanswered(_) => 503,
            Self::OutOfTime => 504,
            Self::Fault => 500,
        }
    }

    /// Seconds for the `Retry-After` header, where another try can succeed.
    ///
    /// client-go (`rest/with_retry.go`) repeats a 429 or 5xx within the same time-out only when the header holds an integer.
    pub const fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Overloaded
            | Self::NotReady(_)
            | Self::NamespaceUnknown(_)
            | Self::Elsewhere(_)
            | Self::Unanswered(_) => Some(1),
            _ => None,
        }
    }

    /// The word for logs and metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "Unreadable",
            Self::ContentType(_) => "ContentType",
            Self::TooLarge(_) => "TooLarge",
            Self::Overloaded => "Overloaded",
            Self::NotReady(_) => "NotReady",
            Self::Elsewhere(_) => "NotFound",
            Self::NamespaceUnknown(_) => "NamespaceUnknown",
            Self::NamespaceLabels(_) => "NamespaceLabels",
            Self::Unanswered(_) => "Unanswered",
            Self::OutOfTime => "OutOfTime",
            Self::Fault => "Fault",
        }
    }
}
