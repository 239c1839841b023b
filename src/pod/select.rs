//! Which sets a pod is to carry.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::{Reason, Unserved};

use crate::pod::view::PodView;
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope, Platform};
use crate::world::Snapshot;

/// On a pod: `true`, or names of sets joined by commas.
pub const SKIP_ANNOTATION: &str = "outrider.dev/skip";

/// What a set means for a pod.
#[derive(Debug)]
pub enum Selection {
    /// The pod is to carry the set.
    Selected,
    /// The set selects the pod, and the pod goes without it.
    Skipped(Reason, String),
}

/// The sets that select the pod, in the order of injection.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] when a selector needs the labels of a namespace that is not known yet.
pub fn select<'s>(
    pod: &PodView<'_>,
    namespace: &str,
    snapshot: &'s Snapshot,
) -> Result<Vec<(&'s Arc<CompiledSet>, Selection)>, Unserved> {
    let labels = snapshot.namespaces.labels(namespace);
    let mut selected = Vec::new();
    for set in snapshot.sets.candidates(pod.metadata.labels.iter(), namespace, labels) {
        if !set.selector.matches(&pod.metadata.labels) {
            continue;
        }
        match reaches(set, namespace, labels) {
            Reach::No => {}
            Reach::Yes => selected.push((set, selection(set, pod))),
            Reach::Unknown if snapshot.namespaces_may_appear => {
                return Err(Unserved::NamespaceUnknown(namespace.to_owned()));
            }
            Reach::Unknown => selected.push((set, namespace_unknown(set, namespace))),
        }
    }
    Ok(selected)
}

enum Reach {
    Yes,
    No,
    Unknown,
}

fn reaches(set: &CompiledSet, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> Reach {
    let matches = match (&set.scope, labels) {
        (NamespaceScope::All, _) => true,
        (NamespaceScope::Named(name), _) => name == namespace,
        // The API server sets this label on every namespace and lets nobody change it.
        (NamespaceScope::Selected { selector, by_name_alone: true }, _) => {
            selector.matches(&[(NAMESPACE_NAME_LABEL, namespace)][..])
        }
        (NamespaceScope::Selected { selector, .. }, Some(labels)) => selector.matches(labels),
        (NamespaceScope::Selected { .. }, None) => return Reach::Unknown,
    };
    if matches { Reach::Yes } else { Reach::No }
}

fn selection(set: &CompiledSet, pod: &PodView<'_>) -> Selection {
    let name = &set.name;
    if set.paused {
        return Selection::Skipped(Reason::SetPaused, format!("injection by SidecarSet {name:?} is paused"));
    }
    let platform = platform(pod);
    if platform != set.platform {
        return Selection::Skipped(
            Reason::WrongPlatform,
            format!("the pod runs on {platform:?}, the containers of SidecarSet {name:?} on {:?}", set.platform),
        );
    }
    if set.may_opt_out && asks_to_opt_out(set, pod) {
        return Selection::Skipped(
            Reason::OptedOut,
            format!("the pod opted out of SidecarSet {name:?} by its annotation {SKIP_ANNOTATION}"),
        );
    }
    Selection::Selected
}

/// Whether the pod's annotation asks to go without the set, whether or not the set allows it.
pub fn asks_to_opt_out(set: &CompiledSet, pod: &PodView<'_>) -> bool {
    pod.metadata
        .annotation(SKIP_ANNOTATION)
        .is_some_and(|value| value.trim() == "true" || value.split(',').any(|name| name.trim() == set.name))
}

fn namespace_unknown(set: &CompiledSet, namespace: &str) -> Selection {
    Selection::Skipped(
        Reason::NamespaceUnknown,
        format!(
            "SidecarSet {:?} selects namespaces by label, and the labels of namespace {namespace:?} are not known; \
             taken as no match",
            set.name
        ),
    )
}

/// The pod's operating system, where it names one; the scheduler goes by the node labels.
fn platform(pod: &PodView<'_>) -> Platform {
    let nodes = &pod.spec.node_selector;
    let named = pod.spec.os.as_ref().map(|os| os.name.as_str()).filter(|name| !name.is_empty());
    let named = named.or_else(|| nodes.get("kubernetes.io/os")).or_else(|| nodes.get("beta.kubernetes.io/os"));
    if named == Some("windows") { Platform::Windows } else { Platform::Linux }
}
