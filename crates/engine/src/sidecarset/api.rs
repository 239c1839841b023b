//! The `SidecarSet` type, `apps.outrider.dev/v1alpha1`.
//!
//! Field names are those of OpenKruise's SidecarSet (its v1alpha1 and what v1beta1 added), so that an existing manifest needs
//! only a new `apiVersion`; `order`, `clashPolicy`, `optOut` and `allowedChanges` are our own. Containers and volumes stay raw objects: a field
//! newer than this build passes through untouched. Words from closed vocabularies stay strings here, so that one object
//! written by a newer build does not break the watch; validation is what refuses an unknown word.

use std::collections::BTreeMap;

use admission::format::{IntOrString, LabelSelector};
use admission::review::null_as_default;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod additions;

pub use additions::{AppContainers, PodOverrides, ResourceBounds, ResourceDefaults};

/// A container, init container or volume as written, whatever fields it has.
pub type RawObject = Map<String, Value>;

/// API group.
pub const GROUP: &str = concat!("apps.", api_domain!());
/// API version.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as manifests have it.
pub const API_VERSION: &str = concat!("apps.", api_domain!(), "/v1alpha1");
/// `kind` in manifests and in reviews.
pub const KIND: &str = "SidecarSet";
/// Resource: the plural in URLs.
pub const PLURAL: &str = "sidecarsets";

/// In front of the names of annotations that people write on a set: OpenKruise's, and ours.
pub const ANNOTATION_PREFIXES: [&str; 2] = ["apps.kruise.io/", concat!("apps.", api_domain!(), "/")];

/// Sidecars for every pod that a selector matches, in the whole cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SidecarSet {
    /// Name, labels, annotations.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: SidecarSetSpec,
    /// What the controller counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SidecarSetStatus>,
}

/// Metadata, as far as it concerns what a set does. Fields that are not here are not decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Absent where the API server has yet to make one up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The uid, which distinguishes a set from a later one of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Raised by the API server with each change of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Set while the object is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What a SidecarSet asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetSpec {
    /// Pods to inject, by their labels. May be empty only beside a `namespace` or a `namespaceSelector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// One namespace to inject in; not together with `namespaceSelector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Namespaces to inject in, by their labels; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Init containers to add; one with `restartPolicy: Always` is a native sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<SidecarContainer>>,
    /// Containers to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<SidecarContainer>>,
    /// Volumes that the added containers may mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<RawObject>>,
    /// How pods that carry the set already follow a change of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Whether, and with which revision, new pods are injected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection_strategy: Option<InjectionStrategy>,
    /// Pull secrets to add. Each must exist in the pod's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// Revisions to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Annotations to put on the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_pod_metadata: Option<Vec<PatchPodMetadata>>,
    /// The user's own name for this revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_version: Option<String>,
    /// Position among the sets of one pod: lower first, then by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
    /// `Refuse` (default) or `Skip`: what happens to a pod that cannot carry the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clash_policy: Option<String>,
    /// `Allowed` (default) or `Denied`: whether a pod may opt out by annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_out: Option<String>,
    /// What of the set's containers and volumes may be another in the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_changes: Option<AllowedChanges>,
    /// Requests and limits for the added containers that lack them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_defaults: Option<ResourceDefaults>,
    /// `NativeSidecar` (default), `Skip` or `Inject`: what pods get that are to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_pods: Option<String>,
    /// What is added to the pod's own containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_containers: Option<Vec<AppContainers>>,
    /// What a pod may change for itself, by the annotation `outrider.dev/overrides`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_overrides: Option<PodOverrides>,
    /// `linux` (default) or `windows`: the operating system of the containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// `AsWritten` (default) or `Complete`: whether security contexts are completed to the level restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<String>,
}

/// Differences between a pod's container and the set's that are allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedChanges {
    /// Names of environment variables; `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// Paths of volume mounts; `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_paths: Option<Vec<String>>,
    /// Names of the set's volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<String>>,
    /// Fields of a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
}

/// A container with the fields that steer its injection beside the pod API's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SidecarContainer(pub RawObject);

/// The fields of a [`SidecarContainer`] that are ours; everything else is the pod API's.
pub const CONTROL_FIELDS: [&str; 7] = [
    "podInjectPolicy",
    "upgradeStrategy",
    "shareVolumePolicy",
    "shareVolumeDevicePolicy",
    "shareServiceAccountToken",
    "transferEnv",
    "resourcesPolicy",
];

/// The elements of a list, none where it is missing or no list.
pub(super) fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// A string field, empty where missing or not a string.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl SidecarSetSpec {
    /// Every container of the set, init containers first.
    pub fn all_containers(&self) -> impl Iterator<Item = &SidecarContainer> {
        self.init_containers.iter().flatten().chain(self.containers.iter().flatten())
    }
}

impl SidecarContainer {
    /// The container's name, empty where missing or not a string.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// A string field, empty where missing or not a string.
    pub fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether an init container keeps running beside the pod's containers.
    pub fn is_native_sidecar(&self) -> bool {
        self.text("restartPolicy") == "Always"
    }
}

/// How pods that carry the set already follow a change of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// `RollingUpdate` or `NotUpdate`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Stops the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Only these pods are updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many pods, or what share of them, stay at the old revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<IntOrString>,
    /// How many pods, or what share of them, the rollout may make unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many pods of one workload, or what share of them, the rollout may make unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable_per_owner: Option<IntOrString>,
    /// Pods that cannot be updated in place are evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,
    /// What becomes of pods that lack the set: `Never` or `Evict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// Which pods go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_strategy: Option<Value>,
    /// How pods with equal labels are spread over the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scatter_strategy: Option<Vec<ScatterTerm>>,
}

/// One label whose pods are spread over a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScatterTerm {
    /// Label key.
    #[serde(deserialize_with = "null_as_default")]
    pub key: String,
    /// Label value, or `*` for every value present.
    #[serde(deserialize_with = "null_as_default")]
    pub value: String,
}

/// Whether, and with which revision, new pods are injected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InjectionStrategy {
    /// New pods are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// An older revision to inject in place of the current spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<InjectionRevision>,
}

/// An older revision to inject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InjectionRevision {
    /// The user's name of the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_version: Option<String>,
    /// The name of the `ControllerRevision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_name: Option<String>,
    /// `Always` or `Partial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// The name of an object in the pod's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalObjectReference {
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

/// Annotations to put on the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PatchPodMetadata {
    /// The annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// `Retain`, `Overwrite` or `MergePatchJson`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_policy: Option<String>,
}

/// What the controller counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetStatus {
    /// The generation that the numbers are about.
    pub observed_generation: i64,
    /// Pods that the set selects and that carry it.
    pub matched_pods: i32,
    /// Of these, pods that carry the current revision.
    pub updated_pods: i32,
    /// Of these, pods that are ready.
    pub ready_pods: i32,
    /// Pods that are both updated and ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_ready_pods: Option<i32>,
    /// Pods that the set selects and that go without it, though they would carry it if they were created now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uninjected_pods: Option<i32>,
    /// Name of the newest `ControllerRevision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<String>,
    /// Name clashes met when naming a revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// What is the case with the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// Something that is the case with a set, or is not. As in the API's own `metav1.Condition`, but whatever is stored decodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// `Ready`, `Progressing` and the like: a set has one condition of each type.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "null_as_default")]
    pub status: String,
    /// The generation of the set that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    #[serde(deserialize_with = "null_as_default")]
    pub last_transition_time: String,
    /// Why, in one word.
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    /// Why, for people.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::SidecarSet;

    #[test]
    fn objects_decode_with_little_and_keep_what_containers_hold() {
        for object in [json!({}), json!({"metadata": null, "spec": null, "status": null}), json!({"spec": {}})] {
            assert_eq!(serde_json::from_value::<SidecarSet>(object).unwrap(), SidecarSet::default());
        }
        let container = json!({"name": "a", "fieldOfTomorrow": {"x": [1]}});
        let set: SidecarSet =
            serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": {"containers": [container]}})).unwrap();
        assert_eq!(serde_json::to_value(&set).unwrap()["spec"]["containers"][0], container);
    }
}
