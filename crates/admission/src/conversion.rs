//! Conversion between the versions of a kind: one hub, any number of spokes.
//!
//! The API server sends a `ConversionReview` with objects of any served version and one desired version, and expects as many
//! objects back, in the same order, with `metadata` untouched but for labels and annotations
//! (`k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::registry::Registry;
use crate::review::{Text, found, null_as_default, unreadable};
use crate::unserved::Unserved;

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

type Step = fn(Value) -> Result<Value, String>;

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
        Self { group, kind, hub: H::VERSION, spokes: BTreeMap::new() }
    }

    /// Adds a version.
    #[must_use]
    pub fn spoke<H: Hub, S: Spoke<H>>(mut self) -> Self {
        let steps = Steps {
            to_hub: |value| write(decode::<S>(value)?.into_hub()?),
            from_hub: |value| write(S::from_hub(decode(value)?)?),
        };
        self.spokes.insert(S::VERSION, steps);
        self
    }

    /// API group.
    pub const fn group(&self) -> &'static str {
        self.group
    }

    /// Kind.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Every version, the hub first.
    pub fn versions(&self) -> impl Iterator<Item = &'static str> + '_ {
        std::iter::once(self.hub).chain(self.spokes.keys().copied())
    }

    /// Converts one object to `version`, through the hub.
    ///
    /// `metadata` stays as it is, but for labels and annotations, which the types may change.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn convert(&self, object: Value, version: &str) -> Result<Value, String> {
        let from = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .and_then(|api_version| api_version.strip_prefix(self.group)?.strip_prefix('/'))
            .ok_or_else(|| format!("apiVersion of the object is not in group {}", self.group))?
            .to_owned();
        let to_hub = if from == self.hub { None } else { Some(self.steps(&from)?.to_hub) };
        let from_hub = if version == self.hub { None } else { Some(self.steps(version)?.from_hub) };
        if from == version {
            return Ok(object);
        }
        let mut object = object;
        for (step, result) in [(to_hub, self.hub), (from_hub, version)] {
            if let Some(step) = step {
                let metadata = object.get("metadata").cloned();
                object = step(object)?;
                self.carry_over(&mut object, metadata.as_ref(), result)?;
            }
        }
        Ok(object)
    }

    /// What the types need not know: the API server refuses an object whose kind, name, namespace or uid is not the same
    /// (`validateConvertedObject`), and takes only labels and annotations from the rest of `metadata`.
    fn carry_over(&self, object: &mut Value, original: Option<&Value>, version: &str) -> Result<(), String> {
        let Value::Object(object) = object else {
            return Err(format!("{}.{} {version} is not written as a JSON object", self.kind, self.group));
        };
        object.insert("apiVersion".to_owned(), format!("{}/{version}", self.group).into());
        object.insert("kind".to_owned(), self.kind.into());
        let Some(original) = original else { return Ok(()) };
        let mut metadata = original.clone();
        if let (Value::Object(metadata), Some(Value::Object(written))) = (&mut metadata, object.get("metadata")) {
            for changeable in ["labels", "annotations"] {
                take_over(metadata, written, changeable);
            }
        }
        object.insert("metadata".to_owned(), metadata);
        Ok(())
    }

    fn steps(&self, version: &str) -> Result<&Steps, String> {
        self.spokes.get(version).ok_or_else(|| {
            let known: Vec<&str> = self.versions().collect();
            format!("{}.{} has no version {version:?}; known: {}", self.kind, self.group, known.join(", "))
        })
    }
}

fn take_over(to: &mut Map<String, Value>, from: &Map<String, Value>, key: &str) {
    match from.get(key) {
        Some(value) => to.insert(key.to_owned(), value.clone()),
        None => to.remove(key),
    };
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn write<T: Serialize>(object: T) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|error| error.to_string())
}

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct ConversionReview<'a> {
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    request: Option<ConversionRequest<'a>>,
}

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct ConversionRequest<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow, rename = "desiredAPIVersion")]
    desired_api_version: Text<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    objects: Vec<&'a RawValue>,
}

crate::only_objects!(ConversionReview<'a>, ConversionRequest<'a>);

impl<'a> ConversionReview<'a> {
    /// The version that asked, and what for.
    fn parse(body: &'a [u8]) -> Result<(Text<'a>, ConversionRequest<'a>), String> {
        let Self { kind, api_version, request } =
            serde_json::from_slice(body).map_err(|error| unreadable(body, &error, "a ConversionReview"))?;
        if kind.as_str() != "ConversionReview" {
            return Err(format!("kind is {}, expected \"ConversionReview\"", found(&kind)));
        }
        if !matches!(api_version.as_str(), "apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1") {
            return Err(format!("apiVersion is {}, expected \"apiextensions.k8s.io/v1\"", found(&api_version)));
        }
        let request = request.ok_or("request is missing")?;
        if request.uid.is_empty() {
            return Err("request.uid is missing".to_owned());
        }
        Ok((api_version, request))
    }
}

impl<W: 'static> Registry<W> {
    /// Answers a `ConversionReview`. An object that cannot be converted fails the review with a message that names it.
    ///
    /// # Errors
    /// [`Unserved::Unreadable`] when the body is not a `ConversionReview`.
    pub fn convert(&self, body: &[u8]) -> Result<Vec<u8>, Unserved> {
        let (api_version, request) = ConversionReview::parse(body).map_err(Unserved::Unreadable)?;
        let mut response = json!({"uid": request.uid.as_str()});
        match self.convert_all(&request.objects, &request.desired_api_version) {
            Ok(objects) => {
                response["result"] = json!({"status": "Success"});
                response["convertedObjects"] = Value::Array(objects);
            }
            Err(message) => response["result"] = json!({"status": "Failure", "message": message}),
        }
        let reply = json!({"apiVersion": api_version.as_str(), "kind": "ConversionReview", "response": response});
        Ok(reply.to_string().into_bytes())
    }

    fn convert_all(&self, objects: &[&RawValue], desired: &str) -> Result<Vec<Value>, String> {
        objects.iter().enumerate().map(|(index, raw)| self.convert_one(index, raw, desired)).collect()
    }

    fn convert_one(&self, index: usize, raw: &RawValue, desired: &str) -> Result<Value, String> {
        let object: Value = serde_json::from_str(raw.get()).map_err(|error| format!("objects[{index}]: {error}"))?;
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let subject = format!("{kind} {name:?}");
        let (group, version) = desired.split_once('/').unwrap_or(("", desired));
        self.conversions()
            .iter()
            .find(|conversion| conversion.group() == group && conversion.kind() == kind)
            .ok_or_else(|| format!("{subject}: no conversion to {desired} is served"))?
            .convert(object, version)
            .map_err(|error| format!("{subject}: {error}"))
    }
}
