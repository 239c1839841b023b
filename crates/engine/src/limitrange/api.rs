//! The `ClusterLimitRange` type, `policy.outrider.dev/v1alpha1`.

use std::collections::BTreeMap;
use std::fmt;

use admission::format::LabelSelector;
use admission::review::null_as_default;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::sidecarset::api::Metadata;

pub use crate::plugins::api::{API_VERSION, GROUP, PluginStatus, VERSION};

/// `kind` in manifests and in reviews.
pub const KIND: &str = "ClusterLimitRange";
/// Resource: the plural in URLs.
pub const PLURAL: &str = "clusterlimitranges";

/// The words for the types of limits.
pub const TYPES: [&str; 3] =
    [LimitType::Container.name(), LimitType::Pod.name(), LimitType::PersistentVolumeClaim.name()];

/// What limits are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitType {
    /// Each container, init containers included.
    Container,
    /// All containers of a pod together.
    Pod,
    /// What a claim requests of storage.
    PersistentVolumeClaim,
}

impl LimitType {
    /// The word of the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Container => "Container",
            Self::Pod => "Pod",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
        }
    }

    /// The type of this word.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Container, Self::Pod, Self::PersistentVolumeClaim].into_iter().find(|one| one.name() == name)
    }
}

/// A `LimitRange` for every namespace that it selects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterLimitRange {
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: RangeSpec,
    /// What the controller found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PluginStatus>,
}

/// What a `ClusterLimitRange` asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RangeSpec {
    /// Namespaces by their labels; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Limits, each for another type.
    #[serde(deserialize_with = "null_as_default")]
    pub limits: Vec<LimitSpec>,
}

/// Amounts by resource.
pub type WrittenAmounts = BTreeMap<String, Amount>;

/// Limits of one type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitSpec {
    /// `Container`, `Pod` or `PersistentVolumeClaim`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub type_: String,
    /// The least that must be asked for.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub min: WrittenAmounts,
    /// The most that may be used.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub max: WrittenAmounts,
    /// Limits of containers that have none.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub default: WrittenAmounts,
    /// Requests of containers that have none.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub default_request: WrittenAmounts,
    /// The most that a limit may be, as a multiple of the request.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub max_limit_request_ratio: WrittenAmounts,
}

/// A quantity as it is written: the compiler reports one that is none, with its field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Amount(pub String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 100m or 1Gi")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
        }
        deserializer.deserialize_any(Written)
    }
}
