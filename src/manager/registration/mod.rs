//! Webhook configurations of a process outside the cluster, which are all its own.

mod changes;
mod definitions;
pub(super) mod trust;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::task_tracker::TaskTrackerToken;

use self::changes::Changes;
pub(super) use self::trust::Trusted;
pub use super::configuration::{Configuration, OnDemand};
use crate::answers::said;
use crate::certs::ca_bundle::merge::Bundle;
use crate::certs::ca_bundle::object::{BundleLocation, RETIRING};
use crate::certs::trust_anchor::TrustAnchor;
use crate::controller::leader_term::LeaderTerm;
use crate::kinds::Kinds;
use crate::logging::throttle::LogThrottle;
use crate::manager::{break_glass, conversion, on_demand};
use crate::manifests::webhooks::{self, FailurePolicy, Settings, Target, WebhookEntry};
use crate::names::{MUTATING, VALIDATING};
use crate::watch::read_model::ReadModel;
use engine::demand::Demand;
use engine::snapshot::Exclusion;

/// Owner of the fields that are applied, in managedFields.
pub(super) const FIELD_MANAGER: &str = "outrider";

/// How often the configurations are compared with what they should say, if no change of them was told: a wrong caBundle is an
/// outage.
const CHECK: Duration = Duration::from_secs(15);
/// API servers hear by a watch that they are to ask nobody any more.
const HEARD: Duration = Duration::from_millis(500);
pub(super) const RETRY: Duration = Duration::from_secs(2);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a configuration could not be brought in order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("{name}: {}", said(source))]
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
    /// Another process is called, and answers.
    #[error("another process serves the webhooks at {url}; end it, or use another cluster")]
    Served {
        /// Host and port.
        url: String,
    },
    /// The cluster has replicas that a Service leads to.
    #[error(
        "Outrider is installed in this cluster: {0} calls a Service; use another cluster, or remove the installation first"
    )]
    Installed(&'static str),
    /// An entry cannot be written as JSON: a defect.
    #[error("an entry cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.code == 403))
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
    pub hooks: Vec<WebhookEntry>,
    /// Names of the definitions whose objects this process converts.
    pub converted: Vec<String>,
    /// The same of kinds that are off, whose objects are converted all the same as long as there are definitions.
    pub converted_off: Vec<String>,
    /// Our own namespace.
    pub namespace: String,
    /// Scheme, host and port under which the API server reaches this process.
    pub url: String,
    /// Namespaces whose pods are left alone.
    pub exclusion: Exclusion,
    /// How long an authority that was replaced stays trusted.
    pub overlap: SignedDuration,
    /// What accepted objects need on-demand entries for.
    pub kinds: Kinds,
    /// The accepted objects.
    pub world: ReadModel,
}

impl SelfRegistration {
    fn target(&self) -> Target {
        Target::Url { base: self.url.clone() }
    }

    /// Without a caBundle: what that holds depends on what is stored.
    fn settings(&self) -> Settings<'_> {
        Settings {
            target: self.target(),
            ca_bundle: None,
            exclusion: &self.exclusion,
            pod_failure_policy: FailurePolicy::Fail,
        }
    }

    /// Keeps the configurations applied until the term ends, then removes them, and has definitions as they are printed: nobody
    /// answers at the URL any more, and a cluster that is told to ask there would refuse every pod. `answering` keeps the
    /// listeners open until then.
    ///
    /// What has no definition is not asked about: whoever removes the definitions wants to be rid of us.
    pub async fn run(
        self,
        client: Client,
        bundle: watch::Receiver<Option<String>>,
        term: LeaderTerm,
        answering: TaskTrackerToken,
    ) {
        term.until_ending(self.keep(&client, bundle)).await;
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        if let Err(error) = by(deadline, self.unregister(&client)).await {
            tracing::error!(
                %error,
                "The webhook configurations stay; remove them with `kubectl delete mutatingwebhookconfiguration/{MUTATING} \
                 validatingwebhookconfiguration/{VALIDATING}`"
            );
        }
        if let Err(error) = by(deadline, self.point_back(&client)).await {
            tracing::error!(
                %error,
                "The API server still has objects converted by this process, which ends; `outrider uninstall` puts that right"
            );
        }
        sleep(HEARD).await;
        drop(answering);
    }

    /// Does not end.
    async fn keep(&self, client: &Client, mut bundle: watch::Receiver<Option<String>>) {
        let definitions = self.definitions();
        let all = definitions.iter().chain(&self.converted_off).cloned().collect();
        let mut changes = Changes::of(client, &definitions);
        let (mut told, mut trouble) = (BTreeSet::new(), LogThrottle::default());
        let mut publications = self.world.publications();
        loop {
            let demands = on_demand::demands(&self.kinds, &self.world);
            let wanted = bundle.borrow_and_update().clone();
            let mut pause = CHECK;
            let wanted = wanted.map(|pem| TrustAnchor::read_all(pem.as_bytes())).filter(|wanted| !wanted.is_empty());
            if let Some(wanted) = wanted {
                let trusted = Trusted { wanted, overlap: self.overlap };
                let brought = Box::pin(async {
                    not_installed::<MutatingWebhookConfiguration>(client).await?;
                    not_installed::<ValidatingWebhookConfiguration>(client).await?;
                    let missing = definitions::missing(client, &all).await?;
                    tell(&mut told, missing.intersection(&definitions).cloned().collect());
                    self.apply(client, &trusted, &missing, &demands, &mut changes).await
                });
                if let Err(error) = by(Instant::now() + REQUEST_TIMEOUT, brought).await {
                    if trouble.is_news(&error) {
                        tracing::warn!(%error, "The webhook configurations are not in order, trying again");
                    }
                    pause = RETRY;
                } else {
                    trouble.over();
                }
            }
            tokio::select! {
                () = sleep(pause) => changes.quiet(),
                Ok(()) = bundle.changed() => {}
                () = changes.next(CHECK) => {}
                () = on_demand::others(&mut publications, &self.kinds, &self.world, &demands) => {}
            }
        }
    }

    async fn apply(
        &self,
        client: &Client,
        trusted: &Trusted,
        missing: &BTreeSet<String>,
        demands: &[Demand],
        changes: &mut Changes,
    ) -> Result<(), Error> {
        let settings = self.settings();
        let mut has_written = false;
        // First of all: the webhooks of a kind see v2 objects only as v1.
        for definition in self.converted.iter().filter(|name| !missing.contains(*name)) {
            has_written |= conversion::point_at_process(client, definition, &self.target(), trusted).await?;
        }
        for definition in self.converted_off.iter().filter(|name| !missing.contains(*name)) {
            match conversion::point_at_process(client, definition, &self.target(), trusted).await {
                Ok(wrote) => has_written |= wrote,
                Err(error) if error.is_forbidden() => {}
                Err(error) => return Err(error),
            }
        }
        let hooks: Vec<WebhookEntry> = self.hooks.iter().filter(|hook| hook.is_wanted(missing)).cloned().collect();
        // The validating one first: a kind's objects are never defaulted by us without being checked by us.
        has_written |= self.register(client, &webhooks::validating(&hooks, &settings), trusted).await?;
        has_written |= self.register(client, &webhooks::mutating(&hooks, &settings), trusted).await?;
        // By a part of the objects, entries that others need would be withdrawn.
        if self.world.is_published() {
            let on_demand = OnDemand::<ValidatingWebhookConfiguration>::of(demands, &settings)?;
            has_written |= self.register(client, &on_demand, trusted).await?;
            let on_demand = OnDemand::<MutatingWebhookConfiguration>::of(demands, &settings)?;
            has_written |= self.register(client, &on_demand, trusted).await?;
        }
        if has_written {
            changes.wrote();
        }
        Ok(())
    }

    /// Whether anything had to be written.
    async fn register<C: Configuration>(&self, client: &Client, wanted: &C, trusted: &Trusted) -> Result<bool, Error> {
        let is_here = |found: &C| self.is_here(found);
        if wanted.entries().is_empty() {
            return remove(client, is_here).await.map(|()| false);
        }
        apply(client, wanted, trusted, is_here).await
    }

    async fn unregister(&self, client: &Client) -> Result<(), Error> {
        remove(client, |found: &OnDemand<MutatingWebhookConfiguration>| self.is_here(found)).await?;
        remove(client, |found: &OnDemand<ValidatingWebhookConfiguration>| self.is_here(found)).await?;
        remove(client, |found: &MutatingWebhookConfiguration| self.is_here(found)).await?;
        remove(client, |found: &ValidatingWebhookConfiguration| self.is_here(found)).await
    }

    async fn point_back(&self, client: &Client) -> Result<(), Error> {
        let printed = Target::Service { namespace: self.namespace.clone() }.converter(None);
        for definition in self.converted.iter().chain(&self.converted_off) {
            match conversion::point(client, definition, &printed).await {
                Ok(_) | Err(Error::NoDefinition(_)) => {}
                Err(error) if error.is_forbidden() && self.converted_off.contains(definition) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Names of those without which there is nothing to ask about.
    fn definitions(&self) -> BTreeSet<String> {
        self.hooks.iter().flat_map(WebhookEntry::definitions).chain(self.converted.iter().cloned()).collect()
    }

    /// Whether the API server is told to ask this process.
    fn is_here(&self, found: &impl Configuration) -> bool {
        let here = |config: &WebhookClientConfig| config.url.as_ref().is_some_and(|url| url.starts_with(&self.url));
        found.entries().iter().any(|(_, config)| here(config))
    }
}

async fn by(deadline: Instant, work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    timeout_at(deadline, work).await.unwrap_or(Err(Error::Timeout))
}

/// Takes note of the definitions that are missing, and says so when they are others than before.
fn tell(known: &mut BTreeSet<String>, missing: BTreeSet<String>) {
    if *known == missing {
        return;
    }
    if missing.is_empty() {
        tracing::info!("Every kind has its CustomResourceDefinition again");
    } else {
        tracing::warn!(
            ?missing,
            "The API server is not to ask about kinds without a CustomResourceDefinition, nor about pods while there is none of \
             SidecarSet; apply `outrider manifests crds` with the same --enable-kinds"
        );
    }
    *known = missing;
}

/// Fails where replicas in the cluster are called: to take over from them would leave the cluster without webhooks when this
/// process ends.
async fn not_installed<C: Configuration>(client: &Client) -> Result<(), Error> {
    let failed = |source| Error::Api { name: C::NAME.to_owned(), source: Box::new(source) };
    let found = Api::<C>::all(client.clone()).get_opt(C::NAME).await.map_err(failed)?;
    let calls_a_service = |found: &C| found.entries().iter().any(|(_, config)| config.service.is_some());
    if found.as_ref().is_some_and(calls_a_service) { Err(Error::Installed(C::NAME)) } else { Ok(()) }
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

/// Whether anything had to be written.
async fn apply<C: Configuration>(
    client: &Client,
    wanted: &C,
    trusted: &Trusted,
    is_here: impl Fn(&C) -> bool,
) -> Result<bool, Error> {
    let api = Api::<C>::all(client.clone());
    let failed = |source| Error::Api { name: C::NAME.to_owned(), source: Box::new(source) };
    let mut object = json!(wanted);
    let found = api.get_opt(C::NAME).await.map_err(failed)?;
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
    api.patch(C::NAME, &params, &Patch::Apply(&object)).await.map_err(failed)?;
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
pub(super) fn says(stored: &Value, wanted: &Value) -> bool {
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
#[allow(clippy::unwrap_used)]
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
