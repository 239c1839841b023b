//! An object of a kind.

mod metadata;

use std::fmt::Debug;

use admission::Operation;
use admission::bounded::first;
use admission::object::object_or_default;
use admission::registry::{Resource, Rule, Scope};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::controller::scope::Scoped;

/// A part of an object that is decoded with whatever is missing at its default.
pub trait Part: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned {}

impl<T: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned> Part for T {}

/// The spec of a kind, which says where the API server has the kind's objects.
pub trait KindSpec: Part {
    /// API group.
    const GROUP: &'static str;
    /// API version.
    const VERSION: &'static str;
    /// Group and version, with a slash between.
    const API_VERSION: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// The plural in URLs.
    const PLURAL: &'static str;

    /// Where objects lie: `NamespaceResourceScope` or `ClusterResourceScope` of k8s-openapi.
    type Scope: Scoped;
    /// What the controller saw.
    type Status: Part;
}

/// When the API server calls a webhook of the kind: in these operations, by an entry of this name.
pub const fn rule<S: KindSpec>(operations: &'static [Operation], name: &'static str) -> Rule {
    let scope = if S::Scope::NAMESPACED { Scope::Namespaced } else { Scope::Cluster };
    Rule { scope, ..Rule::new(name, Object::<S>::RESOURCES, operations) }
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
}

impl<S: KindSpec> k8s_openapi::Resource for Object<S> {
    const API_VERSION: &'static str = S::API_VERSION;
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
