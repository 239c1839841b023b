//! AdmissionPlugins as clients and watches have them.

use admission::review::null_as_default;
use engine::plugins::api::{self, AdmissionPlugin, PluginSpec, PluginStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::cluster_scoped::{cluster_scoped, partial};

/// An AdmissionPlugin with all metadata. What decides knows no client: it has [`AdmissionPlugin`], which this can be turned into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdmissionPluginResource {
    /// Name, and what clients need.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ObjectMeta,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: PluginSpec,
    /// What the controller found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PluginStatus>,
}

impl From<AdmissionPluginResource> for AdmissionPlugin {
    fn from(object: AdmissionPluginResource) -> Self {
        let AdmissionPluginResource { metadata, spec, status } = object;
        let metadata = partial(metadata);
        Self { metadata, spec, status }
    }
}

cluster_scoped!(AdmissionPluginResource, api);
