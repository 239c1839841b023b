//! `--create-namespaces`: the Namespaces that objects need and nothing brings along. It is what the API server's plugin
//! `NamespaceAutoProvision` is for, which no webhook can do.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::findings::{Diagnostic, Level};
use super::super::namespace::namespace;
use super::super::offline::OfflineModel;
use super::super::report::CommandReport;
use super::namespaces::is_namespace;
use super::templates::FoundTemplates;
use crate::input::{Identity, Manifest, identity};
use engine::snapshot::Exclusion;

/// Where the objects that are added are from, in messages.
const SOURCE: &str = "--create-namespaces";

/// It is in every cluster, as those of [`Exclusion::ALWAYS`].
const DEFAULT: &str = "default";

/// Kinds of Kubernetes whose objects are in a namespace, also where they name none. Of other kinds nothing says so without a cluster.
const IN_NAMESPACES: [(&str, &[&str]); 12] = [
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("autoscaling", &["HorizontalPodAutoscaler"]),
    ("batch", &["CronJob", "Job"]),
    ("coordination.k8s.io", &["Lease"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("extensions", &["DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet"]),
    ("networking.k8s.io", &["Ingress", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["Role", "RoleBinding"]),
    ("resource.k8s.io", &["ResourceClaim", "ResourceClaimTemplate"]),
    ("storage.k8s.io", &["CSIStorageCapacity"]),
];

/// The Namespaces of these objects, by name, that are neither among them nor known otherwise. `given` is that of objects without one.
pub fn missing(
    manifests: &[Manifest],
    given: &str,
    model: &OfflineModel,
    report: &mut CommandReport<'_>,
) -> Vec<Manifest> {
    let own = manifests.iter().filter(|manifest| is_namespace(manifest));
    let own: BTreeSet<String> = own.filter_map(|manifest| Some(identity(&manifest.value).ok()?.name)).collect();
    let is_there = |name: &str| {
        own.contains(name)
            || name == DEFAULT
            || Exclusion::ALWAYS.contains(&name)
            || model.snapshot.namespaces.labels(name).is_some()
    };
    let needed: BTreeSet<String> = manifests.iter().filter_map(|manifest| namespace_of(manifest, given)).collect();
    // What is no name, as in a template that was not filled in, is a warning of its own.
    let needed = needed.into_iter().filter(|name| !is_there(name) && namespace(name).is_ok());
    let created = needed.map(|name| {
        let text = format!("Namespace {name} is printed in front: it is neither among the files nor known otherwise");
        report.add(Diagnostic::bare(Level::Note, text));
        let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        Manifest { source: SOURCE.to_owned(), value, is_stored: false }
    });
    created.collect()
}

/// The namespace that an object is in, as far as it or its kind says so.
fn namespace_of(manifest: &Manifest, given: &str) -> Option<String> {
    let identity = identity(&manifest.value).ok()?;
    if let Some(own) = identity.namespace.as_ref().filter(|own| !own.is_empty()) {
        return Some(own.clone());
    }
    let is_in_one = is_of_namespaces(&identity) || !FoundTemplates::of(&identity, &manifest.value).templates.is_empty();
    is_in_one.then(|| given.to_owned())
}

fn is_of_namespaces(identity: &Identity) -> bool {
    let kinds = IN_NAMESPACES.iter().find(|(group, _)| *group == identity.group());
    kinds.is_some_and(|(_, kinds)| kinds.contains(&identity.kind.as_str()))
}
