//! The other judge: a real API server, asked with dry runs.

use cluster::{Cluster, Namespace};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde_json::Value;

/// The first minor version that knows every field used here.
const NEWEST_FIELD: u32 = 36;

/// An API server that knows nothing of us.
pub struct ApiServer {
    client: Client,
    namespace: String,
    minor_version: u32,
    /// What it does about fields that it does not know.
    field_validation: &'static str,
}

/// What the API server says about a pod: the pod as it would be stored, or why not.
pub type Judgement = Result<Value, String>;

impl ApiServer {
    pub async fn connect(cluster: &Cluster, namespace: &Namespace<'_>) -> Self {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        // A field that is misspelt here must not pass. Where fields are too new for it, the API server drops them from what a
        // webhook answers, so it must here.
        let minor_version = cluster.minor_version();
        let field_validation = if minor_version >= NEWEST_FIELD { "Strict" } else { "Ignore" };
        let client = Client::try_from(config).unwrap();
        Self { client, namespace: namespace.name().to_owned(), minor_version, field_validation }
    }

    pub const fn minor_version(&self) -> u32 {
        self.minor_version
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether it would take the pod.
    pub async fn judge(&self, pod: &Value) -> Judgement {
        let Self { namespace, field_validation, .. } = self;
        let url = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation={field_validation}");
        let request = Request::post(url).header("Content-Type", "application/json").body(pod.to_string().into_bytes());
        match self.client.request::<Value>(request.unwrap()).await {
            Ok(stored) => Ok(stored),
            Err(Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => Err(status.message.clone()),
            Err(error) => panic!("the API server gives no judgement: {error}"),
        }
    }
}

/// A pod as admission webhooks are sent it: with the API server's defaults, and without what it adds on storing.
pub fn as_sent_to_webhooks(stored: &Value) -> Value {
    let mut pod = stored.clone();
    pod.as_object_mut().unwrap().remove("status");
    let metadata = pod["metadata"].as_object_mut().unwrap();
    for field in ["uid", "creationTimestamp", "generation", "managedFields", "resourceVersion"] {
        metadata.remove(field);
    }
    if metadata.contains_key("generateName") {
        metadata.remove("name");
    }
    pod
}
