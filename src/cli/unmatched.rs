//! What sets name and the pods and workloads in the same files do not have: containers of `spec.appContainers`, labels of the selector.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::explain::explanations;
use super::render::templates::FoundTemplates;
use crate::input::{Manifest, identity};
use crate::standalone;
use engine::pod::explain::{Fate, SetExplanation, named};
use engine::sidecarset::api::KIND;
use engine::sidecarset::app_containers::AppPiece;
use engine::snapshot::Snapshot;

/// Workloads that a warning names.
const TOLD: usize = 3;

/// Terms of selectors that are compared with labels of pods: sets times workloads may be very many, and both are a user's.
const COMPARED: usize = 5_000_000;

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

/// A note for each set in these files that selects by its labels none of the pods and workloads in them; none where there is no pod and
/// no workload, or more of both than is compared. Each begins with `file:line`.
pub fn unselected(manifests: &[Manifest], snapshot: &Snapshot) -> Vec<String> {
    let (mut pods, mut count) = (BTreeSet::new(), 0_usize);
    for Manifest { value, .. } in manifests {
        let Ok(identity) = identity(value) else { continue };
        for template in FoundTemplates::of(&identity, value).templates {
            if let Some(pod) = value.pointer(&template.pointer).filter(|pod| pod.is_object()) {
                count += 1;
                pods.insert(labels(pod));
            }
        }
    }
    if count == 0 {
        return Vec::new();
    }
    let none = match count {
        1 => "does not select the one pod or workload".to_owned(),
        _ => format!("selects none of the {count} pods and workloads"),
    };
    let (sources, mut left, mut notes) = (sources(manifests), COMPARED, Vec::new());
    for set in snapshot.sets.iter() {
        let terms = 1 + set.selector.requirements().len();
        let mut is_selected = false;
        for pod in &pods {
            let Some(rest) = left.checked_sub(terms) else { return notes };
            left = rest;
            is_selected = set.selector.matches(pod);
            if is_selected {
                break;
            }
        }
        if !is_selected {
            let source = sources.get(&set.name).copied().unwrap_or_default();
            notes.push(format!("{source}: SidecarSet {:?}: spec.selector: it {none} in these files", set.name));
        }
    }
    notes
}

/// The labels of a pod, or of a template of one.
fn labels(pod: &Value) -> BTreeMap<&str, &str> {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
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
