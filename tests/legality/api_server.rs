//! The other judge: a real API server, asked with dry runs.

use cluster::{Cluster, Namespace};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde_json::Value;

/// An API server that knows nothing of us.
pub struct ApiServer {
    client: Client,
    namespace: String,
}

/// What the API server says about a pod: the pod as it would be stored, or why not.
pub type Judgement = Result<Value, String>;

impl ApiServer {
    pub async fn connect(cluster: &Cluster, namespace: &Namespace<'_>) -> Self {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Self { client: Client::try_from(config).unwrap(), namespace: namespace.name().to_owned() }
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether it would take the pod.
    pub async fn judge(&self, pod: &Value) -> Judgement {
        let url = format!("/api/v1/namespaces/{}/pods?dryRun=All&fieldValidation=Strict", self.namespace);
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
