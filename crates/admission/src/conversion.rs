//! Conversion between the versions of a kind: one hub, any number of spokes.
//!
//! The API server sends a `ConversionReview` with objects of any served version and one desired version, and expects as many
//! objects back, in the same order, with `metadata` untouched but for labels and annotations
//! (`k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::registry::Registry;
use crate::review::Text;
use crate::unserved::Unserved;

/// The version that every other version converts to and from.
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
    /// # Errors
    /// A sentence for the user.
    pub fn convert(&self, object: Value, version: &str) -> Result<Value, String> {
        let from = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .and_then(|api_version| api_version.strip_prefix(self.group)?.strip_prefix('/'))
            .ok_or_else(|| format!("apiVersion of the object is not in group {}", self.group))?
            .to_owned();
        if from == version {
            return Ok(object);
        }
        let mut object = object;
        if from != self.hub {
            object = (self.steps(&from)?.to_hub)(object)?;
        }
        if version != self.hub {
            object = (self.steps(version)?.from_hub)(object)?;
        }
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), format!("{}/{version}", self.group).into());
        }
        Ok(object)
    }

    fn steps(&self, version: &str) -> Result<&Steps, String> {
        self.spokes.get(version).ok_or_else(|| {
            let known: Vec<&str> = self.versions().collect();
            format!("{}.{} has no version {version:?}; known: {}", self.kind, self.group, known.join(", "))
        })
    }
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn write<T: Serialize>(object: T) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|error| error.to_string())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionReview<'a> {
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow)]
    request: ConversionRequest<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionRequest<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow, rename = "desiredAPIVersion")]
    desired_api_version: Text<'a>,
    objects: Vec<Value>,
}

impl<W: 'static> Registry<W> {
    /// Answers a `ConversionReview`. An object that cannot be converted fails the review with a message that names it.
    ///
    /// # Errors
    /// [`Unserved::Unreadable`] when the body is not a `ConversionReview`.
    pub fn convert(&self, body: &[u8]) -> Result<Vec<u8>, Unserved> {
        let review: ConversionReview<'_> =
            serde_json::from_slice(body).map_err(|error| Unserved::Unreadable(error.to_string()))?;
        if review.kind.as_str() != "ConversionReview" {
            return Err(Unserved::Unreadable(format!(
                "kind is {:?}, expected \"ConversionReview\"",
                review.kind.as_str()
            )));
        }
        let mut response = json!({"uid": review.request.uid.as_str()});
        match self.convert_all(review.request.objects, &review.request.desired_api_version) {
            Ok(objects) => {
                response["result"] = json!({"status": "Success"});
                response["convertedObjects"] = Value::Array(objects);
            }
            Err(message) => response["result"] = json!({"status": "Failure", "message": message}),
        }
        let reply =
            json!({"apiVersion": review.api_version.as_str(), "kind": "ConversionReview", "response": response});
        Ok(reply.to_string().into_bytes())
    }

    fn convert_all(&self, objects: Vec<Value>, desired: &str) -> Result<Vec<Value>, String> {
        let (group, version) = desired.split_once('/').unwrap_or(("", desired));
        objects
            .into_iter()
            .map(|object| {
                let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
                let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
                self.conversions()
                    .iter()
                    .find(|conversion| conversion.group() == group && conversion.kind() == kind)
                    .ok_or_else(|| format!("{kind} {name:?}: no conversion to {desired} is served"))?
                    .convert(object, version)
                    .map_err(|error| format!("{kind} {name:?}: {error}"))
            })
            .collect()
    }
}
