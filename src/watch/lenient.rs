//! Watched objects of which one may be unreadable without ending the watch.

use admission::bounded::ellipsis;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::watch::raw::Raw;
use crate::watch::resource_of_kind;

/// Characters of a reason that are kept: some repeat a text of the object.
const ERROR_MAX_CHARS: usize = 500;

/// An object, or its metadata and the reason why it cannot be read.
///
/// kube has `DeserializeGuard` for this; it goes through `serde_value`, which loses the order of fields and keeps
/// managedFields. Here the text of the object is decoded, not a tree of it, which may take a hundred times as much memory.
#[derive(Debug, Clone)]
pub struct Lenient<K> {
    metadata: ObjectMeta,
    /// The object, or why it cannot be read.
    pub object: Result<Box<K>, String>,
}

/// What the watch itself needs, read leniently: metadata may be what is wrong.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow)]
    namespace: Option<&'t RawValue>,
    #[serde(borrow)]
    uid: Option<&'t RawValue>,
    #[serde(borrow)]
    resource_version: Option<&'t RawValue>,
}

impl<'de, K: DeserializeOwned + Resource> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts<'t> {
            #[serde(borrow)]
            metadata: Identity<'t>,
        }

        let text = Raw::deserialize(deserializer)?;
        let parts = serde_json::from_str::<Parts<'_>>(text.get());
        let parts = parts.map_err(|_| D::Error::custom("the object has no metadata"))?;
        let metadata = parts.metadata.into_metadata();
        let object = serde_json::from_str::<K>(text.get())
            .map_err(|error| ellipsis(&error.to_string(), ERROR_MAX_CHARS))
            .map(|mut object| {
                object.meta_mut().managed_fields = None;
                Box::new(object)
            });
        Ok(Self { metadata, object })
    }
}

impl Identity<'_> {
    fn into_metadata(self) -> ObjectMeta {
        let text = |value: Option<&RawValue>| value.and_then(|value| serde_json::from_str(value.get()).ok());
        ObjectMeta {
            name: text(self.name),
            namespace: text(self.namespace),
            uid: text(self.uid),
            resource_version: text(self.resource_version),
            ..ObjectMeta::default()
        }
    }
}

resource_of_kind!(Lenient<K>);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unreadable_object_keeps_its_name_and_version() {
        let guarded: Lenient<Pod> = serde_json::from_value(json!({
            "metadata": {"name": "a", "resourceVersion": "7", "labels": 3}, "spec": "no"
        }))
        .unwrap();
        assert_eq!(guarded.name_any(), "a");
        assert_eq!(guarded.resource_version().as_deref(), Some("7"));
        assert!(guarded.object.is_err());
        let long = json!({"metadata": {"name": "a"}, "spec": {"containers": "x".repeat(100_000)}});
        let guarded: Lenient<Pod> = serde_json::from_value(long).unwrap();
        assert!(guarded.object.unwrap_err().len() < 1_000);
    }

    #[test]
    fn a_readable_object_loses_only_managed_fields() {
        let guarded: Lenient<Pod> = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "managedFields": [{"manager": "m"}]},
            "spec": {"containers": [{"name": "c"}]}
        }))
        .unwrap();
        let pod = guarded.object.unwrap();
        assert!(pod.managed_fields().is_empty());
        assert_eq!(pod.spec.unwrap().containers.len(), 1);
    }
}
