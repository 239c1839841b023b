//! The reply of a webhook, read as the API server reads it.

use std::collections::BTreeMap;

use admission::patch::apply;
use admission::review::null_as_default;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// A reply that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the reply cannot be used: {0}")]
pub struct ReplyError(String);

/// What a webhook said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The patch, where there is one.
    pub patch: Option<Patch>,
    /// Set when the object is refused.
    pub status: Option<Status>,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Entries of the audit log.
    pub audit: BTreeMap<String, String>,
}

/// A JSON patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// As the reply has them, in the order in which the API server applies them.
    pub operations: Vec<Value>,
}

/// Why an object is refused: what is read of `metav1.Status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Status {
    /// HTTP code of the user's error.
    pub code: u16,
    /// `Invalid`, `Forbidden` and so on.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// The faults, one by one.
    pub details: Details,
}

/// What is read of `metav1.StatusDetails`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The faults.
    #[serde(deserialize_with = "null_as_default")]
    pub causes: Vec<Cause>,
}

/// One fault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// What is wrong.
    pub message: String,
    /// Where it is wrong.
    pub field: String,
}

#[derive(Deserialize)]
struct Envelope {
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    allowed: bool,
    patch: Option<String>,
    status: Option<Status>,
    #[serde(default, deserialize_with = "null_as_default")]
    warnings: Vec<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    audit_annotations: BTreeMap<String, String>,
}

impl Reply {
    /// Reads a reply.
    ///
    /// # Errors
    /// When it is not an `AdmissionReview` with a response, or its patch is not base64 of a JSON patch.
    pub fn read(body: &[u8]) -> Result<Self, ReplyError> {
        let Envelope { response } = serde_json::from_slice(body).map_err(|error| ReplyError(error.to_string()))?;
        let status = if response.allowed { None } else { Some(response.status.unwrap_or_default()) };
        let patch = match response.patch {
            Some(patch) => Some(Patch { operations: operations(&patch).map_err(ReplyError)? }),
            None => None,
        };
        Ok(Self { patch, status, warnings: response.warnings, audit: response.audit_annotations })
    }
}

fn operations(base64: &str) -> Result<Vec<Value>, String> {
    let document = STANDARD.decode(base64).map_err(|error| format!("the patch is not base64: {error}"))?;
    serde_json::from_slice(&document).map_err(|error| format!("the patch is not a list of operations: {error}"))
}

impl Patch {
    /// Applies the patch.
    ///
    /// # Errors
    /// When it does not fit the object.
    pub fn apply(&self, object: &mut Value) -> Result<(), ReplyError> {
        apply(object, Value::from(self.operations.clone()).to_string().as_bytes())
            .map_err(|error| ReplyError(format!("the patch does not fit the object: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(response: &Value) -> Result<Reply, String> {
        let body = json!({"kind": "AdmissionReview", "response": response}).to_string();
        Reply::read(body.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_patch_is_decoded_and_applied() {
        let patch = STANDARD.encode(r#"[{"op":"add","path":"/b","value":2}]"#);
        let reply = read(&json!({"allowed": true, "patch": patch, "warnings": null})).unwrap();
        let mut object = json!({"a": 1});
        reply.patch.unwrap().apply(&mut object).unwrap();
        assert_eq!((object, reply.status), (json!({"a": 1, "b": 2}), None));
    }

    #[test]
    fn a_refusal_without_a_status_is_still_a_refusal() {
        assert_eq!(read(&json!({"allowed": false})).unwrap().status, Some(Status::default()));
    }

    #[test]
    fn replies_without_sense_are_errors() {
        let no_list = STANDARD.encode(r#"{"op":"add"}"#);
        let table = [
            (json!(null), "invalid type: null"),
            (json!({}), "missing field `allowed`"),
            (json!({"allowed": true, "patch": "%"}), "the patch is not base64"),
            (json!({"allowed": true, "patch": no_list}), "the patch is not a list of operations"),
        ];
        for (response, expected) in table {
            let error = read(&response).unwrap_err();
            assert!(error.starts_with("the reply cannot be used: ") && error.contains(expected), "{error}");
        }
        let misfit = Patch { operations: vec![json!({"op": "remove", "path": "/none"})] };
        assert!(misfit.apply(&mut json!({})).unwrap_err().to_string().contains("does not fit the object"));
    }
}
