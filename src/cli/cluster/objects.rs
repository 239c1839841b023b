//! Objects of a live cluster, as manifests.

use admission::format::names::dns1123_subdomain;
use engine::limitrange::api as limits;
use engine::openkruise;
use engine::plugins::api as plugins;
use engine::podsecurityprofile::api as profiles;
use engine::sidecarset::api::{API_VERSION, KIND, PLURAL};
use engine::sidecarset::pin::RevisionRef;
use engine::snapshot::revisions::SET_LABEL;
use http::Request;
use kube::Client;
use serde_json::Value;

use super::{ClusterArgs, asking};
use crate::answers::{code, said};
use crate::cli::offline::OWN_NAMESPACE;
use crate::input::Manifest;

/// The sets, plugins and namespaces of a cluster, which decide there. A user who may not list namespaces may still read
/// `namespace`, if there is one: a role that is bound in a namespace can allow no more.
///
/// # Errors
/// Why they cannot be read, with the address that was tried.
pub fn deciding(args: &ClusterArgs, namespace: Option<&str>) -> Result<Vec<Manifest>, String> {
    asking(args, async |client, place| {
        let sets = format!("/apis/{API_VERSION}/{PLURAL}");
        let of_plugins = format!("/apis/{}/{}", plugins::API_VERSION, plugins::PLURAL);
        let of_ranges = format!("/apis/{}/{}", limits::API_VERSION, limits::PLURAL);
        let mut found = Vec::new();
        for (path, api_version, kind) in [
            (sets.as_str(), API_VERSION, KIND),
            (of_plugins.as_str(), plugins::API_VERSION, plugins::KIND),
            (of_ranges.as_str(), limits::API_VERSION, limits::KIND),
            ("/api/v1/namespaces", "v1", "Namespace"),
        ] {
            let objects = match (get(client, path).await, namespace) {
                // The cluster does not know the kind: it has no such objects.
                (Err(error), _) if code(&error) == Some(404) && [plugins::KIND, limits::KIND].contains(&kind) => {
                    continue;
                }
                (Err(error), Some(name)) if code(&error) == Some(403) && kind == "Namespace" => {
                    get(client, &format!("{path}/{name}")).await.map(|namespace| vec![namespace])
                }
                (answer, _) => answer.map(items),
            };
            let objects = objects.map_err(|error| {
                let why = said(&error);
                let role = if code(&error) == Some(403) { viewer(kind) } else { "" };
                format!("the API server at {place} does not list {kind} objects: {why}{role}")
            })?;
            found.extend(objects.into_iter().map(|item| of_cluster(item, api_version, kind)));
        }
        if found.iter().any(names_revision) {
            found.extend(revisions(client, place).await?);
        }
        Ok(found)
    })
}

/// Whether the object is a set whose new pods get an older revision.
fn names_revision(manifest: &Manifest) -> bool {
    let revision = manifest.value.pointer("/spec/injectionStrategy/revision");
    let text = |field: &str| revision.and_then(|it| it.get(field)?.as_str()).unwrap_or_default();
    RevisionRef::of(text("revisionName"), text("customVersion")).is_some()
}

/// The revisions of all sets. A user who may not list them in the cluster may still do so where Outrider usually is.
async fn revisions(client: &Client, place: &str) -> Result<Vec<Manifest>, String> {
    let path = |scope: &str| format!("/apis/apps/v1{scope}/controllerrevisions?labelSelector={SET_LABEL}");
    let list = match get(client, &path("")).await {
        Err(error) if code(&error) == Some(403) => get(client, &path(&format!("/namespaces/{OWN_NAMESPACE}"))).await,
        answer => answer,
    };
    let list = list.map_err(|error| {
        let why = said(&error);
        format!(
            "a SidecarSet has spec.injectionStrategy.revision, and the API server at {place} does not list ControllerRevision objects: \
             {why}; a RoleBinding to view in Outrider's namespace allows it"
        )
    })?;
    Ok(items(list).into_iter().map(|item| of_cluster(item, "apps/v1", "ControllerRevision")).collect())
}

/// The objects of a list.
fn items(mut list: Value) -> Vec<Value> {
    match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The sets of OpenKruise in a cluster, and the `ConfigMap` with its list of allowed annotations if there is one.
///
/// # Errors
/// Why they cannot be read, with the address that was tried.
pub fn of_openkruise(args: &ClusterArgs) -> Result<Vec<Manifest>, String> {
    asking(args, async |client, place| {
        let mut found = Vec::new();
        let mut is_defined = false;
        for (path, api_version) in openkruise::lists() {
            match get(client, &path).await {
                Ok(list) => {
                    is_defined = true;
                    found.extend(items(list).into_iter().map(|item| of_cluster(item, &api_version, KIND)));
                    break;
                }
                // The version, or the whole definition, is not there.
                Err(error) if code(&error) == Some(404) => {}
                Err(error) => {
                    let (why, definition) = (said(&error), openkruise::DEFINITION);
                    let what = "OpenKruise's SidecarSets";
                    return Err(format!("the API server at {place} does not list {what} ({definition}): {why}"));
                }
            }
        }
        if !is_defined {
            let definition = openkruise::DEFINITION;
            return Err(format!("the API server at {place} has no {definition}: OpenKruise is not installed there"));
        }
        let path = openkruise::configuration_path();
        match get(client, &path).await {
            Ok(map) => found.push(of_cluster(map, "v1", "ConfigMap")),
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => {
                return Err(format!(
                    "the API server at {place} does not return OpenKruise's configuration ({path}): {}",
                    said(&error)
                ));
            }
        }
        Ok(found)
    })
}

/// Names the role that lets a user list the kind, which no role that is bound in a namespace can.
fn viewer(kind: &str) -> &'static str {
    match kind {
        KIND => "; a ClusterRoleBinding to outrider-sidecarset-viewer allows it",
        plugins::KIND => "; a ClusterRoleBinding to outrider-admissionplugin-viewer allows it",
        limits::KIND => "; a ClusterRoleBinding to outrider-clusterlimitrange-viewer allows it",
        profiles::KIND => "; a ClusterRoleBinding to outrider-podsecurityprofile-viewer allows it",
        _ => "",
    }
}

/// A pod of a cluster.
///
/// # Errors
/// Why it cannot be read, with the address that was tried.
pub fn pod_of_cluster(args: &ClusterArgs, namespace: &str, name: &str) -> Result<Manifest, String> {
    let faults = dns1123_subdomain(name);
    if !faults.is_empty() {
        return Err(format!("{name:?} cannot be the name of a pod: {}", faults.join("; ")));
    }
    asking(args, async |client, place| {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let pod = get(client, &path).await;
        let pod = pod.map_err(|error| {
            let why = said(&error);
            format!("the API server at {place} does not return pod {name:?} of namespace {namespace:?}: {why}")
        })?;
        Ok(of_cluster(pod, "v1", "Pod"))
    })
}

/// An item of a list, which does not contain its own kind, as a manifest would have it.
fn of_cluster(mut value: Value, api_version: &str, kind: &str) -> Manifest {
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    Manifest { source: "cluster".to_owned(), value, is_stored: true }
}

async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    client.request(Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?).await
}
