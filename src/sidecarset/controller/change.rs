//! Changes one pod: reads it, decides what is to change, and writes the smallest patch for it.

use std::borrow::Cow;
use std::time::Duration;

use admission::Unserved;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use kube::{Api, Client};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::answers::{self, NoAnswer, said};
use crate::field_managers::{SIDECARSET, patching};
use crate::sidecarset::controller::bar::Bar;
use crate::sidecarset::controller::evicted::Answer;
use crate::sidecarset::controller::eviction::{self, EvictionResult, no_help};
use crate::sidecarset::controller::facts::hashed;
use crate::sidecarset::controller::pod_patch::{hand_over_of, patch};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::resize::NotResized;
use crate::sidecarset::controller::upgradable::{bar_of, barred, condition, kept};
use crate::sidecarset::controller::watched_pod::WatchedPod;
use engine::pod::in_place::{InPlace, in_place};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// What became of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodOutcome {
    /// It was changed.
    Changed,
    /// It was evicted, or may have been.
    Evicted(Answer),
    /// It has the form already.
    HasIt,
    /// It is gone, or on its way out.
    Gone,
    /// It is not what the plan was made for: it was not ready and is so by now, or is written by others all the time.
    Stale,
    /// `OpenKruise` put the set there: it is left alone.
    OpenKruise,
    /// Only a new pod can have the form, and it is not evicted for it; why.
    NewPodOnly(String),
    /// Only a new pod can have the form, and its workload would create one that has it; why.
    Replaceable(String),
    /// The same, and an earlier leader has found that no more pods of the workload are to be evicted.
    Barred(String, Bar),
    /// It may not be evicted now; why, and how long that is to be waited for at least.
    Blocked(String, Duration),
    /// No pod may be evicted; what the API server said.
    Forbidden(String),
    /// It could not be changed; why.
    Failed(String),
}

/// What a pod was when its change was planned.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
#[derive(Debug, Clone, Copy)]
pub struct AsPlanned {
    /// A hash of its uid, as the facts of pods have it.
    pub uid: u64,
    /// It was not ready, and has to be so still.
    pub is_free: bool,
    /// It takes a place in the budget until it is back.
    pub takes_place: bool,
    /// The set evicts it if only a new one can follow.
    pub is_replaced: bool,
    /// It is evicted.
    pub is_evicted: bool,
    /// It is the first of its workload by this leader.
    pub is_first: bool,
}

/// That a pod's condition says what it is to say.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    /// The version of the pod since.
    version: String,
    /// Whether no other client has written the pod since it was read.
    is_as_read: bool,
}

/// Writes images, resources and records of pods, and evicts them.
#[derive(Clone)]
pub struct PodChanger {
    client: Client,
    // It sends each request once.
    evicting: Client,
}

impl PodChanger {
    /// With this client, and one that sends each request once.
    pub const fn new(client: Client, evicting: Client) -> Self {
        Self { client, evicting }
    }

    pub(super) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Gives the pod the current form of the set, which is the one in the snapshot. A pod that another client writes meanwhile is read
    /// once more, unless it is free.
    pub async fn update(&self, set: &CompiledSet, key: &PodKey, planned: AsPlanned, snapshot: &Snapshot) -> PodOutcome {
        let mut is_begun = false;
        let outcome = match self.try_to_update(set, key, planned, snapshot, &mut is_begun).await {
            PodOutcome::Stale if !planned.is_free || is_begun => {
                self.try_to_update(set, key, planned, snapshot, &mut is_begun).await
            }
            outcome => outcome,
        };
        match outcome {
            // A container may restart for what was written: the pod keeps its place, and gets the rest afterwards.
            PodOutcome::Stale | PodOutcome::Failed(_) if is_begun => {
                tracing::warn!(
                    namespace = &*key.namespace,
                    name = &*key.name,
                    ?outcome,
                    "A pod was resized, and not changed further"
                );
                PodOutcome::Changed
            }
            outcome => outcome,
        }
    }

    async fn try_to_update(
        &self,
        set: &CompiledSet,
        key: &PodKey,
        planned: AsPlanned,
        snapshot: &Snapshot,
        is_begun: &mut bool,
    ) -> PodOutcome {
        let mut pod = match self.read(key, planned.uid).await {
            Ok(Some(pod)) => pod,
            Ok(None) => return PodOutcome::Gone,
            Err(failure) => return failure.outcome(),
        };
        if planned.is_free && is_ready(&pod) {
            return PodOutcome::Stale;
        }
        let change = match judged(&pod, key, set, snapshot) {
            // It changed meanwhile, and is planned again.
            Ok(InPlace::Change(_)) if planned.is_evicted => return PodOutcome::Stale,
            Ok(InPlace::Change(change)) => change,
            Ok(InPlace::NewPodOnly(why)) => return self.new_pod_only(set, (key, &pod), why, planned, snapshot).await,
            Ok(InPlace::OpenKruise) => return PodOutcome::OpenKruise,
            Err(unserved) => return PodOutcome::Failed(unserved.to_string()),
        };
        if change.is_empty() && change.hand_over == hand_over_of(&pod, &set.name) {
            drop(self.note(key, &pod, &set.name, None).await);
            return PodOutcome::HasIt;
        }
        if !change.resources.is_empty() {
            match self.resize(set, (key, &mut pod), &change, planned.takes_place, is_begun).await {
                Ok(()) => {}
                Err(NotResized::Invalid(why)) => {
                    return self.new_pod_only(set, (key, &pod), why, planned, snapshot).await;
                }
                Err(NotResized::Failed(failure)) => return failure.outcome(),
            }
        }
        let patch = patch(&pod, set, &change, planned.takes_place, Timestamp::now());
        let (params, patch) = (patching(SIDECARSET), Patch::Strategic(&patch));
        match in_time(self.pods(&key.namespace).patch(&key.name, &params, &patch)).await {
            Ok(_) => {}
            // It may have been written: until the watch shows the pod, it counts as changed.
            Err(Failure::NoAnswer(why)) => {
                tracing::warn!(namespace = &*key.namespace, name = &*key.name, why, "A pod may have been changed");
            }
            Err(failure) => return failure.outcome(),
        }
        drop(self.note(key, &pod, &set.name, None).await);
        PodOutcome::Changed
    }

    /// Judges a pod that only a new one can follow, says in its condition what was found, and evicts it if that is planned.
    async fn new_pod_only(
        &self,
        set: &CompiledSet,
        (key, pod): (&PodKey, &Value),
        why: String,
        planned: AsPlanned,
        snapshot: &Snapshot,
    ) -> PodOutcome {
        let no_help = if planned.is_replaced { no_help(pod, key, &set.name, snapshot) } else { Ok(None) };
        let why = match no_help {
            Ok(None) => why,
            Ok(Some(reason)) => {
                let why = kept(&reason, &why);
                drop(self.note(key, pod, &set.name, Some(&why)).await);
                return PodOutcome::NewPodOnly(why);
            }
            Err(unserved) => return PodOutcome::Failed(unserved.to_string()),
        };
        // Once this leader has seen what new pods of the workload have, it knows better.
        let bar = bar_of(pod, &set.name, &set.hash)
            .filter(|_| planned.is_replaced && (planned.is_first || !planned.is_evicted));
        if let Some(bar) = bar {
            let said = barred(bar, &set.hash, &why);
            drop(self.note(key, pod, &set.name, Some(&said)).await);
            return PodOutcome::Barred(why, bar);
        }
        let noted = self.note(key, pod, &set.name, Some(&why)).await;
        match noted {
            _ if !planned.is_replaced => PodOutcome::NewPodOnly(why),
            _ if !planned.is_evicted => PodOutcome::Replaceable(why),
            // The next leader knows by the condition which pods may have been evicted.
            Err(outcome) => outcome,
            // What it was judged by may be no more.
            Ok(Noted { is_as_read: false, .. }) => PodOutcome::Stale,
            Ok(Noted { version, .. }) => self.evict(key, pod, &version).await,
        }
    }

    /// Evicts the pod that was read, at this version. The API server refuses while a `PodDisruptionBudget` does not allow it.
    async fn evict(&self, key: &PodKey, pod: &Value, version: &str) -> PodOutcome {
        let uid = pod.get("metadata").and_then(|metadata| metadata.get("uid")?.as_str()).unwrap_or_default();
        match eviction::evict(&self.evicting, key, uid, version).await {
            EvictionResult::Yes(at) => PodOutcome::Evicted(Answer::Evicted(at)),
            // Until it is known that it was not, it counts as evicted.
            EvictionResult::Unknown(why) => {
                tracing::warn!(namespace = &*key.namespace, name = &*key.name, why, "A pod may have been evicted");
                PodOutcome::Evicted(Answer::Unknown)
            }
            EvictionResult::Gone => PodOutcome::Gone,
            EvictionResult::Stale => PodOutcome::Stale,
            EvictionResult::Blocked(why, after) => PodOutcome::Blocked(why, after.unwrap_or_default()),
            EvictionResult::Forbidden(why) => PodOutcome::Forbidden(why),
            EvictionResult::Refused(why) => PodOutcome::Failed(why),
        }
    }

    /// Whether the pod of this uid is there, and does not end; nothing if that is not known.
    pub async fn is_there(&self, key: &PodKey, uid: u64) -> Option<bool> {
        match self.read(key, uid).await {
            Ok(found) => Some(found.is_some()),
            Err(failure) => (failure.outcome() == PodOutcome::Gone).then_some(false),
        }
    }

    /// Says in the condition of a pod why it is not evicted. Returns whether it says so.
    pub async fn tell(&self, set: &str, key: &PodKey, uid: u64, why: &str) -> bool {
        match self.read(key, uid).await {
            Ok(Some(pod)) => self.note(key, &pod, set, Some(why)).await.is_ok(),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// The pod of this uid as it is stored, with fields that this build does not know; nothing where it is gone or ends.
    pub(super) async fn read(&self, key: &PodKey, uid: u64) -> Result<Option<Value>, Failure> {
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
            drop(self.note(key, &pod, set, None).await);
        }
    }

    /// Writes into the pod's condition why the set cannot be updated in it, or that it can, where that is not said already. What the
    /// condition says of other sets stays: a pod that is another by now is read once more. Returns the version of the pod, which says so.
    async fn note(&self, key: &PodKey, pod: &Value, set: &str, why: Option<&str>) -> Result<Noted, PodOutcome> {
        let mut pod = Cow::Borrowed(pod);
        for _ in 0..2 {
            let metadata = pod.get("metadata").unwrap_or(&Value::Null);
            let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
            let (uid, version) = (hashed(text("uid")), text("resourceVersion"));
            let is_as_read = matches!(pod, Cow::Borrowed(_));
            let Some(condition) = condition(&pod, set, why, Timestamp::now()) else {
                return Ok(Noted { version: version.to_owned(), is_as_read });
            };
            let version = json!({"uid": metadata.get("uid"), "resourceVersion": version});
            let patch = json!({"metadata": version, "status": {"conditions": [condition]}});
            let (params, patch) = (patching(SIDECARSET), Patch::Strategic(&patch));
            let written = in_time(self.pods(&key.namespace).patch_status(&key.name, &params, &patch)).await;
            match written.map_err(|failure| failure.outcome()) {
                Ok(written) => {
                    let version = written.metadata.resource_version.unwrap_or_default();
                    return Ok(Noted { version, is_as_read });
                }
                Err(PodOutcome::Stale) => match self.read(key, uid).await {
                    Ok(Some(newer)) => pod = Cow::Owned(newer),
                    Ok(None) => return Err(PodOutcome::Gone),
                    Err(failure) => return Err(failure.outcome()),
                },
                Err(PodOutcome::Failed(why)) => {
                    let (namespace, name) = (&*key.namespace, &*key.name);
                    tracing::warn!(namespace, name, why, "A pod's condition cannot be written");
                    return Err(PodOutcome::Failed(format!("its condition cannot be written: {why}")));
                }
                Err(outcome) => return Err(outcome),
            }
        }
        Err(PodOutcome::Stale)
    }
}

/// How a pod takes the form of the set. One that asks for all of it already may not have got it from the kubelet.
fn judged(pod: &Value, key: &PodKey, set: &CompiledSet, snapshot: &Snapshot) -> Result<InPlace, Unserved> {
    let found = in_place(pod, &key.namespace, &set.name, snapshot)?;
    let why_not = || WatchedPod::deserialize(pod).ok()?.why_unresized(&set.name);
    Ok(match found {
        InPlace::Change(change) if change.is_empty() => {
            why_not().map_or_else(|| InPlace::Change(change), InPlace::NewPodOnly)
        }
        found => found,
    })
}

/// Why a request had no success.
#[derive(Debug)]
pub(super) enum Failure {
    /// What the API server said.
    Answer(kube::Error),
    /// It said nothing, and may have done it.
    NoAnswer(String),
}

impl Failure {
    /// A pod that is gone is no failure.
    pub(super) fn outcome(&self) -> PodOutcome {
        match self {
            Self::Answer(kube::Error::Api(status)) if status.code == 404 => PodOutcome::Gone,
            Self::Answer(kube::Error::Api(status)) if status.code == 409 => PodOutcome::Stale,
            Self::Answer(error) => PodOutcome::Failed(said(error)),
            Self::NoAnswer(why) => PodOutcome::Failed(why.clone()),
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
        match &error {
            kube::Error::Api(status) if status.code < 500 || is_of_webhook(&status.message) => Self::Answer(error),
            _ => Self::NoAnswer(said(&error)),
        }
    }
}

/// Whether the API server could not call a webhook, which it reports with code 500 before it writes anything
/// (`ErrCallingWebhook` in `k8s.io/apiserver`). Other errors of its own may come after the write.
pub fn is_of_webhook(message: &str) -> bool {
    message.contains("failed calling webhook")
}

pub(super) async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
    answers::in_time(async { request.await.map_err(Failure::from) }).await
}

/// Whether the pod serves, as its condition says.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod.get("status").and_then(|status| status.get("conditions")?.as_array());
    let is = |condition: &Value, field: &str, value: &str| condition.get(field).and_then(Value::as_str) == Some(value);
    conditions.into_iter().flatten().any(|it| is(it, "type", "Ready") && is(it, "status", "True"))
}

#[cfg(test)]
#[path = "change_tests.rs"]
#[allow(clippy::needless_pass_by_value)]
mod tests;
