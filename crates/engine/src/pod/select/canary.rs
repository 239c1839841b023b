//! A canary takes the place of its base in new pods that both select.

use std::collections::HashMap;

use super::{Selected, Selection};
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, JobPods};
use crate::sidecarset::injection::ends;

/// Skips the sets of which the pod gets a canary.
pub(super) fn give_way(all: &mut Selected<'_>, pod: &PodView<'_>) {
    let ends = ends(pod);
    let mut canaries: HashMap<&str, &CompiledSet> = HashMap::new();
    for (set, _) in all.iter().filter(|(_, selection)| matches!(selection, Selection::Selected)) {
        let set: &CompiledSet = set;
        // The pod goes without it: it would leave the place empty.
        if ends && set.job_pods == JobPods::Skip {
            continue;
        }
        for base in &set.bases {
            let canary = canaries.entry(base).or_insert(set);
            // One that no pod goes without counts before others.
            if set.is_must() && !canary.is_must() {
                *canary = set;
            }
        }
    }
    let shadowed: Vec<(usize, String)> = all
        .iter()
        .enumerate()
        .filter_map(|(index, (set, _))| {
            let canary = canaries.get(set.name.as_str()).filter(|canary| gives_way(set, canary))?;
            Some((
                index,
                format!("its canary, SidecarSet {:?}, takes the place of SidecarSet {:?}", canary.name, set.name),
            ))
        })
        .collect();
    for (index, why) in shadowed {
        if let Some((_, selection @ Selection::Selected)) = all.get_mut(index) {
            *selection = Selection::Skipped(reasons::CANARY_SHADOWED, why);
        }
    }
}

/// Whether a set leaves its place to one that says to be its canary. There are two levels, and a pod must not evade a set by one that
/// it may go without.
pub fn gives_way(base: &CompiledSet, canary: &CompiledSet) -> bool {
    base.bases.is_empty()
        && (!base.is_must() || canary.is_must())
        && canary.bases.iter().any(|name| **name == *base.name)
}
