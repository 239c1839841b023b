//! `ControllerRevisions` of a set, in our own namespace: one for each form that the set has had, by the hash of what it injects. The
//! record of a pod names the one that it carries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, ListParams, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::answers::{NoAnswer, in_time, said};
use crate::field_managers::{SIDECARSET, patching, posting};
use crate::names::APP;
use crate::sidecarset::controller::locks::locked;
use engine::sidecarset::api::{API_VERSION, KIND, SidecarSetSpec};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::sets::SetRecord;

/// Label with the uid of the set. Its name may be longer than a label's value.
pub const SET_LABEL: &str = "apps.outrider.dev/sidecarset-uid";
/// Label with the user's name for the form, `spec.customVersion`.
pub const CUSTOM_VERSION_LABEL: &str = "apps.outrider.dev/sidecarset-custom-version";

/// Revisions that are kept where the set does not say.
const DEFAULT_LIMIT: usize = 10;

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

/// A revision, as far as keeping goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Name.
    pub name: String,
    /// The greater, the newer.
    pub number: i64,
    /// The user's name for it.
    pub custom_version: Option<String>,
}

/// What is to be done so that the newest revision is the one of this name.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// It is made, with this number.
    Create(i64),
    /// An older one becomes the newest, with this number: the set went back to it.
    Renumber(i64),
}

/// What makes the revision of this name the newest.
pub fn step(kept: &[Kept], name: &str) -> Step {
    let newest = kept.iter().max_by_key(|revision| revision.number);
    let next = newest.map_or(1, |revision| revision.number.saturating_add(1));
    if newest.is_some_and(|newest| newest.name == name) {
        Step::Nothing
    } else if kept.iter().any(|revision| revision.name == name) {
        Step::Renumber(next)
    } else {
        Step::Create(next)
    }
}

/// Names of the revisions that go, so that `limit` are left: the oldest, but never the newest nor one that a pod uses.
pub fn too_many(kept: &[Kept], limit: usize, used: &BTreeSet<String>) -> Vec<String> {
    let mut oldest: Vec<&Kept> = kept.iter().collect();
    oldest.sort_by_key(|revision| revision.number);
    let newest = oldest.pop();
    let kept = limit.max(1).saturating_sub(usize::from(newest.is_some()));
    let mut surplus = oldest.len().saturating_sub(kept);
    let mut go = Vec::new();
    for revision in oldest {
        if surplus > 0 && !used.contains(&revision.name) {
            surplus = surplus.saturating_sub(1);
            go.push(revision.name.clone());
        }
    }
    go
}

/// Keeps revisions.
pub struct Revisions {
    api: Api<ControllerRevision>,
    // What was last made sure of, by set.
    done: Mutex<HashMap<String, Done>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Done {
    uid: String,
    newest: String,
    custom_version: Option<String>,
    limit: usize,
    // Used revisions that are beyond the limit: when pods go on to others, these go.
    surplus_in_use: BTreeSet<String>,
}

impl Revisions {
    /// In this namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), done: Mutex::default() }
    }

    fn done(&self) -> MutexGuard<'_, HashMap<String, Done>> {
        locked(&self.done)
    }

    /// Forgets a set that is gone. Its revisions go with it.
    pub fn forget(&self, set: &str) {
        self.done().remove(set);
    }

    /// Makes the current form of the set its newest revision, deletes revisions beyond the limit, and returns the name of the newest.
    /// `hashes` are the forms that pods carry. Sends no request while nothing has changed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keep(&self, record: &SetRecord, set: &CompiledSet, hashes: &BTreeSet<&str>) -> Result<String, Error> {
        let (newest, spec) = (name_of(&set.name, &set.hash), set.spec());
        let used: BTreeSet<String> = hashes.iter().map(|hash| name_of(&set.name, hash)).collect();
        let done = Done {
            uid: record.uid.clone(),
            newest: newest.clone(),
            custom_version: spec.custom_version.filter(|version| !version.is_empty()),
            limit: spec.revision_history_limit.map_or(DEFAULT_LIMIT, |limit| usize::try_from(limit).unwrap_or(1)),
            surplus_in_use: BTreeSet::new(),
        };
        let before = self.done().get(&String::from(&*set.name)).cloned();
        let is_done = before.is_some_and(|before| {
            let surplus = before.surplus_in_use.clone();
            Done { surplus_in_use: BTreeSet::new(), ..before } == done && surplus.is_subset(&used)
        });
        if is_done {
            return Ok(newest);
        }
        let surplus_in_use = in_time(self.bring(record, set, &done, &used)).await?;
        self.done().insert(String::from(&*set.name), Done { surplus_in_use, ..done });
        Ok(newest)
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
                    Err(kube::Error::Api(status)) if status.code == 409 => return Err(Error::Foreign(name.clone())),
                    Err(error) => return Err(error.into()),
                }
            }
            Step::Renumber(number) => {
                self.patch(name, &json!({"revision": number})).await?;
                kept.iter_mut().filter(|revision| revision.name == *name).for_each(|revision| revision.number = number);
            }
        }
        let written = kept.iter().find(|revision| revision.name == *name).and_then(|it| it.custom_version.clone());
        if written != done.custom_version {
            let labels = json!({CUSTOM_VERSION_LABEL: done.custom_version});
            self.patch(name, &json!({"metadata": {"labels": labels}})).await?;
        }
        for name in too_many(&kept, done.limit, used) {
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
        let is_ours = |revision: &ControllerRevision| {
            revision.owner_references().iter().any(|owner| owner.uid == uid && owner.controller == Some(true))
        };
        let kept = found.items.into_iter().filter(is_ours).map(|revision| Kept {
            name: revision.name_any(),
            number: revision.revision,
            custom_version: revision.labels().get(CUSTOM_VERSION_LABEL).cloned(),
        });
        Ok(kept.collect())
    }

    async fn patch(&self, name: &str, patch: &Value) -> Result<(), Error> {
        self.api.patch(name, &patching(SIDECARSET), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// The name of the revision of a form, as records in pods have it.
pub fn name_of(set: &str, hash: &str) -> String {
    let digits = hash.rsplit(':').next().unwrap_or_default();
    format!("{set}-{digits}")
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
    let fields = [
        ("containers", json!(spec.containers)),
        ("initContainers", json!(spec.init_containers)),
        ("volumes", json!(spec.volumes)),
        ("imagePullSecrets", json!(spec.image_pull_secrets)),
        ("patchPodMetadata", json!(spec.patch_pod_metadata)),
        ("appContainers", json!(spec.app_containers)),
        ("resourceDefaults", json!(spec.resource_defaults)),
        ("podSecurity", json!(spec.pod_security)),
    ];
    let mut injected = json!({"$patch": "replace"});
    if let Some(injected) = injected.as_object_mut() {
        let there = fields.into_iter().filter(|(_, value)| !value.is_null());
        injected.extend(there.map(|(field, value)| (field.to_owned(), value)));
    }
    json!({"spec": injected})
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests {
    use super::*;

    fn kept(revisions: &[(usize, i64)]) -> Vec<Kept> {
        let revision =
            |(name, number): &(usize, i64)| Kept { name: format!("a-{name}"), number: *number, custom_version: None };
        revisions.iter().map(revision).collect()
    }

    fn apply(kept: &mut Vec<Kept>, name: &str, limit: usize, used: &BTreeSet<String>) {
        match step(kept, name) {
            Step::Nothing => {}
            Step::Create(number) => kept.push(Kept { name: name.to_owned(), number, custom_version: None }),
            Step::Renumber(number) => {
                kept.iter_mut().filter(|it| it.name == name).for_each(|it| it.number = number);
            }
        }
        let go = too_many(kept, limit, used);
        kept.retain(|revision| !go.contains(&revision.name));
    }

    fn numbers(kept: &[Kept]) -> Vec<i64> {
        let mut numbers: Vec<i64> = kept.iter().map(|revision| revision.number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn case_104_each_form_is_a_revision_and_an_older_one_becomes_the_newest_again() {
        let (mut kept, none) = (Vec::new(), BTreeSet::new());
        for (form, expected) in [("a-1", vec![1]), ("a-2", vec![1, 2]), ("a-2", vec![1, 2]), ("a-1", vec![2, 3])] {
            apply(&mut kept, form, 10, &none);
            assert_eq!(numbers(&kept), expected, "{form}");
        }
        for form in 0..100 {
            apply(&mut kept, &format!("a-of-many-{form}"), 10, &none);
        }
        assert_eq!(kept.len(), 10);
    }

    #[test]
    fn case_105_revisions_in_use_and_the_newest_stay() {
        let fifteen = kept(&(1..=15).map(|n| (n, i64::try_from(n).unwrap())).collect::<Vec<_>>());
        let used = |n: usize| -> BTreeSet<String> { (1..=n).map(|n| format!("a-{n}")).collect() };
        let left = |used: &BTreeSet<String>| {
            let mut left = fifteen.clone();
            apply(&mut left, "a-15", 10, used);
            numbers(&left)
        };
        for (in_use, expected) in [(0, 10), (9, 10), (10, 11), (11, 12), (14, 15), (15, 15)] {
            assert_eq!(left(&used(in_use)).len(), expected, "{in_use}");
        }
        assert_eq!(left(&used(8)), [1, 2, 3, 4, 5, 6, 7, 8, 14, 15]);
        assert_eq!(too_many(&fifteen, 0, &BTreeSet::new()).len(), 14, "the newest always stays");
    }

    #[test]
    fn case_106_fifteen_updates_and_back_to_one_of_them() {
        let (mut kept, none) = (Vec::new(), BTreeSet::new());
        for form in 1..=15 {
            apply(&mut kept, &format!("a-{form}"), 10, &none);
        }
        assert_eq!(numbers(&kept), (6..=15).collect::<Vec<_>>());
        apply(&mut kept, "a-12", 10, &none);
        assert_eq!(numbers(&kept), [6, 7, 8, 9, 10, 11, 13, 14, 15, 16]);
    }

    #[test]
    fn case_107_going_back_keeps_the_order_of_the_others() {
        for back in 1..=10 {
            let mut ten = kept(&(1..=10).map(|n| (n, i64::try_from(n).unwrap())).collect::<Vec<_>>());
            apply(&mut ten, &format!("a-{back}"), 10, &BTreeSet::new());
            ten.sort_by_key(|revision| revision.number);
            let mut expected: Vec<String> = (1..=10).filter(|n| *n != back).map(|n| format!("a-{n}")).collect();
            expected.push(format!("a-{back}"));
            assert_eq!(ten.into_iter().map(|revision| revision.name).collect::<Vec<_>>(), expected, "{back}");
        }
    }

    fn set(spec: Value) -> CompiledSet {
        let mut whole =
            json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "c:1"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        CompiledSet::compile(&serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": whole})).unwrap())
            .unwrap()
    }

    #[test]
    fn case_108_a_change_of_annotations_is_another_revision_and_one_of_the_strategy_is_none() {
        let annotations = json!({"patchPodMetadata": [{"annotations": {"a.example/b": "c"}}]});
        let names = [json!({}), annotations, json!({"updateStrategy": {"paused": true}, "customVersion": "2"})]
            .map(|spec| name_of("a", &set(spec).hash));
        assert_ne!(names[0], names[1]);
        assert_eq!(names[0], names[2]);
    }

    #[test]
    fn a_revision_belongs_to_the_set_and_holds_what_is_injected() {
        let set = set(json!({"customVersion": "blue", "order": 3}));
        let record = SetRecord {
            name: "a".to_owned(),
            uid: "u".to_owned(),
            terminating: false,
            status: None,
            compiled: None,
            compiled_generation: 1,
        };
        let done = Done {
            uid: "u".to_owned(),
            newest: name_of("a", &set.hash),
            custom_version: Some("blue".to_owned()),
            limit: 10,
            surplus_in_use: BTreeSet::new(),
        };
        let revision = json!(revision(&record, &set, &done, 4, None));
        assert_eq!(revision["metadata"]["labels"][CUSTOM_VERSION_LABEL], "blue");
        assert_eq!(revision["metadata"]["labels"][SET_LABEL], "u");
        assert_eq!(revision["metadata"]["ownerReferences"][0]["uid"], "u");
        let data = json!({"spec": {"$patch": "replace", "containers": [{"name": "c", "image": "c:1"}]}});
        assert_eq!((&revision["data"], &revision["revision"]), (&data, &json!(4)));
    }
}
