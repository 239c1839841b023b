//! Metadata of the objects that a kind keeps.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _};

use crate::controller::owner::controller_reference;
use crate::names::APP;

/// The label of every such object: watches are narrowed by it, so that the memory that they need grows with our objects, not
/// with the cluster.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Selects what [`metadata`] marks.
pub fn selector() -> String {
    format!("{MANAGED_BY}={APP}")
}

/// Metadata of an object with the owner's name and namespace, these labels, and the owner as its controller.
pub fn metadata<K: Resource<DynamicType = ()>>(owner: &K, labels: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta { namespace: owner.namespace(), ..metadata_without_namespace(owner, labels) }
}

/// The same, for the objects of an owner without a namespace, which may lie anywhere.
pub fn metadata_without_namespace<K>(owner: &K, mut labels: BTreeMap<String, String>) -> ObjectMeta
where
    K: Resource<DynamicType = ()>,
{
    labels.insert(MANAGED_BY.to_owned(), APP.to_owned());
    ObjectMeta {
        name: Some(owner.name_any()),
        labels: Some(labels),
        owner_references: Some(controller_reference(owner).into_iter().collect()),
        ..ObjectMeta::default()
    }
}
