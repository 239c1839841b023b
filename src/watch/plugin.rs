//! AdmissionPlugins as clients and watches have them.

use admission::review::null_as_default;
use engine::plugins::api::{API_VERSION, AdmissionPlugin, GROUP, KIND, PLURAL, PluginSpec, PluginStatus, VERSION};
use engine::sidecarset::api::Metadata;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

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
        let metadata = Metadata {
            name: metadata.name,
            uid: metadata.uid,
            generation: metadata.generation,
            deletion_timestamp: metadata.deletion_timestamp.map(|time| time.0.to_string()),
            ..Metadata::default()
        };
        Self { metadata, spec, status }
    }
}

impl k8s_openapi::Resource for AdmissionPluginResource {
    const API_VERSION: &'static str = API_VERSION;
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = KIND;
    const VERSION: &'static str = VERSION;
    const URL_PATH_SEGMENT: &'static str = PLURAL;
    type Scope = ClusterResourceScope;
}

impl k8s_openapi::Metadata for AdmissionPluginResource {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
