//! Entries of `spec.appContainers` that name no container of the workloads in the same files.

use std::collections::{BTreeMap, BTreeSet};

use super::explain::explanations;
use crate::input::{Manifest, identity};
use crate::standalone;
use engine::pod::explain::{Fate, SetExplanation, named};
use engine::sidecarset::api::KIND;
use engine::sidecarset::app_containers::AppPiece;
use engine::snapshot::Snapshot;

/// Workloads that a warning names.
const TOLD: usize = 3;

/// What was found for a set.
#[derive(Default)]
struct OfSet {
    /// Workloads that the set selects.
    workloads: Vec<String>,
    /// Names of each entry that none of these had so far, by the position of the entry.
    unmatched: BTreeMap<usize, Vec<String>>,
}

/// A warning for each entry of a set in these files that names no container of any workload in them that the set selects. Where there
/// is no such workload nothing is known. Each begins with `file:line`.
pub fn warnings(manifests: &[Manifest], snapshot: &Snapshot) -> Vec<String> {
    let has_names = |piece: &AppPiece| piece.names().is_some();
    let with_names = snapshot.sets.iter().filter(|set| set.app_containers.iter().any(has_names));
    let with_names: BTreeSet<&str> = with_names.map(|set| set.name.as_str()).collect();
    if with_names.is_empty() {
        return Vec::new();
    }
    let mut found: BTreeMap<String, OfSet> = BTreeMap::new();
    for manifest in manifests {
        let Ok(identity) = identity(&manifest.value) else { continue };
        let namespace = identity.namespace.as_deref().unwrap_or("default");
        for (title, explanation) in explanations(&identity, namespace, &manifest.value, snapshot) {
            // What cannot be read is left to the commands about pods.
            let sets = explanation.into_iter().flat_map(|pod| pod.sets);
            let gets = |set: &SetExplanation| matches!(set.fate, Fate::Injected | Fate::Outdated);
            for set in sets.filter(|set| gets(set) && with_names.contains(set.set.as_str())) {
                take(found.entry(set.set.clone()).or_default(), &title, set);
            }
        }
    }
    let sources = sources(manifests);
    let warning = |(set, of_set): (&String, &OfSet)| {
        let source = sources.get(set).copied().unwrap_or_default().to_owned();
        let workloads = workloads(&of_set.workloads);
        let warning = |(index, names): (&usize, &Vec<String>)| {
            format!(
                "{source}: SidecarSet {set:?}: spec.appContainers[{index}].containerNames: no container of {workloads} is named {}, so \
                 nothing that these files hold gets anything of this entry",
                named(names)
            )
        };
        of_set.unmatched.iter().map(warning).collect::<Vec<_>>()
    };
    found.iter().flat_map(warning).collect()
}

/// Takes what one workload shows of a set: an entry that names one of its containers is right.
fn take(of_set: &mut OfSet, title: &str, set: SetExplanation) {
    let mut unmatched: BTreeMap<usize, Vec<String>> =
        set.unmatched.into_iter().map(|entry| (entry.index, entry.names)).collect();
    if !of_set.workloads.is_empty() {
        unmatched.retain(|index, _| of_set.unmatched.contains_key(index));
    }
    of_set.unmatched = unmatched;
    if of_set.workloads.last().is_none_or(|last| last != title) {
        of_set.workloads.push(title.to_owned());
    }
}

fn workloads(titles: &[String]) -> String {
    let more = titles.len().saturating_sub(TOLD);
    let first = titles.get(..TOLD).unwrap_or(titles).join(", ");
    if more == 0 { first } else { format!("{first} and {more} more workloads") }
}

/// Where each set is written, by its name.
fn sources(manifests: &[Manifest]) -> BTreeMap<String, &str> {
    let name = |manifest: &Manifest| {
        let identity = identity(&manifest.value).ok()?;
        (standalone::is_set(manifest) && identity.kind == KIND).then_some(identity.name)
    };
    manifests.iter().filter_map(|manifest| Some((name(manifest)?, manifest.source.as_str()))).collect()
}
