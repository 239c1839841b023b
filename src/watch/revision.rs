//! Revisions of sets as their watch has them.

use engine::snapshot::revisions::Revision;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use crate::watch::resource_of_kind;

/// A `ControllerRevision` of which only what decisions read is decoded: what it holds stays text. Who watches it finds its name beside
/// it, in [`Lenient`](super::lenient::Lenient).
#[derive(Debug, Clone)]
pub struct RevisionResource {
    metadata: ObjectMeta,
    /// What is read; none where no set controls it.
    pub revision: Option<Revision>,
}

impl<'de> Deserialize<'de> for RevisionResource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let revision = Revision::read(deserializer)?;
        Ok(Self { metadata: ObjectMeta::default(), revision })
    }
}

resource_of_kind!(RevisionResource: ControllerRevision);
