//! Reports for every Collector where its pods are, and what was counted of its Deployment.

use std::pin::pin;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client};

use super::address_list::AddressList;
use super::addresses::PodAddresses;
use super::api::{Collector, CollectorStatus, DEPLOYMENT};
use super::event_counter::{DeploymentEvent, EventCounter};
use super::event_store::{EventStore, Followed, deployment_key};
use super::validation::faults;
use super::watched::PartialPod;
use crate::controller::apply::{Error, request};
use crate::controller::conditions::{Statement, whole_seconds};
use crate::controller::{Again, Context, Key, Operator, Store};
use crate::watch::deployment::PartialDeployment;

/// How long events that were missed are waited for, in seconds. The API server sends them at once.
const CATCH_UP_SECONDS: u32 = 5;

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    let client = context.client.clone();
    let mut operator = Operator::<Collector>::new(Collector::NAME, context);
    let event_store = EventStore::default();
    let (of_deployments, of_pods) = (event_store.clone(), event_store.clone());
    let controller = Controller {
        client,
        event_store,
        collectors: operator.objects(),
        deployments: operator.watching(None, move |old, new| of_deployments.deployment(old, new, &now())),
        pods: operator.watching(None, move |old, new| of_pods.pod(old, new)),
    };
    operator.run(controller, |controller, collector| async move { controller.reconcile(&collector).await })
}

fn now() -> Time {
    whole_seconds(Timestamp::now())
}

struct Controller {
    client: Client,
    event_store: EventStore,
    collectors: Store<Collector>,
    deployments: Store<PartialDeployment>,
    pods: Store<PartialPod>,
}

impl Controller {
    async fn reconcile(&self, collector: &Collector) -> Result<Again, Error> {
        if collector.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let key = Key::of(collector);
        let Followed { deployment, selector, behind } =
            self.event_store.follow(collector, &self.deployments, &self.collectors);
        if let Some(counter) = behind {
            self.catch_up(collector, counter).await?;
        }
        let pods = selector.map(|selector| {
            let mut pods = self.pods.in_namespace(&key.namespace);
            pods.retain(|pod| selector.matches(pod.labels()));
            pods
        });
        let addresses = PodAddresses::of(pods.iter().flatten().map(AsRef::as_ref), &collector.spec);
        let counter = self.event_store.counter(&key);
        let new = status_of(collector, deployment.is_some(), addresses, counter, Timestamp::now());
        collector.write_status(&self.client, &new).await?;
        Ok(None)
    }

    /// Counts what happened to the Deployment while no process counted: the API server remembers it for some minutes.
    async fn catch_up(&self, collector: &Collector, mut counter: EventCounter) -> Result<(), Error> {
        let (Some(key), Some(since)) = (deployment_key(collector), counter.events.last_resource_version.clone()) else {
            self.event_store.go_on_after_gap(collector, counter, &self.deployments, now());
            return Ok(());
        };
        tracing::debug!(collector = ?Key::of(collector), since, "Counting what was missed");
        let api = Api::<PartialDeployment>::namespaced(self.client.clone(), &key.namespace);
        let params = WatchParams::default().fields(&format!("metadata.name={}", key.name)).timeout(CATCH_UP_SECONDS);
        let events = match request::<PartialDeployment, _>(&key, api.watch(&params, &since)).await {
            // 410: it is too long ago.
            Err(error) if error.code() != Some(410) => return Err(error),
            watch => watch.ok(),
        };
        let mut events = pin!(futures::stream::iter(events).flatten());
        let mut before: Option<PartialDeployment> = None;
        while let Some(told) = request::<PartialDeployment, _>(&key, events.next().map(Option::transpose)).await? {
            let event = match &told {
                WatchEvent::Added(new) => DeploymentEvent::Added(new),
                WatchEvent::Modified(new) => DeploymentEvent::Modified(before.as_ref(), new),
                WatchEvent::Deleted(_) => DeploymentEvent::Deleted,
                WatchEvent::Bookmark(_) => continue,
                // Too old, or whatever else: it does not remember.
                WatchEvent::Error(_) => break,
            };
            counter.count(event, now());
            if self.event_store.go_on(collector, &counter, &self.deployments) {
                return Ok(());
            }
            before = match told {
                WatchEvent::Added(new) | WatchEvent::Modified(new) => Some(new),
                _ => None,
            };
        }
        tracing::info!(
            collector = ?Key::of(collector),
            since,
            "The API server does not remember all changes of the Deployment; what is missing counts as one event"
        );
        self.event_store.go_on_after_gap(collector, counter, &self.deployments, now());
        Ok(())
    }
}

fn status_of(
    collector: &Collector,
    target_found: bool,
    addresses: PodAddresses,
    counter: Option<EventCounter>,
    now: Timestamp,
) -> CollectorStatus {
    let old = collector.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let generation = collector.metadata.generation;
    let (ready, target) = (readiness(collector, target_found, &addresses), target_not_found(collector, target_found));
    let statements = [Some(ready), target].into_iter().flatten();
    let (events, last_operation) = counter.map(|counter| (counter.events, counter.operation)).unzip();
    CollectorStatus {
        observed_generation: generation,
        matched_pods: i32::try_from(addresses.matched).unwrap_or(i32::MAX),
        ready_pods: i32::try_from(addresses.ready).unwrap_or(i32::MAX),
        ips: AddressList::Found(addresses.listed),
        events,
        last_operation: last_operation.flatten(),
        conditions: Some(statements.map(|statement| statement.condition(old, generation, now)).collect()),
    }
}

/// Ready means that the report is complete, whatever the pods are.
fn readiness(collector: &Collector, target_found: bool, addresses: &PodAddresses) -> Statement {
    let faults = faults(&collector.spec);
    let (holds, reason, message) = match collector.spec.deployment() {
        // Written while no webhook looked.
        _ if !faults.is_empty() => (false, "InvalidSpec", faults.to_string()),
        Some(name) if !target_found => (false, "TargetNotFound", not_found(name)),
        _ => {
            let PodAddresses { matched, ready, listed, left_out } = addresses;
            let most = if *left_out == 0 { String::new() } else { format!("; only {} are listed", listed.len()) };
            (true, "Collected", format!("{ready} of {matched} pods are ready{most}"))
        }
    };
    Statement { type_: "Ready", holds, reason, message }
}

/// Only of a Collector that has a target.
fn target_not_found(collector: &Collector, target_found: bool) -> Option<Statement> {
    let name = collector.spec.deployment()?;
    let (reason, message) = if target_found {
        ("DeploymentFound", format!("there is a {DEPLOYMENT} {name:?} in this namespace"))
    } else {
        ("DeploymentNotFound", not_found(name))
    };
    Some(Statement { type_: "TargetNotFound", holds: !target_found, reason, message })
}

fn not_found(name: &str) -> String {
    format!("there is no {DEPLOYMENT} {name:?} in this namespace; it is reported on as soon as it is created")
}

#[cfg(test)]
mod tests;
