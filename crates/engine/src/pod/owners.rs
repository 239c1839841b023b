//! The owners of a pod, as far as decisions read them.

use std::fmt;

use admission::Text;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What is kept of the owners of a pod.
#[derive(Debug, Default)]
pub struct Owners<'a> {
    /// Whether a Job is among them.
    pub has_job: bool,
    /// The first of them that controls the pod.
    pub controller: Option<Owner<'a>>,
}

/// An entry of `metadata.ownerReferences`, as far as decisions read it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner<'a> {
    /// Group and version.
    #[serde(borrow)]
    pub api_version: Text<'a>,
    /// Kind of the owner, such as `ReplicaSet`.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// Name of the owner, which is in the namespace of the pod.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Whether it controls the pod.
    controller: Option<bool>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Owners<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Owners<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }
            fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                Ok(Owners::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut owners = Owners::default();
                while let Some(owner) = seq.next_element::<Owner<'de>>()? {
                    owners.has_job |= owner.kind.as_str() == "Job" && owner.api_version.as_str().starts_with("batch/");
                    if owners.controller.is_none() && owner.controller == Some(true) {
                        owners.controller = Some(owner);
                    }
                }
                Ok(owners)
            }
        }
        deserializer.deserialize_any(List)
    }
}
