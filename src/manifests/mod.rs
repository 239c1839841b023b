//! What a cluster needs to know of us, written from the registry and the types.

pub mod chart;
pub mod guard;
pub mod rbac;
pub mod schemas;
pub mod user_roles;
pub mod webhooks;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::names::APP;

/// Metadata of one of Outrider's objects.
fn metadata(name: &str) -> ObjectMeta {
    let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), APP.to_owned())]);
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() }
}

fn namespaced(name: &str, namespace: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), ..metadata(name) }
}
