//! Writing and removing a webhook configuration as a whole.

use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::trust::{self, Trusted};
use super::{Configuration, FIELD_MANAGER};
use crate::answers::code;
use crate::certs::ca_bundle::merge::Bundle;
use crate::certs::ca_bundle::object::{BundleLocation, RETIRING};
use crate::manager::break_glass;
use crate::manager::error::Error;

/// Removes our configuration if there is one, and it is such.
pub async fn remove<C: Configuration>(client: &Client, is_such: impl Fn(&C) -> bool) -> Result<(), Error> {
    let api = Api::<C>::all(client.clone());
    let failed = Error::api(C::NAME);
    let Some(found) = api.get_opt(C::NAME).await.map_err(&failed)?.filter(is_such) else { return Ok(()) };
    let preconditions =
        Preconditions { uid: found.meta().uid.clone(), resource_version: found.meta().resource_version.clone() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(C::NAME, &params).await {
        Ok(_) => {
            tracing::info!(configuration = C::NAME, "Removed");
            Ok(())
        }
        // Gone, or replaced by another client.
        Err(error) if matches!(code(&error), Some(404 | 409)) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Whether anything had to be written.
pub async fn apply<C: Configuration>(
    client: &Client,
    wanted: &C,
    trusted: &Trusted,
    is_here: impl Fn(&C) -> bool,
) -> Result<bool, Error> {
    let api = Api::<C>::all(client.clone());
    let failed = Error::api(C::NAME);
    let mut object = json!(wanted);
    let found = api.get_opt(C::NAME).await.map_err(&failed)?;
    let asks_us = found.as_ref().is_some_and(is_here);
    let stored = found.map(|found| json!(found));
    let bundle = trusted.bundle(stored.as_ref().filter(|_| asks_us), BundleLocation::Webhooks, Timestamp::now());
    put_bundle(&mut object, &bundle);
    if let Some(stored) = &stored {
        break_glass::keep_policies(&mut object, stored);
        if says(stored, &object) && trust::says_retiring(stored, &trust::retiring(&bundle)) {
            return Ok(false);
        }
    }
    object["apiVersion"] = C::api_version(&()).into();
    object["kind"] = C::kind(&()).into();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(C::NAME, &params, &Patch::Apply(&object)).await.map_err(&failed)?;
    tracing::info!(configuration = C::NAME, "Wrote the webhook configuration");
    Ok(true)
}

/// Gives every entry the caBundle.
fn put_bundle(object: &mut Value, bundle: &Bundle) {
    let encoded = trust::encoded(bundle);
    for entry in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        entry["clientConfig"]["caBundle"] = encoded.clone().into();
    }
    let retiring = trust::retiring(bundle);
    if !retiring.is_null() {
        object["metadata"]["annotations"][RETIRING] = retiring;
    }
}

/// Whether `stored` says all that `wanted` says. It may have further fields, such as those that others own; but not further
/// entries in a list, as an entry of ours that is not wanted any more must go.
pub fn says(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| stored.get(key).is_some_and(|stored| says(stored, wanted)))
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(stored, wanted)| says(stored, wanted))
        }
        _ => stored == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_written_again_only_if_it_lacks_something_or_has_an_entry_too_many() {
        let wanted = json!({"metadata": {"name": "a"}, "webhooks": [{"name": "x", "rules": [{"apiGroups": [""]}]}]});
        let stored = |of: &dyn Fn(&mut Value)| {
            let mut stored = wanted.clone();
            stored["metadata"]["resourceVersion"] = "7".into();
            stored["webhooks"][0]["matchConditions"] = json!([{"name": "theirs"}]);
            of(&mut stored);
            stored
        };
        assert!(says(&stored(&|_| {}), &wanted));
        let changes: [&dyn Fn(&mut Value); 5] = [
            &|stored| stored["webhooks"][0]["name"] = "y".into(),
            &|stored| stored["webhooks"][0]["rules"] = Value::Null,
            &|stored| stored["webhooks"][0]["rules"][0]["apiGroups"] = json!(["", "apps"]),
            &|stored| stored["webhooks"] = json!([]),
            &|stored| stored["webhooks"].as_array_mut().unwrap().push(json!({"name": "y"})),
        ];
        for change in changes {
            let stored = stored(change);
            assert!(!says(&stored, &wanted), "{stored}");
        }
    }
}
