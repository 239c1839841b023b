//! PodSecurityProfiles as watches have them.

use admission::review::null_as_default;
use engine::podsecurityprofile::api::{self, PluginStatus, PodSecurityProfile, ProfileSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::cluster_scoped::{cluster_scoped, partial};

/// A PodSecurityProfile with all metadata. What decides knows no client: it has [`PodSecurityProfile`], which this can be turned into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodSecurityProfileResource {
    /// Name, and what clients need.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ObjectMeta,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ProfileSpec,
    /// What the controller found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PluginStatus>,
}

impl From<PodSecurityProfileResource> for PodSecurityProfile {
    fn from(object: PodSecurityProfileResource) -> Self {
        let PodSecurityProfileResource { metadata, spec, status } = object;
        let metadata = partial(metadata);
        Self { metadata, spec, status }
    }
}

cluster_scoped!(PodSecurityProfileResource, api);
