//! The watch of `StorageClass`es, which is there only while a plugin reads them.

use std::collections::BTreeMap;

use engine::plugins::compiled::{CompiledPlugin, Settings};
use engine::plugins::storage_classes::StorageClass;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::CollectionChange;
use k8s_openapi::api::storage::v1::StorageClass as Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt as _;
use serde::{Deserialize, Deserializer};

use crate::watch::resource_of_kind;
use crate::watch::while_read::WhileRead;

/// A class: its metadata, and whether its claims may grow.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialClass {
    #[serde(default, deserialize_with = "metadata_that_is_read")]
    metadata: ObjectMeta,
    allow_volume_expansion: Option<bool>,
}

resource_of_kind!(PartialClass: Resource);

/// The rest, as managedFields, is skipped: a user may write a megabyte of it.
fn metadata_that_is_read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Read {
        name: Option<String>,
        resource_version: Option<String>,
        creation_timestamp: Option<Time>,
        annotations: Option<BTreeMap<String, String>>,
    }
    let Read { name, resource_version, creation_timestamp, annotations } = Read::deserialize(deserializer)?;
    Ok(ObjectMeta { name, resource_version, creation_timestamp, annotations, ..ObjectMeta::default() })
}

/// Every class.
pub struct StorageClasses;

impl WhileRead for StorageClasses {
    type Object = PartialClass;
    type Key = String;
    type Value = StorageClass;

    fn is_read_by(plugin: &CompiledPlugin) -> bool {
        match &plugin.settings {
            Settings::DefaultStorageClass(settings) => settings.may_read_classes(),
            Settings::PersistentVolumeClaimResize => true,
            _ => false,
        }
    }

    fn key(object: &PartialClass) -> String {
        object.name_any()
    }

    fn read(class: PartialClass) -> StorageClass {
        let created = class.creation_timestamp().map(|time| time.0.to_string()).unwrap_or_default();
        let annotations = &class.metadata.annotations;
        let expands = class.allow_volume_expansion == Some(true);
        StorageClass::of(|key| annotations.as_ref()?.get(key).map(String::as_str), &created, expands)
    }

    fn apply(change: &CollectionChange<String, StorageClass>, builder: &mut SnapshotBuilder) {
        builder.collections.storage_classes.apply(change);
    }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;
    use crate::watch::while_read::is_needed;

    #[test]
    fn classes_are_needed_while_a_plugin_that_is_on_depends_on_them() {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        for (mode, section, needed) in [
            ("Enforce", json!({}), true),
            ("Off", json!({}), false),
            ("Audit", json!({"storageClassName": "fast"}), false),
            ("Audit", json!({"storageClassName": "fast", "replaceClusterDefault": true}), true),
        ] {
            let spec = json!({"plugin": "DefaultStorageClass", "mode": mode, "defaultStorageClass": section});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed::<StorageClasses>(&builder), needed, "{mode} {section}");
        }
        let spec = json!({"plugin": "PersistentVolumeClaimResize"});
        let object = json!({"metadata": {"name": "b", "uid": "v", "generation": 1}, "spec": spec});
        builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
        assert!(is_needed::<StorageClasses>(&builder), "whether claims of a class may grow");
    }

    #[test]
    fn a_class_is_read_with_its_annotations_and_its_time() {
        let object = json!({"metadata": {"name": "fast", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "x", "allowVolumeExpansion": true});
        let class = StorageClasses::read(serde_json::from_value(object).unwrap());
        assert_eq!(class, StorageClass { is_default: true, created: "2026-01-01T00:00:00".to_owned(), expands: true });
    }
}
