//! `failurePolicy` of the entries of our webhook configurations, as break-glass and fail-open read and change it.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::configuration::Configuration;
use super::error::Error;

/// The policy by which requests pass while no replica answers.
pub const IGNORE: &str = "Ignore";
/// The API server's default.
const DEFAULT_POLICY: &str = "Fail";
/// The leader and cert-manager write to the same object, but rarely.
const TRIES: usize = 5;

/// An annotation of a configuration.
pub fn annotation<'a>(configuration: &'a Value, name: &str) -> Option<&'a Value> {
    configuration.pointer("/metadata/annotations")?.get(name)
}

/// Name and policy of each entry.
pub fn policies(configuration: &Value) -> impl Iterator<Item = (&str, &str)> {
    let entries = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| {
        let policy = entry.get("failurePolicy").and_then(Value::as_str).unwrap_or(DEFAULT_POLICY);
        Some((entry.get("name")?.as_str()?, policy))
    })
}

/// The strategic merge patch that sets this annotation (null removes it) and the policies of these entries, bound to the version
/// that was read. Entries are keyed by name in it (`patchMergeKey` in `k8s.io/api/admissionregistration/v1`), so nothing else
/// changes.
pub fn patch(found: &Value, annotation: &str, note: &Value, policies: &[(&str, &str)]) -> Value {
    let entry = |(name, policy): &(&str, &str)| json!({"name": name, "failurePolicy": policy});
    json!({
        "metadata": {
            "resourceVersion": found.pointer("/metadata/resourceVersion"),
            "annotations": {(annotation): note},
        },
        "webhooks": policies.iter().map(entry).collect::<Vec<_>>(),
    })
}

/// Reads a configuration, and writes the patch that `plan` returns for it; a version that another client wrote meanwhile is read
/// again. Returns what else `plan` returned, and what was written; `None` where there is no such configuration.
///
/// # Errors
/// [`Error::Api`], [`Error::Contended`].
pub async fn rewrite<C: Configuration, T>(
    client: &Client,
    params: &PatchParams,
    plan: impl Fn(&Value) -> (T, Option<Value>),
) -> Result<Option<(T, Option<C>)>, Error> {
    let api = Api::<C>::all(client.clone());
    for _ in 0..TRIES {
        let Some(found) = api.get_opt(C::NAME).await.map_err(Error::api(C::NAME))? else { return Ok(None) };
        let (planned, patch) = plan(&json!(found));
        let Some(patch) = patch else { return Ok(Some((planned, None))) };
        match api.patch(C::NAME, params, &Patch::Strategic(&patch)).await.map_err(Error::api(C::NAME)) {
            Ok(written) => return Ok(Some((planned, Some(written)))),
            // Written by another client meanwhile, or deleted.
            Err(error) if matches!(error.code(), Some(404 | 409)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Contended { name: C::NAME, tries: TRIES })
}
