//! Which sets a pod is to carry.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::{Reason, Unserved};

use crate::nearest::nearest;
use crate::pod::view::PodView;
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope, Platform};
use crate::sidecarset::index::SetIndex;
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

/// Whether a set reaches into a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// That depends on labels of the namespace that are not known.
    Unknown,
}

/// Whether the set reaches into the namespace with these labels, which may not be known.
pub fn reaches(set: &CompiledSet, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> Reach {
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
    let platform = platform(pod);
    match holds_back(set, platform, pod.metadata.annotation(SKIP_ANNOTATION)) {
        None => Selection::Selected,
        Some(Hold::Paused) => {
            Selection::Skipped(Reason::SetPaused, format!("injection by SidecarSet {name:?} is paused"))
        }
        Some(Hold::Platform) => Selection::Skipped(
            Reason::WrongPlatform,
            format!("the pod runs on {platform:?}, the containers of SidecarSet {name:?} on {:?}", set.platform),
        ),
        Some(Hold::OptedOut) => Selection::Skipped(
            Reason::OptedOut,
            format!("the pod opted out of SidecarSet {name:?} by its annotation {SKIP_ANNOTATION}"),
        ),
    }
}

/// What keeps a set from a pod that it selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Injection by the set is paused.
    Paused,
    /// The pod runs on another operating system.
    Platform,
    /// The pod asks to go without, and the set allows it.
    OptedOut,
}

/// What keeps the set from a pod that it selects, which runs on `platform` and has `skip` as [`SKIP_ANNOTATION`].
pub fn holds_back(set: &CompiledSet, platform: Platform, skip: Option<&str>) -> Option<Hold> {
    if set.paused {
        Some(Hold::Paused)
    } else if platform != set.platform {
        Some(Hold::Platform)
    } else if set.may_opt_out && asks_to_opt_out(set, skip) {
        Some(Hold::OptedOut)
    } else {
        None
    }
}

/// Whether a pod with this [`SKIP_ANNOTATION`] asks to go without the set, whether or not the set allows it.
pub fn asks_to_opt_out(set: &CompiledSet, skip: Option<&str>) -> bool {
    skip.is_some_and(|value| value.trim() == "true" || value.split(',').any(|name| name.trim() == set.name))
}

/// Names in a [`SKIP_ANNOTATION`] that are told of; it may hold very many.
const NAMES_TOLD: usize = 3;
/// Bytes of the longest name that an object can have (a DNS-1123 subdomain): to compare longer ones takes time for nothing.
const MAX_NAME: usize = 253;

/// Warnings about a [`SKIP_ANNOTATION`] that names no set: whoever mistyped a name believes that the pod goes without. `selected`
/// are the sets that select the pod.
pub fn opts_out_of_nothing(
    skip: Option<&str>,
    selected: &[(&Arc<CompiledSet>, Selection)],
    sets: &SetIndex,
) -> Vec<String> {
    let skip = skip.map(str::trim).filter(|value| !matches!(*value, "true" | "false"));
    let names = skip.into_iter().flat_map(|value| value.split(',')).map(str::trim);
    let unknown = names.filter(|name| !name.is_empty() && !sets.contains(name));
    let warning = |name: &str| {
        let known = selected.iter().map(|(set, _)| set.name.as_str());
        let meant = if name.len() <= MAX_NAME { nearest(name, known) } else { None };
        let help = match meant {
            _ if name.eq_ignore_ascii_case("true") => " (\"true\" alone opts out of every set)".to_owned(),
            Some(meant) => format!(" (did you mean {meant:?}?)"),
            None => String::new(),
        };
        format!("{SKIP_ANNOTATION} names {name:?}, but there is no SidecarSet of that name{help}")
    };
    unknown.take(NAMES_TOLD).map(warning).collect()
}

fn namespace_unknown(set: &CompiledSet, namespace: &str) -> Selection {
    Selection::Skipped(
        Reason::NamespaceUnknown,
        format!(
            "SidecarSet {:?} selects namespaces by label, and the labels of namespace {namespace:?} are not known; \
             taken as no match. Give the Namespace with its labels among the manifests",
            set.name
        ),
    )
}

fn platform(pod: &PodView<'_>) -> Platform {
    Platform::of_pod(pod.spec.os.as_ref().map(|os| os.name.as_str()), |label| pod.spec.node_selector.get(label))
}
