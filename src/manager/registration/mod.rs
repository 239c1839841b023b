//! Webhook configurations of a process outside the cluster, which are all its own.

mod changes;
mod definitions;
mod objects;
pub(super) mod trust;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::task_tracker::TaskTrackerToken;

use self::changes::Changes;
use self::objects::apply;
pub(super) use self::objects::{remove, says};
pub(super) use self::trust::Trusted;
pub use super::configuration::{Configuration, OnDemand};
use super::error::Error;
use crate::answers::{NoAnswer, REQUEST_TIMEOUT, in_time};
use crate::certs::trust_anchor::TrustAnchor;
use crate::controller::leader_term::LeaderTerm;
use crate::kinds::Kinds;
use crate::logging::throttle::LogThrottle;
use crate::manager::{conversion, on_demand};
use crate::manifests::webhooks::{self, PodFailurePolicy, Settings, WebhookEntry, WebhookTarget};
use crate::names::{MUTATING, VALIDATING};
use crate::watch::in_order::InOrder;
use crate::watch::read_model::ReadModel;
use engine::demand::Demand;
use engine::snapshot::Exclusion;

/// Owner of the fields that are applied, in managedFields.
pub(super) const FIELD_MANAGER: &str = "outrider";

/// How often the configurations are compared with what they should say, if no watch reported a change: a wrong caBundle is an
/// outage.
const CHECK: Duration = Duration::from_secs(15);
/// API servers learn by a watch that a webhook was removed.
const PROPAGATION: Duration = Duration::from_millis(500);
pub(super) const RETRY: Duration = Duration::from_secs(2);

/// The host in a URL, without the brackets of an IPv6 address.
pub fn host(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    Some(uri.host()?.trim_matches(['[', ']']).to_owned())
}

/// A process outside the cluster that registers itself.
#[derive(Debug, Clone)]
pub struct SelfRegistration {
    /// The endpoints.
    pub entries: Vec<WebhookEntry>,
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
    pub model: ReadModel,
    /// Where it is said which on-demand entries the API server has.
    pub in_order: watch::Sender<InOrder>,
}

impl SelfRegistration {
    fn target(&self) -> WebhookTarget {
        WebhookTarget::Url { base: self.url.clone() }
    }

    /// Without a caBundle: what that holds depends on what is stored.
    fn settings(&self) -> Settings<'_> {
        Settings {
            target: self.target(),
            ca_bundle: None,
            exclusion: &self.exclusion,
            pod_failure_policy: PodFailurePolicy::Fail,
        }
    }

    /// Keeps the configurations applied until the term ends, then removes them, and has definitions as they are printed: no process
    /// answers at the URL any more, and a cluster that still calls it would refuse every pod. `answering` keeps the
    /// listeners open until then.
    ///
    /// A kind without a definition has no entry: an administrator who removes the definitions wants to be rid of us.
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
                "The API server still has objects converted by this process, which ends; `outrider uninstall` \
                 corrects that"
            );
        }
        sleep(PROPAGATION).await;
        drop(answering);
    }

    /// Does not end.
    async fn keep(&self, client: &Client, mut bundle: watch::Receiver<Option<String>>) {
        let definitions = self.definitions();
        let all = definitions.iter().chain(&self.converted_off).cloned().collect();
        let mut changes = Changes::of(client, &definitions);
        let (mut told, mut throttle) = (BTreeSet::new(), LogThrottle::default());
        let mut publications = self.model.publications();
        loop {
            let demands = on_demand::demands(&self.kinds, &self.model);
            let wanted = bundle.borrow_and_update().clone();
            let mut pause = CHECK;
            let wanted = wanted.map(|pem| TrustAnchor::read_all(pem.as_bytes())).filter(|wanted| !wanted.is_empty());
            if let Some(wanted) = wanted {
                let trusted = Trusted { wanted, overlap: self.overlap };
                let brought = Box::pin(async {
                    not_installed::<MutatingWebhookConfiguration>(client).await?;
                    not_installed::<ValidatingWebhookConfiguration>(client).await?;
                    let missing = definitions::missing(client, &all).await?;
                    log_missing(&mut told, missing.intersection(&definitions).cloned().collect());
                    self.apply(client, &trusted, &missing, &demands, &mut changes).await
                });
                if let Err(error) = in_time(brought).await {
                    if throttle.is_news(&error) {
                        tracing::warn!(%error, "The webhook configurations are not in order, trying again");
                    }
                    pause = RETRY;
                } else {
                    throttle.over();
                    if self.model.is_published() {
                        self.in_order.send_replace(Arc::new(demands.clone()));
                    }
                }
            }
            tokio::select! {
                () = sleep(pause) => changes.quiet(),
                Ok(()) = bundle.changed() => {}
                () = changes.next(CHECK) => {}
                () = on_demand::others(&mut publications, &self.kinds, &self.model, &demands) => {}
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
                Err(error) if error.code() == Some(403) => {}
                Err(error) => return Err(error),
            }
        }
        let entries: Vec<WebhookEntry> =
            self.entries.iter().filter(|entry| entry.is_wanted(missing)).cloned().collect();
        // The validating one first: a kind's objects are never defaulted by us without being checked by us.
        has_written |= self.register(client, &webhooks::validating(&entries, &settings), trusted).await?;
        has_written |= self.register(client, &webhooks::mutating(&entries, &settings), trusted).await?;
        // By a part of the objects, entries that others need would be withdrawn.
        if self.model.is_published() {
            let on_demand = OnDemand::<MutatingWebhookConfiguration>::of(demands, &settings)?;
            has_written |= self.register(client, &on_demand, trusted).await?;
            let on_demand = OnDemand::<ValidatingWebhookConfiguration>::of(demands, &settings)?;
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
        let printed = WebhookTarget::Service { namespace: self.namespace.clone() }.converter(None);
        for definition in self.converted.iter().chain(&self.converted_off) {
            match conversion::point(client, definition, &printed).await {
                Ok(_) | Err(Error::NoDefinition(_)) => {}
                Err(error) if error.code() == Some(403) && self.converted_off.contains(definition) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Names of those without which no entry has anything to serve.
    fn definitions(&self) -> BTreeSet<String> {
        self.entries.iter().flat_map(WebhookEntry::definitions).chain(self.converted.iter().cloned()).collect()
    }

    /// Whether the API server calls this process.
    fn is_here(&self, found: &impl Configuration) -> bool {
        let here = |config: &WebhookClientConfig| config.url.as_ref().is_some_and(|url| url.starts_with(&self.url));
        found.entries().iter().any(|(_, config)| here(config))
    }
}

/// Waits for both parts of the end of a registration together, as the process may not take longer.
async fn by(deadline: Instant, work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    timeout_at(deadline, work).await.unwrap_or(Err(NoAnswer(REQUEST_TIMEOUT).into()))
}

/// Takes note of the definitions that are missing, and says so when they are others than before.
fn log_missing(known: &mut BTreeSet<String>, missing: BTreeSet<String>) {
    if *known == missing {
        return;
    }
    if missing.is_empty() {
        tracing::info!("Every kind has its CustomResourceDefinition again");
    } else {
        tracing::warn!(
            ?missing,
            "The API server does not call Outrider for kinds without a CustomResourceDefinition, nor for pods while \
             SidecarSet has none; apply `outrider manifests crds` with the same --enable-kinds"
        );
    }
    *known = missing;
}

/// Fails where replicas in the cluster are called: to take over from them would leave the cluster without webhooks when this
/// process ends.
async fn not_installed<C: Configuration>(client: &Client) -> Result<(), Error> {
    let found = Api::<C>::all(client.clone()).get_opt(C::NAME).await.map_err(Error::api(C::NAME))?;
    let calls_a_service = |found: &C| found.entries().iter().any(|(_, config)| config.service.is_some());
    if found.as_ref().is_some_and(calls_a_service) { Err(Error::Installed(C::NAME)) } else { Ok(()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
