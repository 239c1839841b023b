//! `ControllerRevisions` of a set, in our own namespace: one for each form that the set has had, by the hash of what it injects. The
//! record of a pod names the one that it carries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, ListParams, Patch};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::answers::{NoAnswer, in_time, said};
use crate::field_managers::{SIDECARSET, patching, posting};
use crate::names::APP;
use crate::sidecarset::controller::history::{HistoryStep, Kept, kept_for_pods, step, too_many};
use crate::sidecarset::controller::locks::locked;
use crate::watch::lenient::Lenient;
use crate::watch::revision::RevisionResource;
use engine::sidecarset::api::{API_VERSION, KIND, SidecarSetSpec};
use engine::sidecarset::canonical::injected_fields;
use engine::sidecarset::compiled::{CompiledSet, revision_name};
use engine::sidecarset::pin::RevisionRef;
use engine::snapshot::revisions::{CUSTOM_VERSION_LABEL, Revision, SET_LABEL};
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
    #[error(
        "ControllerRevision {0:?} is owned by another object, such as a deleted SidecarSet of the same name; waiting until \
         the garbage collector deletes it"
    )]
    Foreign(String),
}

/// Keeps revisions.
pub struct Revisions {
    // What they hold stays text: all of a set are listed at one time.
    api: Api<Lenient<RevisionResource>>,
    creating: Api<ControllerRevision>,
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
    // Used revisions, while there are more than the limit: each goes when pods go on to others.
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
        let creating = Api::namespaced(client.clone(), namespace);
        Self { api: Api::namespaced(client, namespace), creating, made_sure: Mutex::default() }
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

    /// Gives the revisions that stay as pods use them, if there are more than the limit.
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
            HistoryStep::Nothing => {}
            HistoryStep::Create(number) => {
                let revision = revision(record, set, done, number, self.namespace());
                match self.creating.create(&posting(SIDECARSET), &revision).await {
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
            HistoryStep::Renumber(number) => {
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
        Ok(kept_for_pods(&kept, done.limit, used))
    }

    fn namespace(&self) -> Option<String> {
        self.api.namespace().map(str::to_owned)
    }

    async fn list(&self, uid: &str) -> Result<Vec<Kept>, Error> {
        let of_set = ListParams::default().labels(&format!("{SET_LABEL}={uid}"));
        let found = self.api.list(&of_set).await?;
        let of_set = found.items.into_iter().filter_map(|found| owned(found, uid));
        let kept = of_set.map(|revision| Kept {
            name: revision.name.into(),
            number: revision.number,
            custom_version: revision.custom_version.map(Into::into),
        });
        Ok(kept.collect())
    }

    /// Takes back a revision of the set that its label was taken off by hand, which the list misses, and returns its version.
    async fn label_again(&self, name: &str, uid: &str, number: i64) -> Result<Option<String>, Error> {
        let found = self.api.get_opt(name).await?;
        let Some(found) = found.and_then(|revision| owned(revision, uid)) else {
            return Err(Error::Foreign(name.to_owned()));
        };
        self.patch(name, &json!({"metadata": {"labels": {SET_LABEL: uid}}, "revision": number})).await?;
        Ok(found.custom_version.map(Into::into))
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

/// What is read of a revision that belongs to the set of this uid.
fn owned(found: Lenient<RevisionResource>, uid: &str) -> Option<Revision> {
    found.object().ok()?.revision.filter(|revision| *revision.set_uid == *uid)
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
#[path = "revisions_tests.rs"]
#[allow(clippy::needless_pass_by_value)]
mod tests;
