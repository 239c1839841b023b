//! Writing the status of an object that a controller reconciles.

use kube::api::Patch;
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::apply::{Error, request};
use super::scope::within;
use super::{Key, Watchable};
use crate::field_managers::patching;

/// Writes the status unless it is what the object has. That the object is gone is fine.
///
/// # Errors
/// What the API server says.
pub async fn write<K, S>(client: Client, object: &K, old: Option<&S>, new: &S) -> Result<(), Error>
where
    K: Watchable,
    S: Serialize,
{
    let new = serde_json::to_value(new)?;
    let old = old.map(serde_json::to_value).transpose()?;
    if old.as_ref() == Some(&new) {
        return Ok(());
    }
    let key = Key::of(object);
    tracing::debug!(kind = %K::kind(&()), object = ?key, status = %new, "Writing status");
    // The uid keeps the status of a deleted object from a new one of the same name.
    let patch = json!({"metadata": {"uid": object.uid()}, "status": merge(old.as_ref(), new)});
    let api = within::<K>(client, &key.namespace);
    let manager = format!("outrider-{}", K::kind(&()).to_lowercase());
    let (params, patch) = (patching(&manager), Patch::Merge(&patch));
    match request::<K, _>(&key, api.patch_status(&key.name, &params, &patch)).await {
        Err(error) if error.code() == Some(404) => Ok(()),
        written => written.map(drop),
    }
}

/// The merge patch (RFC 7386) that makes `old` into `new`: what `new` lacks is removed, in maps within maps too.
fn merge(old: Option<&Value>, new: Value) -> Value {
    match (old, new) {
        (Some(Value::Object(old)), Value::Object(mut new)) => {
            for (field, old) in old {
                let new = new.entry(field).or_insert(Value::Null);
                *new = merge(Some(old), new.take());
            }
            Value::Object(new)
        }
        (_, new) => new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_the_new_status_lacks_is_removed() {
        let old = json!({"ready": true, "name": "a"});
        assert_eq!(merge(Some(&old), json!({"ready": false})), json!({"ready": false, "name": null}));
        assert_eq!(merge(None, json!({"ready": false})), json!({"ready": false}));
        let old = json!({"a": {"b": {"c": 1, "d": 2}}, "list": [{"e": 3}]});
        let patch = merge(Some(&old), json!({"a": {"b": {"c": 4}}, "list": [{}]}));
        assert_eq!(patch, json!({"a": {"b": {"c": 4, "d": null}}, "list": [{}]}));
    }
}
