//! Watched objects of which only a few fields are decoded.
//!
//! A reflector of whole objects costs memory by the size of the cluster; here unused fields (managedFields, most of the
//! pod) are skipped by the JSON parser and never allocated.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::watch::owners::controller_among;
use crate::watch::packed_labels::PackedLabels;
use crate::watch::resource_of_kind;
use engine::sidecarset::compiled::NAMESPACE_NAME_LABEL;

/// What the labels of one object may cost in a map; those beyond are skipped. The API server limits neither their number nor
/// their bytes, and a label of eight bytes costs more than ten times as much in a map, as decisions have it of a namespace.
const LABELS_MAX_COST: usize = 32 * 1024;

/// What a map takes for an entry beside its text, roughly.
const LABEL_OVERHEAD: usize = 96;

/// An object of kind `K` of which only `Spec` and `Status` are decoded, and the metadata that a read model needs: name, what a
/// made-up name begins with, namespace, uid, resourceVersion, generation, the times of creation and deletion, the owner that
/// controls it, labels as far as there is room for them, and the annotations as far as `Annotations` decodes them.
pub struct Partial<K, Spec = IgnoredAny, Status = IgnoredAny, Annotations = IgnoredAny> {
    metadata: ObjectMeta,
    labels: PackedLabels,
    /// What is read of the annotations; `None` where missing or null.
    pub annotations: Option<Annotations>,
    /// What is read of the spec; `None` where missing or null.
    pub spec: Option<Spec>,
    /// What is read of the status; `None` where missing or null.
    pub status: Option<Status>,
    /// Whether there are more labels than there is room for.
    pub lacks_labels: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K, Spec: Clone, Status: Clone, Annotations: Clone> Clone for Partial<K, Spec, Status, Annotations> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
            lacks_labels: self.lacks_labels,
            kind: PhantomData,
        }
    }
}

impl<K, Spec, Status, Annotations> fmt::Debug for Partial<K, Spec, Status, Annotations> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partial").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

resource_of_kind!(Partial<K, Spec, Status, Annotations>);

impl<K, Spec, Status, Annotations> Partial<K, Spec, Status, Annotations> {
    /// The labels, as far as there is room for them. They are not in the metadata, where they would be a map.
    pub const fn labels(&self) -> &PackedLabels {
        &self.labels
    }
}

#[derive(Deserialize)]
struct Wire<Spec, Status, Annotations> {
    metadata: Option<WireMeta<Annotations>>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta<Annotations> {
    name: Option<String>,
    generate_name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    owner_references: Option<Vec<OwnerReference>>,
    #[serde(default, deserialize_with = "labels_with_room")]
    labels: LabelsWithRoom,
    annotations: Option<Annotations>,
}

/// What room there is for the labels of one object.
pub struct LabelRoom(usize);

impl Default for LabelRoom {
    fn default() -> Self {
        Self(LABELS_MAX_COST)
    }
}

impl LabelRoom {
    /// Whether there is room for one more, and takes it.
    pub const fn takes(&mut self, key: &str, value: &str) -> bool {
        let cost = key.len().saturating_add(value.len()).saturating_add(LABEL_OVERHEAD);
        match self.0.checked_sub(cost) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

#[derive(Default)]
struct LabelsWithRoom {
    kept: PackedLabels,
    some_left_out: bool,
}

impl<'de, K, Spec, Status, Annotations> Deserialize<'de> for Partial<K, Spec, Status, Annotations>
where
    Spec: Deserialize<'de>,
    Status: Deserialize<'de>,
    Annotations: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, status } = Wire::<Spec, Status, Annotations>::deserialize(deserializer)?;
        let mut partial = Self {
            metadata: ObjectMeta::default(),
            labels: PackedLabels::default(),
            annotations: None,
            spec,
            status,
            lacks_labels: false,
            kind: PhantomData,
        };
        if let Some(meta) = metadata {
            partial.annotations = meta.annotations;
            partial.lacks_labels = meta.labels.some_left_out;
            partial.labels = meta.labels.kept;
            partial.metadata = ObjectMeta {
                name: meta.name,
                generate_name: meta.generate_name,
                namespace: meta.namespace,
                uid: meta.uid,
                resource_version: meta.resource_version,
                generation: meta.generation,
                creation_timestamp: meta.creation_timestamp,
                deletion_timestamp: meta.deletion_timestamp,
                owner_references: controller_among(meta.owner_references),
                ..ObjectMeta::default()
            };
        }
        Ok(partial)
    }
}

fn labels_with_room<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LabelsWithRoom, D::Error> {
    struct Labels;

    impl<'de> Visitor<'de> for Labels {
        type Value = LabelsWithRoom;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of labels")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(LabelsWithRoom::default())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut kept, mut room, mut some_left_out) = (Vec::new(), LabelRoom::default(), false);
            while let Some((key, value)) = map.next_entry::<Cow<'de, str>, Cow<'de, str>>()? {
                // What is decided by the name of a namespace does not depend on how many labels others have put there.
                if !room.takes(&key, &value) && key != NAMESPACE_NAME_LABEL {
                    some_left_out = true;
                    continue;
                }
                kept.push((key, value));
            }
            Ok(LabelsWithRoom { kept: kept.into_iter().collect(), some_left_out })
        }
    }

    deserializer.deserialize_any(Labels)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_that_is_read_is_kept_and_the_rest_is_dropped() {
        let partial: Partial<Pod> = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"},
                "annotations": {"other": "large"},
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {"containers": []}, "status": null,
        }))
        .unwrap();
        assert_eq!(partial.name_any(), "a");
        assert_eq!(partial.resource_version().as_deref(), Some("7"));
        assert_eq!(partial.labels().get("x"), Some("y"));
        assert!(ResourceExt::annotations(&partial).is_empty() && partial.managed_fields().is_empty());
        assert!(partial.status.is_none() && !partial.lacks_labels);
    }

    #[test]
    fn null_and_missing_maps_are_empty() {
        for metadata in [json!({"name": "a", "labels": null, "annotations": null}), json!({"name": "a"})] {
            let partial: Partial<Pod> = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            assert!(partial.labels().is_empty() && partial.annotations.is_none());
        }
        assert!(serde_json::from_value::<Partial<Pod>>(json!({"metadata": null})).is_ok());
    }

    #[test]
    fn labels_beyond_what_there_is_room_for_are_left_out_but_not_the_name_of_a_namespace() {
        let mut labels: BTreeMap<String, String> = (0..50_000).map(|n| (format!("a{n}"), String::new())).collect();
        labels.insert(NAMESPACE_NAME_LABEL.to_owned(), "n".to_owned());
        let partial: Partial<Pod> = serde_json::from_value(json!({"metadata": {"labels": labels}})).unwrap();
        let kept = partial.labels();
        let cost: usize = kept.iter().map(|(key, value)| key.len() + value.len() + LABEL_OVERHEAD).sum();
        assert!(
            partial.lacks_labels && cost <= LABELS_MAX_COST + NAMESPACE_NAME_LABEL.len() + 1 + LABEL_OVERHEAD,
            "{cost}"
        );
        assert_eq!(kept.get(NAMESPACE_NAME_LABEL), Some("n"));
        let honest: BTreeMap<String, String> =
            (0..200).map(|n| (format!("example.com/label-{n}"), "value".to_owned())).collect();
        let partial: Partial<Pod> = serde_json::from_value(json!({"metadata": {"labels": honest}})).unwrap();
        assert!(!partial.lacks_labels);
        assert_eq!(partial.labels().to_map(), honest);
    }
}
