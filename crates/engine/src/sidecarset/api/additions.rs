//! Fields of a spec that OpenKruise does not have, beside the short ones.

use serde::{Deserialize, Serialize};

use super::RawObject;

/// Requests and limits for added containers that lack them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDefaults {
    /// Limits by resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RawObject>,
    /// Requests by resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RawObject>,
}

/// What is added to some of the pod's own containers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppContainers {
    /// Names of the containers; all of the pod's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_names: Option<Vec<String>>,
    /// The pod's own init containers count too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<bool>,
    /// Environment variables, put in front of the container's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<RawObject>>,
    /// A variable that the container has already is changed in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite_env: Option<bool>,
    /// Volume mounts, put behind the container's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<RawObject>>,
}

/// What a pod may change for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodOverrides {
    /// Names of the set's containers; all of them when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_names: Option<Vec<String>>,
    /// Requests and limits, within these bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceBounds>,
    /// Names of environment variables whose values may be others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// The image may have another tag of the same repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<bool>,
}

/// Bounds of requests and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceBounds {
    /// The least amount by resource; zero when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<RawObject>,
    /// The largest amount by resource. What has none may not be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<RawObject>,
}
