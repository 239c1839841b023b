//! What a rollout writes down of a pod whose images it changes, and what follows from it: whether the containers run them yet.
//!
//! The annotation has `OpenKruise`'s form, under our own domain. Where `OpenKruise` keeps the ID of the image alone, this keeps that of
//! the container too: a new tag of the same image never gets another image ID.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize, Serializer};

/// The status of a container, as far as it says what runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name.
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
    /// The containers whose image was changed, as they were before.
    pub last_container_statuses: BTreeMap<String, LastStatus>,
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
        let image = earlier.filter(is_same).map_or(image, |earlier| &earlier.image).to_owned();
        Self { image, image_id: status.image_id.clone(), container_id }
    }

    /// Whether the container still is what it was, though the pod asks for another image.
    fn is_still(&self, status: &ContainerStatus, image: &str) -> bool {
        let now = status.container_id.as_deref().unwrap_or_default();
        let is_same = if self.container_id.is_empty() || now.is_empty() {
            self.image_id == status.image_id
        } else {
            self.container_id == now
        };
        is_same && (self.image.is_empty() || self.image != image) && in_full(&status.image) != in_full(image)
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
    let states = serde_json::from_str::<BTreeMap<String, InPlaceState>>(annotation).unwrap_or_default();
    states.into_iter().filter(|(_, state)| state.was_ready).map(|(set, _)| set).collect()
}

/// The sets with a container that does not run yet what the pod asks for, or does not serve with it. `images` are those of the pod's spec, by container. An
/// annotation that cannot be read counts as none: a user who may write it can make this pod take a
/// place in the budget of its sets, until it is overdue.
pub fn unsettled<'s>(
    annotation: &str,
    images: &BTreeMap<&str, &str>,
    statuses: impl Iterator<Item = &'s ContainerStatus>,
) -> BTreeSet<String> {
    let Ok(states) = serde_json::from_str::<BTreeMap<String, InPlaceState>>(annotation) else {
        return BTreeSet::new();
    };
    let statuses: HashMap<&str, &ContainerStatus> = statuses.map(|status| (status.name.as_str(), status)).collect();
    let is_still = |(name, last): (&String, &LastStatus)| {
        let Some(image) = images.get(name.as_str()) else { return false };
        statuses.get(name.as_str()).is_none_or(|status| status.ready == Some(false) || last.is_still(status, image))
    };
    let sets = states.into_iter().filter(|(_, state)| state.last_container_statuses.iter().any(is_still));
    sets.map(|(set, _)| set).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_settled(last: &serde_json::Value, status: &serde_json::Value) -> bool {
        let annotation = json!({"a": {"lastContainerStatuses": {"c": last}}}).to_string();
        let statuses: Vec<ContainerStatus> = serde_json::from_value(status.clone()).unwrap();
        unsettled(&annotation, &BTreeMap::from([("c", "proxy:2")]), statuses.iter()).is_empty()
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

    #[test]
    fn what_cannot_be_read_and_containers_that_are_gone_hold_up_nothing() {
        let none = BTreeMap::new();
        let gone = json!({"a": {"lastContainerStatuses": {"c": {}}}}).to_string();
        for annotation in ["", "{", "[]", r#"{"a": 3}"#, gone.as_str()] {
            assert!(unsettled(annotation, &none, [].iter()).is_empty(), "{annotation}");
        }
    }

    #[test]
    fn a_list_is_not_read_as_the_fields_of_a_state_in_their_order() {
        let images = BTreeMap::from([("c", "proxy:2")]);
        let of = |state: serde_json::Value| {
            let annotation = json!({"a": state}).to_string();
            (unsettled(&annotation, &images, [].iter()).len(), touched(&annotation).len())
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
