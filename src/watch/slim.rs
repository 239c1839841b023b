//! Watched objects of which only a few fields are decoded.
//!
//! A reflector of whole objects costs memory by the size of the cluster; here what nobody reads (managedFields, most of the
//! pod) is skipped by the JSON parser and never allocated.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::watch::resource_of_kind;

/// Annotations that are kept while decoding; others, such as kubectl's last applied configuration, may be large.
const KEPT_ANNOTATIONS: [&str; 5] = [
    engine::sidecarset::injection::INJECTED_ANNOTATION,
    "kruise.io/sidecarset-hash",
    "kruise.io/sidecarset-injected-list",
    engine::pod::select::SKIP_ANNOTATION,
    engine::pod::skip::MIRROR_ANNOTATION,
];

/// An object of kind `K` of which only `Spec` and `Status` are decoded, and the metadata that a read model needs: name,
/// namespace, uid, resourceVersion, generation, deletionTimestamp, labels, and the annotations about injection.
pub struct Slim<K, Spec = IgnoredAny, Status = IgnoredAny> {
    metadata: ObjectMeta,
    /// What is read of the spec; `None` where missing or null.
    pub spec: Option<Spec>,
    /// What is read of the status; `None` where missing or null.
    pub status: Option<Status>,
    kind: PhantomData<fn() -> K>,
}

impl<K, Spec: Clone, Status: Clone> Clone for Slim<K, Spec, Status> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
            kind: PhantomData,
        }
    }
}

impl<K, Spec, Status> fmt::Debug for Slim<K, Spec, Status> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slim").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

resource_of_kind!(Slim<K, Spec, Status>);

#[derive(Deserialize)]
struct Wire<Spec, Status> {
    #[serde(default)]
    metadata: Option<WireMeta>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WireMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    #[serde(deserialize_with = "kept_annotations")]
    annotations: BTreeMap<String, String>,
}

impl<'de, K, Spec: Deserialize<'de>, Status: Deserialize<'de>> Deserialize<'de> for Slim<K, Spec, Status> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::<Spec, Status>::deserialize(deserializer)?;
        let meta = wire.metadata.unwrap_or_default();
        let metadata = ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            generation: meta.generation,
            deletion_timestamp: meta.deletion_timestamp,
            labels: meta.labels,
            annotations: Some(meta.annotations).filter(|annotations| !annotations.is_empty()),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, spec: wire.spec, status: wire.status, kind: PhantomData })
    }
}

fn kept_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Kept;

    impl<'de> Visitor<'de> for Kept {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut kept = BTreeMap::new();
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if KEPT_ANNOTATIONS.contains(&&*key) {
                    kept.insert(key.into_owned(), map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(kept)
        }
    }

    deserializer.deserialize_any(Kept)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_that_is_read_is_kept_and_the_rest_is_dropped() {
        let slim: Slim<Pod> = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"},
                "annotations": {engine::sidecarset::injection::INJECTED_ANNOTATION: "{}", "other": "large"},
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {"containers": []}, "status": null,
        }))
        .unwrap();
        assert_eq!(slim.name_any(), "a");
        assert_eq!(slim.resource_version().as_deref(), Some("7"));
        assert_eq!(slim.labels().get("x").map(String::as_str), Some("y"));
        assert_eq!(slim.annotations().keys().collect::<Vec<_>>(), [engine::sidecarset::injection::INJECTED_ANNOTATION]);
        assert!(slim.managed_fields().is_empty());
        assert!(slim.status.is_none());
    }

    #[test]
    fn null_and_missing_maps_are_empty() {
        for metadata in [json!({"name": "a", "labels": null, "annotations": null}), json!({"name": "a"})] {
            let slim: Slim<Pod> = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            assert!(slim.labels().is_empty() && slim.annotations().is_empty());
        }
    }
}
