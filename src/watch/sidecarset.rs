//! SidecarSets as clients and watches have them.

use admission::review::null_as_default;
use engine::sidecarset::api::{self, Metadata, SidecarSet, SidecarSetSpec, SidecarSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::cluster_scoped::cluster_scoped;

/// A SidecarSet with all metadata. What decides knows no client: it has [`SidecarSet`], which this can be turned into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SidecarSetResource {
    /// Name, labels, annotations, and what clients need.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ObjectMeta,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: SidecarSetSpec,
    /// What the controller counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SidecarSetStatus>,
}

impl From<SidecarSetResource> for SidecarSet {
    fn from(set: SidecarSetResource) -> Self {
        let SidecarSetResource { metadata, spec, status } = set;
        let metadata = Metadata {
            name: metadata.name,
            uid: metadata.uid,
            generation: metadata.generation,
            deletion_timestamp: metadata.deletion_timestamp.map(|time| time.0.to_string()),
            labels: metadata.labels,
            annotations: metadata.annotations,
        };
        Self { metadata, spec, status }
    }
}

cluster_scoped!(SidecarSetResource, api);

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::SidecarSetResource;
    use crate::API_DOMAIN;

    #[test]
    fn group_is_a_subdomain_of_the_one_domain() {
        assert_eq!(SidecarSetResource::api_version(&()), format!("apps.{API_DOMAIN}/v1alpha1"));
        assert_eq!(SidecarSetResource::group(&()), format!("apps.{API_DOMAIN}"));
        let path = SidecarSetResource::url_path(&(), None);
        assert_eq!(path, format!("/apis/apps.{API_DOMAIN}/v1alpha1/sidecarsets"));
    }
}
