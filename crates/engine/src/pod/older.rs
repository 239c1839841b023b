//! What a pod carries of sets in another form than the current one. Admission leaves it; `outrider render` replaces it.
//!
//! The record is an annotation, which anybody may write. What is taken out has to look like the set's besides.

use std::collections::{BTreeMap, HashSet};

use admission::Unserved;
use admission::review::UserInfo;
use serde_json::{Value, json};

use crate::pod::decoded::Decoded;
use crate::pod::select::{Fitted, Selection, fitted_at_creation, injection, selected_at_creation};
use crate::pod::view::PodView;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::{INJECTED_ANNOTATION, Injection, List, Recorded};
use crate::sidecarset::mark::is_marked;
use crate::sidecarset::needs::volume_names;
use crate::snapshot::Snapshot;

/// How a pod gets rid of older forms.
#[derive(Debug, Default)]
pub struct TakenOut {
    /// The JSON patch.
    pub patch: Vec<Value>,
    /// A sentence for each container that is replaced.
    pub replaced: Vec<String>,
    /// A sentence for each container and volume that is left, though its record, or what mounts it, says that it is a set's.
    pub left: Vec<String>,
}

/// Takes out of a pod what its record says is of older forms of the sets that select it.
///
/// A pod that cannot be read, or is too large, is left to admission, which says why.
///
/// # Errors
/// [`Unserved`] when it cannot be decided which sets select the pod.
pub fn take_out(pod: &Value, namespace: &str, snapshot: &Snapshot) -> Result<TakenOut, Unserved> {
    let text = pod.to_string();
    let Ok(view) = serde_json::from_str::<Decoded<PodView<'_>>>(&text) else { return Ok(TakenOut::default()) };
    let (Ok(selected), Ok(view)) =
        (selected_at_creation(&view, (namespace, &UserInfo::default()), snapshot)?, view.whole())
    else {
        return Ok(TakenOut::default());
    };
    let Fitted { sets, selections, .. } = fitted_at_creation(view, (namespace, &text), selected, snapshot)?;
    let mut injection = injection(view, &text, &sets, &selections);
    let mut older = OlderContainers::default();
    for (set, selection) in sets.iter().zip(selections) {
        if matches!(selection, Selection::Selected) {
            older.note(pod, &injection, set);
            let _ = injection.add(set);
        }
    }
    Ok(older.take_out(pod))
}

/// Containers of older forms, by list and position, and the sets that they are of.
#[derive(Default)]
struct OlderContainers {
    init_containers: HashSet<usize>,
    containers: HashSet<usize>,
    sets: HashSet<String>,
    /// Volumes that these sets have now.
    volumes: HashSet<String>,
    replaced: Vec<String>,
    left: Vec<String>,
}

impl OlderContainers {
    fn note<'s>(&mut self, pod: &Value, injection: &Injection<'_, 's>, set: &'s CompiledSet) {
        let Some((first, recorded)) = injection.of_older_form(set) else { return };
        for Recorded { list, index, name, is_in_set, differing } in recorded {
            if !is_in_set && !container(pod, list, index).is_some_and(is_marked) {
                self.left.push(format!(
                    "container {name:?} is left, though its record says that it is of SidecarSet {:?}: the set has no container of \
                     that name, and without IS_INJECTED=true in its environment nothing else shows that it was injected; correct \
                     the annotation {INJECTED_ANNOTATION}, or remove the container",
                    set.name
                ));
                continue;
            }
            match list {
                List::InitContainers => self.init_containers.insert(index),
                List::Containers => self.containers.insert(index),
            };
            if self.sets.insert(set.name.clone()) {
                self.volumes.extend(set.volumes.iter().map(|volume| volume.name.clone()));
            }
            let why = differing.unwrap_or_else(|| {
                format!("it is the same in both, and a set's containers are replaced together: {first}")
            });
            self.replaced.push(format!(
                "container {name:?}, which its record says is of SidecarSet {:?} in another form than the current one, is replaced: \
                 {why}",
                set.name
            ));
        }
    }

    fn take_out(mut self, pod: &Value) -> TakenOut {
        if self.sets.is_empty() {
            return TakenOut { left: self.left, ..TakenOut::default() };
        }
        if !self.leaves_a_container(pod) {
            self.left.push(format!(
                "the pod is left as it is, though its record says that it carries another form of a SidecarSet: without the \
                 containers that the record lists it has none of its own; correct the annotation {INJECTED_ANNOTATION}"
            ));
            return TakenOut { left: self.left, ..TakenOut::default() };
        }
        let volumes = self.volumes(pod);
        let mut patch = Vec::new();
        for (list, positions) in
            [("initContainers", &self.init_containers), ("containers", &self.containers), ("volumes", &volumes)]
        {
            let mut positions: Vec<usize> = positions.iter().copied().collect();
            // From behind, so that the positions of the others stay.
            positions.sort_unstable_by(|one, other| other.cmp(one));
            let removals = positions.into_iter();
            patch.extend(removals.map(|position| json!({"op": "remove", "path": format!("/spec/{list}/{position}")})));
        }
        patch.extend(self.record(pod));
        TakenOut { patch, replaced: self.replaced, left: self.left }
    }

    /// Whether one of the pod's containers stays that was not injected.
    fn leaves_a_container(&self, pod: &Value) -> bool {
        elements(pod, "containers")
            .filter(|(position, _)| !self.containers.contains(position))
            .any(|(_, container)| container.as_object().is_some_and(|container| !is_marked(container)))
    }

    /// The volumes that go with the containers: no other container mounts them, and they are known to be the sets'.
    fn volumes(&mut self, pod: &Value) -> HashSet<usize> {
        let (mut gone, mut kept, mut of_unmarked) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (list, positions) in [("initContainers", &self.init_containers), ("containers", &self.containers)] {
            for (position, container) in elements(pod, list).filter_map(|(at, it)| Some((at, it.as_object()?))) {
                if !positions.contains(&position) {
                    kept.extend(volume_names(container));
                    continue;
                }
                gone.extend(volume_names(container));
                if !is_marked(container) {
                    of_unmarked.extend(volume_names(container));
                }
            }
        }
        let mut volumes = HashSet::new();
        for (position, volume) in elements(pod, "volumes") {
            let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            if !gone.contains(name) || kept.contains(name) {
                continue;
            }
            if self.volumes.contains(name) || !of_unmarked.contains(name) {
                volumes.insert(position);
            } else {
                self.left.push(format!(
                    "volume {name:?} is left, though no other container mounts it: no SidecarSet of the record has it, and the \
                     container that mounts it is not known to have been injected; remove it if it is not needed"
                ));
            }
        }
        volumes
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

fn container(pod: &Value, list: List, index: usize) -> Option<&RawObject> {
    pod.get("spec")?.get(list.field())?.get(index)?.as_object()
}

fn elements<'v>(pod: &'v Value, list: &str) -> impl Iterator<Item = (usize, &'v Value)> + use<'v> {
    let list = pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}
