//! The revisions of sets, `ControllerRevision`s of Outrider's namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::collection::{Collection, Effect};
use crate::sidecarset::api::{GROUP, KIND};
use crate::sidecarset::pin::RevisionRef;

/// Label with the uid of the set. Its name may be longer than a label's value.
pub const SET_LABEL: &str = "apps.outrider.dev/sidecarset-uid";
/// Label with the user's name for the form, `spec.customVersion`.
pub const CUSTOM_VERSION_LABEL: &str = "apps.outrider.dev/sidecarset-custom-version";

/// Bytes of content that are held of all revisions together. What is beyond has a name and no content: it cannot be pinned.
pub const CONTENT_LIMIT: usize = 64 << 20;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    revision: Option<i64>,
    data: Option<Data>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<Box<str>>,
    labels: Option<Labels>,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Labels {
    // `CUSTOM_VERSION_LABEL`
    #[serde(rename = "apps.outrider.dev/sidecarset-custom-version")]
    custom_version: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    spec: Option<Box<RawValue>>,
}

/// A form that a set had once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Name of the `ControllerRevision`.
    pub name: Box<str>,
    /// The name of its set, as its owner reference says.
    pub set: Box<str>,
    /// Distinguishes a set from a later one of the same name.
    pub set_uid: Box<str>,
    /// The user's name for it.
    pub custom_version: Option<Box<str>>,
    /// The greater, the newer.
    pub number: i64,
    /// What was injected, as JSON; none where there is too much of it.
    pub content: Option<Box<str>>,
}

impl Revision {
    /// A `ControllerRevision`; nothing where no set controls it, or it cannot be read.
    pub fn of(object: &Value) -> Option<Self> {
        Self::read(object).ok().flatten()
    }

    /// Reads a `ControllerRevision`; nothing where no set controls it. What it holds is not decoded: that might take a hundred times as
    /// much as its text.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn read<'de, D: Deserializer<'de>>(object: D) -> Result<Option<Self>, D::Error> {
        let Object { metadata, revision, data } = Object::deserialize(object)?;
        let mut owners = metadata.owner_references.into_iter().flatten();
        let Some(owner) = owners.find(|owner| owner.controller == Some(true)) else { return Ok(None) };
        let is_set = &*owner.kind == KIND && owner.api_version.split_once('/').is_some_and(|(group, _)| group == GROUP);
        let custom_version = metadata.labels.and_then(|labels| labels.custom_version);
        Ok(is_set.then(|| Self {
            name: metadata.name.unwrap_or_default(),
            set: owner.name,
            set_uid: owner.uid,
            custom_version: custom_version.filter(|version| !version.is_empty()),
            number: revision.unwrap_or_default(),
            content: data.and_then(|data| data.spec).map(Into::into),
        }))
    }

    /// Whether it is the set's of this uid, which a manifest may lack.
    fn is_of(&self, uid: &str) -> bool {
        uid.is_empty() || *self.set_uid == *uid
    }

    fn size(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.len())
    }
}

/// Every revision of every set, in an order of its own.
#[derive(Debug, Clone, Default)]
pub struct RevisionIndex {
    by_set: HashMap<Box<str>, Vec<Arc<Revision>>>,
}

impl RevisionIndex {
    /// An index of these.
    pub fn build(revisions: impl IntoIterator<Item = Arc<Revision>>) -> Self {
        let mut index = Self::default();
        for revision in revisions {
            index.by_set.entry(revision.set.clone()).or_default().push(revision);
        }
        index
    }

    /// A copy that shares no memory with the index.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::build(self.by_set.values().flatten().map(|revision| Arc::new((**revision).clone())))
    }

    /// The revision that is named, of the set of this name and uid. Of several with one version the newest.
    pub fn find(&self, set: &str, uid: &str, named: &RevisionRef) -> Option<&Arc<Revision>> {
        let own = self.by_set.get(set).into_iter().flatten().filter(|revision| revision.is_of(uid));
        match named {
            RevisionRef::Name(name) => own.into_iter().find(|revision| revision.name == *name),
            RevisionRef::CustomVersion(version) => {
                own.filter(|revision| revision.custom_version.as_ref() == Some(version)).max_by_key(|it| it.number)
            }
        }
    }
}

/// Every revision, on its way into snapshots.
#[derive(Debug, Default)]
pub struct Revisions {
    by_name: BTreeMap<Box<str>, Arc<Revision>>,
    bytes: usize,
}

impl Revisions {
    /// The set of the revision of this name.
    pub fn set_of(&self, name: &str) -> Option<Box<str>> {
        self.by_name.get(name).map(|revision| revision.set.clone())
    }
}

impl Collection for Revisions {
    type Object = Revision;
    type View = RevisionIndex;

    fn apply(&mut self, revision: &Revision) -> Effect {
        let before = self.by_name.get(&revision.name);
        if before.is_some_and(|before| **before == *revision) {
            return Effect::None;
        }
        let others = self.bytes.saturating_sub(before.map_or(0, |before| before.size()));
        let mut revision = revision.clone();
        if others.saturating_add(revision.size()) > CONTENT_LIMIT {
            revision.content = None;
        }
        self.bytes = others.saturating_add(revision.size());
        self.by_name.insert(revision.name.clone(), Arc::new(revision));
        Effect::Decisions
    }

    fn remove(&mut self, name: &str) -> Effect {
        let Some(gone) = self.by_name.remove(name) else { return Effect::None };
        self.bytes = self.bytes.saturating_sub(gone.size());
        Effect::Decisions
    }

    fn view(&mut self) -> Arc<RevisionIndex> {
        Arc::new(RevisionIndex::build(self.by_name.values().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: i64, content: &str) -> Revision {
        Revision {
            name: format!("s-{number}").into(),
            set: "s".into(),
            set_uid: "u".into(),
            custom_version: Some((number % 10).to_string().into()),
            number,
            content: Some(content.into()),
        }
    }

    #[test]
    fn of_ten_thousand_revisions_the_newest_of_a_version_is_found_and_none_is_of_another_set() {
        let mut revisions = Revisions::default();
        (0..10_000).for_each(|number| assert_eq!(revisions.apply(&revision(number, "{}")), Effect::Decisions));
        let index = revisions.view();
        let version = RevisionRef::CustomVersion("3".into());
        assert_eq!(index.find("s", "u", &version).map(|found| found.number), Some(9_993));
        assert_eq!(index.find("s", "", &version).map(|found| found.number), Some(9_993), "a manifest has no uid");
        assert_eq!(index.find("s", "another", &version), None);
        assert_eq!(index.find("t", "u", &RevisionRef::Name("s-1".into())), None);
    }

    #[test]
    fn content_beyond_the_limit_is_not_held() {
        let mut revisions = Revisions::default();
        let large = "x".repeat(CONTENT_LIMIT / 3);
        (0..5).for_each(|number| assert_eq!(revisions.apply(&revision(number, &large)), Effect::Decisions));
        let held = || revisions.by_name.values().filter(|it| it.content.is_some()).count();
        assert_eq!((held(), revisions.by_name.len()), (3, 5));
        revisions.remove("s-0");
        revisions.apply(&revision(4, &large));
        assert!(revisions.bytes <= CONTENT_LIMIT);
        assert_eq!(revisions.by_name.values().filter(|it| it.content.is_some()).count(), 3);
    }
}
