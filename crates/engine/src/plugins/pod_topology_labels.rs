//! `PodTopologyLabels`: labels of a node go to the pods on it (k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels, which copies those of
//! zone and region). What a binding has, the API server gives to its pod.

use std::collections::{BTreeMap, BTreeSet};

use admission::Text;
use admission::review::null_as_default;
use serde::Deserialize;

use super::change::PodChange;
use crate::pod::borrowed_map::BorrowedMap;
use crate::pod::view;

/// What a binding may bind to.
const NODE: &str = "Node";

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodTopologyLabels {
    /// Labels of nodes that are copied.
    pub keys: BTreeSet<String>,
    /// Whether they become labels of the pod.
    pub labels: bool,
    /// Whether they become annotations of the pod.
    pub annotations: bool,
}

impl PodTopologyLabels {
    /// What a pod gets that is placed on a node with these labels: what it has otherwise is replaced.
    pub fn change(&self, placed: &PlacedFacts<'_>, node: &BTreeMap<String, String>) -> PodChange<'static> {
        let copied = |is_wanted: bool, own: &Option<BorrowedMap<'_>>| -> Vec<(String, String)> {
            let wanted = self.keys.iter().filter_map(|key| node.get_key_value(key));
            let differs = |key: &str, value: &str| own.as_ref().and_then(|own| own.get(key)) != Some(value);
            let differing = wanted.filter(|(key, value)| is_wanted && differs(key, value));
            differing.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        PodChange {
            labels: copied(self.labels, &placed.metadata.labels),
            annotations: copied(self.annotations, &placed.metadata.annotations),
            ..PodChange::default()
        }
    }
}

/// What is read of a binding, and of a pod that names its node itself.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct PlacedFacts<'a> {
    /// Metadata, which a binding has of its own.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    target: Target<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    spec: Spec<'a>,
}

/// Metadata of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct Metadata<'a> {
    /// Labels.
    #[serde(borrow)]
    pub labels: Option<BorrowedMap<'a>>,
    /// Annotations.
    #[serde(borrow)]
    pub annotations: Option<BorrowedMap<'a>>,
    /// Whether there is any, which the patch has to make otherwise.
    #[serde(skip, default = "view::yes")]
    pub is_there: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Target<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow)]
    node_name: Text<'a>,
}

admission::only_objects!(PlacedFacts<'a>, Metadata<'a>, Target<'a>, Spec<'a>);

impl PlacedFacts<'_> {
    /// The node that it is placed on, if it is.
    pub fn node(&self, is_binding: bool) -> Option<&str> {
        let name = match is_binding {
            true if self.target.kind.as_str() == NODE => &self.target.name,
            true => return None,
            false => &self.spec.node_name,
        };
        Some(name.as_str()).filter(|name| !name.is_empty())
    }
}
