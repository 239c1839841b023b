//! HTTP replies: reviews as JSON, everything else as a bare status with a sentence.

use admission::Unserved;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// Longest piece of a request that is repeated in a reply or a log, in characters.
const LONGEST_ECHO: usize = 128;

/// The reply to a review or a conversion.
pub fn json(body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A failure to serve: a status that client-go understands, and a sentence that it repeats to the user.
pub fn unserved(unserved: &Unserved) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(unserved.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, format!("{unserved}\n"));
    if let Some(seconds) = unserved.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
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
    text.chars().take(LONGEST_ECHO).collect()
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
