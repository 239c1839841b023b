//! What two sets that can meet in one pod must not both bring.

use std::collections::{BTreeMap, HashMap};

use admission::field::{Error, ErrorList, Path};
use admission::format::{LabelSelector, Selector};
use serde_json::Value;

use super::node::Node;
use super::{ANNOTATION_PREFIXES, names, selectors};
use crate::sidecarset::api::SidecarSetSpec;
use crate::sidecarset::canonical::canonical_volume;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;

/// Another set: its name, annotations and spec.
pub type Other<'a> = (&'a str, &'a BTreeMap<String, String>, &'a SidecarSetSpec);

/// Adds an error for everything of the set that another one, which can select the same pod, brings as well.
pub fn check<'a>(
    metadata: &Node<'_>,
    spec: &Node<'_>,
    others: impl Iterator<Item = Other<'a>>,
    errors: &mut ErrorList,
) {
    let own_name = metadata.text("name");
    let own_bases = bases(|key| metadata.child("annotations").value.get(key).and_then(Value::as_str));
    let Some(selector) = selectors::compiled(&spec.child("selector")) else { return };
    let namespaces = match (spec.text("namespace"), spec.get("namespaceSelector")) {
        ("", None) => None,
        ("", Some(node)) => selectors::compiled(&node),
        (name, _) => named(name),
    };
    let own_containers = container_names(spec);
    for (name, annotations, other) in others.filter(|(name, ..)| *name != own_name) {
        // A canary takes the place of its base, so the two never meet in a pod.
        let stands_in =
            own_bases.contains(&name) || bases(|key| annotations.get(key).map(String::as_str)).contains(&own_name);
        if !stands_in && meet(&selector, namespaces.as_ref(), other) {
            check_containers(&own_containers, name, other, errors);
            check_volumes(&spec.child("volumes"), name, other, errors);
        }
    }
}

/// The sets that a set is the canary of, by OpenKruise's annotations and by ours.
fn bases<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Vec<&'a str> {
    let is_canary = |prefix: &str| annotation(&format!("{prefix}sidecarset-canary")) == Some("true");
    let canaries = ANNOTATION_PREFIXES.into_iter().filter(|prefix| is_canary(prefix));
    canaries
        .filter_map(|prefix| annotation(&format!("{prefix}sidecarset-base")))
        .filter(|base| !base.is_empty())
        .collect()
}

fn named(namespace: &str) -> Option<Selector> {
    let match_labels = BTreeMap::from([(NAMESPACE_NAME_LABEL.to_owned(), namespace.to_owned())]);
    LabelSelector { match_labels, ..LabelSelector::default() }.compile().ok()
}

/// Whether some pod in some namespace is selected by both. A selector that cannot be compiled selects nothing.
fn meet(selector: &Selector, namespaces: Option<&Selector>, other: &SidecarSetSpec) -> bool {
    let other_namespaces = match (other.namespace.as_deref(), &other.namespace_selector) {
        (None | Some(""), None) => None,
        (None | Some(""), Some(selector)) => match selector.compile() {
            Ok(selector) => Some(selector),
            Err(_) => return false,
        },
        (Some(name), _) => named(name),
    };
    let in_one_namespace = match (namespaces, &other_namespaces) {
        (Some(own), Some(other)) => own.overlaps(other),
        _ => true,
    };
    let other_selector = other.selector.as_ref().and_then(|selector| selector.compile().ok());
    in_one_namespace && other_selector.is_some_and(|other| selector.overlaps(&other))
}

/// The names of the set's own containers in a pod, and where they are written.
fn container_names(spec: &Node<'_>) -> HashMap<String, Path> {
    let mut names = HashMap::new();
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            for (name, _) in container.value.as_object().map(names::names_in_pod).unwrap_or_default() {
                names.insert(name, container.path.child("name"));
            }
        }
    }
    names
}

fn check_containers(own: &HashMap<String, Path>, other_name: &str, other: &SidecarSetSpec, errors: &mut ErrorList) {
    let theirs = other.init_containers.iter().chain(&other.containers).flatten();
    for (name, _) in theirs.flat_map(|container| names::names_in_pod(&container.0)) {
        if let Some(path) = own.get(&name) {
            let detail =
                format!("SidecarSet {other_name:?} adds a container of this name to pods that both sets select");
            errors.push(Error::invalid(path, name, detail));
        }
    }
}

fn check_volumes(list: &Node<'_>, other_name: &str, other: &SidecarSetSpec, errors: &mut ErrorList) {
    let theirs: HashMap<&str, _> =
        other.volumes.iter().flatten().filter_map(|volume| Some((volume.get("name")?.as_str()?, volume))).collect();
    for volume in list.items() {
        let (name, Value::Object(own)) = (volume.text("name"), volume.value) else { continue };
        if let Some(their) = theirs.get(name)
            && canonical_volume(their) != canonical_volume(own)
        {
            let detail = format!(
                "SidecarSet {other_name:?} adds a volume of this name with another source to pods that both sets select"
            );
            errors.push(Error::invalid(&volume.path.child("name"), name, detail));
        }
    }
}
