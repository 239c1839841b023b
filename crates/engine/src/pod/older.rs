//! What a pod carries of sets in another form than the current one. Admission leaves it; `outrider render` replaces it.

use std::collections::{BTreeMap, HashSet};

use admission::Unserved;
use serde_json::{Value, json};

use crate::pod::select::{Selection, selected};
use crate::pod::view::PodView;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::{INJECTED_ANNOTATION, Injection, List};
use crate::sidecarset::needs::volume_names;
use crate::snapshot::Snapshot;

/// Takes out of a pod what its record says is of older forms of the sets that select it. Returns the JSON patch, and a sentence
/// for each container.
///
/// A pod that cannot be read, or is too large, is left to admission, which says why.
///
/// # Errors
/// [`Unserved`] when it cannot be decided which sets select the pod.
pub fn take_out(pod: &Value, namespace: &str, snapshot: &Snapshot) -> Result<(Vec<Value>, Vec<String>), Unserved> {
    let text = pod.to_string();
    let Ok(view) = serde_json::from_str::<PodView<'_>>(&text) else { return Ok(Default::default()) };
    let Ok(selected) = selected(&view, namespace, snapshot)? else { return Ok(Default::default()) };
    let mut injection = Injection::new(&view, &text, selected.iter().map(|(set, _)| -> &CompiledSet { set }));
    let mut older = Older::default();
    for (set, selection) in selected {
        if matches!(selection, Selection::Selected) {
            older.note(&injection, set);
            let _ = injection.add(set);
        }
    }
    Ok((older.patch(pod), older.told))
}

/// Containers of older forms, by list and position, and the sets that they are of.
#[derive(Default)]
struct Older {
    init_containers: Vec<usize>,
    containers: Vec<usize>,
    sets: HashSet<String>,
    told: Vec<String>,
}

impl Older {
    fn note<'s>(&mut self, injection: &Injection<'_, 's>, set: &'s CompiledSet) {
        for (list, index, name) in injection.of_older_form(set) {
            match list {
                List::InitContainers => self.init_containers.push(index),
                List::Containers => self.containers.push(index),
            }
            self.sets.insert(set.name.clone());
            self.told.push(format!(
                "container {name:?}, which its record says is of SidecarSet {:?} in another form than the current one, is replaced",
                set.name
            ));
        }
    }

    fn patch(&mut self, pod: &Value) -> Vec<Value> {
        let mut patch = Vec::new();
        if self.sets.is_empty() {
            return patch;
        }
        for positions in [&mut self.init_containers, &mut self.containers] {
            positions.sort_unstable();
            positions.dedup();
        }
        let lists = [("initContainers", &self.init_containers), ("containers", &self.containers)];
        let (mut gone, mut kept) = (HashSet::new(), HashSet::new());
        for (list, positions) in lists {
            for (position, container) in elements(pod, list).filter_map(|(at, it)| Some((at, it.as_object()?))) {
                let used = if positions.binary_search(&position).is_ok() { &mut gone } else { &mut kept };
                used.extend(volume_names(container));
            }
        }
        let is_theirs_alone = |volume: &RawObject| {
            let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            gone.contains(name) && !kept.contains(name)
        };
        let volumes: Vec<usize> = elements(pod, "volumes")
            .filter(|(_, volume)| volume.as_object().is_some_and(is_theirs_alone))
            .map(|(position, _)| position)
            .collect();
        for (list, positions) in lists.into_iter().chain([("volumes", &volumes)]) {
            // From behind, so that the positions of the others stay.
            let removals = positions.iter().rev();
            patch.extend(removals.map(|position| json!({"op": "remove", "path": format!("/spec/{list}/{position}")})));
        }
        patch.extend(self.record(pod));
        patch
    }

    /// The record without the sets.
    fn record(&self, pod: &Value) -> Option<Value> {
        let text = pod.get("metadata")?.get("annotations")?.get(INJECTED_ANNOTATION)?.as_str()?;
        let mut record: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
        record.retain(|set, _| !self.sets.contains(set));
        let path = format!("/metadata/annotations/{}", admission::patch::escape(INJECTED_ANNOTATION));
        Some(json!({"op": "replace", "path": path, "value": json!(record).to_string()}))
    }
}

fn elements<'v>(pod: &'v Value, list: &str) -> impl Iterator<Item = (usize, &'v Value)> + use<'v> {
    let list = pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}
