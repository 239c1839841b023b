//! Webhook configurations of a process outside the cluster, which are all its own.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::WebhookClientConfig as Converter;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::manager::term::Term;
use crate::manager::{break_glass, conversion};
use crate::manifests::webhooks::{self, FailurePolicy, Hook, MUTATING, Settings, Target, VALIDATING};
use crate::world::Exclusion;

/// Owner of the fields that are applied, in managedFields.
pub(super) const FIELD_MANAGER: &str = "outrider";

/// How often the configurations are compared with what they should say. Somebody may have applied the manifests anew or changed
/// them, and a wrong caBundle is an outage.
const CHECK: Duration = Duration::from_secs(15);
pub(super) const RETRY: Duration = Duration::from_secs(2);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a configuration could not be brought in order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("{name}: {source}")]
    Api {
        /// Name of the configuration, or of the definition.
        name: String,
        /// What happened.
        source: Box<kube::Error>,
    },
    /// A kind that is on has no definition yet.
    #[error(
        "there is no CustomResourceDefinition {0}; apply the chart, or `outrider manifests crds` with the same --enable-kinds"
    )]
    NoDefinition(String),
    /// No answer in time.
    #[error("the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
}

/// A webhook configuration: two types with one shape.
pub trait Configuration:
    Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Name of ours.
    const NAME: &'static str;

    /// Name and address of each entry.
    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Configuration for MutatingWebhookConfiguration {
    const NAME: &'static str = MUTATING;

    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const NAME: &'static str = VALIDATING;

    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

async fn settled(work: impl Future<Output = Result<(), Error>>) -> Duration {
    match tokio::time::timeout(REQUEST_TIMEOUT, work).await.unwrap_or(Err(Error::Timeout)) {
        Ok(()) => CHECK,
        Err(error) => {
            tracing::warn!(%error, "The webhook configurations are not in order, trying again");
            RETRY
        }
    }
}

/// The host in a URL, without the brackets of an IPv6 address.
pub fn host(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    Some(uri.host()?.trim_matches(['[', ']']).to_owned())
}

/// A process outside the cluster that registers itself.
#[derive(Debug, Clone)]
pub struct SelfRegistration {
    /// The endpoints.
    pub hooks: Vec<Hook>,
    /// Names of the definitions whose objects this process converts.
    pub converted: Vec<String>,
    /// Our own namespace.
    pub namespace: String,
    /// Scheme, host and port under which the API server reaches this process.
    pub url: String,
    /// Namespaces whose pods are left alone.
    pub exclusion: Exclusion,
}

impl SelfRegistration {
    fn settings<'a>(&'a self, ca_bundle: &'a str) -> Settings<'a> {
        Settings {
            target: Target::Url { base: self.url.clone() },
            ca_bundle: Some(ca_bundle),
            exclusion: &self.exclusion,
            pod_failure_policy: FailurePolicy::Fail,
        }
    }

    /// Keeps the configurations applied until the term ends, then removes them, and has definitions as they are printed: nobody
    /// answers at the URL any more, and a cluster that is told to ask there would refuse every pod.
    pub async fn run(self, client: Client, mut bundle: watch::Receiver<Option<String>>, term: Term) {
        let kept = async {
            loop {
                let wanted = bundle.borrow_and_update().clone();
                let pause = match &wanted {
                    None => CHECK,
                    Some(wanted) => settled(self.apply(&client, wanted)).await,
                };
                tokio::select! {
                    () = sleep(pause) => {}
                    Ok(()) = bundle.changed() => {}
                }
            }
        };
        term.until_ending(kept).await;
        let removed = async {
            remove(&client, |found: &MutatingWebhookConfiguration| self.is_here(found)).await?;
            remove(&client, |found: &ValidatingWebhookConfiguration| self.is_here(found)).await?;
            self.point(&client, &Target::Service { namespace: self.namespace.clone() }.converter(None)).await
        };
        if let Err(error) = tokio::time::timeout(REQUEST_TIMEOUT, removed).await.unwrap_or(Err(Error::Timeout)) {
            tracing::error!(
                %error,
                "The webhook configurations stay; remove them with `kubectl delete mutatingwebhookconfiguration/{MUTATING} \
                 validatingwebhookconfiguration/{VALIDATING}`"
            );
        }
    }

    async fn apply(&self, client: &Client, ca_bundle: &str) -> Result<(), Error> {
        let settings = self.settings(ca_bundle);
        // First of all: the webhooks of a kind see v2 objects only as v1.
        self.point(client, &settings.converter()).await?;
        // The validating one first: a kind's objects are never defaulted by us without being checked by us.
        apply(client, &webhooks::validating(&self.hooks, &settings)).await?;
        apply(client, &webhooks::mutating(&self.hooks, &settings)).await
    }

    async fn point(&self, client: &Client, there: &Converter) -> Result<(), Error> {
        for definition in &self.converted {
            conversion::point(client, definition, there).await?;
        }
        Ok(())
    }

    /// Whether the API server is told to ask this process.
    fn is_here(&self, found: &impl Configuration) -> bool {
        let here = |config: &WebhookClientConfig| config.url.as_ref().is_some_and(|url| url.starts_with(&self.url));
        found.entries().iter().any(|(_, config)| here(config))
    }
}

/// Removes our configuration if there is one, and it is such.
pub(super) async fn remove<C: Configuration>(client: &Client, is_such: impl Fn(&C) -> bool) -> Result<(), Error> {
    let api = Api::<C>::all(client.clone());
    let failed = |source| Error::Api { name: C::NAME.to_owned(), source: Box::new(source) };
    let Some(found) = api.get_opt(C::NAME).await.map_err(failed)?.filter(is_such) else { return Ok(()) };
    let preconditions =
        Preconditions { uid: found.meta().uid.clone(), resource_version: found.meta().resource_version.clone() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(C::NAME, &params).await {
        Ok(_) => {
            tracing::info!(configuration = C::NAME, "Removed");
            Ok(())
        }
        // Gone, or somebody else's by now.
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

async fn apply<C: Configuration>(client: &Client, wanted: &C) -> Result<(), Error> {
    let api = Api::<C>::all(client.clone());
    let failed = |source| Error::Api { name: C::NAME.to_owned(), source: Box::new(source) };
    let mut object = json!(wanted);
    if let Some(stored) = api.get_opt(C::NAME).await.map_err(failed)? {
        break_glass::keep_policies(&mut object, &json!(stored));
    }
    object["apiVersion"] = C::api_version(&()).into();
    object["kind"] = C::kind(&()).into();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(C::NAME, &params, &Patch::Apply(&object)).await.map_err(failed)?;
    tracing::debug!(configuration = C::NAME, "Applied");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_what_the_certificate_is_for() {
        for (url, expected) in [
            ("https://127.0.0.1:9443", Some("127.0.0.1")),
            ("https://[::1]:9443/", Some("::1")),
            ("https://outrider.example.com", Some("outrider.example.com")),
            ("not a url", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }
}
