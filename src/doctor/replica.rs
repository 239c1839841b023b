//! Our pods, as far as they are examined.

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use crate::world::slim::Slim;

/// A pod of ours.
pub type ReplicaPod = Slim<Pod, ReplicaSpec>;

/// What it runs, and as whom.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSpec {
    /// Name of the service account.
    pub service_account_name: Option<String>,
    /// Containers.
    pub containers: Vec<ReplicaContainer>,
}

/// A container of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaContainer {
    /// Name.
    pub name: String,
    /// Image.
    pub image: Option<String>,
    /// Arguments.
    pub args: Option<Vec<String>>,
}
