//! The check of the name of a new object, for kinds whose other fields the schema checks as a whole.

use admission::field::{Error, Path};
use admission::object::object_or_null;
use admission::{Findings, Request, Validating, only_objects};
use engine::snapshot::Snapshot;
use serde::Deserialize;

/// Refuses a new object whose name something that it owns could not carry. Names never change, so updates are not checked.
#[derive(Debug, Clone, Copy)]
pub struct NameCheck {
    /// Returns the faults of a name.
    pub faults: fn(&str) -> Vec<String>,
    /// Which object or field has the same name, for the message.
    pub because: &'static str,
}

/// The metadata of an object, of which only the name is read.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct NamedObject {
    metadata: Metadata,
    /// Only whether it is an object: clients and tests that ask the webhook have no schema before it.
    #[serde(deserialize_with = "object_or_null")]
    #[allow(dead_code)]
    spec: Option<Unread>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Metadata {
    name: String,
}

only_objects!(NamedObject, Metadata);

/// An object of which no field is read.
#[derive(Debug, Deserialize)]
struct Unread {}

impl Validating<Snapshot> for NameCheck {
    type Object<'a> = NamedObject;

    fn create(&self, object: &NamedObject, _: &Request<'_, NamedObject>, _: &Snapshot, findings: &mut Findings) {
        let name = &object.metadata.name;
        let path = Path::new("metadata").child("name");
        let errors = (self.faults)(name).into_iter();
        findings.errors.extend(errors.map(|fault| Error::invalid(&path, name, format!("{}: {fault}", self.because))));
    }
}
