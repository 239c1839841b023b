//! `StorageObjectInUseProtection`: claims, volumes and classes of attributes get the finalizer that keeps them while something uses them
//! (k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection).

use admission::raw::{elements, string};
use admission::review::null_as_default;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::change::PodChange;

/// The finalizers, by resource, with the kinds of objects.
pub const FINALIZERS: [(&str, &str, &str); 3] = [
    ("persistentvolumeclaims", "PersistentVolumeClaim", "kubernetes.io/pvc-protection"),
    ("persistentvolumes", "PersistentVolume", "kubernetes.io/pv-protection"),
    ("volumeattributesclasses", "VolumeAttributesClass", "kubernetes.io/vac-protection"),
];

/// What is read of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct ProtectedFacts<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    metadata: Metadata<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Metadata<'a> {
    #[serde(borrow, deserialize_with = "list")]
    finalizers: Option<&'a RawValue>,
}

/// To what is no list, no finalizer can be added.
fn list<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<&'de RawValue>, D::Error> {
    let value = Option::<&RawValue>::deserialize(decoder)?;
    match value.filter(|value| !value.get().starts_with('[')) {
        Some(_) => Err(D::Error::custom("metadata.finalizers: expected a list")),
        None => Ok(value),
    }
}

admission::only_objects!(ProtectedFacts<'a>, Metadata<'a>);

impl ProtectedFacts<'_> {
    /// Whether it has finalizers, in a list that may be empty.
    pub const fn has_finalizers(&self) -> bool {
        self.metadata.finalizers.is_some()
    }

    fn has(&self, finalizer: &str) -> bool {
        let Some(list) = self.metadata.finalizers else { return false };
        // An error ends the walk at what is searched.
        elements(list, |one| if string(one).is_some_and(|one| one == finalizer) { Err(()) } else { Ok(()) }).is_err()
    }
}

/// What a new object of a resource, or else of a kind, gets.
pub fn change(resource: &str, kind: &str, object: &ProtectedFacts<'_>) -> PodChange<'static> {
    let is_it = |(of, of_kind, _): &&(&str, &str, &str)| *of == resource || (resource.is_empty() && *of_kind == kind);
    let finalizer = FINALIZERS.iter().find(is_it).map(|(.., finalizer)| *finalizer);
    PodChange { finalizer: finalizer.filter(|finalizer| !object.has(finalizer)), ..PodChange::default() }
}
