//! Whether a pod that is created now is injected: a set and a pod of our own, sent to the API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::API_DOMAIN;
use crate::answers::{said, to_user};
use crate::field_managers::{VERIFY, posting};
use crate::watch::SidecarSetResource;

const PAUSE: Duration = Duration::from_millis(500);
const NEEDS: &str = "verify needs create and delete on SidecarSets, and create on pods in the namespace";
const CONTAINER: &str = "outrider-verify";

/// What the API server answered last when time was up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such kind.
    #[error(
        "the API server does not know the kind SidecarSet: Outrider is not installed in this cluster, or its \
         CustomResourceDefinitions are gone; `outrider manifests crds` prints them"
    )]
    NoDefinition,
    /// The set was not accepted.
    #[error("a SidecarSet was not accepted: {0}")]
    Set(RequestFailure),
    /// The pod was refused.
    #[error("a pod in the namespace {namespace} was refused: {answer}")]
    Pod {
        /// Where it was to be created.
        namespace: String,
        /// What was said.
        answer: RequestFailure,
    },
    /// The pod came back as it was sent.
    #[error(
        "a pod in the namespace {namespace} came back without the sidecar: the API server did not call Outrider, or \
         the namespace is excluded. `outrider doctor` finds what is wrong with the webhook configurations"
    )]
    NotInjected {
        /// Where it was to be created.
        namespace: String,
    },
}

impl Error {
    /// Whether the API server got no answer from a webhook that it called for the set or the pod, so that it refused them.
    pub fn is_webhook_dead(&self) -> bool {
        let (Self::Set(RequestFailure::Refused(said)) | Self::Pod { answer: RequestFailure::Refused(said), .. }) = self
        else {
            return false;
        };
        // k8s.io/apiserver/pkg/admission/plugin/webhook: ErrCallingWebhook.
        said.contains("failed calling webhook")
    }

    /// Whether the API server gave no answer, so that nothing is known about injection.
    pub const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Set(RequestFailure::Failed(_)) | Self::Pod { answer: RequestFailure::Failed(_), .. })
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestFailure {
    /// The API server refused, in its own words.
    #[error("{0}")]
    Refused(String),
    /// It has not what the request names, in its own words.
    #[error("{0}")]
    NotFound(String),
    /// The API server could not be asked.
    #[error("{}", said(.0))]
    Failed(Box<kube::Error>),
}

/// Creates a set, asks for a pod in the namespace until it comes back injected, `grace_period` at most, and removes the set. The pod is
/// asked for as a dry run: it goes through admission and is not stored. `suffix` makes the set one of its own. Returns the set's name.
///
/// # Errors
/// [`Error`].
pub async fn verify(client: &Client, namespace: &str, suffix: &str, grace_period: Duration) -> Result<String, Error> {
    let kind = ApiResource::erase::<SidecarSetResource>(&());
    let sets = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let name = format!("{CONTAINER}-{suffix}");
    let end = Instant::now() + grace_period;
    let set = object(&kind, &name, &set(&name, namespace));
    loop {
        let error = match answered(sets.create(&posting(VERIFY), &set)).await {
            Ok(_) => break,
            Err(RequestFailure::NotFound(_)) => Error::NoDefinition,
            Err(answer) => Error::Set(answer),
        };
        if Instant::now() > end {
            return Err(error);
        }
        sleep(PAUSE).await;
    }
    let injected = ask(client, &name, namespace, end).await;
    if let Err(error) = answered(sets.delete(&name, &DeleteParams::default())).await {
        tracing::warn!(set = name, %error, "Cannot remove the set; it selects no other pod");
    }
    injected.map(|()| name)
}

async fn ask(client: &Client, name: &str, namespace: &str, end: Instant) -> Result<(), Error> {
    let kind = ApiResource::erase::<Pod>(&());
    let pods = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind);
    let dry_run = PostParams { dry_run: true, ..posting(VERIFY) };
    let pod = object(&kind, name, &pod());
    loop {
        let error = match answered(pods.create(&dry_run, &pod)).await {
            Ok(pod) if has_sidecar(&pod.data) => return Ok(()),
            Ok(_) => Error::NotInjected { namespace: namespace.to_owned() },
            Err(answer) => Error::Pod { namespace: namespace.to_owned(), answer },
        };
        if Instant::now() > end {
            return Err(error);
        }
        sleep(PAUSE).await;
    }
}

async fn answered<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, RequestFailure> {
    match request.await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(RequestFailure::NotFound(status.message)),
        Err(error @ kube::Error::Api(_)) => Err(RequestFailure::Refused(to_user(&error, NEEDS))),
        Err(error) => Err(RequestFailure::Failed(Box::new(error))),
    }
}

fn has_sidecar(pod: &Value) -> bool {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    containers.into_iter().flatten().any(|container| container["name"] == CONTAINER)
}

/// Set and pod have the same name, which is also the label that the set selects by.
fn object(kind: &ApiResource, name: &str, spec: &Value) -> DynamicObject {
    let mut object = DynamicObject::new(name, kind).data(json!({"spec": spec}));
    object.metadata.labels = Some([(label(), name.to_owned())].into());
    object
}

fn label() -> String {
    format!("{API_DOMAIN}/verify")
}

fn set(name: &str, namespace: &str) -> Value {
    json!({
        "selector": {"matchLabels": {label(): name}}, "namespace": namespace,
        "containers": [container(CONTAINER)],
    })
}

fn pod() -> Value {
    json!({
        "containers": [container("app")],
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
    })
}

/// As the restricted level of the Pod Security Standards and most quotas want it; the image is never pulled.
fn container(name: &str) -> Value {
    let resources = json!({"cpu": "1m", "memory": "1Mi"});
    json!({
        "name": name, "image": "outrider-verify",
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    })
}
