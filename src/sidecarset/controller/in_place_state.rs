//! What a rollout writes down of a pod whose images, requests and limits it changes, and what follows from it: whether the containers
//! have them yet.
//!
//! The annotation has `OpenKruise`'s form, under our own domain. Where `OpenKruise` keeps the ID of the image alone, this keeps that of
//! the container too: a new tag of the same image never gets another image ID.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize, Serializer};

use crate::sidecarset::controller::requested::{Requested, Resources};

/// The status of a container, as far as it says what runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// That of the container in the spec.
    pub name: String,
    /// The image, as the runtime names it.
    pub image: String,
    /// The image's ID.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// The container's ID.
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
    /// How often it was started again.
    pub restart_count: i32,
    /// Whether it serves, if that is known.
    pub ready: Option<bool>,
    /// The requests and limits that it runs with, as far as the kubelet reports them.
    pub resources: Option<Resources>,
}

/// What the annotation says of one set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct InPlaceState {
    /// The hash of the form that the pod was given.
    pub revision: String,
    /// When, RFC 3339.
    pub update_timestamp: String,
    /// Whether it was ready then, or was not back from a change before: one that did not serve takes no place in a budget.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_ready: bool,
    /// The containers whose image, requests or limits were changed, as they were before.
    pub last_container_statuses: BTreeMap<String, LastStatus>,
    /// The containers that were started in a hot upgrade and take over once they serve.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub hand_over: BTreeSet<String>,
}

/// What a container was before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", default)]
pub struct LastStatus {
    /// The image that the pod asked for when the container was started.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The image's ID.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// The container's ID.
    #[serde(rename = "containerID", skip_serializing_if = "String::is_empty")]
    pub container_id: String,
    /// The requests and limits that the pod asked for, where these were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Whether the container restarts for other ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
}

// Anybody who may write the annotation may write lists into it.
admission::only_objects!(InPlaceState, LastStatus);

impl Serialize for InPlaceState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The derived function, which is no method of the trait.
        Self::serialize(self, serializer)
    }
}

impl Serialize for LastStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl LastStatus {
    /// Of a container whose pod asks for this image. It may be the same container still as at an `earlier` change: then it was started
    /// with what the pod asked for before that.
    pub fn of(status: &ContainerStatus, image: &str, earlier: Option<&Self>) -> Self {
        let container_id = status.container_id.clone().unwrap_or_default();
        let is_same = |earlier: &&Self| !container_id.is_empty() && earlier.container_id == container_id;
        let earlier = earlier.filter(is_same);
        let image = earlier.map_or(image, |earlier| &earlier.image).to_owned();
        let of_start = earlier.filter(|earlier| earlier.restarts);
        let (resources, restarts) = (of_start.and_then(|earlier| earlier.resources.clone()), of_start.is_some());
        Self { image, image_id: status.image_id.clone(), container_id, resources, restarts }
    }

    /// Whether the container still is what it was, though the pod asks for another image, or for amounts for which it restarts. Those
    /// that the kubelet does not give it, as `is_refused` says, restart nothing.
    fn is_still(&self, status: &ContainerStatus, requested: Requested<'_>, is_refused: bool) -> bool {
        let now = status.container_id.as_deref().unwrap_or_default();
        let is_same = if self.container_id.is_empty() || now.is_empty() {
            self.image_id == status.image_id
        } else {
            self.container_id == now
        };
        let image = requested.image;
        let is_old = (self.image.is_empty() || self.image != image) && in_full(&status.image) != in_full(image);
        let is_resized = || self.resources.as_ref().is_some_and(|before| !requested.is_met_by(before));
        is_same && (is_old || (self.restarts && !is_refused && is_resized()))
    }
}

/// An image without what runtimes put in front of a short name, and with the tag that a missing one means.
fn in_full(image: &str) -> String {
    let image = image.strip_prefix("docker.io/").unwrap_or(image);
    let image = image.strip_prefix("library/").unwrap_or(image);
    let last = image.rsplit('/').next().unwrap_or_default();
    if last.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") }
}

/// The sets for which a rollout took the pod down that served, whatever form of them it has by now.
pub fn touched(annotation: &str) -> BTreeSet<String> {
    states(annotation).into_iter().filter(|(_, state)| state.was_ready).map(|(set, _)| set).collect()
}

/// The sets with a container that does not run yet what the pod asks for, or does not serve with it, and those in the middle of a hot
/// upgrade. `requested` is that by container, and `is_refused` whether the kubelet says that it does not resize the pod. An annotation that
/// cannot be read counts as none: a user who may write it can make this pod take a place in the budget of its sets, until it is overdue.
pub fn unsettled<'s>(
    annotation: &str,
    requested: &BTreeMap<&str, Requested<'_>>,
    statuses: impl Iterator<Item = &'s ContainerStatus>,
    is_refused: bool,
) -> BTreeSet<String> {
    let is_there = |name: &String| requested.contains_key(name.as_str());
    let is_still = is_still(requested, statuses, is_refused);
    let is_unsettled = |state: &InPlaceState| {
        state.hand_over.iter().any(is_there) || state.last_container_statuses.iter().any(&is_still)
    };
    let sets = states(annotation).into_iter().filter(|(_, state)| is_unsettled(state));
    sets.map(|(set, _)| set).collect()
}

/// The containers that were started in a hot upgrade and are there, by their sets.
pub fn started(annotation: &str, requested: &BTreeMap<&str, Requested<'_>>) -> BTreeMap<String, BTreeSet<String>> {
    upgrading(annotation, requested).map(|(set, state)| (set, state.hand_over)).collect()
}

/// The same, of the sets whose containers run what the pod asks for and serve with it: these may take over.
pub fn due<'s>(
    annotation: &str,
    requested: &BTreeMap<&str, Requested<'_>>,
    statuses: impl Iterator<Item = &'s ContainerStatus>,
    is_refused: bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut upgrading = upgrading(annotation, requested).peekable();
    if upgrading.peek().is_none() {
        return BTreeMap::new();
    }
    let statuses: Vec<&ContainerStatus> = statuses.collect();
    let serving: HashSet<&str> =
        statuses.iter().filter(|status| status.ready == Some(true)).map(|status| status.name.as_str()).collect();
    let is_still = is_still(requested, statuses.into_iter(), is_refused);
    let is_due = |state: &InPlaceState| {
        !state.last_container_statuses.iter().any(&is_still)
            && state.hand_over.iter().all(|name| serving.contains(name.as_str()))
    };
    upgrading.filter(|(_, state)| is_due(state)).map(|(set, state)| (set, state.hand_over)).collect()
}

/// The sets in the middle of a hot upgrade, with those of its containers that are there.
fn upgrading(
    annotation: &str,
    requested: &BTreeMap<&str, Requested<'_>>,
) -> impl Iterator<Item = (String, InPlaceState)> {
    states(annotation).into_iter().filter_map(|(set, mut state)| {
        state.hand_over.retain(|name| requested.contains_key(name.as_str()));
        (!state.hand_over.is_empty()).then_some((set, state))
    })
}

/// Whether a container is what it was before, or does not serve.
fn is_still<'s>(
    requested: &BTreeMap<&str, Requested<'_>>,
    statuses: impl Iterator<Item = &'s ContainerStatus>,
    is_refused: bool,
) -> impl Fn((&String, &LastStatus)) -> bool {
    let statuses: HashMap<&str, &ContainerStatus> = statuses.map(|status| (status.name.as_str(), status)).collect();
    move |(name, last)| {
        let Some(requested) = requested.get(name.as_str()) else { return false };
        let is_still =
            |status: &&ContainerStatus| status.ready == Some(false) || last.is_still(status, *requested, is_refused);
        statuses.get(name.as_str()).is_none_or(is_still)
    }
}

fn states(annotation: &str) -> BTreeMap<String, InPlaceState> {
    serde_json::from_str(annotation).unwrap_or_default()
}

/// The sets with a container that a rollout has resized, and that does not run with what the pod asks for.
pub fn unresized<'s>(
    annotation: &str,
    requested: &BTreeMap<&str, Requested<'_>>,
    statuses: impl Iterator<Item = &'s ContainerStatus>,
) -> BTreeSet<String> {
    let found = statuses.filter_map(|status| Some((status.name.as_str(), status.resources.as_ref()?)));
    let found: HashMap<&str, &Resources> = found.collect();
    with_container(annotation, |(name, last)| {
        let (Some(requested), Some(found)) = (requested.get(name.as_str()), found.get(name.as_str())) else {
            return false;
        };
        last.resources.is_some() && !requested.is_met_by(found)
    })
}

fn with_container(annotation: &str, is_it: impl Fn((&String, &LastStatus)) -> bool) -> BTreeSet<String> {
    let sets = states(annotation).into_iter().filter(|(_, state)| state.last_container_statuses.iter().any(&is_it));
    sets.map(|(set, _)| set).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_settled(last: &serde_json::Value, status: &serde_json::Value) -> bool {
        let annotation = json!({"a": {"lastContainerStatuses": {"c": last}}}).to_string();
        let statuses: Vec<ContainerStatus> = serde_json::from_value(status.clone()).unwrap();
        unsettled(&annotation, &asking(None), statuses.iter(), false).is_empty()
    }

    /// A pod that asks for these resources.
    fn asking(resources: Option<&Resources>) -> BTreeMap<&'static str, Requested<'_>> {
        BTreeMap::from([("c", Requested { image: "proxy:2", resources })])
    }

    #[test]
    fn a_container_that_restarts_for_a_resize_is_settled_when_it_is_another_one_or_stays_as_it_was() {
        let memory = |amount: &str| json!({"limits": {"memory": amount}});
        let last = |restarts: bool| {
            json!({"a": {"lastContainerStatuses": {"c": {
                "image": "proxy:2", "imageID": "i", "containerID": "c1", "resources": memory("1Gi"), "restarts": restarts,
            }}}})
            .to_string()
        };
        for (case, restarts, container, now, is_refused, settled) in [
            ("the same container", true, "c1", "2Gi", false, false),
            ("another one", true, "c2", "2Gi", false, true),
            ("it does not restart", false, "c1", "2Gi", false, true),
            ("taken back", true, "c1", "1024Mi", false, true),
            ("the kubelet does not do it", true, "c1", "2Gi", true, true),
        ] {
            let now: Resources = serde_json::from_value(memory(now)).unwrap();
            let status = json!([{"name": "c", "image": "proxy:2", "imageID": "i", "containerID": container}]);
            let statuses: Vec<ContainerStatus> = serde_json::from_value(status).unwrap();
            let found = unsettled(&last(restarts), &asking(Some(&now)), statuses.iter(), is_refused);
            assert_eq!(found.is_empty(), settled, "{case}");
        }
    }

    #[test]
    fn a_container_is_resized_when_the_kubelet_reports_what_the_pod_asks_for() {
        let asked: Resources = serde_json::from_value(json!({"requests": {"cpu": "1500m", "memory": "1Gi"}})).unwrap();
        let resized = json!({"a": {"lastContainerStatuses": {"c": {"resources": {}}}}}).to_string();
        let not_by_us = json!({"a": {"lastContainerStatuses": {"c": {}}}}).to_string();
        for (case, annotation, resources, expected) in [
            ("old", &resized, json!({"requests": {"cpu": "1", "memory": "1Gi"}}), true),
            (
                "in other words, with more",
                &resized,
                json!({"requests": {"cpu": "1.5", "memory": "1024Mi"}, "limits": {"cpu": "2"}}),
                false,
            ),
            ("one is missing", &resized, json!({"requests": {"cpu": "1500m"}}), true),
            ("not reported", &resized, json!(null), false),
            ("not by a rollout", &not_by_us, json!({}), false),
        ] {
            let statuses: Vec<ContainerStatus> =
                serde_json::from_value(json!([{"name": "c", "resources": resources}])).unwrap();
            let found = unresized(annotation, &asking(Some(&asked)), statuses.iter());
            assert_eq!(!found.is_empty(), expected, "{case}");
        }
    }

    /// Cases 97 of `OpenKruise`'s tests, and 7A-32 of what its users report.
    #[test]
    fn case_97_a_container_runs_the_new_image_once_it_is_another_container() {
        let old = json!({"imageID": "id1", "containerID": "c1"});
        let old_of_openkruise = json!({"imageID": "id1"});
        let status = |image: &str, image_id: &str, container_id: Option<&str>| json!([{"name": "c", "image": image, "imageID": image_id, "containerID": container_id}]);
        for (case, last, status, settled) in [
            ("image changed, container not", &old, status("proxy:1", "id1", Some("c1")), false),
            ("another container", &old, status("proxy:2", "id2", Some("c2")), true),
            ("a new tag of the same image", &old, status("proxy:1", "id1", Some("c2")), true),
            ("rolled back before anything happened", &old, status("proxy:2", "id1", Some("c1")), true),
            ("the same, named in full", &old, status("docker.io/library/proxy:2", "id1", Some("c1")), true),
            ("ID of the image alone, the same", &old_of_openkruise, status("proxy:1", "id1", Some("c2")), false),
            ("ID of the image alone, another", &old_of_openkruise, status("proxy:1", "id2", Some("c2")), true),
            ("no status yet", &old, json!([]), false),
            ("of another container only", &old, json!([{"name": "other", "image": "x"}]), false),
            ("the runtime names the image in full", &old, status("docker.io/library/proxy:2", "id2", Some("c2")), true),
        ] {
            assert_eq!(is_settled(last, &status), settled, "{case}");
        }
    }

    /// An image that does not come up stops the rollout, whatever the containers of the application do.
    #[test]
    fn a_new_container_is_settled_when_it_serves() {
        let old = json!({"imageID": "id1", "containerID": "c1"});
        for (ready, settled) in [(json!(false), false), (json!(true), true), (json!(null), true)] {
            let status =
                json!([{"name": "c", "image": "proxy:2", "imageID": "id2", "containerID": "c2", "ready": ready}]);
            assert_eq!(is_settled(&old, &status), settled, "{ready}");
        }
    }

    /// The part of case 97 about hot upgrades: a container of another kind is done, and the pair goes from step to step.
    #[test]
    fn case_97_a_pair_is_settled_when_the_new_container_has_taken_over_and_the_old_one_waits() {
        let state = |hand_over: &[&str], names: &[&str]| {
            let last = |name: &&str| ((*name).to_owned(), json!({"image": "old", "imageID": "i", "containerID": name}));
            let last: serde_json::Map<_, _> = names.iter().map(last).collect();
            json!({"a": {"lastContainerStatuses": last, "handOver": hand_over}}).to_string()
        };
        let new = |name: &str, ready: serde_json::Value| json!({"name": name, "image": "new", "imageID": "j", "containerID": format!("{name}-new"), "ready": ready});
        let old =
            |name: &str| json!({"name": name, "image": "old", "imageID": "i", "containerID": name, "ready": true});
        let requested = Requested { image: "new", resources: None };
        let requested = BTreeMap::from(["cold", "hot-1", "hot-2"].map(|name| (name, requested)));
        let started = state(&["hot-2"], &["cold", "hot-2"]);
        let handed_over = state(&[], &["cold", "hot-2", "hot-1"]);
        for (case, annotation, statuses, is_settled, is_due) in [
            ("nothing begun", &started, json!([old("cold"), old("hot-2")]), false, false),
            ("cold done", &started, json!([new("cold", json!(true)), old("hot-2")]), false, false),
            ("hot done", &started, json!([old("cold"), new("hot-2", json!(true))]), false, false),
            ("not ready", &started, json!([new("cold", json!(true)), new("hot-2", json!(false))]), false, false),
            ("not known", &started, json!([new("cold", json!(true)), new("hot-2", json!(null))]), false, false),
            ("both done", &started, json!([new("cold", json!(true)), new("hot-2", json!(true))]), false, true),
            (
                "taken over",
                &handed_over,
                json!([new("cold", json!(true)), new("hot-2", json!(true)), old("hot-1")]),
                false,
                false,
            ),
            (
                "all done",
                &handed_over,
                json!([new("cold", json!(true)), new("hot-2", json!(true)), new("hot-1", json!(true))]),
                true,
                false,
            ),
            ("of a container that is not there", &state(&["hot-3"], &[]), json!([]), true, false),
        ] {
            let statuses: Vec<ContainerStatus> = serde_json::from_value(statuses).unwrap();
            let unsettled = unsettled(annotation, &requested, statuses.iter(), false);
            let due = due(annotation, &requested, statuses.iter(), false);
            assert_eq!((unsettled.is_empty(), !due.is_empty()), (is_settled, is_due), "{case}");
        }
    }

    #[test]
    fn what_cannot_be_read_and_containers_that_are_gone_hold_up_nothing() {
        let none = BTreeMap::new();
        let gone = json!({"a": {"lastContainerStatuses": {"c": {}}}}).to_string();
        for annotation in ["", "{", "[]", r#"{"a": 3}"#, gone.as_str()] {
            assert!(unsettled(annotation, &none, [].iter(), false).is_empty(), "{annotation}");
            assert!(unresized(annotation, &none, [].iter()).is_empty(), "{annotation}");
        }
    }

    #[test]
    fn a_list_is_not_read_as_the_fields_of_a_state_in_their_order() {
        let requested = asking(None);
        let of = |state: serde_json::Value| {
            let annotation = json!({"a": state}).to_string();
            (unsettled(&annotation, &requested, [].iter(), false).len(), touched(&annotation).len())
        };
        assert_eq!(of(json!({"wasReady": true, "lastContainerStatuses": {"c": {"imageID": "i"}}})), (1, 1));
        for state in [
            json!(["v1:0", "2026-01-01T00:00:00Z", true, {"c": {"imageID": "i"}}]),
            json!({"wasReady": true, "lastContainerStatuses": {"c": ["proxy:1", "i", "c1"]}}),
        ] {
            assert_eq!(of(state.clone()), (0, 0), "{state}");
        }
    }
}
