//! `DefaultStorageClass`: claims that name no storage class get the default, which the API server has once for all namespaces, and an
//! object for some of them (k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault).

use admission::Text;
use admission::review::null_as_default;
use serde::Deserialize;

use super::change::PodChange;
use crate::plugins::storage_classes::{StorageClasses, annotated};
use crate::pod::borrowed_map::{self, BorrowedMap};
use crate::pod::decoded::Limited;
use crate::pod::limits::{self, Exceeded};

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultStorageClass {
    /// The class that claims get; the default of the cluster where absent.
    pub class: Option<String>,
    /// Whether a claim with the default of the cluster gets it, too.
    pub replaces_default: bool,
}

impl DefaultStorageClass {
    /// Whether it must know the classes that there are to decide on this claim.
    pub const fn reads_classes(&self, claim: &Claimed<'_>) -> bool {
        match claim {
            Claimed::Nothing => self.class.is_none(),
            // An empty name is never that of the default.
            Claimed::Class(class) => self.replaces_default && !class.is_empty(),
            Claimed::Annotation => false,
        }
    }

    /// Whether it ever needs to know the classes that there are.
    pub const fn may_read_classes(&self) -> bool {
        self.replaces_default || self.class.is_none()
    }

    /// What a new claim gets.
    pub fn change(&self, claim: &Claimed<'_>, classes: &StorageClasses) -> PodChange<'static> {
        let default = classes.default_class();
        let class = match claim {
            Claimed::Nothing => self.class.as_deref().or(default),
            // The API server has filled in its default before a webhook is called.
            Claimed::Class(stored) if self.replaces_default && Some(*stored) == default => {
                self.class.as_deref().filter(|class| class != stored)
            }
            Claimed::Class(_) | Claimed::Annotation => None,
        };
        PodChange { storage_class: class.map(str::to_owned), ..PodChange::default() }
    }
}

/// What a claim says about its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed<'c> {
    /// Neither field nor annotation is there: the claim gets the default.
    Nothing,
    /// Its field names this one; an empty name asks for a volume without one.
    Class(&'c str),
    /// The annotation from before there was a field names one.
    Annotation,
}

/// What is read of a claim.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct ClaimFacts<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Metadata<'a> {
    #[serde(borrow, deserialize_with = "borrowed_map::annotations")]
    annotations: Option<BorrowedMap<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow)]
    storage_class_name: Option<Text<'a>>,
}

admission::only_objects!(ClaimFacts<'a>, Metadata<'a>, Spec<'a>);

impl Limited for ClaimFacts<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        limits::annotations(self.metadata.annotations.as_ref())
    }
}

impl ClaimFacts<'_> {
    /// Whether it has a spec: the API server refuses a claim without.
    pub const fn has_spec(&self) -> bool {
        self.spec.is_some()
    }

    /// What it says about its class.
    pub fn claimed(&self) -> Claimed<'_> {
        let has_annotation = annotated(self.metadata.annotations.as_ref()).is_some();
        match self.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref()) {
            _ if has_annotation => Claimed::Annotation,
            Some(class) => Claimed::Class(class),
            None => Claimed::Nothing,
        }
    }
}
