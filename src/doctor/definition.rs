//! Every definition of the cluster, as far as it is examined. Schemas are long.

use std::marker::PhantomData;

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::watch::resource_of_kind;

/// A definition of any operator.
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
    /// API group, which is never empty.
    pub group: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// What its objects are called.
    pub names: DefinitionNames,
    /// Served or not.
    pub versions: Vec<DefinitionVersion>,
    /// How objects are converted.
    pub conversion: Option<Conversion>,
}

/// What its objects are called.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionNames {
    /// As manifests have it, in camel case.
    pub kind: String,
    /// The kind in lower case.
    pub singular: String,
}

/// One of its versions, without its schema.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionVersion {
    /// Such as `v1`.
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
    /// What the API server calls; only with the strategy `Webhook`.
    pub webhook: Option<Converter>,
}

/// A webhook that converts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Converter {
    /// Where it is. The type of `apiextensions.k8s.io` has the same fields as that of admission.
    pub client_config: Option<WebhookClientConfig>,
}
