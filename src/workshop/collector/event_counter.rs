//! Counting the events of one Deployment. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource as _, ResourceExt};

use super::api::{CollectorSpec, CollectorStatus, EventCount, LastOperation};
use crate::watch::deployment::PartialDeployment;

/// What a watch reports of a Deployment.
#[derive(Debug, Clone, Copy)]
pub enum DeploymentEvent<'a> {
    /// It is there, and was not.
    Added(&'a PartialDeployment),
    /// It changed. What it was before is not known after a pause of the watch.
    Modified(Option<&'a PartialDeployment>, &'a PartialDeployment),
    /// It is gone.
    Deleted,
}

/// A count of events, and the operation that the last of them belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct EventCounter {
    /// The count.
    pub events: EventCount,
    /// The operation; none before the first event.
    pub operation: Option<LastOperation>,
}

impl EventCounter {
    /// A count that begins with the Deployment as it is: what it was before is no event.
    pub fn begin(name: &str, spec: &CollectorSpec, deployment: Option<&PartialDeployment>) -> Self {
        let events = EventCount {
            deployment: name.to_owned(),
            reset: spec.reset.clone(),
            last_resource_version: version(deployment),
            ..EventCount::default()
        };
        Self { events, operation: None }
    }

    /// The count that another process, or this one before, has written.
    pub fn resume(status: &CollectorStatus) -> Option<Self> {
        Some(Self { events: status.events.clone()?, operation: status.last_operation.clone() })
    }

    /// Whether all is counted until the Deployment became as it is.
    pub fn is_up_to(&self, deployment: Option<&PartialDeployment>) -> bool {
        self.events.last_resource_version == version(deployment)
    }

    /// Counts an event, unless it is about the version that is counted already.
    pub fn count(&mut self, event: DeploymentEvent<'_>, now: Time) {
        let new = match event {
            DeploymentEvent::Added(new) | DeploymentEvent::Modified(_, new) => Some(new),
            DeploymentEvent::Deleted => None,
        };
        if self.is_up_to(new) {
            return;
        }
        let counter = match event {
            DeploymentEvent::Added(_) => &mut self.events.added,
            DeploymentEvent::Modified(..) => &mut self.events.modified,
            DeploymentEvent::Deleted => &mut self.events.deleted,
        };
        *counter += 1;
        self.events.total += 1;
        self.events.last_resource_version = version(new);
        self.events.last_event_time = Some(now);
        let begun = self.begun(event).map(|description| LastOperation {
            description,
            events: 0,
            generation: new.and_then(|new| new.meta().generation),
        });
        let operation = begun.or_else(|| self.operation.take());
        self.operation = operation.map(|operation| LastOperation { events: operation.events + 1, ..operation });
    }

    /// What began with this event, unless it follows from the operation before: a creation, a deletion, a change of the spec
    /// (which is a new generation), or the loss of replicas that no user has asked for.
    fn begun(&self, event: DeploymentEvent<'_>) -> Option<String> {
        let known = self.operation.as_ref().and_then(|operation| operation.generation);
        match event {
            DeploymentEvent::Added(_) => Some("created".to_owned()),
            DeploymentEvent::Deleted => Some("deleted".to_owned()),
            DeploymentEvent::Modified(Some(old), new) if old.meta().generation != new.meta().generation => {
                Some(changed(old, new))
            }
            DeploymentEvent::Modified(Some(old), new) if is_complete(old) && !is_complete(new) => {
                let available = new.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
                Some(format!("{available} of {} replicas available", replicas(new)))
            }
            DeploymentEvent::Modified(None, new) if known != new.meta().generation => Some("spec changed".to_owned()),
            DeploymentEvent::Modified(..) if self.operation.is_none() => Some("began before the count".to_owned()),
            DeploymentEvent::Modified(..) => None,
        }
    }
}

fn version(deployment: Option<&PartialDeployment>) -> Option<String> {
    deployment.and_then(ResourceExt::resource_version)
}

fn replicas(deployment: &PartialDeployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn strategy(deployment: &PartialDeployment) -> &str {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()).unwrap_or("RollingUpdate")
}

fn changed(old: &PartialDeployment, new: &PartialDeployment) -> String {
    let mut changes = Vec::new();
    if replicas(old) != replicas(new) {
        changes.push(format!("replicas {} -> {}", replicas(old), replicas(new)));
    }
    if strategy(old) != strategy(new) {
        changes.push(format!("strategy {} -> {}", strategy(old), strategy(new)));
    }
    if changes.is_empty() { "spec changed".to_owned() } else { changes.join(", ") }
}

/// As `DeploymentComplete` of k8s.io/kubernetes/pkg/controller/deployment/util.
fn is_complete(deployment: &PartialDeployment) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    let wanted = replicas(deployment);
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    status.observed_generation >= deployment.meta().generation
        && counts.into_iter().all(|count| count.unwrap_or(0) == wanted)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    /// A Deployment of three replicas with this version, generation and number of available replicas, and these fields of its
    /// spec.
    fn deployment(version: &str, generation: i64, available: i32, spec: &Value) -> PartialDeployment {
        let status = json!({"observedGeneration": generation, "replicas": 3, "updatedReplicas": 3, "availableReplicas": available});
        let mut object = json!({"metadata": {"name": "web", "resourceVersion": version, "generation": generation},
            "spec": {"replicas": 3}, "status": status});
        json_patch::merge(&mut object["spec"], spec);
        serde_json::from_value(object).unwrap()
    }

    fn begin(deployment: Option<&PartialDeployment>) -> EventCounter {
        EventCounter::begin("web", &CollectorSpec::default(), deployment)
    }

    fn operation(counter: &EventCounter) -> (&str, i64) {
        let operation = counter.operation.as_ref().unwrap();
        (operation.description.as_str(), operation.events)
    }

    #[test]
    fn each_version_is_one_event_and_what_was_there_at_the_beginning_is_none() {
        let versions: Vec<_> = ["1", "2", "3"].map(|version| deployment(version, 1, 3, &json!({}))).into();
        let mut counter = begin(Some(&versions[0]));
        counter.count(DeploymentEvent::Added(&versions[0]), at(1));
        assert_eq!((counter.events.total, counter.events.last_event_time.as_ref()), (0, None));
        counter.count(DeploymentEvent::Modified(Some(&versions[0]), &versions[1]), at(2));
        counter.count(DeploymentEvent::Modified(Some(&versions[0]), &versions[1]), at(3));
        counter.count(DeploymentEvent::Deleted, at(4));
        counter.count(DeploymentEvent::Deleted, at(5));
        assert!(counter.is_up_to(None));
        counter.count(DeploymentEvent::Added(&versions[2]), at(6));
        assert_eq!(
            json!(counter.events),
            json!({"deployment": "web", "total": 3, "added": 1, "modified": 1, "deleted": 1,
                "lastResourceVersion": "3", "lastEventTime": "1970-01-01T00:00:06Z"})
        );
    }

    #[test]
    fn an_operation_is_a_change_of_the_spec_or_a_loss_with_all_that_follows() {
        let none = json!({});
        let steps = [
            (deployment("1", 1, 3, &none), "", 0),
            (deployment("2", 1, 3, &none), "began before the count", 1),
            (deployment("3", 2, 3, &json!({"replicas": 1})), "replicas 3 -> 1", 1),
            (deployment("4", 2, 3, &json!({"replicas": 1})), "replicas 3 -> 1", 2),
            (
                deployment("5", 3, 3, &json!({"strategy": {"type": "Recreate"}})),
                "replicas 1 -> 3, strategy RollingUpdate -> Recreate",
                1,
            ),
            (deployment("6", 3, 1, &json!({"strategy": {"type": "Recreate"}})), "1 of 3 replicas available", 1),
            (deployment("7", 3, 2, &json!({"strategy": {"type": "Recreate"}})), "1 of 3 replicas available", 2),
            (deployment("8", 3, 3, &json!({"strategy": {"type": "Recreate"}})), "1 of 3 replicas available", 3),
            (deployment("9", 4, 3, &json!({"strategy": {"type": "Recreate"}})), "spec changed", 1),
        ];
        let mut counter = begin(Some(&steps[0].0));
        for pair in steps.windows(2) {
            let [(old, ..), (new, description, events)] = pair else { panic!("windows of two") };
            counter.count(DeploymentEvent::Modified(Some(old), new), at(1));
            assert_eq!(operation(&counter), (*description, *events));
        }
        counter.count(DeploymentEvent::Deleted, at(2));
        assert_eq!(operation(&counter), ("deleted", 1));
        counter.count(DeploymentEvent::Added(&steps[0].0), at(3));
        assert_eq!(operation(&counter), ("created", 1));
    }

    #[test]
    fn a_count_that_is_taken_up_again_goes_on_with_its_operation() {
        let status = CollectorStatus {
            events: Some(EventCount { total: 7, last_resource_version: Some("1".to_owned()), ..EventCount::default() }),
            last_operation: Some(LastOperation {
                description: "replicas 1 -> 3".to_owned(),
                events: 4,
                generation: Some(2),
            }),
            ..CollectorStatus::default()
        };
        let mut counter = EventCounter::resume(&status).unwrap();
        counter.count(DeploymentEvent::Modified(None, &deployment("2", 2, 3, &json!({}))), at(1));
        assert_eq!((counter.events.total, operation(&counter)), (8, ("replicas 1 -> 3", 5)));
        counter.count(DeploymentEvent::Modified(None, &deployment("3", 3, 3, &json!({}))), at(1));
        assert_eq!((counter.events.total, operation(&counter)), (9, ("spec changed", 1)));
        assert_eq!(EventCounter::resume(&CollectorStatus::default()), None);
    }
}
