//! What a change of a pod is written as.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::controller::conditions::whole_seconds;
use crate::sidecarset::controller::change::is_ready;
use crate::sidecarset::controller::in_place_state::{ContainerStatus, InPlaceState, LastStatus};
use crate::sidecarset::controller::records::IN_PLACE_STATE;
use crate::sidecarset::controller::requested::Resources;
use engine::pod::in_place::Change;
use engine::sidecarset::compiled::CompiledSet;

/// The smallest patch: the images, the annotations, and what the containers were before. With the version that was read, so that
/// whatever changed since is seen first.
pub(super) fn patch(pod: &Value, set: &CompiledSet, change: &Change, takes_place: bool, now: Timestamp) -> Value {
    let mut annotations: BTreeMap<&str, String> =
        change.annotations.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    if !change.images.is_empty() || change.hand_over != hand_over_of(pod, &set.name) {
        annotations.insert(IN_PLACE_STATE, in_place_state(pod, set, change, takes_place, now));
    }
    let mut patch = json!({"metadata": version_of(pod)});
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("annotations".to_owned(), json!(annotations));
    }
    let images = change.images.iter();
    with_containers(patch, images.map(|new| (new.list, json!({"name": new.container, "image": new.image}))))
}

/// Requests and limits alone, for the sub-resource `resize`.
pub(super) fn resize_patch(pod: &Value, change: &Change) -> Value {
    let resources = change.resources.iter();
    let containers = resources.map(|new| (new.list, json!({"name": new.container, "resources": new.resources})));
    with_containers(json!({"metadata": version_of(pod)}), containers)
}

/// What the containers were alone.
pub(super) fn state_patch(pod: &Value, state: &str) -> Value {
    let mut metadata = version_of(pod);
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("annotations".to_owned(), json!({IN_PLACE_STATE: state}));
    }
    json!({"metadata": metadata})
}

fn version_of(pod: &Value) -> Value {
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    json!({"uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")})
}

fn with_containers(mut patch: Value, containers: impl Iterator<Item = (&'static str, Value)>) -> Value {
    for (list, container) in containers {
        let spec = patch.as_object_mut().map(|patch| patch.entry("spec").or_insert_with(|| json!({})));
        let list = spec.and_then(Value::as_object_mut).map(|spec| spec.entry(list).or_insert_with(|| json!([])));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.push(container);
        }
    }
    patch
}

fn container<'v>(pod: &'v Value, list: &str, name: &str) -> Option<&'v Value> {
    let mut containers = pod.get("spec")?.get(list)?.as_array()?.iter();
    containers.find(|container| container.get("name").and_then(Value::as_str) == Some(name))
}

/// The containers that are to take over from others of the set, as the pod says.
pub(super) fn hand_over_of(pod: &Value, set: &str) -> BTreeSet<String> {
    states(pod).get(set).map(state).unwrap_or_default().hand_over
}

fn states(pod: &Value) -> BTreeMap<String, Value> {
    let text = pod.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(IN_PLACE_STATE)?.as_str());
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn state(value: &Value) -> InPlaceState {
    <InPlaceState as Deserialize>::deserialize(value).unwrap_or_default()
}

/// The annotation with what the containers were that change now. What it says of other sets stays.
pub(super) fn in_place_state(
    pod: &Value,
    set: &CompiledSet,
    change: &Change,
    takes_place: bool,
    now: Timestamp,
) -> String {
    let mut of_sets = states(pod);
    let earlier = of_sets.get(&set.name).map(state).unwrap_or_default();
    let is_same_form = earlier.revision == set.hash;
    let was_ready = if change.restarts() { takes_place || is_ready(pod) } else { earlier.was_ready };
    let last_container_statuses = last_statuses(pod, change, &earlier.last_container_statuses, is_same_form);
    let state = InPlaceState {
        revision: set.hash.clone(),
        update_timestamp: whole_seconds(now).0.to_string(),
        was_ready,
        last_container_statuses,
        hand_over: change.hand_over.clone(),
    };
    of_sets.insert(set.name.clone(), json!(state));
    json!(of_sets).to_string()
}

/// What the containers that change are. What a change to the same form has found before stays: it was begun.
fn last_statuses(
    pod: &Value,
    change: &Change,
    earlier: &BTreeMap<String, LastStatus>,
    is_same_form: bool,
) -> BTreeMap<String, LastStatus> {
    let of_pod = pod.get("status").unwrap_or(&Value::Null);
    let lists = ["containerStatuses", "initContainerStatuses"].into_iter().filter_map(|list| of_pod.get(list));
    let statuses: Vec<ContainerStatus> =
        lists.filter_map(|list| serde_json::from_value::<Vec<ContainerStatus>>(list.clone()).ok()).flatten().collect();
    let last = |list: &str, name: &str| {
        let image = container(pod, list, name).and_then(|container| container.get("image")?.as_str());
        let status = statuses.iter().find(|status| status.name == name);
        status.map(|status| LastStatus::of(status, image.unwrap_or_default(), earlier.get(name))).unwrap_or_default()
    };
    // Of a hot upgrade in its middle what was begun stays too, whatever the form: it ends with the container that was started.
    let is_begun = |name: &String| is_same_form || change.hand_over.contains(name);
    let begun = earlier.iter().filter(|(name, _)| is_begun(name));
    let mut all: BTreeMap<String, LastStatus> = begun.map(|(name, last)| (name.clone(), last.clone())).collect();
    for new in &change.images {
        let before = all.remove(&new.container).unwrap_or_default();
        let last = last(new.list, &new.container);
        let (resources, restarts) = (last.resources.or(before.resources), last.restarts || before.restarts);
        all.insert(new.container.clone(), LastStatus { resources, restarts, ..last });
    }
    for new in &change.resources {
        let last = all.entry(new.container.clone()).or_insert_with(|| last(new.list, &new.container));
        let now = container(pod, new.list, &new.container).and_then(|container| container.get("resources"));
        let now = now.and_then(|resources| Resources::deserialize(resources).ok()).unwrap_or_default();
        last.resources.get_or_insert(now);
        last.restarts |= new.restarts;
    }
    all
}
