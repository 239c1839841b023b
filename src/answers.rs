//! Requests to the API server: their time limit, and their errors as messages for people. The client library's own message for an
//! error contains the Rust structure that the answer was decoded into.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::ListParams;
use kube::core::Status;
use tokio::time::timeout;

/// Time limit for a request, or for a few that belong together. On a connection that broke silently no answer ever arrives.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a request that somebody waits for: a scraper, or the kubelet at the end of the process.
pub const URGENT_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a request to another replica, or for the list of replicas: one that takes longer is taken for one that cannot be
/// reached.
pub const REPLICA_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for a connection; kube's own default is 30 s, longer than a lease lasts.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What asks for the page of a list behind this one; `None` behind the last.
pub fn next_page(params: ListParams, page: &ListMeta) -> Option<ListParams> {
    let token = page.continue_.as_deref().filter(|token| !token.is_empty())?;
    Some(params.continue_token(token))
}

/// The API server did not answer within this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API server did not answer within {} s", .0.as_secs())]
pub struct NoAnswer(pub Duration);

impl From<NoAnswer> for String {
    fn from(error: NoAnswer) -> Self {
        error.to_string()
    }
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No answer in time.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The API server refused, or could not be reached.
    #[error("{}", said(.0))]
    Client(Box<kube::Error>),
}

impl RequestError {
    /// The status code of an answer; `None` where there was no answer.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// What the API server answered, if it did.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Client(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::NoAnswer(_) => None,
        }
    }
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Waits for the answer to a request, [`REQUEST_TIMEOUT`] at most.
///
/// # Errors
/// [`RequestError::NoAnswer`] after that time, and what the API server says.
pub fn answer<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> impl Future<Output = Result<T, RequestError>> {
    answer_within(REQUEST_TIMEOUT, request)
}

/// Waits for the answer to a request, for `limit` at most.
///
/// # Errors
/// [`RequestError::NoAnswer`] after that time, and what the API server says.
pub fn answer_within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> impl Future<Output = Result<T, RequestError>> {
    within(limit, async { request.await.map_err(RequestError::from) })
}

/// Waits for requests, [`REQUEST_TIMEOUT`] at most.
///
/// # Errors
/// [`NoAnswer`] after that time, and those of the requests.
pub fn in_time<T, E: From<NoAnswer>>(
    requests: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    within(REQUEST_TIMEOUT, requests)
}

/// Waits for requests, for `limit` at most.
///
/// # Errors
/// [`NoAnswer`] after that time, and those of the requests.
pub fn within<T, E: From<NoAnswer>>(
    limit: Duration,
    requests: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // On the heap: a future that waits for this one would hold it twice, and so would each around that.
    let requests = Box::pin(requests);
    async move { timeout(limit, requests).await.unwrap_or_else(|_| Err(NoAnswer(limit).into())) }
}

/// The status code of an answer; `None` where there was no answer.
pub fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether the API server, or a webhook, refused what was sent: it would refuse the same again. By the code of what is not allowed,
/// of what cannot be read, and of what is invalid.
pub fn is_refusal(error: &kube::Error) -> bool {
    matches!(code(error), Some(400 | 403 | 422))
}

/// The API server's message, or why there was no answer.
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) if !status.reason.is_empty() => format!("{} (code {})", status.reason, status.code),
        kube::Error::Api(status) => format!("code {}", status.code),
        kube::Error::Service(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// As [`said`], for the user of a command: where a right is missing, what the user may not do and what the command `needs`.
pub fn to_user(error: &kube::Error, needs: &str) -> String {
    let kube::Error::Api(status) = error else { return said(error) };
    lacking(status).map_or_else(|| said(error), |lacking| format!("{lacking}; {needs}"))
}

/// What the user may not do, from an answer of the API server's authorizers:
/// `RESOURCE.GROUP "NAME" is forbidden: User "U" cannot VERB resource "RESOURCE" in API group "GROUP" …`
/// (`responsewriters.Forbidden` in `k8s.io/apiserver`). Refusals of admission have code 403 too, and other words.
fn lacking(status: &Status) -> Option<String> {
    if status.code != 403 {
        return None;
    }
    let (_, act) = status.message.split_once(" cannot ")?;
    let (verb, rest) = act.split_once(" resource \"")?;
    let (resource, place) = rest.split_once('"')?;
    let name = status.details.as_ref().map(|details| details.name.as_str()).filter(|name| !name.is_empty());
    let object = name.map_or_else(|| resource.to_owned(), |name| format!("{resource}/{name}"));
    let namespace = place.split_once("in the namespace \"").and_then(|(_, rest)| rest.split('"').next());
    let place = namespace.map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default();
    Some(format!("you may not {verb} {object}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(code: u16, message: &str, name: &str) -> kube::Error {
        let status = json!({"code": code, "message": message, "details": {"name": name}});
        kube::Error::Api(serde_json::from_value(status).unwrap())
    }

    #[tokio::test]
    async fn a_request_that_nobody_answers_ends_and_others_have_their_own_answer() {
        let limit = Duration::from_millis(1);
        let error = answer_within(limit, std::future::pending::<Result<(), kube::Error>>()).await.unwrap_err();
        assert_eq!(error.to_string(), "the API server did not answer within 0 s");
        assert_eq!(answer(async { Ok(1) }).await.unwrap(), 1);
        let refused: Result<(), RequestError> = answer(async { Err(refusal(422, "it is invalid", "a")) }).await;
        assert_eq!(refused.unwrap_err().to_string(), "it is invalid");
    }

    #[test]
    fn a_missing_right_is_named() {
        let configuration = r#"mutatingwebhookconfigurations.admissionregistration.k8s.io "outrider-mutating" is forbidden: User "jane" cannot get resource "mutatingwebhookconfigurations" in API group "admissionregistration.k8s.io" at the cluster scope"#;
        let error = refusal(403, configuration, "outrider-mutating");
        let told = "you may not get mutatingwebhookconfigurations/outrider-mutating; break-glass needs get and patch";
        assert_eq!(to_user(&error, "break-glass needs get and patch"), told);
        assert_eq!(said(&error), configuration);
        let pods =
            r#"pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "shop""#;
        assert_eq!(
            to_user(&refusal(403, pods, ""), "it does"),
            "you may not create pods in the namespace shop; it does"
        );
    }

    #[test]
    fn other_answers_are_the_api_servers_words_and_never_a_structure() {
        let denied = r#"admission webhook "x.example.com" denied the request: no"#;
        assert_eq!(to_user(&refusal(403, denied, "a"), "more"), denied);
        let bare = kube::Error::Api(Box::new(Status { code: 500, ..Status::default() }));
        assert_eq!(to_user(&bare, "more"), "code 500");
        let reason = Status { code: 429, reason: "TooManyRequests".to_owned(), ..Status::default() };
        assert_eq!(to_user(&kube::Error::Api(Box::new(reason)), "more"), "TooManyRequests (code 429)");
    }
}
