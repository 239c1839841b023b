//! Every definition of the cluster, as far as it is examined. Schemas are long.

use std::marker::PhantomData;

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::watch::resource_of_kind;

/// A definition.
pub type FoundDefinition = WithoutSchema<CustomResourceDefinition>;

/// A definition of which the schemas are not decoded. `K` is its kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(bound = "")]
pub struct WithoutSchema<K> {
    /// Name and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is read of the spec.
    pub spec: Option<DefinitionSpec>,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

resource_of_kind!(WithoutSchema<K>);

/// Whose objects they are, and who converts them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionSpec {
    /// The group.
    pub group: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// What its objects are called.
    pub names: DefinitionNames,
    /// The versions.
    pub versions: Vec<DefinitionVersion>,
    /// How objects are converted.
    pub conversion: Option<Conversion>,
}

/// What its objects are called.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionNames {
    /// The kind.
    pub kind: String,
    /// The kind in lower case.
    pub singular: String,
}

/// A version.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionVersion {
    /// Its name.
    pub name: String,
    /// Whether the API server serves it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
}

/// How objects are converted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: String,
    /// With `Webhook`, which.
    pub webhook: Option<Converter>,
}

/// A converter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Converter {
    /// Where it is. The type of `apiextensions.k8s.io` has the same fields as that of admission.
    pub client_config: Option<WebhookClientConfig>,
}
