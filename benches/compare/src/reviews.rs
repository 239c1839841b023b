//! The recorded reviews, and what becomes of one after a first pass.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::BenchError;

/// A review as an API server sent it.
#[derive(Debug)]
pub struct Recorded {
    /// Name in the reports.
    pub name: &'static str,
    /// The body, byte for byte.
    pub text: &'static str,
}

pub const RECORDED: [Recorded; 2] = [
    Recorded { name: "pod", text: include_str!("../../reviews/pod-review.json") },
    Recorded { name: "pod, 500 env", text: include_str!("../../reviews/pod-500-env-review.json") },
];

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    request: RawRequest<'a>,
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    uid: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

fn request(body: &str) -> Result<RawRequest<'_>, BenchError> {
    serde_json::from_str::<Envelope>(body)
        .map(|envelope| envelope.request)
        .map_err(|error| BenchError::Review(error.to_string()))
}

/// `request.uid` and `request.object` of a review.
///
/// # Errors
/// A body without them.
pub fn uid_and_object(body: &str) -> Result<(String, Value), BenchError> {
    let request = request(body)?;
    let object = serde_json::from_str(request.object.get())?;
    Ok((request.uid, object))
}

/// The same review with another object; every byte around the object stays.
///
/// # Errors
/// A body without an object.
pub fn with_object(body: &str, object: &Value) -> Result<String, BenchError> {
    let old = request(body)?.object.get();
    Ok(body.replacen(old, &serde_json::to_string(object)?, 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_object_of_a_review_is_replaced() {
        for recorded in &RECORDED {
            let replaced = with_object(recorded.text, &json!({"kind": "Pod"})).unwrap();
            let mut expected: Value = serde_json::from_str(recorded.text).unwrap();
            expected["request"]["object"] = json!({"kind": "Pod"});
            assert_eq!(serde_json::from_str::<Value>(&replaced).unwrap(), expected);
        }
    }

    #[test]
    fn a_body_that_is_no_review_is_refused() {
        assert!(matches!(uid_and_object("{}"), Err(BenchError::Review(_))));
    }
}
