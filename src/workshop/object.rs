//! An object of a kind.

mod joined;
mod metadata;

use std::fmt::Debug;

use admission::Operation;
use admission::bounded::first;
use admission::object::object_or_default;
use admission::registry::{Resource, Rule, Scope};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use self::joined::Joined;
use crate::controller::apply::Error;
use crate::controller::scope::Scoped;
use crate::controller::status;
use crate::crd::{self, Definition};
use crate::kind::{Family, Kind};
use crate::permissions::own_kind;

/// A part of an object that is decoded with whatever is missing at its default.
pub trait Part: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static> Part for T {}

/// The spec of a kind, which says where the API server has the kind's objects.
pub trait KindSpec: Part {
    /// API group.
    const GROUP: &'static str;
    /// API version.
    const VERSION: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// The plural in URLs.
    const PLURAL: &'static str;

    /// Where objects lie: `NamespaceResourceScope` or `ClusterResourceScope` of k8s-openapi.
    type Scope: Scoped;
    /// What the controller saw.
    type Status: Part;
}

/// The row of a kind of the workshop that only watches and reconciles its own objects, for the kind to say what it does in addition.
pub const fn row<S: KindSpec>(crd: fn(&WebhookClientConfig) -> CustomResourceDefinition) -> Kind {
    let rules: fn() -> Vec<PolicyRule> = || own_kind(S::GROUP, S::PLURAL);
    Kind { rules, ..Kind::new(Object::<S>::NAME, Family::Workshop, crd) }
}

/// The definition of the kind with this schema of the whole object, without columns of its own.
pub const fn definition<S: KindSpec>(schema: JSONSchemaProps) -> Definition {
    let scope = if S::Scope::NAMESPACED { crd::Scope::Namespaced } else { crd::Scope::Cluster };
    let (group, version, kind, plural) = (S::GROUP, S::VERSION, S::KIND, S::PLURAL);
    Definition { group, version, kind, plural, scope, schema, columns: Vec::new(), scale: None }
}

/// When the API server calls a webhook of the kind: in these operations, by the entry `<kind>.<group>`.
pub const fn rule<S: KindSpec>(operations: &'static [Operation]) -> Rule {
    let scope = if S::Scope::NAMESPACED { Scope::Namespaced } else { Scope::Cluster };
    Rule { scope, ..Rule::new(Object::<S>::ENTRY, Object::<S>::RESOURCES, operations) }
}

/// Decodes the first `N` items of a list in a status. `N` is to be more than the controller writes: a longer list then differs from
/// what it would write.
///
/// # Errors
/// Those of the deserializer, and of the items that are decoded.
pub fn first_kept<'de, const N: usize, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let mut items = first(deserializer, N)?;
    // They are kept for long, and no more will come.
    items.iter_mut().for_each(Vec::shrink_to_fit);
    Ok(items)
}

/// An object of the kind with this spec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, bound = "")]
pub struct Object<S: KindSpec> {
    /// Name and namespace, and what else a controller reads.
    #[serde(deserialize_with = "metadata::kept")]
    pub metadata: ObjectMeta,
    /// What is asked for.
    #[serde(deserialize_with = "object_or_default")]
    pub spec: S,
    /// What the controller saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<S::Status>,
}

impl<S: KindSpec> Object<S> {
    const RESOURCES: &'static [Resource] =
        &[Resource { group: S::GROUP, version: S::VERSION, resource: S::PLURAL, kind: S::KIND }];
    const LOWER: &'static Joined = &Joined::of(&[S::KIND]).lower();
    const WITH_GROUP: &'static Joined = &Joined::of(&[Self::NAME, ".", S::GROUP]);
    const WITH_VERSION: &'static Joined = &Joined::of(&[S::GROUP, "/", S::VERSION]);

    /// Name of the kind in flags, logs and metrics: the kind in lower case.
    pub const NAME: &'static str = Self::LOWER.as_str();
    /// Name of its webhook entries: `<kind>.<group>`.
    const ENTRY: &'static str = Self::WITH_GROUP.as_str();

    /// Writes the status unless the object has it. That the object is gone is fine.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn write_status(&self, client: &Client, status: &S::Status) -> Result<(), Error> {
        status::write(client.clone(), self, self.status.as_ref(), status).await
    }
}

impl<S: KindSpec> k8s_openapi::Resource for Object<S> {
    const API_VERSION: &'static str = Self::WITH_VERSION.as_str();
    const GROUP: &'static str = S::GROUP;
    const KIND: &'static str = S::KIND;
    const VERSION: &'static str = S::VERSION;
    const URL_PATH_SEGMENT: &'static str = S::PLURAL;
    type Scope = S::Scope;
}

impl<S: KindSpec> k8s_openapi::Metadata for Object<S> {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
