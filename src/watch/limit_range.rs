//! ClusterLimitRanges as watches have them.

use admission::review::null_as_default;
use engine::limitrange::api::{API_VERSION, ClusterLimitRange, GROUP, KIND, PLURAL, RangeSpec, VERSION};
use engine::sidecarset::api::Metadata;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A ClusterLimitRange with all metadata. What decides knows no client: it has [`ClusterLimitRange`], which this can be turned into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterLimitRangeResource {
    /// Name, and what clients need.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ObjectMeta,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: RangeSpec,
}

impl From<ClusterLimitRangeResource> for ClusterLimitRange {
    fn from(object: ClusterLimitRangeResource) -> Self {
        let ClusterLimitRangeResource { metadata, spec } = object;
        let metadata = Metadata { name: metadata.name, uid: metadata.uid, ..Metadata::default() };
        Self { metadata, spec }
    }
}

impl k8s_openapi::Resource for ClusterLimitRangeResource {
    const API_VERSION: &'static str = API_VERSION;
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = KIND;
    const VERSION: &'static str = VERSION;
    const URL_PATH_SEGMENT: &'static str = PLURAL;
    type Scope = ClusterResourceScope;
}

impl k8s_openapi::Metadata for ClusterLimitRangeResource {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
