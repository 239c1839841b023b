//! Whether it helps to evict a pod, the request to the Eviction API, and what its answer means.

use std::time::Duration;

use admission::Unserved;
use engine::pod::anew;
use engine::snapshot::Snapshot;
use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{HeaderMap, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answers::answer;
use crate::sidecarset::controller::change::is_of_webhook;
use crate::sidecarset::controller::pods::PodKey;

/// What became of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictionResult {
    /// The pod is evicted, at this time by the clock of the API server, in seconds since 1970; 0 where it gave none.
    Yes(u32),
    /// It is not known: no answer came, or one that may have come after the eviction.
    Unknown(String),
    /// The pod is gone.
    Gone,
    /// It is another than was read.
    Stale,
    /// `PodDisruptionBudget`s, or the load of the API server, do not allow it now; why, and after how long to ask again at the earliest.
    Blocked(String, Option<Duration>),
    /// The account has no right to evict any pod; what the API server said.
    Forbidden(String),
    /// It was refused for another reason.
    Refused(String),
}

/// What the API server says of a refusal, in its body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(rename = "status")]
    outcome: String,
    message: String,
    reason: String,
    code: u16,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: u64,
}

/// Asks to evict the pod of this uid at this version, and no other: a pod that changes meanwhile is judged again first.
pub async fn evict(client: &Client, key: &PodKey, uid: &str, version: &str) -> EvictionResult {
    let (namespace, name) = (&*key.namespace, &*key.name);
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": name},
        "deleteOptions": {"preconditions": {"uid": uid, "resourceVersion": version}},
    });
    let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string().into_bytes()));
    let request = match request {
        Ok(request) => request,
        Err(error) => return EvictionResult::Refused(error.to_string()),
    };
    match answer(send(client, request)).await {
        Ok((code, headers, body)) => meaning(code, &headers, &body),
        Err(error) => EvictionResult::Unknown(error.to_string()),
    }
}

async fn send(client: &Client, request: Request<Body>) -> Result<(StatusCode, HeaderMap, Vec<u8>), kube::Error> {
    let (parts, body) = client.send(request).await.map(Response::into_parts)?;
    let body = body.collect_bytes().await?;
    Ok((parts.status, parts.headers, body.to_vec()))
}

/// What an answer means. The API server reports more than one `PodDisruptionBudget` about a pod as a `Status` with code 500 in the
/// body, whatever the code of the response is (`pkg/registry/core/pod/storage/eviction.go`).
fn meaning(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> EvictionResult {
    let status: Status = serde_json::from_slice::<Value>(body)
        .ok()
        .filter(|body| body.get("kind").and_then(Value::as_str) == Some("Status"))
        .and_then(|body| serde_json::from_value(body).ok())
        .unwrap_or_default();
    if code.is_success() && status.outcome != "Failure" {
        return EvictionResult::Yes(
            headers.get(DATE).and_then(|date| seconds(date.to_str().ok()?)).unwrap_or_default(),
        );
    }
    let code = if code.is_success() { status.code } else { code.as_u16() };
    let why = match &status {
        Status { message, .. } if !message.is_empty() => message.clone(),
        Status { reason, .. } if !reason.is_empty() => format!("{reason} (code {code})"),
        _ => format!("code {code}"),
    };
    match code {
        404 => EvictionResult::Gone,
        409 => EvictionResult::Stale,
        403 if why.contains(" cannot create resource \"pods/eviction\"") => EvictionResult::Forbidden(why),
        429 => EvictionResult::Blocked(why, retry_after(headers, &status)),
        _ if why.contains("more than one PodDisruptionBudget") => EvictionResult::Blocked(why, None),
        _ if code < 500 || is_of_webhook(&why) => EvictionResult::Refused(why),
        _ => EvictionResult::Unknown(why),
    }
}

fn retry_after(headers: &HeaderMap, status: &Status) -> Option<Duration> {
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let seconds = header.into_iter().chain(Some(status.details.retry_after_seconds)).max()?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Of the header `Date`.
fn seconds(date: &str) -> Option<u32> {
    let date = jiff::fmt::rfc2822::parse(date).ok()?;
    u32::try_from(date.timestamp().as_second()).ok()
}

/// Why it would not help to evict the pod: no other would take its place, or one that lacks the set's form as well.
///
/// # Errors
/// When it cannot be decided which sets select the pod.
pub fn no_help(pod: &Value, key: &PodKey, set: &str, snapshot: &Snapshot) -> Result<Option<String>, Unserved> {
    let owners = pod.get("metadata").and_then(|metadata| metadata.get("ownerReferences")?.as_array());
    let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(controller) = owners.into_iter().flatten().find(is_controller) else {
        return Ok(Some("it has no controller, which would create another".to_owned()));
    };
    let policy = pod.get("spec").and_then(|spec| spec.get("restartPolicy")?.as_str());
    let kind = controller.get("kind").and_then(Value::as_str);
    if matches!(policy, Some("Never" | "OnFailure")) || matches!(kind, Some("Job" | "Node")) {
        return Ok(Some("it is to end by itself".to_owned()));
    }
    anew::why_not(pod, &key.namespace, set, snapshot)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn status(code: u16, message: &str, details: &Value) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code, "details": details})
    }

    fn meant(code: u16, headers: &[(&'static str, &'static str)], body: &Value) -> EvictionResult {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), http::HeaderValue::from_static(value)));
        meaning(StatusCode::from_u16(code).unwrap(), &headers.collect(), body.to_string().as_bytes())
    }

    #[test]
    fn answers_are_told_apart_by_code_body_and_headers() {
        let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        let budget = "Cannot evict pod as it would violate the pod's disruption budget.";
        let right = "pods \"p\" is forbidden: User \"u\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"n\"";
        let policy = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no";
        let done = json!({"kind": "Status", "status": "Success", "code": 201});
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let none = json!({});
        for (case, found, expected) in [
            ("evicted", meant(201, &[date], &done), EvictionResult::Yes(784_111_777)),
            ("evicted, no date", meant(201, &[], &done), EvictionResult::Yes(0)),
            (
                "two budgets, in the code",
                meant(500, &[], &status(500, two, &none)),
                EvictionResult::Blocked(two.to_owned(), None),
            ),
            (
                "two budgets, in the body",
                meant(201, &[date], &status(500, two, &none)),
                EvictionResult::Blocked(two.to_owned(), None),
            ),
            (
                "a budget",
                meant(429, &[], &status(429, budget, &none)),
                EvictionResult::Blocked(budget.to_owned(), None),
            ),
            (
                "later, in the body",
                meant(429, &[], &status(429, budget, &json!({"retryAfterSeconds": 10}))),
                EvictionResult::Blocked(budget.to_owned(), Some(Duration::from_secs(10))),
            ),
            (
                "later, in the header",
                meant(429, &[("retry-after", "7")], &none),
                EvictionResult::Blocked("code 429".to_owned(), Some(Duration::from_secs(7))),
            ),
            ("no right", meant(403, &[], &status(403, right, &none)), EvictionResult::Forbidden(right.to_owned())),
            ("a policy", meant(403, &[], &status(403, policy, &none)), EvictionResult::Refused(policy.to_owned())),
            ("gone", meant(404, &[], &status(404, "no", &none)), EvictionResult::Gone),
            ("another by now", meant(409, &[], &status(409, "no", &none)), EvictionResult::Stale),
            (
                "the API server's own trouble",
                meant(500, &[], &status(500, "etcdserver: request timed out", &none)),
                EvictionResult::Unknown("etcdserver: request timed out".to_owned()),
            ),
            ("a proxy's", meant(504, &[], &Value::Null), EvictionResult::Unknown("code 504".to_owned())),
        ] {
            assert_eq!(found, expected, "{case}");
        }
    }

    #[tokio::test]
    async fn the_request_names_uid_and_version_and_nothing_else() {
        let sent = Arc::new(Mutex::new(Value::Null));
        let keep = Arc::clone(&sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            let keep = Arc::clone(&keep);
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect_bytes().await.unwrap();
                *keep.lock().unwrap() = json!({"path": path, "body": serde_json::from_slice::<Value>(&body).unwrap()});
                Ok::<_, std::convert::Infallible>(Response::new(http_body_util::Full::new(bytes::Bytes::from("{}"))))
            }
        });
        let key = serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "p"}})).unwrap();
        let found = evict(&Client::new(service, "default"), &PodKey::of(&key), "u", "7").await;
        assert_eq!(found, EvictionResult::Yes(0));
        let sent = sent.lock().unwrap();
        assert_eq!(sent["path"], "/api/v1/namespaces/n/pods/p/eviction");
        assert_eq!(sent["body"]["deleteOptions"], json!({"preconditions": {"uid": "u", "resourceVersion": "7"}}));
    }
}
