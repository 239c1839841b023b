//! Deployments as watches keep them: what is asked for, and how far it is.

use admission::format::LabelSelector;
use k8s_openapi::api::apps::v1::Deployment;
use serde::Deserialize;

use crate::watch::slim::Slim;

/// A Deployment.
pub type SlimDeployment = Slim<Deployment, DeploymentSpec, DeploymentStatus>;

/// What is asked of a Deployment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How many pods; 1 where it is missing.
    pub replicas: Option<i32>,
    /// Which pods are its.
    pub selector: Option<LabelSelector>,
    /// How pods are replaced.
    pub strategy: Option<Strategy>,
}

/// How pods are replaced.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Strategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    pub type_: Option<String>,
}

/// How far a Deployment is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation that the numbers are of.
    pub observed_generation: Option<i64>,
    /// Pods.
    pub replicas: Option<i32>,
    /// Pods of the newest template.
    pub updated_replicas: Option<i32>,
    /// Pods that are ready.
    pub ready_replicas: Option<i32>,
    /// Pods that are ready for long enough.
    pub available_replicas: Option<i32>,
}
