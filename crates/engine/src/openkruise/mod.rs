//! OpenKruise's `SidecarSet`s as ours: what is carried over, what has another meaning here and is therefore written out, and what
//! cannot be carried over.
//!
//! OpenKruise reads a field that it does not know as if it were not there, so a manifest may hold anything. Whatever is left out here is
//! named in a [`Remark`], unless the API server or OpenKruise wrote it.

mod configuration;
mod containers;
mod metadata;
mod spec;
mod strategy;
#[cfg(test)]
mod tests;

pub use self::configuration::{configuration, configuration_path, is_configuration};

use std::fmt;

use admission::field::{Error, ErrorList, Path};
use serde_json::{Map, Value, json};

use crate::sidecarset::api::{API_VERSION, KIND, PLURAL};
use crate::sidecarset::size::too_long;

/// API group of OpenKruise's sets.
pub const GROUP: &str = "apps.kruise.io";

/// Name of the definition of OpenKruise's sets.
pub const DEFINITION: &str = "sidecarsets.apps.kruise.io";

/// Paths that list OpenKruise's sets in a cluster with the `apiVersion` of what they list, the stored version first.
pub fn lists() -> [(String, String); 2] {
    [Version::V1beta1, Version::V1alpha1].map(|version| {
        let api_version = format!("{GROUP}/{}", version.name());
        (format!("/apis/{api_version}/{PLURAL}"), api_version)
    })
}

/// Version of OpenKruise's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Has `spec.namespace`, and the custom version as a label.
    V1alpha1,
    /// The stored one.
    V1beta1,
}

impl Version {
    const fn name(self) -> &'static str {
        match self {
            Self::V1alpha1 => "v1alpha1",
            Self::V1beta1 => "v1beta1",
        }
    }

    fn of(api_version: &str) -> Option<Self> {
        let version = api_version.strip_prefix(GROUP)?.strip_prefix('/')?;
        [Self::V1alpha1, Self::V1beta1].into_iter().find(|known| known.name() == version)
    }
}

/// Something to know before the set is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The field, as in OpenKruise's object, or the one that was added to ours.
    pub field: String,
    /// What was done, and why.
    pub text: String,
    /// Whether somebody has to do something before the set can be applied.
    pub needs_action: bool,
}

impl fmt::Display for Remark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.text)
    }
}

/// One of Outrider's objects in place of OpenKruise's.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// Our object.
    pub object: Value,
    /// What differs.
    pub remarks: Vec<Remark>,
}

/// What a conversion has found so far.
#[derive(Debug, Default)]
struct Findings {
    remarks: Vec<Remark>,
    errors: ErrorList,
}

impl Findings {
    fn note(&mut self, path: &Path, text: impl Into<String>) {
        self.remarks.push(Remark { field: path.to_string(), text: text.into(), needs_action: false });
    }

    fn warn(&mut self, path: &Path, text: impl Into<String>) {
        self.remarks.push(Remark { field: path.to_string(), text: text.into(), needs_action: true });
    }

    /// Refuses fields that OpenKruise does not have: it reads the object without them, and ours may do something with them.
    fn refuse_unknown(&mut self, fields: &Map<String, Value>, known: &[&str], path: Option<&Path>) {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let path = path.map_or_else(|| Path::new(name.clone()), |path| path.child(name.clone()));
            self.errors.push(Error::forbidden(
                &path,
                "OpenKruise has no such field and ignores it: correct or remove it; what only Outrider has can be added to the printed set",
            ));
        }
    }
}

/// Whether an object is a set of OpenKruise, of whatever version.
pub fn is_set(object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split('/').next();
    group == Some(GROUP) && text("kind") == KIND
}

/// Our set for one of OpenKruise's.
///
/// # Errors
/// Every field that cannot be carried over.
pub fn convert(object: &Value) -> Result<Converted, ErrorList> {
    let mut findings = Findings::default();
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let Some(version) = Version::of(api_version) else {
        let known = [Version::V1beta1, Version::V1alpha1].map(|version| format!("{GROUP}/{}", version.name()));
        return Err([Error::not_supported(&Path::new("apiVersion"), api_version, &known)].into_iter().collect());
    };
    // Ours may not have more, and each is a remark or an error.
    if let Some((list, length, most)) = object.get("spec").and_then(too_long) {
        return Err([Error::too_many(&Path::new("spec").child(list), length, most)].into_iter().collect());
    }
    let empty = Map::new();
    let top = object.as_object().unwrap_or(&empty);
    findings.refuse_unknown(top, &["apiVersion", "kind", "metadata", "spec", "status"], None);
    let (metadata, label) = metadata::convert(top.get("metadata"), version, &mut findings);
    let spec = spec::convert(top.get("spec"), label, version, &mut findings);
    findings.errors.into_result()?;
    let object = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec});
    Ok(Converted { object, remarks: findings.remarks })
}
