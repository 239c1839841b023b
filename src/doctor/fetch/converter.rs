//! Asks each converter that is trusted to convert an object, as the API server does.
//!
//! A server that answers on the port may still know nothing of the kind, as when that was turned off.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::handshake::{Question, question};
use crate::doctor::definition::{DefinitionSpec, FoundDefinition};
use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::{Facts, Handshake};

const CONVERSION_TIMEOUT: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 8;
/// More than a review with one small object in it.
const ANSWER_MAX: usize = 64 * 1024;
const UID: &str = "0d0c7012-0000-4000-8000-000000000001";

/// What each converter answered that did not convert, by its key.
pub async fn all(facts: &Facts) -> BTreeMap<String, String> {
    let is_trusted =
        |entry: &ConfigurationEntry<'_>| matches!(facts.handshakes.get(&entry.key()), Some(Handshake::Trusted { .. }));
    let asked = facts.definitions.iter().filter_map(|definition| {
        let entry = ConfigurationEntry::converter(definition).filter(is_trusted)?;
        Some((entry.key(), question(&entry, facts)?, path(&entry), review(definition)?))
    });
    let asked: Vec<_> = asked.collect();
    let answers = futures::stream::iter(asked).map(|(key, question, path, review)| async move {
        let answer = tokio::time::timeout(CONVERSION_TIMEOUT, ask(&question, &path, &review)).await;
        let wrong = match answer {
            Ok(answer) => answer?,
            Err(_) => format!("gives no answer to a ConversionReview within {} s", CONVERSION_TIMEOUT.as_secs()),
        };
        Some((key, wrong))
    });
    answers.buffer_unordered(AT_ONCE).filter_map(|answer| async move { answer }).collect().await
}

fn path(entry: &ConfigurationEntry<'_>) -> String {
    let path = |text: &str| text.parse::<http::Uri>().ok().and_then(|uri| Some(uri.path_and_query()?.to_string()));
    let by_service = entry.client.service.as_ref().and_then(|service| service.path.clone());
    by_service.or_else(|| path(entry.client.url.as_deref()?)).unwrap_or_else(|| "/".to_owned())
}

/// A review with one object of the stored version; nothing where there is no other.
fn review(definition: &FoundDefinition) -> Option<Value> {
    let DefinitionSpec { group, scope, names, versions, .. } = definition.spec.as_ref()?;
    let stored = versions.iter().find(|version| version.storage)?;
    let other = versions.iter().find(|version| version.served && !version.storage)?;
    let mut metadata = json!({"name": "outrider-doctor", "uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"});
    if scope == "Namespaced" {
        metadata["namespace"] = "default".into();
    }
    let object =
        json!({"apiVersion": format!("{group}/{}", stored.name), "kind": names.kind, "metadata": metadata, "spec": {}});
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": format!("{group}/{}", other.name), "objects": [object]},
    }))
}

/// What is wrong with the answer, if there is one and something is.
async fn ask(question: &Question, path: &str, review: &Value) -> Option<String> {
    let stream = question.connect().await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let body = Full::new(Bytes::from(review.to_string()));
    let request = Request::builder().method(Method::POST).uri(path).header(HOST, question.host());
    let request = request.header(CONTENT_TYPE, "application/json").body(body).ok()?;
    let answer = async {
        let response = sender.send_request(request).await.ok()?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await.ok();
        Some((status, body.map(http_body_util::Collected::to_bytes)))
    };
    let (status, body) = tokio::select! {
        answer = answer => answer?,
        _ = connection => return None,
    };
    judge(status, &body.unwrap_or_default())
}

fn judge(status: StatusCode, body: &[u8]) -> Option<String> {
    match status {
        StatusCode::OK => {}
        // A converter that wants the API server's client certificate cannot be called from here; and one that fails now may serve the kind.
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE => return None,
        _ => return Some(format!("answers {status} to a ConversionReview")),
    }
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let is_one = answer.pointer("/response/uid").is_some_and(|uid| uid == UID)
        && answer.pointer("/response/result/status").is_some_and(Value::is_string);
    // That it cannot convert an object without a spec is an answer.
    (!is_one).then(|| "answers a ConversionReview with something else".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_conversion_is_told_and_what_cannot_be_told_is_not() {
        let converted = json!({"response": {"uid": UID, "result": {"status": "Success"}, "convertedObjects": []}});
        let failed = json!({"response": {"uid": UID, "result": {"status": "Failed", "message": "no spec"}}});
        for (status, body, expected) in [
            (200, converted.to_string(), None),
            (200, failed.to_string(), None),
            (200, "{}".to_owned(), Some("answers a ConversionReview with something else")),
            (200, "ok".to_owned(), Some("answers a ConversionReview with something else")),
            (404, String::new(), Some("answers 404 Not Found to a ConversionReview")),
            (500, String::new(), Some("answers 500 Internal Server Error to a ConversionReview")),
            (403, String::new(), None),
            (503, String::new(), None),
        ] {
            let found = judge(StatusCode::from_u16(status).unwrap(), body.as_bytes());
            assert_eq!(found.as_deref(), expected, "{status} {body}");
        }
    }

    #[test]
    fn only_a_kind_with_another_version_is_asked_about() {
        let definition = |served: bool| -> FoundDefinition {
            serde_json::from_value(json!({"metadata": {"name": "a.b"}, "spec": {
                "group": "b", "scope": "Namespaced", "names": {"kind": "A"},
                "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": served, "storage": false}],
            }}))
            .unwrap()
        };
        assert!(review(&definition(false)).is_none());
        let asked = review(&definition(true)).unwrap();
        assert_eq!(asked["request"]["desiredAPIVersion"], "b/v2");
        assert_eq!(asked["request"]["objects"][0]["apiVersion"], "b/v1");
        assert_eq!(asked["request"]["objects"][0]["metadata"]["namespace"], "default");
    }
}
