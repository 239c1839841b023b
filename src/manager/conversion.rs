//! Where the API server has objects of several versions converted: `spec.conversion` of their definitions.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};
use kube::api::Patch;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use super::error::Error;
use super::registration::{FIELD_MANAGER, Trusted, trust};
use crate::answers::code;
use crate::certs::ca_bundle::object::{BundleLocation, RETIRING};
use crate::certs::trust_anchor;
use crate::field_managers::patching;
use crate::manifests::webhooks::WebhookTarget;

/// Has the definition named converted there. Returns whether that had to be written.
///
/// # Errors
/// What the API server says, and that there is no such definition.
pub async fn point(client: &Client, name: &str, there: &WebhookClientConfig) -> Result<bool, Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let found = definition(&api, name).await?;
    write(&api, name, &found, there, &Value::Null).await
}

/// The same for a process outside the cluster: what the API server trusted there before it trusts for a while.
///
/// # Errors
/// What the API server says, and that there is no such definition.
pub async fn point_at_process(
    client: &Client,
    name: &str,
    process: &WebhookTarget,
    trusted: &Trusted,
) -> Result<bool, Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let found = definition(&api, name).await?;
    let mut there = process.converter(None);
    let asks_us = converter(&found).is_some_and(|converter| converter.url == there.url);
    let stored = asks_us.then(|| json!(found));
    let bundle = trusted.bundle(stored.as_ref(), BundleLocation::Conversion, Timestamp::now());
    there.ca_bundle = Some(ByteString(trust_anchor::bundle(&bundle.anchors).into_bytes()));
    write(&api, name, &found, &there, &trust::retiring(&bundle)).await
}

async fn write(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    found: &CustomResourceDefinition,
    there: &WebhookClientConfig,
    retiring: &Value,
) -> Result<bool, Error> {
    let noted = found.metadata.annotations.as_ref().and_then(|all| all.get(RETIRING)).map(String::as_str);
    if converter(found) == Some(there) && noted == retiring.as_str() {
        return Ok(false);
    }
    let (params, patch) = (patching(FIELD_MANAGER), pointing(there, retiring));
    api.patch(name, &params, &Patch::Merge(&patch)).await.map_err(|source| failed(name, source))?;
    tracing::info!(definition = name, url = there.url, "Wrote where objects are converted");
    Ok(true)
}

/// By merge and not by apply: a Service and a URL exclude each other, also where another manager wrote one.
fn pointing(there: &WebhookClientConfig, retiring: &Value) -> Value {
    let client_config = json!({"url": there.url, "service": there.service, "caBundle": there.ca_bundle});
    let webhook = json!({"clientConfig": client_config, "conversionReviewVersions": ["v1"]});
    json!({
        "metadata": {"annotations": {RETIRING: retiring}},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
    })
}

/// The URL where a process outside the cluster converts the objects of the definition named, if one does.
///
/// # Errors
/// What the API server says, and that there is no such definition.
pub async fn url_of_a_process(client: &Client, name: &str) -> Result<Option<String>, Error> {
    let found = definition(&Api::all(client.clone()), name).await?;
    let url = converter(&found).and_then(|converter| converter.url.clone());
    Ok(url.filter(|_| is_written_by_us(&found)))
}

/// Whether a process that registers itself has written a part of the object.
pub(super) fn is_written_by_us(object: &impl Resource) -> bool {
    let mut managers = object.meta().managed_fields.iter().flatten();
    managers.any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER))
}

async fn definition(api: &Api<CustomResourceDefinition>, name: &str) -> Result<CustomResourceDefinition, Error> {
    let found = api.get_opt(name).await.map_err(|source| failed(name, source))?;
    found.ok_or_else(|| Error::NoDefinition(name.to_owned()))
}

fn converter(definition: &CustomResourceDefinition) -> Option<&WebhookClientConfig> {
    definition.spec.conversion.as_ref()?.webhook.as_ref()?.client_config.as_ref()
}

fn failed(name: &str, source: kube::Error) -> Error {
    if code(&source) == Some(404) { Error::NoDefinition(name.to_owned()) } else { Error::api(name)(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_takes_the_place_of_a_service_and_the_other_way_round() {
        let url = WebhookClientConfig {
            url: Some("https://127.0.0.1:9443/convert".to_owned()),
            ca_bundle: Some(ByteString(b"pem".to_vec())),
            service: None,
        };
        assert_eq!(
            pointing(&url, &"{}".into()),
            json!({"metadata": {"annotations": {RETIRING: "{}"}}, "spec": {"conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:9443/convert", "caBundle": "cGVt", "service": null},
            }}}})
        );
        let client_config =
            &pointing(&WebhookClientConfig::default(), &Value::Null)["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(*client_config, json!({"url": null, "service": null, "caBundle": null}));
    }
}
