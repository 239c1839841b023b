//! The objects that a kind keeps: their metadata, and a Deployment.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
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
pub fn metadata<K: Resource<DynamicType = ()>>(owner: &K, mut labels: BTreeMap<String, String>) -> ObjectMeta {
    labels.insert(MANAGED_BY.to_owned(), APP.to_owned());
    ObjectMeta {
        name: Some(owner.name_any()),
        namespace: owner.namespace(),
        labels: Some(labels),
        owner_references: Some(controller_reference(owner).into_iter().collect()),
        ..ObjectMeta::default()
    }
}

/// The same in this namespace, for the objects of an owner without one.
pub fn metadata_in<K>(namespace: &str, owner: &K, labels: BTreeMap<String, String>) -> ObjectMeta
where
    K: Resource<DynamicType = ()>,
{
    ObjectMeta { namespace: Some(namespace.to_owned()), ..metadata(owner, labels) }
}

/// A Deployment with the owner's name and namespace: so many pods of this container, which these labels select.
pub fn deployment<K: Resource<DynamicType = ()>>(
    owner: &K,
    labels: BTreeMap<String, String>,
    replicas: i32,
    container: Container,
) -> Deployment {
    Deployment {
        metadata: metadata(owner, labels.clone()),
        spec: Some(DeploymentSpec {
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: Some(labels.clone()), match_expressions: None },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
