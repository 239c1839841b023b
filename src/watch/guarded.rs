//! Watched objects of which one may be unreadable without ending the watch.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::watch::resource_of_kind;

/// An object, or its metadata and the reason why it cannot be read.
///
/// kube has `DeserializeGuard` for this; it goes through `serde_value`, which loses the order of fields and keeps
/// managedFields. Here both the copy and managedFields are saved.
#[derive(Debug, Clone)]
pub struct Guarded<K> {
    metadata: ObjectMeta,
    /// The object, or why it cannot be read.
    pub object: Result<Box<K>, String>,
}

impl<'de, K: DeserializeOwned + Resource> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        let metadata = metadata.ok_or_else(|| D::Error::custom("the object has no metadata"))?;
        metadata.remove("managedFields");
        let metadata = identity(metadata);
        match serde_json::from_value::<K>(value) {
            Ok(object) => Ok(Self { metadata, object: Ok(Box::new(object)) }),
            Err(error) => Ok(Self { metadata, object: Err(error.to_string()) }),
        }
    }
}

/// What the watch itself needs, read leniently: metadata may be what is wrong.
fn identity(metadata: &serde_json::Map<String, Value>) -> ObjectMeta {
    let text = |field| metadata.get(field).and_then(Value::as_str).map(str::to_owned);
    ObjectMeta {
        name: text("name"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        ..ObjectMeta::default()
    }
}

resource_of_kind!(Guarded<K>);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unreadable_object_keeps_its_name_and_version() {
        let guarded: Guarded<Pod> = serde_json::from_value(json!({
            "metadata": {"name": "a", "resourceVersion": "7", "labels": 3}, "spec": "no"
        }))
        .unwrap();
        assert_eq!(guarded.name_any(), "a");
        assert_eq!(guarded.resource_version().as_deref(), Some("7"));
        assert!(guarded.object.is_err());
    }

    #[test]
    fn a_readable_object_loses_only_managed_fields() {
        let guarded: Guarded<Pod> = serde_json::from_value(json!({
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
