//! The check of the name of a new object, for kinds whose other fields the schema checks as a whole.

use admission::field::{Error, Path};
use admission::{Findings, Request, Validating};
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
#[serde(default)]
pub struct NamedObject {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

impl Validating<Snapshot> for NameCheck {
    type Object<'a> = NamedObject;

    fn create(&self, object: &NamedObject, _: &Request<'_, NamedObject>, _: &Snapshot, findings: &mut Findings) {
        let name = &object.metadata.name;
        let path = Path::new("metadata").child("name");
        let errors = (self.faults)(name).into_iter();
        findings.errors.extend(errors.map(|fault| Error::invalid(&path, name, format!("{}: {fault}", self.because))));
    }
}
