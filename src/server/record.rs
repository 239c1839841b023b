//! What the log says about a request: one event at its end, and nothing at all where its level is off.
//!
//! An allowed review that changes nothing is the usual case, so it is logged at debug level only. Bodies are never logged.

use std::time::Duration;

use admission::bounded::beginning;
use admission::{Answer, Decision, Unserved};
use serde::Deserialize;

use super::reply::LONGEST_SENTENCE;

/// Longest name in a line, in bytes: no object of Kubernetes has a longer one, and the body of a client may hold anything.
const LONGEST_NAME: usize = 512;

fn shortened(name: &str) -> &str {
    beginning(name, LONGEST_NAME)
}

fn said(sentence: &str) -> &str {
    beginning(sentence, LONGEST_SENTENCE)
}

/// One line about a request, at a level chosen at run time.
macro_rules! review_event {
    ($level:expr, $path:expr, $answer:expr, $took:expr, $message:literal) => {
        tracing::event!(
            $level,
            uid = shortened($answer.summary.uid.as_str()),
            path = $path,
            kind = shortened($answer.summary.kind.as_str()),
            namespace = shortened($answer.summary.namespace.as_str()),
            name = shortened($answer.summary.name.as_str()),
            operation = $answer.summary.operation,
            dry_run = $answer.summary.dry_run,
            verdict = $answer.decision.as_str(),
            reason = $answer.reason.as_str(),
            message_to_user = said(&$answer.message),
            duration = $took.as_secs_f64(),
            $message
        )
    };
}

/// A decision was sent. `budget` is what the deadline left for it.
pub fn decided(path: &str, answer: &Answer, took: Duration, budget: Duration) {
    if took > budget / 2 {
        review_event!(tracing::Level::WARN, path, answer, took, "Review took more than half of its deadline");
        return;
    }
    match answer.decision {
        Decision::Allowed => review_event!(tracing::Level::DEBUG, path, answer, took, "Review answered"),
        Decision::Patched | Decision::Denied => {
            review_event!(tracing::Level::INFO, path, answer, took, "Review answered");
        }
    }
}

/// No decision was made.
pub fn unserved(path: &str, uid: Option<&str>, unserved: &Unserved, took: Duration) {
    let (uid, reason, status) = (uid.unwrap_or_default(), unserved.reason(), unserved.status());
    let (duration, error) = (took.as_secs_f64(), unserved.to_string());
    let (uid, error) = (shortened(uid), said(&error));
    if matches!(unserved, Unserved::Fault) {
        tracing::error!(uid, path, reason, status, duration, error, "Review not served");
    } else {
        tracing::warn!(uid, path, reason, status, duration, error, "Review not served");
    }
}

/// The uid of a review that was not answered as one.
pub fn uid_of(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Envelope {
        request: Request,
    }
    #[derive(Deserialize)]
    struct Request {
        uid: String,
    }
    serde_json::from_slice(body).ok().map(|Envelope { request }| super::reply::shortened(&request.uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_writes_is_logged_up_to_a_length() {
        let long = "é".repeat(1 << 20);
        assert!(shortened(&long).len() <= LONGEST_NAME && said(&long).len() <= LONGEST_SENTENCE);
        assert_eq!((shortened("shop"), said("why")), ("shop", "why"));
    }
}
