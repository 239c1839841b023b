//! Objects that a controller keeps for its own, as the API server has them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use admission::limit::values;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::apply::contains;
use crate::watch::owners::controller_among;
use crate::watch::resource_of_kind;

/// Values in an object that are decoded at most. What a controller writes has some hundred; decoded, a value with its key may take
/// 1200 bytes.
const VALUES_MAX: usize = 10_000;

/// An object of kind `K` whose fields stay JSON. They are compared as JSON with what is wanted, and to decode a whole pod template
/// for a few numbers would cost time, and the decoder's code a fair part of the image. They stay text until they are read: a user who
/// may create objects with our label may fill them with what takes a hundred times as much memory when it is decoded.
pub struct Owned<K> {
    metadata: ObjectMeta,
    text: Arc<RawValue>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<Time>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<Metadata> for ObjectMeta {
    fn from(metadata: Metadata) -> Self {
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            deletion_timestamp: metadata.deletion_timestamp,
            owner_references: controller_among(metadata.owner_references),
            ..Self::default()
        }
    }
}

impl<K> Owned<K> {
    /// A whole number, by the fields' names; `None` where there is none, or one that does not fit.
    pub fn integer<N: TryFrom<i64>>(&self, path: [&str; 2]) -> Option<N> {
        let [section, field] = path;
        self.fields()?.get(section)?.get(field)?.as_i64()?.try_into().ok()
    }

    /// Whether all of `wanted` is here, but for the kind, which items of lists do not name.
    pub(super) fn contains(&self, wanted: &Value) -> bool {
        let Some(live) = self.fields() else { return false };
        let wanted = wanted.as_object().into_iter().flatten();
        let mut fields = wanted.filter(|(field, _)| !matches!(field.as_str(), "apiVersion" | "kind"));
        fields.all(|(field, wanted)| live.get(field).is_some_and(|live| contains(live, wanted)))
    }

    /// The fields; none of an object that is nothing like what we make.
    fn fields(&self) -> Option<Map<String, Value>> {
        if values(self.text.get(), VALUES_MAX) > VALUES_MAX {
            return None;
        }
        serde_json::from_str(self.text.get()).ok()
    }
}

impl<'de, K> Deserialize<'de> for Owned<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: Metadata,
        }

        let text = Box::<RawValue>::deserialize(deserializer)?;
        let whole: Whole = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { metadata: whole.metadata.into(), text: text.into(), kind: PhantomData })
    }
}

impl<K> Clone for Owned<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), text: Arc::clone(&self.text), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Owned<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("metadata", &self.metadata).finish_non_exhaustive()
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

    #[test]
    fn an_object_of_more_values_than_we_make_contains_nothing_of_ours() {
        let many: Vec<Value> = (0..VALUES_MAX).map(|_| json!({})).collect();
        let object = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2, "many": many}});
        let owned: Owned<Deployment> = serde_json::from_value(object).unwrap();
        assert!(!owned.contains(&json!({"spec": {"replicas": 2}})));
        assert_eq!(owned.integer::<i32>(["spec", "replicas"]), None);
    }
}
