//! HTTP replies: reviews as JSON, everything else as a bare status with a sentence.

use std::time::Duration;

use admission::Unserved;
use admission::bounded::beginning;
use admission::bounded::first_chars;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// Longest piece of a request that is repeated in a reply or a log, in characters.
const LONGEST_ECHO: usize = 128;

/// Longest sentence of a reply or a log, in bytes.
pub(super) const LONGEST_SENTENCE: usize = 8 * 1024;

/// The reply to a review or a conversion.
pub fn json(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A failure to serve: a status that client-go understands, and a sentence that it repeats to the user.
pub fn unserved(unserved: &Unserved) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(unserved.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let sentence = unserved.to_string();
    let mut response = plain(status, format!("{}\n", beginning(&sentence, LONGEST_SENTENCE)));
    if let Some(seconds) = unserved.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The same to a client that waits for no longer than `budget` from now on. One that has no time for another try would spend all of
/// its time on waiting for it: an event that is not limited because we are overloaded should pass at once.
pub fn unserved_within(unserved: &Unserved, budget: Duration) -> Response<Full<Bytes>> {
    let mut response = self::unserved(unserved);
    let has_time = |seconds: u32| Duration::from_secs(seconds.into()) < budget;
    if !unserved.retry_after().is_some_and(has_time) {
        response.headers_mut().remove(RETRY_AFTER);
    }
    response
}

/// No such path.
pub fn not_found<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Response<Full<Bytes>> {
    let mut text = format!("nothing is served at {:?}; known paths:\n", shortened(path));
    for path in known {
        text.push_str(path);
        text.push('\n');
    }
    plain(StatusCode::NOT_FOUND, text)
}

/// A path that only takes POST.
pub fn method_not_allowed() -> Response<Full<Bytes>> {
    let text = "send an AdmissionReview with POST and Content-Type: application/json\n";
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text.to_owned());
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// The beginning of what a client sent.
pub fn shortened(text: &str) -> String {
    first_chars(text, LONGEST_ECHO).to_owned()
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
