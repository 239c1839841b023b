//! Which form of a set a new pod gets: the current one, or that of an older revision.

use super::{Selected, Selection};
use crate::pod::view::PodView;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::Clash;
use crate::sidecarset::pin::{Held, Workload};
use crate::snapshot::Snapshot;

/// Label of the pods of a Deployment, with which the names of its `ReplicaSet`s end.
const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

/// Puts older forms in the place of sets.
pub(super) fn pin<'s>(all: &mut Selected<'s>, pod: &PodView<'_>, namespace: &str, snapshot: &'s Snapshot) {
    for (set, selection) in all.iter_mut().filter(|(_, selection)| matches!(selection, Selection::Selected)) {
        if held_back(set, pod, namespace).is_none() {
            continue;
        }
        match snapshot.pinned.form(&set.name) {
            Some(Ok(form)) => *set = form,
            Some(Err(why)) => *selection = Selection::Unfit(Clash::no_revision(why)),
            None => {}
        }
    }
}

/// Whether a new pod gets an older form of the set, and why.
pub fn held_back(set: &CompiledSet, pod: &PodView<'_>, namespace: &str) -> Option<Held> {
    set.pin.as_ref()?.holds(&set.name, &pod.metadata.labels, &workload(pod, namespace))
}

/// The workload that the pod is of: whatever changes from one of its pods to the next does not count.
fn workload<'p>(pod: &'p PodView<'_>, namespace: &'p str) -> Workload<'p> {
    let metadata = &pod.metadata;
    let (kind, name) = match &metadata.owners.controller {
        Some(owner) if owner.kind.as_str() == "StatefulSet" => ("Pod", metadata.name.as_str()),
        Some(owner) => {
            of_controller(owner.kind.as_str(), owner.name.as_str(), metadata.labels.get(TEMPLATE_HASH_LABEL))
        }
        // The name is made up after the first webhook: with it, the second one would see another workload.
        None if !metadata.generate_name.as_str().is_empty() => ("Pod", metadata.generate_name.as_str()),
        None => ("Pod", metadata.name.as_str()),
    };
    Workload { namespace, kind, name }
}

fn of_controller<'p>(kind: &'p str, name: &'p str, template_hash: Option<&str>) -> (&'p str, &'p str) {
    let without = |hash: &str| name.strip_suffix(hash)?.strip_suffix('-').filter(|name| !name.is_empty());
    match template_hash.filter(|hash| kind == "ReplicaSet" && !hash.is_empty()).and_then(without) {
        Some(deployment) => ("Deployment", deployment),
        None => (kind, name),
    }
}
