//! Changes one pod: reads it, decides what is to change, and writes the smallest patch for it.

use std::collections::BTreeMap;

use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::answers::{self, NoAnswer, said};
use crate::controller::conditions::whole_seconds;
use crate::field_managers::{SIDECARSET, patching};
use crate::sidecarset::controller::facts::hashed;
use crate::sidecarset::controller::in_place_state::{ContainerStatus, InPlaceState, LastStatus};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::records::IN_PLACE_STATE;
use engine::pod::in_place::{Change, InPlace, in_place};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// Type of the pod's condition that says which sets cannot be updated in it, and why.
pub const UPGRADABLE: &str = "outrider.dev/SidecarSetUpgradable";

/// Sets that the condition of one pod names.
const NAMED_MAX: usize = 16;
/// Why one set cannot be updated, in characters.
const WHY_MAX: usize = 256;

/// What became of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was changed.
    Changed,
    /// It has the form already.
    HasIt,
    /// It is gone, or on its way out.
    Gone,
    /// It was to be changed as it was not ready, and is ready by now.
    Stale,
    /// `OpenKruise` put the set there: it is left alone.
    OpenKruise,
    /// Only a new pod can have the form; why.
    NewPodOnly(String),
    /// It could not be changed; why.
    Failed(String),
}

/// Changes pods.
#[derive(Clone)]
pub struct PodChanger {
    client: Client,
}

impl PodChanger {
    /// With this client.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Gives the pod of this uid the current form of the set, which is the one in the snapshot. One that is to be changed because it
    /// `is_free`, as it was not ready, has to be so still.
    pub async fn update(
        &self,
        set: &CompiledSet,
        key: &PodKey,
        (uid, is_free): (u64, bool),
        snapshot: &Snapshot,
    ) -> Outcome {
        let pod = match self.read(key, uid).await {
            Ok(Some(pod)) => pod,
            Ok(None) => return Outcome::Gone,
            Err(failure) => return failure.outcome(),
        };
        if is_free && is_ready(&pod) {
            return Outcome::Stale;
        }
        let change = match in_place(&pod, &key.namespace, &set.name, snapshot) {
            Ok(InPlace::Change(change)) => change,
            Ok(InPlace::NewPodOnly(why)) => {
                self.note(key, &pod, &set.name, Some(&why)).await;
                return Outcome::NewPodOnly(why);
            }
            Ok(InPlace::OpenKruise) => return Outcome::OpenKruise,
            Err(unserved) => return Outcome::Failed(unserved.to_string()),
        };
        if change.images.is_empty() && change.annotations.is_empty() {
            self.note(key, &pod, &set.name, None).await;
            return Outcome::HasIt;
        }
        let patch = patch(&pod, set, &change, Timestamp::now());
        let (params, patch) = (patching(SIDECARSET), Patch::Strategic(&patch));
        match in_time(self.pods(&key.namespace).patch(&key.name, &params, &patch)).await {
            Ok(_) => {}
            // It may have been written: until the watch shows the pod, it counts as changed.
            Err(Failure::NoAnswer(why)) => {
                tracing::warn!(namespace = &*key.namespace, name = &*key.name, why, "A pod may have been changed");
            }
            Err(failure) => return failure.outcome(),
        }
        self.note(key, &pod, &set.name, None).await;
        Outcome::Changed
    }

    /// The pod of this uid as it is stored, with fields that this build does not know; nothing where it is gone or ends.
    async fn read(&self, key: &PodKey, uid: u64) -> Result<Option<Value>, Failure> {
        let url = format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name);
        let request = Request::get(url).body(Vec::new()).map_err(|error| Failure::NoAnswer(error.to_string()))?;
        let pod = in_time(self.client.request::<Value>(request)).await?;
        let metadata = pod.get("metadata").unwrap_or(&Value::Null);
        let is_same = metadata.get("uid").and_then(Value::as_str).is_some_and(|text| hashed(text) == uid);
        let ends = metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null());
        Ok((is_same && !ends).then_some(pod))
    }

    /// Takes the set out of the condition of a pod that has the current form by now.
    pub async fn clear(&self, set: &str, key: &PodKey, uid: u64) {
        if let Ok(Some(pod)) = self.read(key, uid).await {
            self.note(key, &pod, set, None).await;
        }
    }

    /// Writes into the pod's condition why the set cannot be updated in it, or that it can, where that is not said already.
    async fn note(&self, key: &PodKey, pod: &Value, set: &str, why: Option<&str>) {
        let Some(condition) = condition(pod, set, why, Timestamp::now()) else { return };
        let uid = pod.get("metadata").and_then(|metadata| metadata.get("uid"));
        let patch = json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}});
        let (params, patch) = (patching(SIDECARSET), Patch::Strategic(&patch));
        if let Err(failure) = in_time(self.pods(&key.namespace).patch_status(&key.name, &params, &patch)).await
            && let Outcome::Failed(why) = failure.outcome()
        {
            tracing::warn!(namespace = &*key.namespace, name = &*key.name, why, "A pod's condition cannot be written");
        }
    }
}

/// Why a request had no success.
#[derive(Debug)]
enum Failure {
    /// What the API server said.
    Answer(kube::Error),
    /// It said nothing, and may have done it.
    NoAnswer(String),
}

impl Failure {
    /// A pod that is gone is no failure.
    fn outcome(&self) -> Outcome {
        match self {
            Self::Answer(kube::Error::Api(status)) if status.code == 404 => Outcome::Gone,
            Self::Answer(error) => Outcome::Failed(said(error)),
            Self::NoAnswer(why) => Outcome::Failed(why.clone()),
        }
    }
}

impl From<NoAnswer> for Failure {
    fn from(error: NoAnswer) -> Self {
        Self::NoAnswer(error.to_string())
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(_) => Self::Answer(error),
            error => Self::NoAnswer(said(&error)),
        }
    }
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
    answers::in_time(async { request.await.map_err(Failure::from) }).await
}

/// Whether the pod serves, as its condition says.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod.get("status").and_then(|status| status.get("conditions")?.as_array());
    let is = |condition: &Value, field: &str, value: &str| condition.get(field).and_then(Value::as_str) == Some(value);
    conditions.into_iter().flatten().any(|it| is(it, "type", "Ready") && is(it, "status", "True"))
}

/// The smallest patch: the images, the annotations, and what the containers were before. With the version that was read, so that
/// whatever changed since is seen first.
fn patch(pod: &Value, set: &CompiledSet, change: &Change, now: Timestamp) -> Value {
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    let mut annotations: BTreeMap<&str, String> =
        change.annotations.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    if !change.images.is_empty() {
        annotations.insert(IN_PLACE_STATE, in_place_state(pod, set, change, now));
    }
    let mut patch = json!({
        "metadata": {
            "uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion"), "annotations": annotations,
        },
    });
    for image in &change.images {
        let list = patch.as_object_mut().map(|patch| patch.entry("spec").or_insert_with(|| json!({})));
        let list = list.and_then(Value::as_object_mut).map(|spec| spec.entry(image.list).or_insert_with(|| json!([])));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.push(json!({"name": image.container, "image": image.image}));
        }
    }
    patch
}

/// The annotation with what the containers were that change now. What it says of other sets stays.
fn in_place_state(pod: &Value, set: &CompiledSet, change: &Change, now: Timestamp) -> String {
    let text = pod.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(IN_PLACE_STATE)?.as_str());
    let mut of_sets: BTreeMap<String, Value> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let of_pod = pod.get("status").unwrap_or(&Value::Null);
    let lists = ["containerStatuses", "initContainerStatuses"].into_iter().filter_map(|list| of_pod.get(list));
    let containers: Vec<ContainerStatus> =
        lists.filter_map(|list| serde_json::from_value::<Vec<ContainerStatus>>(list.clone()).ok()).flatten().collect();
    let last = |name: &String| {
        let before = containers.iter().find(|container| container.name == *name);
        (name.clone(), before.map(LastStatus::of).unwrap_or_default())
    };
    let state = InPlaceState {
        revision: set.hash.clone(),
        update_timestamp: whole_seconds(now).0.to_string(),
        last_container_statuses: change.images.iter().map(|image| last(&image.container)).collect(),
    };
    of_sets.insert(set.name.clone(), json!(state));
    json!(of_sets).to_string()
}

/// The pod's condition where it has to change. Its message is JSON: why, by set.
fn condition(pod: &Value, set: &str, why: Option<&str>, now: Timestamp) -> Option<Value> {
    let conditions = pod.get("status").and_then(|status| status.get("conditions")?.as_array());
    let before = conditions.into_iter().flatten().find(|condition| condition.get("type") == Some(&json!(UPGRADABLE)));
    let message = before.and_then(|condition| condition.get("message")?.as_str());
    let mut sets: BTreeMap<String, String> =
        message.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match why {
        Some(why) => {
            let why: String = why.chars().take(WHY_MAX).collect();
            if sets.get(set) == Some(&why) || (sets.len() >= NAMED_MAX && !sets.contains_key(set)) {
                return None;
            }
            sets.insert(set.to_owned(), why);
        }
        None => {
            sets.remove(set)?;
        }
    }
    let (status, reason) = if sets.is_empty() { ("True", "Updatable") } else { ("False", "NewPodOnly") };
    let same_status = before.filter(|condition| condition.get("status") == Some(&json!(status)));
    let since = same_status.and_then(|condition| condition.get("lastTransitionTime").cloned());
    Some(json!({
        "type": UPGRADABLE, "status": status, "reason": reason,
        "message": if sets.is_empty() { String::new() } else { json!(sets).to_string() },
        "lastTransitionTime": since.unwrap_or_else(|| json!(whole_seconds(now))),
    }))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests {
    use super::*;
    use engine::pod::in_place::NewImage;

    fn set() -> CompiledSet {
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "c:2"}]});
        let set = json!({"metadata": {"name": "a"}, "spec": spec});
        CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap()
    }

    fn pod(annotations: Value, conditions: Value) -> Value {
        json!({
            "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": "c:1"}]},
            "status": {
                "conditions": conditions,
                "containerStatuses": [{"name": "c", "image": "c:1", "imageID": "i1", "containerID": "c1", "state": {}}],
            },
        })
    }

    fn at() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_patch_holds_what_changes_and_the_version_that_was_read_and_nothing_else() {
        let change = Change {
            images: vec![NewImage { list: "containers", container: "c".to_owned(), image: "c:2".to_owned() }],
            annotations: vec![("outrider.dev/injected".to_owned(), "{}".to_owned())],
        };
        let other = json!({"b": {"revision": "v1:b"}}).to_string();
        let (set, annotations) = (set(), json!({IN_PLACE_STATE: other, "of-the-app": "x"}));
        let patch = patch(&pod(annotations, json!([])), &set, &change, at());
        let state: Value =
            serde_json::from_str(patch["metadata"]["annotations"][IN_PLACE_STATE].as_str().unwrap()).unwrap();
        assert_eq!(
            state,
            json!({
                "a": {
                    "revision": &*set.hash, "updateTimestamp": "2026-01-01T00:00:00Z",
                    "lastContainerStatuses": {"c": {"imageID": "i1", "containerID": "c1"}},
                },
                "b": {"revision": "v1:b"},
            })
        );
        assert_eq!(patch["spec"], json!({"containers": [{"name": "c", "image": "c:2"}]}));
        assert_eq!((&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
        assert_eq!(patch["metadata"]["annotations"].as_object().unwrap().len(), 2);
    }

    #[test]
    fn annotations_alone_restart_nothing_and_leave_the_state() {
        let change = Change { images: vec![], annotations: vec![("a".to_owned(), "b".to_owned())] };
        let patch = patch(&pod(json!({}), json!([])), &set(), &change, at());
        assert_eq!(patch["metadata"]["annotations"], json!({"a": "b"}));
        assert_eq!(patch.get("spec"), None);
    }

    /// Cases 93 and 94: two sets, of which one cannot be updated.
    #[test]
    fn case_94_the_condition_names_each_set_that_cannot_be_updated_and_is_written_on_change_only() {
        let with = |condition: &Value| pod(json!({}), json!([{"type": "Ready"}, condition]));
        assert_eq!(condition(&pod(json!({}), json!([])), "a", None, at()), None);
        let first = condition(&pod(json!({}), json!([])), "a", Some("env"), at()).unwrap();
        assert_eq!((first["status"].as_str(), first["message"].as_str()), (Some("False"), Some(r#"{"a":"env"}"#)));
        assert_eq!(condition(&with(&first), "a", Some("env"), at()), None);
        let later = "2026-02-01T00:00:00Z".parse().unwrap();
        let both = condition(&with(&first), "b", Some("a volume"), later).unwrap();
        assert_eq!(both["message"], r#"{"a":"env","b":"a volume"}"#);
        assert_eq!(both["lastTransitionTime"], first["lastTransitionTime"]);
        let one = condition(&with(&both), "a", None, later).unwrap();
        assert_eq!(one["message"], r#"{"b":"a volume"}"#);
        let none = condition(&with(&one), "b", None, later).unwrap();
        assert_eq!((none["status"].as_str(), none["message"].as_str()), (Some("True"), Some("")));
    }

    #[test]
    fn a_condition_of_somebody_elses_making_is_replaced_and_bounded() {
        let mut forged = json!({"type": UPGRADABLE, "status": "False", "message": "{"});
        assert!(condition(&pod(json!({}), json!([forged])), "a", Some("env"), at()).is_some());
        let many: BTreeMap<String, String> = (0..20).map(|n| (format!("s{n}"), "x".to_owned())).collect();
        forged["message"] = json!(many).to_string().into();
        assert_eq!(condition(&pod(json!({}), json!([forged])), "a", Some("env"), at()), None);
    }

    /// Between the plan and the patch a pod that was starting may have become ready.
    #[tokio::test]
    async fn a_pod_that_was_free_and_is_ready_by_now_is_not_changed() {
        for (status, is_free, expected) in [("True", true, Outcome::Stale), ("False", true, Outcome::HasIt)] {
            let (set, mut stored) = (set(), pod(json!({}), json!([{"type": "Ready", "status": status}])));
            let entry: Value = serde_json::from_str(&set.entry).unwrap();
            stored["metadata"]["annotations"] = json!({"outrider.dev/injected": json!({"a": entry}).to_string()});
            stored["metadata"]["labels"] = json!({"app": "web"});
            let injected: Value = serde_json::from_str(&set.containers.iter().next().unwrap().json).unwrap();
            stored["spec"]["containers"] = json!([{"name": "app", "image": "app:1"}, injected]);
            let body = stored.to_string();
            let service = tower::service_fn(move |request: Request<kube::client::Body>| {
                assert_eq!(request.method(), "GET", "nothing is written");
                let body = http_body_util::Full::new(bytes::Bytes::from(body.clone()));
                async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
            });
            let changer = PodChanger::new(Client::new(service, "default"));
            let mut builder =
                engine::snapshot::builder::SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
            let spec =
                json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "c:2"}]});
            builder
                .collections
                .sets
                .apply(&serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap());
            let world = crate::watch::read_model::ReadModel::of(&builder);
            builder.publish(&world.snapshot);
            let watched = serde_json::from_value(json!({"metadata": {"namespace": "default", "name": "p"}})).unwrap();
            let found =
                changer.update(&set, &PodKey::of(&watched), (hashed("u"), is_free), &world.snapshot.load_full()).await;
            assert_eq!(found, expected, "{status}");
        }
    }

    /// Case 100: a pod that is deleted between the decision and the write.
    #[test]
    fn case_100_a_pod_that_is_gone_is_no_failure() {
        let answer = |code| {
            let status = kube::core::Status::failure("no", "Reason").with_code(code);
            Failure::Answer(kube::Error::Api(Box::new(status))).outcome()
        };
        assert_eq!(answer(404), Outcome::Gone);
        assert_eq!(answer(403), Outcome::Failed("no".to_owned()));
    }
}
