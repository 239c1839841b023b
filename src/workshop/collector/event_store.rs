//! What every Collector watches, and its count. The watches write here as events come, the reconciles read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admission::format::Selector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::api::Collector;
use super::event_counter::{DeploymentEvent, EventCounter};
use super::watched::PartialPod;
use crate::controller::{Key, Store};
use crate::watch::deployment::PartialDeployment;

/// Clones share their content.
///
/// A watch puts an object into its store before it reports it. So under the lock an event is either counted, or its version
/// is in the store already: a count that begins here with a Deployment from the store loses no event, and
/// [`EventCounter::count`] recognizes the one that is reported late.
#[derive(Clone, Default)]
pub struct EventStore(Arc<Mutex<BTreeMap<Key, CollectorRecord>>>);

#[derive(Default)]
struct CollectorRecord {
    uid: Option<String>,
    deployment: Option<String>,
    selector: Option<Selector>,
    /// None while events that were missed are being counted.
    counter: Option<EventCounter>,
}

impl CollectorRecord {
    /// Starts a count of what is wanted if there is none, or returns the stored one, which is behind.
    fn begin_count(&mut self, collector: &Collector, deployment: Option<&PartialDeployment>) -> Option<EventCounter> {
        let spec = &collector.spec;
        let Some(name) = spec.deployment() else {
            self.counter = None;
            return None;
        };
        let before = self.counter.take();
        let is_first = before.is_none();
        // What is written may be older than what this process counts.
        let known = before.or_else(|| collector.status.as_ref().and_then(EventCounter::resume));
        let counter = match known.filter(|counter| counter.events.is_for(spec)) {
            Some(counter) if is_first && !counter.is_up_to(deployment) => return Some(counter),
            Some(counter) => counter,
            None => EventCounter::begin(name, spec, deployment),
        };
        self.counter = Some(counter);
        None
    }

    fn selects(&self, pod: &PartialPod) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(pod.labels()))
    }
}

/// The Deployment of a Collector, and the count of its events.
pub struct Followed {
    /// As it is now; none while there is none.
    pub deployment: Option<Arc<PartialDeployment>>,
    /// Selects the pods.
    pub selector: Option<Selector>,
    /// A count that has to be brought up to date, with [`EventStore::go_on`].
    pub behind: Option<EventCounter>,
}

impl EventStore {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, CollectorRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on events about the pods and the Deployment of this Collector are events of it.
    pub fn follow(
        &self,
        collector: &Collector,
        deployments: &Store<PartialDeployment>,
        collectors: &Store<Collector>,
    ) -> Followed {
        let (key, spec) = (Key::of(collector), &collector.spec);
        let mut entries = self.entries();
        if !entries.contains_key(&key) {
            // Those that are gone leave when another comes, so there are never more than there were at one time.
            entries.retain(|key, _| collectors.get(key).is_some());
        }
        let entry = entries.entry(key).or_default();
        if entry.uid != collector.metadata.uid {
            *entry = CollectorRecord { uid: collector.metadata.uid.clone(), ..CollectorRecord::default() };
        }
        let deployment = target(collector, deployments);
        let of_deployment = || deployment.as_ref()?.spec.as_ref()?.selector.clone();
        let selector = spec.selector.clone().or_else(of_deployment);
        let selector = selector.and_then(|selector| selector.decoded().compile().ok());
        entry.selector.clone_from(&selector);
        entry.deployment = spec.deployment().map(str::to_owned);
        let behind = entry.begin_count(collector, deployment.as_deref());
        Followed { deployment, selector, behind }
    }

    /// Counts on from here if the count has reached the Deployment as it is. Says whether it has.
    pub fn go_on(&self, collector: &Collector, counter: &EventCounter, deployments: &Store<PartialDeployment>) -> bool {
        let mut entries = self.entries();
        let deployment = target(collector, deployments);
        let up_to_date = counter.is_up_to(deployment.as_deref());
        if up_to_date && let Some(entry) = entries.get_mut(&Key::of(collector)) {
            entry.counter = Some(counter.clone());
        }
        up_to_date
    }

    /// Continues the count from the Deployment as it is. All events that were missed count as one.
    pub fn go_on_after_gap(
        &self,
        collector: &Collector,
        mut counter: EventCounter,
        deployments: &Store<PartialDeployment>,
        now: Time,
    ) {
        let mut entries = self.entries();
        let deployment = target(collector, deployments);
        counter.count(
            match &deployment {
                None => DeploymentEvent::Deleted,
                Some(new) if counter.events.last_resource_version.is_none() => DeploymentEvent::Added(new),
                Some(new) => DeploymentEvent::Modified(None, new),
            },
            now,
        );
        if let Some(entry) = entries.get_mut(&Key::of(collector)) {
            entry.counter = Some(counter);
        }
    }

    /// The count of a Collector, unless it is behind.
    pub fn counter(&self, collector: &Key) -> Option<EventCounter> {
        self.entries().get(collector)?.counter.clone()
    }

    /// Counts an event of a Deployment; gives the Collectors that it concerns.
    pub fn deployment(&self, old: Option<&PartialDeployment>, new: Option<&PartialDeployment>, now: &Time) -> Vec<Key> {
        let (Some(any), event) = (new.or(old), event(old, new)) else { return Vec::new() };
        let key = Key::of(any);
        let mut entries = self.entries();
        let mut concerned = Vec::new();
        for (collector, entry) in in_namespace(&mut entries, &key.namespace) {
            if entry.deployment.as_ref() == Some(&key.name) {
                if let Some(counter) = &mut entry.counter {
                    counter.count(event, now.clone());
                }
                concerned.push(collector.clone());
            }
        }
        concerned
    }

    /// The Collectors that mean a pod by the labels that it has or had.
    pub fn pod(&self, old: Option<&PartialPod>, new: Option<&PartialPod>) -> Vec<Key> {
        let Some(any) = new.or(old) else { return Vec::new() };
        let namespace = any.namespace().unwrap_or_default();
        let mut entries = self.entries();
        let concerned = in_namespace(&mut entries, &namespace)
            .filter(|(_, entry)| [old, new].into_iter().flatten().any(|pod| entry.selects(pod)));
        concerned.map(|(collector, _)| collector.clone()).collect()
    }
}

fn event<'a>(old: Option<&'a PartialDeployment>, new: Option<&'a PartialDeployment>) -> DeploymentEvent<'a> {
    match (old, new) {
        (_, None) => DeploymentEvent::Deleted,
        (None, Some(new)) => DeploymentEvent::Added(new),
        (old, Some(new)) => DeploymentEvent::Modified(old, new),
    }
}

fn in_namespace<'a>(
    entries: &'a mut BTreeMap<Key, CollectorRecord>,
    namespace: &'a str,
) -> impl Iterator<Item = (&'a Key, &'a mut CollectorRecord)> {
    let first = Key { namespace: namespace.to_owned(), name: String::new() };
    entries.range_mut(first..).take_while(move |(key, _)| key.namespace == namespace)
}

fn target(collector: &Collector, deployments: &Store<PartialDeployment>) -> Option<Arc<PartialDeployment>> {
    deployments.get(&deployment_key(collector)?)
}

/// The key of the Deployment that a Collector means.
pub fn deployment_key(collector: &Collector) -> Option<Key> {
    let name = collector.spec.deployment()?.to_owned();
    Some(Key { namespace: collector.namespace().unwrap_or_default(), name })
}
