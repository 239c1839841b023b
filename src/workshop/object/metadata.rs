//! The metadata that is kept of an object that is reconciled.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What finalizers may cost in memory. No object has hundreds; a user who may write them could add a million small ones.
const FINALIZERS_MAX_COST: usize = 32 * 1024;

/// What an item of a list takes beside its text, roughly.
const ITEM_OVERHEAD: usize = 48;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Finalizers>,
}

/// Decodes metadata without what no controller reads: labels, annotations, owners and managed fields. Missing and null are empty.
pub fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let kept = Option::<Kept>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ObjectMeta {
        name: kept.name,
        namespace: kept.namespace,
        uid: kept.uid,
        resource_version: kept.resource_version,
        generation: kept.generation,
        creation_timestamp: kept.creation_timestamp,
        deletion_timestamp: kept.deletion_timestamp,
        finalizers: kept.finalizers.map(|finalizers| finalizers.0),
        ..ObjectMeta::default()
    })
}

/// All finalizers: they are written back whole, so that to leave some out would take them away.
struct Finalizers(Vec<String>);

impl<'de> Deserialize<'de> for Finalizers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;

        impl<'de> Visitor<'de> for Items {
            type Value = Finalizers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of finalizers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let (mut finalizers, mut room) = (Vec::new(), FINALIZERS_MAX_COST);
                while let Some(finalizer) = items.next_element::<String>()? {
                    let left = room.checked_sub(finalizer.len().saturating_add(ITEM_OVERHEAD));
                    room = left.ok_or_else(|| A::Error::custom("metadata.finalizers: there are too many to keep"))?;
                    finalizers.push(finalizer);
                }
                Ok(Finalizers(finalizers))
            }
        }

        deserializer.deserialize_seq(Items)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_controllers_read_is_kept_and_what_users_may_fill_is_not() {
        let read = json!({
            "name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": "2030-01-01T00:00:00Z", "deletionTimestamp": "2030-01-02T00:00:00Z",
            "finalizers": ["example.com/a"],
        });
        let mut whole = read.clone();
        whole["labels"] = json!({"a": "b"});
        whole["annotations"] = json!({"a": "b"});
        whole["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
        whole["managedFields"] = json!([{"manager": "m"}]);
        assert_eq!(json!(kept(whole).unwrap()), read);
        assert_eq!(kept(json!(null)).unwrap(), ObjectMeta::default());
    }

    #[test]
    fn more_finalizers_than_anybody_has_make_an_object_unreadable() {
        let many: Vec<String> = (0..100_000).map(|n| format!("a/{n}")).collect();
        let error = kept(json!({"finalizers": many})).unwrap_err().to_string();
        assert_eq!(error, "metadata.finalizers: there are too many to keep");
        let some: Vec<String> = (0..200).map(|n| format!("example.com/finalizer-{n}")).collect();
        assert_eq!(kept(json!({"finalizers": some})).unwrap().finalizers, Some(some));
    }
}
