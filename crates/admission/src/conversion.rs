//! Conversion between the versions of a kind: one hub, any number of spokes.
//!
//! The API server sends a `ConversionReview` with objects of any served version and one desired version, and expects as many
//! objects back, in the same order, with `metadata` untouched but for labels and annotations
//! (`k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`).
//!
//! Objects are not decoded to find out what they are, and one after the other is written into the reply: what a review takes is
//! what its objects are decoded into by their types, one at a time. A kind whose objects anybody may fill is converted as text
//! ([`TextSpoke`]), so that neither depth nor size matters: an object that cannot be converted keeps its kind from being listed,
//! and its namespace from being deleted.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::patch::quoted;
use crate::raw::{self, ObjectWriter};
use crate::review::without_position;

mod review;
#[cfg(test)]
mod tests;

/// The version that every other version converts to and from.
///
/// `apiVersion`, `kind` and `metadata` need not be among the fields: [`Conversion`] carries them over. A kind that keeps
/// something in labels or annotations has a `metadata` field in every version, hands it on and changes it there; what it
/// then leaves out of labels and annotations is gone, as the API server's own rule has it (`restoreObjectMeta`).
///
/// ```
/// use admission::Registry;
/// use admission::conversion::{Conversion, Hub, Spoke};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct BackupV1 { minutes: u32 }
/// #[derive(Serialize, Deserialize)]
/// struct BackupV2 { interval: String }
///
/// impl Hub for BackupV1 {
///     const VERSION: &'static str = "v1";
/// }
/// impl Spoke<BackupV1> for BackupV2 {
///     const VERSION: &'static str = "v2";
///     fn into_hub(self) -> Result<BackupV1, String> {
///         let minutes = self.interval.strip_suffix('m').and_then(|digits| digits.parse().ok());
///         minutes.map(|minutes| BackupV1 { minutes }).ok_or_else(|| format!("interval {:?} is not in minutes", self.interval))
///     }
///     fn from_hub(hub: BackupV1) -> Result<Self, String> {
///         Ok(Self { interval: format!("{}m", hub.minutes) })
///     }
/// }
///
/// let backup = Conversion::new::<BackupV1>("acme.example", "Backup").spoke::<BackupV1, BackupV2>();
/// let registry = Registry::<()>::default().converting(backup);
/// let reply = registry.convert(br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{
///     "uid":"1","desiredAPIVersion":"acme.example/v2",
///     "objects":[{"apiVersion":"acme.example/v1","kind":"Backup","metadata":{"name":"nightly"},"minutes":5}]}}"#)?;
/// assert!(String::from_utf8_lossy(&reply).contains(r#""interval":"5m""#));
/// # Ok::<(), admission::Unserved>(())
/// ```
pub trait Hub: DeserializeOwned + Serialize + 'static {
    /// The version's name, such as `v1`.
    const VERSION: &'static str;
}

/// Another version of the kind. The law: `spoke → hub → spoke` gives back the same object.
pub trait Spoke<H: Hub>: DeserializeOwned + Serialize + 'static {
    /// The version's name, such as `v2`.
    const VERSION: &'static str;

    /// To the hub.
    ///
    /// # Errors
    /// A sentence for the user when the object cannot be expressed.
    fn into_hub(self) -> Result<H, String>;

    /// From the hub.
    ///
    /// # Errors
    /// A sentence for the user when the object cannot be expressed.
    fn from_hub(hub: H) -> Result<Self, String>;
}

/// Another version of a kind that is converted as text. See [`crate::raw`].
///
/// What is returned is the whole object in the other version, but that `apiVersion`, `kind` and all of `metadata` besides labels and
/// annotations are carried over whatever is in their place; `metadata` may be left out where neither changes.
///
/// ```
/// use admission::Registry;
/// use admission::conversion::{Conversion, TextSpoke};
/// use admission::raw::{ObjectWriter, members};
/// use serde_json::value::RawValue;
///
/// // v1 says `spec`, v2 says `template`; conversion does not read what is in it.
/// struct V2;
///
/// fn renamed(object: &RawValue, from: &str, to: &str) -> String {
///     let mut out = String::new();
///     let mut writer = ObjectWriter::begin(&mut out);
///     members(object, |key, value| match key.name() {
///         name if name == from => writer.put(to, value.get()),
///         _ => writer.copy(&key, value),
///     });
///     writer.end();
///     out
/// }
///
/// impl TextSpoke for V2 {
///     const VERSION: &'static str = "v2";
///     fn to_hub(object: &RawValue) -> Result<String, String> {
///         Ok(renamed(object, "template", "spec"))
///     }
///     fn from_hub(object: &RawValue) -> Result<String, String> {
///         Ok(renamed(object, "spec", "template"))
///     }
/// }
///
/// let conversion = Conversion::of_text("acme.example", "Backup", "v1").text_spoke::<V2>();
/// let object = serde_json::from_str(r#"{"apiVersion":"acme.example/v1","kind":"Backup","spec":[[1.0]]}"#)?;
/// let mut out = String::new();
/// conversion.convert(object, "v2", &mut out)?;
/// assert_eq!(out, r#"{"apiVersion":"acme.example/v2","kind":"Backup","template":[[1.0]]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TextSpoke: 'static {
    /// The version's name, such as `v2`.
    const VERSION: &'static str;

    /// To the hub. `object` is a JSON object.
    ///
    /// # Errors
    /// A sentence for the user when the object cannot be expressed.
    fn to_hub(object: &RawValue) -> Result<String, String>;

    /// From the hub. `object` is a JSON object.
    ///
    /// # Errors
    /// A sentence for the user when the object cannot be expressed.
    fn from_hub(object: &RawValue) -> Result<String, String>;
}

type Step = fn(&RawValue) -> Result<String, String>;

#[derive(Clone, Copy)]
struct Steps {
    to_hub: Step,
    from_hub: Step,
}

/// The conversions of one kind.
pub struct Conversion {
    group: &'static str,
    kind: &'static str,
    hub: &'static str,
    spokes: BTreeMap<&'static str, Steps>,
}

impl Conversion {
    /// A kind whose hub is `H`.
    pub fn new<H: Hub>(group: &'static str, kind: &'static str) -> Self {
        Self::of_text(group, kind, H::VERSION)
    }

    /// A kind that is converted as text; `hub` is the version's name, such as `v1`.
    pub const fn of_text(group: &'static str, kind: &'static str, hub: &'static str) -> Self {
        Self { group, kind, hub, spokes: BTreeMap::new() }
    }

    /// Adds a version. Its objects are decoded from text that is at most as deep as `serde_json` reads, 128 levels.
    #[must_use]
    pub fn spoke<H: Hub, S: Spoke<H>>(self) -> Self {
        let steps = Steps {
            to_hub: |object| write(&decode::<S>(object)?.into_hub()?),
            from_hub: |object| write(&S::from_hub(decode(object)?)?),
        };
        self.with(S::VERSION, steps)
    }

    /// Adds a version that is converted as text.
    #[must_use]
    pub fn text_spoke<S: TextSpoke>(self) -> Self {
        self.with(S::VERSION, Steps { to_hub: S::to_hub, from_hub: S::from_hub })
    }

    fn with(mut self, version: &'static str, steps: Steps) -> Self {
        self.spokes.insert(version, steps);
        self
    }

    /// API group.
    pub const fn group(&self) -> &'static str {
        self.group
    }

    /// The kind that is converted.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Every version, the hub first.
    pub fn versions(&self) -> impl Iterator<Item = &'static str> + '_ {
        std::iter::once(self.hub).chain(self.spokes.keys().copied())
    }

    /// Converts one object to `version`, through the hub, and appends it to `out`.
    ///
    /// `metadata` stays as it is, but for labels and annotations, which the types may change.
    ///
    /// # Errors
    /// A sentence for the user. What was appended until then means nothing.
    pub fn convert(&self, object: &RawValue, version: &str, out: &mut String) -> Result<(), String> {
        let api_version = raw::member(object, "apiVersion").and_then(raw::string);
        let from = api_version
            .as_deref()
            .and_then(|api_version| api_version.strip_prefix(self.group)?.strip_prefix('/'))
            .ok_or_else(|| format!("apiVersion of the object is not in group {}", self.group))?;
        let to_hub = if from == self.hub { None } else { Some(self.steps(from)?.to_hub) };
        let from_hub = if version == self.hub { None } else { Some(self.steps(version)?.from_hub) };
        match (to_hub, from_hub) {
            _ if from == version => out.push_str(object.get()),
            (None, None) => out.push_str(object.get()),
            (Some(step), None) | (None, Some(step)) => self.take(step, object, version, out)?,
            (Some(to_hub), Some(from_hub)) => {
                let mut hub = String::new();
                self.take(to_hub, object, self.hub, &mut hub)?;
                self.take(from_hub, read(&hub)?, version, out)?;
            }
        }
        Ok(())
    }

    /// Takes a step, and carries over what the types need not know: the API server refuses an object whose kind, name, namespace
    /// or uid is not the same (`validateConvertedObject`), and takes only labels and annotations from the rest of `metadata`.
    fn take(&self, step: Step, object: &RawValue, version: &str, out: &mut String) -> Result<(), String> {
        let converted = step(object)?;
        let converted = read(&converted)?;
        let original = raw::member(object, "metadata");
        let mut written = None;
        let mut writer = ObjectWriter::begin(out);
        writer.put("apiVersion", &quoted(&format!("{}/{version}", self.group)));
        writer.put("kind", &quoted(self.kind));
        let is_object = raw::members(converted, |key, value| match key.name() {
            "apiVersion" | "kind" => {}
            "metadata" => written = Some(value),
            _ => writer.copy(&key, value),
        });
        if !is_object {
            return Err(format!("{}.{} {version} is not written as a JSON object", self.kind, self.group));
        }
        match (original, written) {
            (Some(original), Some(written)) if raw::is_object(original) && raw::is_object(written) => {
                carry_over(original, written, writer.value_of("metadata"));
            }
            (Some(metadata), _) | (None, Some(metadata)) => writer.put("metadata", metadata.get()),
            (None, None) => {}
        }
        writer.end();
        Ok(())
    }

    fn steps(&self, version: &str) -> Result<Steps, String> {
        self.spokes.get(version).copied().ok_or_else(|| {
            let known: Vec<&str> = self.versions().collect();
            let version = review::shortened(version);
            format!("{}.{} has no version {version:?}; known: {}", self.kind, self.group, known.join(", "))
        })
    }
}

/// The original metadata with labels and annotations as they were written by the types.
fn carry_over(original: &RawValue, written: &RawValue, out: &mut String) {
    let changeable = |name: &str| matches!(name, "labels" | "annotations");
    let mut writer = ObjectWriter::begin(out);
    raw::members(original, |key, value| {
        if !changeable(key.name()) {
            writer.copy(&key, value);
        }
    });
    raw::members(written, |key, value| {
        if changeable(key.name()) {
            writer.copy(&key, value);
        }
    });
    writer.end();
}

fn read(json: &str) -> Result<&RawValue, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn decode<T: DeserializeOwned>(object: &RawValue) -> Result<T, String> {
    serde_json::from_str(object.get()).map_err(|error| without_position(&error))
}

fn write<T: Serialize>(object: &T) -> Result<String, String> {
    serde_json::to_string(object).map_err(|error| error.to_string())
}
