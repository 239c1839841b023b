//! `ControllerRevisions` of a set, in our own namespace: one for each form that the set has had, by the hash of what it injects. The
//! record of a pod names the one that it carries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, ListParams, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::answers::{NoAnswer, in_time, said};
use crate::field_managers::{SIDECARSET, patching, posting};
use crate::names::APP;
use crate::sidecarset::controller::history::{Kept, Step, step, too_many};
use crate::sidecarset::controller::locks::locked;
use engine::sidecarset::api::{API_VERSION, KIND, SidecarSetSpec};
use engine::sidecarset::canonical::injected_fields;
use engine::sidecarset::compiled::{CompiledSet, revision_name};
use engine::sidecarset::pin::RevisionRef;
use engine::snapshot::revisions::{CUSTOM_VERSION_LABEL, SET_LABEL};
use engine::snapshot::sets::SetRecord;

/// No controller watches revisions: after so long they are listed again. One that was deleted by hand is back then.
const VERIFIED_AFTER: Duration = Duration::from_secs(300);

/// A revision that could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("the revisions of the set cannot be kept: {}", said(.0))]
    Request(#[from] kube::Error),
    /// No answer in time.
    #[error("the revisions of the set cannot be kept: {0}")]
    Timeout(#[from] NoAnswer),
    /// The name is taken, for a moment: revisions of a deleted set of the same name go with it.
    #[error("ControllerRevision {0:?} belongs to somebody else; it is waited for to go")]
    Foreign(String),
}

/// Keeps revisions.
pub struct Revisions {
    api: Api<ControllerRevision>,
    // By set.
    made_sure: Mutex<HashMap<String, MadeSure>>,
}

/// What the revisions of a set are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Done {
    uid: String,
    newest: String,
    custom_version: Option<String>,
    pinned: Option<RevisionRef>,
    limit: usize,
}

/// What they were made to be, and when.
struct MadeSure {
    done: Done,
    // Used revisions that are beyond the limit: when pods go on to others, these go.
    surplus_in_use: BTreeSet<String>,
    at: Instant,
}

impl MadeSure {
    /// For how long there is nothing to do, if there is not.
    fn holds_for(&self, done: &Done, used: &BTreeSet<String>) -> Option<Duration> {
        let left = VERIFIED_AFTER.checked_sub(self.at.elapsed())?;
        (self.done == *done && self.surplus_in_use.is_subset(used)).then_some(left)
    }
}

impl Revisions {
    /// In this namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), made_sure: Mutex::default() }
    }

    fn made_sure(&self) -> MutexGuard<'_, HashMap<String, MadeSure>> {
        locked(&self.made_sure)
    }

    /// Forgets a set that is gone. Its revisions go with it.
    pub fn forget(&self, set: &str) {
        self.made_sure().remove(set);
    }

    /// Makes the current form of the set its newest revision, deletes revisions beyond the limit, and returns the name of the newest, and
    /// when to make sure of it again: somebody may delete it. `hashes` are the forms that pods carry. Sends no request until then
    /// while nothing has changed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keep(
        &self,
        record: &SetRecord,
        set: &CompiledSet,
        hashes: &BTreeSet<String>,
    ) -> Result<(String, Duration), Error> {
        let newest = revision_name(&set.name, &set.hash);
        let used: BTreeSet<String> = hashes.iter().map(|hash| revision_name(&set.name, hash)).collect();
        let done = Done {
            uid: record.uid.clone(),
            newest: newest.clone(),
            custom_version: set.custom_version.as_deref().map(str::to_owned),
            pinned: set.pin.as_ref().map(|pin| pin.revision.clone()),
            limit: set.revision_history_limit,
        };
        let left = self.made_sure().get(&set.name).and_then(|before| before.holds_for(&done, &used));
        if let Some(left) = left {
            return Ok((newest, left));
        }
        let surplus_in_use = in_time(self.bring(record, set, &done, &used)).await?;
        let sure = MadeSure { done, surplus_in_use, at: Instant::now() };
        self.made_sure().insert(set.name.clone(), sure);
        Ok((newest, VERIFIED_AFTER))
    }

    /// Gives the revisions beyond the limit that stay as pods use them.
    async fn bring(
        &self,
        record: &SetRecord,
        set: &CompiledSet,
        done: &Done,
        used: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut kept = self.list(&record.uid).await?;
        let name = &done.newest;
        match step(&kept, name) {
            Step::Nothing => {}
            Step::Create(number) => {
                let revision = revision(record, set, done, number, self.namespace());
                match self.api.create(&posting(SIDECARSET), &revision).await {
                    Ok(_) => {
                        kept.push(Kept { name: name.clone(), number, custom_version: done.custom_version.clone() });
                    }
                    Err(kube::Error::Api(status)) if status.code == 409 => {
                        let custom_version = self.label_again(name, &record.uid, number).await?;
                        kept.push(Kept { name: name.clone(), number, custom_version });
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Step::Renumber(number) => {
                self.patch(name, &json!({"revision": number})).await?;
                kept.iter_mut().filter(|revision| revision.name == *name).for_each(|revision| revision.number = number);
            }
        }
        let written = kept.iter().find(|revision| revision.name == *name).and_then(|it| it.custom_version.clone());
        // A version that new pods get stays where it is: with the label it would be gone.
        let is_pinned = done.pinned.as_ref().is_some_and(|named| is_version(named, written.as_deref()));
        if written != done.custom_version && !is_pinned {
            let labels = json!({CUSTOM_VERSION_LABEL: done.custom_version});
            self.patch(name, &json!({"metadata": {"labels": labels}})).await?;
        }
        let mut stay = used.clone();
        stay.extend(done.pinned.as_ref().and_then(|named| pinned(&kept, named)));
        for name in too_many(&kept, done.limit, &stay) {
            match self.api.delete(&name, &DeleteParams::default()).await {
                Ok(_) => kept.retain(|revision| revision.name != name),
                Err(kube::Error::Api(status)) if status.code == 404 => kept.retain(|revision| revision.name != name),
                Err(error) => return Err(error.into()),
            }
        }
        let surplus = too_many(&kept, done.limit, &BTreeSet::new());
        Ok(surplus.into_iter().filter(|name| used.contains(name)).collect())
    }

    fn namespace(&self) -> Option<String> {
        self.api.namespace().map(str::to_owned)
    }

    async fn list(&self, uid: &str) -> Result<Vec<Kept>, Error> {
        let of_set = ListParams::default().labels(&format!("{SET_LABEL}={uid}"));
        let found = self.api.list(&of_set).await?;
        let kept = found.items.into_iter().filter(|revision| is_of(revision, uid)).map(|revision| Kept {
            name: revision.name_any(),
            number: revision.revision,
            custom_version: revision.labels().get(CUSTOM_VERSION_LABEL).cloned(),
        });
        Ok(kept.collect())
    }

    /// Takes back a revision of the set that its label was taken off by hand, which the list misses, and returns its version.
    async fn label_again(&self, name: &str, uid: &str, number: i64) -> Result<Option<String>, Error> {
        let found = self.api.get_opt(name).await?;
        let Some(found) = found.filter(|revision| is_of(revision, uid)) else {
            return Err(Error::Foreign(name.to_owned()));
        };
        self.patch(name, &json!({"metadata": {"labels": {SET_LABEL: uid}}, "revision": number})).await?;
        Ok(found.labels().get(CUSTOM_VERSION_LABEL).cloned())
    }

    async fn patch(&self, name: &str, patch: &Value) -> Result<(), Error> {
        self.api.patch(name, &patching(SIDECARSET), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// The name of the revision that new pods may get by `spec.injectionStrategy.revision`: of several with one version the newest.
fn pinned(kept: &[Kept], named: &RevisionRef) -> Option<String> {
    let is_named = |revision: &&Kept| match named {
        RevisionRef::Name(name) => revision.name == **name,
        RevisionRef::CustomVersion(_) => is_version(named, revision.custom_version.as_deref()),
    };
    kept.iter().filter(is_named).max_by_key(|revision| revision.number).map(|revision| revision.name.clone())
}

fn is_version(named: &RevisionRef, version: Option<&str>) -> bool {
    matches!(named, RevisionRef::CustomVersion(named) if version == Some(&**named))
}

/// Whether the revision belongs to the set of this uid.
fn is_of(revision: &ControllerRevision, uid: &str) -> bool {
    revision.owner_references().iter().any(|owner| owner.uid == uid && owner.controller == Some(true))
}

/// The revision of the set's form.
fn revision(
    record: &SetRecord,
    set: &CompiledSet,
    done: &Done,
    number: i64,
    namespace: Option<String>,
) -> ControllerRevision {
    let mut labels = BTreeMap::from([
        ("app.kubernetes.io/managed-by".to_owned(), APP.to_owned()),
        (SET_LABEL.to_owned(), record.uid.clone()),
    ]);
    labels.extend(done.custom_version.clone().map(|version| (CUSTOM_VERSION_LABEL.to_owned(), version)));
    let owner = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: record.name.clone(),
        uid: record.uid.clone(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(done.newest.clone()),
            namespace,
            labels: Some(labels),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data(&set.spec()))),
        revision: number,
    }
}

/// What the hash is of, as a patch of the set, in OpenKruise's form.
fn data(spec: &SidecarSetSpec) -> Value {
    let mut injected = injected_fields(spec);
    injected.insert("$patch".to_owned(), "replace".into());
    json!({"spec": injected})
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests {
    use super::*;

    fn set(spec: Value) -> CompiledSet {
        let mut whole =
            json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "c:1"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        CompiledSet::compile(&serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": whole})).unwrap())
            .unwrap()
    }

    fn record() -> SetRecord {
        SetRecord {
            name: "a".to_owned(),
            uid: "u".to_owned(),
            terminating: false,
            status: None,
            compiled: None,
            compiled_generation: 1,
        }
    }

    #[test]
    fn case_108_a_change_of_annotations_is_another_revision_and_one_of_the_strategy_is_none() {
        let annotations = json!({"patchPodMetadata": [{"annotations": {"a.example/b": "c"}}]});
        let names = [json!({}), annotations, json!({"updateStrategy": {"paused": true}, "customVersion": "2"})]
            .map(|spec| revision_name("a", &set(spec).hash));
        assert_ne!(names[0], names[1]);
        assert_eq!(names[0], names[2]);
    }

    #[test]
    fn a_revision_belongs_to_the_set_and_holds_what_is_injected() {
        let set = set(json!({"customVersion": "blue", "order": 3}));
        let record = record();
        let done = Done {
            uid: "u".to_owned(),
            newest: revision_name("a", &set.hash),
            custom_version: Some("blue".to_owned()),
            pinned: None,
            limit: 10,
        };
        let revision = json!(revision(&record, &set, &done, 4, None));
        assert_eq!(revision["metadata"]["labels"][CUSTOM_VERSION_LABEL], "blue");
        assert_eq!(revision["metadata"]["labels"][SET_LABEL], "u");
        assert_eq!(revision["metadata"]["ownerReferences"][0]["uid"], "u");
        let data = json!({"spec": {"$patch": "replace", "containers": [{"name": "c", "image": "c:1"}]}});
        assert_eq!((&revision["data"], &revision["revision"]), (&data, &json!(4)));
    }

    #[test]
    fn what_new_pods_get_is_not_deleted_however_old_it_is() {
        let kept =
            |number: i64| Kept { name: format!("a-{number}"), number, custom_version: Some(format!("v{number}")) };
        let all: Vec<Kept> = (0..10_000).map(kept).collect();
        for (named, expected) in [
            (RevisionRef::Name("a-3".into()), Some("a-3")),
            (RevisionRef::CustomVersion("v5".into()), Some("a-5")),
            (RevisionRef::CustomVersion("v".into()), None),
        ] {
            let pinned = pinned(&all, &named);
            assert_eq!(pinned.as_deref(), expected);
            let go = too_many(&all, 10, &pinned.into_iter().collect());
            assert!(expected.is_none_or(|name| !go.iter().any(|gone| gone == name)));
            assert_eq!(go.len(), 9_990);
        }
    }

    #[test]
    fn of_several_revisions_with_the_pinned_version_the_newest_is_kept() {
        let version = || Some("1".to_owned());
        let kept = [("a-1", 3), ("a-2", 7), ("a-3", 5)].map(|(name, number)| Kept {
            name: name.to_owned(),
            number,
            custom_version: version(),
        });
        let found = pinned(&kept, &RevisionRef::CustomVersion("1".into()));
        assert_eq!(found.as_deref(), Some("a-2"));
    }

    /// An API server whose one revision is the current form with the version 1, while the set is of version 2.
    #[tokio::test]
    async fn the_version_of_a_revision_follows_the_set_unless_new_pods_get_that_version() {
        for (pinned, expected) in [("1", 0), ("2", 1)] {
            let revision = json!({"customVersion": pinned});
            let set = set(json!({"customVersion": "2", "injectionStrategy": {"revision": revision}}));
            let owners =
                [json!({"apiVersion": API_VERSION, "kind": KIND, "name": "a", "uid": "u", "controller": true})];
            let metadata = json!({
                "name": revision_name("a", &set.hash), "ownerReferences": owners,
                "labels": {SET_LABEL: "u", CUSTOM_VERSION_LABEL: "1"},
            });
            let one =
                json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": metadata, "revision": 1});
            let patches = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let counted = std::sync::Arc::clone(&patches);
            let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
                let list =
                    json!({"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": {}, "items": [one]});
                let is_patch = request.method() == "PATCH";
                counted.fetch_add(usize::from(is_patch), std::sync::atomic::Ordering::SeqCst);
                let body = if is_patch { one.clone() } else { list };
                let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
                async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
            });
            let revisions = Revisions::new(Client::new(service, "default"), "default");
            revisions.keep(&record(), &set, &BTreeSet::new()).await.unwrap();
            assert_eq!(patches.load(std::sync::atomic::Ordering::SeqCst), expected, "{pinned}");
        }
    }

    #[test]
    fn revisions_are_listed_again_when_something_differs_or_after_a_while() {
        let done = |newest: &str| Done {
            uid: "u".to_owned(),
            newest: newest.to_owned(),
            custom_version: None,
            pinned: None,
            limit: 10,
        };
        let used = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let sure = |at| MadeSure { done: done("a-1"), surplus_in_use: used(&["a-0"]), at };
        let (now, both) = (Instant::now(), used(&["a-0", "a-1"]));
        assert!(sure(now).holds_for(&done("a-1"), &both).is_some_and(|left| left <= VERIFIED_AFTER));
        assert_eq!(sure(now).holds_for(&done("a-2"), &both), None, "the set has another form");
        let pinned = Done { pinned: Some(RevisionRef::Name("a-0".into())), ..done("a-1") };
        assert_eq!(sure(now).holds_for(&pinned, &both), None, "new pods get another revision");
        assert_eq!(sure(now).holds_for(&done("a-1"), &used(&["a-1"])), None, "an old one has become free");
        let long_ago = now.checked_sub(VERIFIED_AFTER * 2).unwrap();
        assert_eq!(sure(long_ago).holds_for(&done("a-1"), &both), None, "somebody may have deleted one");
    }

    /// An API server that lists no revision and has one of the name, which belongs to the set of this uid.
    #[tokio::test]
    async fn a_revision_that_lost_its_label_gets_it_back_and_one_of_somebody_else_stays() {
        for (owner, expected) in [("u", true), ("other", false)] {
            let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
                let owners =
                    [json!({"apiVersion": API_VERSION, "kind": KIND, "name": "a", "uid": owner, "controller": true})];
                let metadata = json!({"name": "x", "ownerReferences": owners});
                let one =
                    json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": metadata, "revision": 1});
                let list =
                    json!({"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": {}, "items": []});
                let conflict = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "AlreadyExists", "code": 409});
                let is_list = request.uri().path().ends_with("controllerrevisions");
                let (code, body) = match request.method().as_str() {
                    "POST" => (409, conflict),
                    "GET" if is_list => (200, list),
                    _ => (200, one),
                };
                let mut response = http::Response::new(http_body_util::Full::new(bytes::Bytes::from(body.to_string())));
                *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
                async move { Ok::<_, std::convert::Infallible>(response) }
            });
            let revisions = Revisions::new(Client::new(service, "default"), "default");
            let kept = revisions.keep(&record(), &set(json!({})), &BTreeSet::new()).await;
            assert_eq!(kept.is_ok(), expected, "{kept:?}");
        }
    }

    /// An API server that has no revision and takes note of what is created.
    #[tokio::test]
    async fn a_revision_that_was_deleted_by_hand_returns() {
        let created = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&created);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let list = json!({"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": {}, "items": []});
            let one = json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": "x"}, "revision": 1});
            let is_post = request.method() == "POST";
            counted.fetch_add(usize::from(is_post), std::sync::atomic::Ordering::SeqCst);
            let body = if is_post { one } else { list };
            let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
            async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
        });
        let revisions = Revisions::new(Client::new(service, "default"), "default");
        let (record, set, none) = (record(), set(json!({})), BTreeSet::new());
        for (after, expected) in [(Duration::ZERO, 1), (Duration::ZERO, 1), (VERIFIED_AFTER * 2, 2)] {
            if let Some(sure) = revisions.made_sure().get_mut("a") {
                sure.at = sure.at.checked_sub(after).unwrap();
            }
            revisions.keep(&record, &set, &none).await.unwrap();
            assert_eq!(created.load(std::sync::atomic::Ordering::SeqCst), expected, "{after:?}");
        }
    }
}
