//! Which form of a set a new pod gets: the current one, or that of an older revision.

use std::cell::LazyCell;

use super::{Selected, Selection};
use crate::pod::view::PodView;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::Clash;
use crate::sidecarset::pin::Held;
use crate::sidecarset::workload::{OfPod, TEMPLATE_HASH_LABEL, Workload};
use crate::snapshot::Snapshot;

/// Puts older forms in the place of sets.
pub(super) fn pin<'s>(all: &mut Selected<'s>, pod: &PodView<'_>, namespace: &str, snapshot: &'s Snapshot) {
    // Once for all sets: nothing limits how long the names are that it follows from.
    let workload = LazyCell::new(|| workload(pod, namespace));
    for (set, selection) in all.iter_mut().filter(|(_, selection)| matches!(selection, Selection::Selected)) {
        let pin = set.pin.as_ref();
        if pin.is_none_or(|pin| pin.holds(&set.name, &pod.metadata.labels, &workload).is_none()) {
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

fn workload<'p>(pod: &'p PodView<'_>, namespace: &'p str) -> Workload<'p> {
    let metadata = &pod.metadata;
    let controller = metadata.owners.controller.as_ref();
    Workload::of(OfPod {
        namespace,
        name: metadata.name.as_str(),
        generate_name: metadata.generate_name.as_str(),
        controller: controller.map(|owner| (owner.kind.as_str(), owner.name.as_str())),
        template_hash: metadata.labels.get(TEMPLATE_HASH_LABEL),
    })
}
