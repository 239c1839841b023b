//! `PersistentVolumeClaimResize`: only bound claims grow, of a class that allows it
//! (k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize).

use std::borrow::Cow;

use admission::Text;
use admission::format::Quantity;
use admission::raw::{member, string};
use admission::review::null_as_default;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::said_name;
use super::storage_classes::{StorageClasses, annotated};
use crate::pod::borrowed_map::{self, BorrowedMap};
use crate::pod::decoded::Limited;
use crate::pod::limits::{self, Exceeded};

const UNBOUND: &str = "Only bound persistent volume claims can be expanded";
const NOT_EXPANDABLE: &str =
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";

/// What is read of a claim.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct SizedFacts<'a> {
    /// By which a refusal names the claim.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    status: Status<'a>,
}

/// Metadata of a claim.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, deserialize_with = "borrowed_map::annotations")]
    annotations: Option<BorrowedMap<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow)]
    storage_class_name: Option<Text<'a>>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Text<'a>,
}

admission::only_objects!(SizedFacts<'a>, Metadata<'a>, Spec<'a>, Status<'a>);

impl Limited for SizedFacts<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        limits::annotations(self.metadata.annotations.as_ref())
    }
}

impl SizedFacts<'_> {
    /// The name in messages, where the request has none.
    pub fn said_name<'n>(&'n self, of_request: &'n str) -> &'n str {
        said_name([of_request, &self.metadata.name, ""])
    }

    /// How much storage is requested; of all that is, nothing else is read.
    fn size(&self) -> Quantity {
        let amount = self.spec.resources.and_then(|all| member(member(all, "requests")?, "storage"));
        let text = amount.map(|raw| string(raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned));
        text.and_then(|text| text.parse().ok()).unwrap_or(Quantity::ZERO)
    }

    /// The class; empty where there is none.
    fn class(&self) -> &str {
        annotated(self.metadata.annotations.as_ref()).or(self.spec.storage_class_name.as_deref()).unwrap_or_default()
    }
}

/// What is known of an update without the classes that there are.
#[derive(Debug, PartialEq, Eq)]
pub enum Resize<'c> {
    /// The claim does not grow.
    None,
    /// It may not grow.
    Refused(&'static str),
    /// It may, if this class allows it.
    ByClass(&'c str),
}

impl<'c> Resize<'c> {
    /// From a claim, and what it was.
    pub fn of(new: &'c SizedFacts<'_>, old: &SizedFacts<'_>) -> Self {
        if new.size() <= old.size() {
            Self::None
        } else if old.status.phase.as_str() != "Bound" {
            Self::Refused(UNBOUND)
        } else if new.class().is_empty() || new.class() != old.class() {
            Self::Refused(NOT_EXPANDABLE)
        } else {
            Self::ByClass(new.class())
        }
    }

    /// Why the claim may not grow.
    ///
    /// # Errors
    /// The text.
    pub fn check(&self, classes: &StorageClasses) -> Result<(), &'static str> {
        match self {
            Self::None => Ok(()),
            Self::Refused(why) => Err(why),
            Self::ByClass(class) if classes.class(class).is_some_and(|class| class.expands) => Ok(()),
            Self::ByClass(_) => Err(NOT_EXPANDABLE),
        }
    }
}
