//! Objects that a controller keeps for its own, as the API server has them.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::apply::contains;
use crate::watch::resource_of_kind;

/// An object of kind `K` whose fields stay JSON. They are compared as JSON with what is wanted, and to decode a whole pod template
/// for a few numbers would cost time, and the decoder's code a fair part of the image.
pub struct Owned<K> {
    metadata: ObjectMeta,
    fields: Map<String, Value>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Owned<K> {
    /// A whole number, by the fields' names; `None` where there is none, or one that does not fit.
    pub fn integer<N: TryFrom<i64>>(&self, path: [&str; 2]) -> Option<N> {
        let [section, field] = path;
        self.fields.get(section)?.get(field)?.as_i64()?.try_into().ok()
    }

    /// Whether all of `wanted` is here, but for the kind, which items of lists do not name.
    pub(super) fn contains(&self, wanted: &Value) -> bool {
        let wanted = wanted.as_object().into_iter().flatten();
        let mut fields = wanted.filter(|(field, _)| !matches!(field.as_str(), "apiVersion" | "kind"));
        fields.all(|(field, wanted)| self.fields.get(field).is_some_and(|live| contains(live, wanted)))
    }
}

impl<'de, K> Deserialize<'de> for Owned<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        let metadata = fields.get("metadata").ok_or_else(|| D::Error::missing_field("metadata"))?;
        let metadata = ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?;
        Ok(Self { metadata, fields, kind: PhantomData })
    }
}

impl<K> Clone for Owned<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), fields: self.fields.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Owned<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("fields", &self.fields).finish_non_exhaustive()
    }
}

resource_of_kind!(Owned<K>);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::Resource as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_of_a_list_is_compared_without_its_kind_and_numbers_are_read_where_they_are() {
        let owned: Owned<Deployment> = serde_json::from_value(json!({
            "metadata": {"name": "d", "generation": 3}, "spec": {"replicas": 2, "paused": false},
            "status": {"observedGeneration": 5_000_000_000_i64, "replicas": "2"},
        }))
        .unwrap();
        let wanted = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}});
        assert!(owned.contains(&wanted) && owned.contains(&json!({"metadata": {"name": "d"}})));
        for differs in [json!({"spec": {"replicas": 3}}), json!({"data": {}}), json!({"metadata": {"labels": {}}})] {
            assert!(!owned.contains(&differs), "{differs}");
        }
        assert_eq!(owned.meta().generation, Some(3));
        assert_eq!(owned.integer(["spec", "replicas"]), Some(2_i32));
        assert_eq!(owned.integer(["status", "observedGeneration"]), Some(5_000_000_000_i64));
        for (section, field) in [
            ("status", "observedGeneration"),
            ("status", "replicas"),
            ("spec", "paused"),
            ("spec", "other"),
            ("data", "x"),
        ] {
            assert_eq!(owned.integer::<i32>([section, field]), None, "{section}.{field}");
        }
    }
}
