//! One exchange with a backend: an `ImageReview` out, a verdict in.

use std::collections::BTreeMap;
use std::error::Error;

use admission::bounded::beginning;
use admission::question::{ImageVerdict, Images};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
const KIND: &str = "ImageReview";
/// Bytes of a reply that are read.
const REPLY: usize = 64 * 1024;
/// That there were more, in the words of a reason.
const TOO_LONG: &str = "the reply is longer than 64 KiB";
/// Bytes of a reason, and of an annotation, that are repeated.
const SAID: usize = 1024;
/// Annotations for the audit log that are repeated.
const ANNOTATIONS: usize = 8;

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoVerdict {
    /// In words.
    pub why: String,
    /// Whether another try may succeed.
    pub is_passing: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'i> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'i>,
}

#[derive(Serialize)]
struct Spec<'i> {
    #[serde(serialize_with = "containers")]
    containers: &'i [String],
    annotations: &'i BTreeMap<String, String>,
    namespace: &'i str,
}

#[derive(Serialize)]
struct Container<'i> {
    image: &'i str,
}

fn containers<S: Serializer>(images: &&[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(images.iter().map(|image| Container { image }))
}

/// What is sent. A pod may have very many containers, and as long as the backend takes to answer, nothing but these bytes is held.
///
/// # Errors
/// Never in practice: texts can be written.
pub fn review(images: &Images) -> Result<Bytes, String> {
    let Images { images, annotations, namespace, .. } = images;
    let review =
        Review { api_version: API_VERSION, kind: KIND, spec: Spec { containers: images, annotations, namespace } };
    serde_json::to_vec(&review).map(Bytes::from).map_err(|error| error.to_string())
}

/// Asks once.
pub async fn ask(client: &Client, path: &Uri, review: &Bytes) -> Result<ImageVerdict, NoVerdict> {
    let lasting = |why: String| NoVerdict { why, is_passing: false };
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Body::from(review.clone()))
        .map_err(|error| lasting(error.to_string()))?;
    let response = client.send(request).await.map_err(|error| NoVerdict {
        why: format!("the image policy backend cannot be reached: {}", causes(&error)),
        is_passing: true,
    })?;
    let status = response.status();
    if !status.is_success() {
        let is_passing = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::INTERNAL_SERVER_ERROR
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        return Err(NoVerdict {
            why: format!("the image policy backend answered HTTP {}", status.as_u16()),
            is_passing,
        });
    }
    match Limited::new(response.into_body(), REPLY).collect().await {
        Ok(reply) => verdict(&reply.to_bytes()).map_err(lasting),
        // A backend repeats the names of images, which the author of a pod can make as long as they like: so that no verdict is lost that
        // way, this one is a no.
        Err(error) if error.is::<LengthLimitError>() => {
            Ok(ImageVerdict { reason: TOO_LONG.to_owned(), ..ImageVerdict::default() })
        }
        Err(error) => Err(lasting(format!("the reply of the image policy backend cannot be read: {error}"))),
    }
}

fn causes(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    api_version: String,
    kind: String,
    /// An object: where a structure is expected, serde reads an array as its fields as well.
    status: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    allowed: bool,
    reason: String,
    audit_annotations: Option<BTreeMap<String, String>>,
}

fn verdict(reply: &[u8]) -> Result<ImageVerdict, String> {
    let refused = |why: &str| format!("the reply of the image policy backend is no {KIND}: {}", beginning(why, SAID));
    let reply: Map<String, Value> = serde_json::from_slice(reply).map_err(|error| refused(&error.to_string()))?;
    let reply: Reply = serde_json::from_value(Value::Object(reply)).map_err(|error| refused(&error.to_string()))?;
    if (reply.api_version.as_str(), reply.kind.as_str()) != (API_VERSION, KIND) {
        let found = format!("{} {}", beginning(&reply.api_version, 64), beginning(&reply.kind, 64));
        return Err(refused(&format!("found {found}, expected {API_VERSION} {KIND}")));
    }
    let status: Status = serde_json::from_value(Value::Object(reply.status.unwrap_or_default()))
        .map_err(|error| refused(&format!("status: {error}")))?;
    let annotations = status.audit_annotations.unwrap_or_default().into_iter();
    // The API server drops the others.
    let audit = annotations
        .filter(|(key, _)| is_audit_key(key))
        .take(ANNOTATIONS)
        .map(|(key, value)| (key, beginning(&value, SAID).to_owned()));
    Ok(ImageVerdict {
        allowed: status.allowed,
        reason: beginning(&status.reason, SAID).to_owned(),
        audit: audit.collect(),
    })
}

fn is_audit_key(key: &str) -> bool {
    !key.contains('/') && admission::format::names::qualified_name(key).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_review_names_each_image_the_annotations_and_the_namespace() {
        let images = Images {
            namespace: "shop".to_owned(),
            images: vec!["a:1".to_owned(), "b".to_owned()],
            annotations: BTreeMap::from([("x.image-policy.k8s.io/y".to_owned(), "z".to_owned())]),
            ..Images::default()
        };
        let sent: Value = serde_json::from_slice(&review(&images).unwrap()).unwrap();
        let spec = json!({
            "containers": [{"image": "a:1"}, {"image": "b"}], "namespace": "shop",
            "annotations": {"x.image-policy.k8s.io/y": "z"},
        });
        assert_eq!(sent, json!({"apiVersion": API_VERSION, "kind": KIND, "spec": spec}));
    }

    #[test]
    fn what_is_no_image_review_is_no_verdict_and_what_is_repeated_of_one_is_bounded() {
        let of = |status: Value| json!({"apiVersion": API_VERSION, "kind": KIND, "status": status}).to_string();
        let read = |text: &str| verdict(text.as_bytes());
        assert!(read(&of(json!({"allowed": true}))).unwrap().allowed);
        assert!(!read(&of(json!({}))).unwrap().allowed, "a yes is said");
        let array = json!([API_VERSION, KIND, {"allowed": true}]).to_string();
        for text in ["", "{}", "[]", "{\"allowed\":true}", &of(json!({"allowed": "yes"})), &of(json!([true])), &array] {
            assert!(read(text).is_err_and(|why| why.contains("is no ImageReview")), "{text}");
        }
        let lie = of(json!({"allowed": true})).replace("ImageReview", "AdmissionReview");
        assert!(read(&lie).unwrap_err().contains("found imagepolicy.k8s.io/v1alpha1 AdmissionReview"));
        let long = read(&of(json!("l".repeat(9999)))).unwrap_err();
        assert!(long.len() < 2 * SAID, "{}", long.len());
        let many: BTreeMap<String, String> = (0..100).map(|at| (format!("k{at}"), "v".repeat(4096))).collect();
        let found = read(&of(json!({"reason": "r".repeat(9999), "auditAnnotations": many}))).unwrap();
        assert_eq!((found.reason.len(), found.audit.len()), (SAID, ANNOTATIONS));
        assert!(found.audit.values().all(|value| value.len() == SAID));
        let keys = read(&of(json!({"auditAnnotations": {"a/b": "1", "": "2", "c": "3"}}))).unwrap().audit;
        assert_eq!(keys.into_iter().collect::<Vec<_>>(), [("c".to_owned(), "3".to_owned())]);
    }
}
