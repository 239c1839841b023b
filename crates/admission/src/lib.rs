//! Admission and conversion webhooks for any Kubernetes operator, without a Kubernetes client and without a runtime.
//!
//! Bytes in, bytes out: an [`Endpoint`] reads an `AdmissionReview` that it borrows from the body, decides with nothing but a
//! read model `W` of the caller's choosing, and writes the reply. Serving HTTP, watching the API server and reloading
//! certificates are the caller's task.
//!
//! What the types make impossible: a reply without the request's uid, a patch in a validating reply, and a failure to decide
//! that looks like a verdict ([`Unserved`] is another type than [`Denial`]).

pub mod bounded;
pub mod conversion;
pub mod deadline;
pub mod endpoint;
pub mod field;
pub mod format;
pub mod limit;
pub mod object;
pub mod patch;
pub mod question;
pub mod raw;
pub mod reason;
pub mod registry;
pub mod reply;
pub mod review;
pub mod unserved;

pub use deadline::Deadline;
pub use endpoint::{Answer, Decision, Defaulting, Endpoint, Findings, Mutating, Summary, Validating};
pub use limit::ObjectLimit;
pub use patch::{PatchBuilder, PatchError, PatchWriter};
pub use question::{Answers, Known, Question};
pub use reason::Reason;
pub use registry::{Registry, Rule};
pub use reply::{Denial, Outcome, Verdict};
pub use review::{Groups, Operation, ParseError, Request, Review, ReviewVersion, Text};
pub use unserved::Unserved;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
