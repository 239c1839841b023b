//! Keeps a Deployment and a Service for every Welcome.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::{Client, Resource};

use super::api::{Welcome, WelcomeStatus};
use super::objects;
use crate::controller::apply::{Applier, Error};
use crate::controller::conditions::Statement;
use crate::controller::owned::Owned;
use crate::controller::{Again, Context, Operator};
use crate::events::Events;
use crate::workshop::{owned, readiness};

/// The name under which the original operator applies; its objects stay ours when Outrider takes over.
const FIELD_MANAGER: &str = "welcome_controller";

/// Environment variable with the image that greets.
const IMAGE_VARIABLE: &str = "WELCOME_IMAGE";
const DEFAULT_IMAGE: &str = "sdfcdwefe/operatordemo:v1";

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    let client = context.client.clone();
    let mut operator = Operator::new(Welcome::NAME, context);
    let selector = owned::selector();
    let controller = Controller {
        deployments: operator.keeping(FIELD_MANAGER, Some(&selector)),
        services: operator.keeping(FIELD_MANAGER, Some(&selector)),
        events: Events::new(client.clone(), Welcome::NAME),
        image: std::env::var(IMAGE_VARIABLE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned()).into(),
        client,
    };
    operator.run(controller, |controller, welcome| async move { controller.reconcile(&welcome).await })
}

struct Controller {
    client: Client,
    events: Events,
    deployments: Applier<Deployment>,
    services: Applier<Service>,
    image: Arc<str>,
}

/// The results of applying the owned objects.
struct Outcome {
    deployment: Result<Arc<Owned<Deployment>>, Error>,
    service: Result<Arc<Owned<Service>>, Error>,
}

impl Controller {
    async fn reconcile(&self, welcome: &Welcome) -> Result<Again, Error> {
        // Garbage collection deletes its objects.
        if welcome.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        // One that fails is no reason to leave the other undone.
        let outcome = Outcome {
            deployment: self.deployments.apply(&objects::deployment(welcome, &self.image)).await,
            service: self.services.apply(&objects::service(welcome)).await,
        };
        if outcome.is_over() {
            return Ok(None);
        }
        let ready = outcome.statement();
        let conditions = welcome.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        if ready.reason == readiness::NOT_OURS && ready.is_news(conditions) {
            self.events.warn(welcome, ready.reason, &ready.message).await;
        }
        let new = outcome.status(welcome, ready, Timestamp::now());
        welcome.write_status(&self.client, &new).await?;
        outcome.again()
    }
}

impl Outcome {
    fn statement(&self) -> Statement {
        match (&self.deployment, &self.service) {
            (Err(error), _) | (_, Err(error)) => readiness::of_error(error),
            (Ok(deployment), Ok(_)) => readiness::of_deployment(deployment),
        }
    }

    fn status(&self, welcome: &Welcome, ready: Statement, now: Timestamp) -> WelcomeStatus {
        let old = welcome.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let generation = welcome.metadata.generation;
        WelcomeStatus {
            observed_generation: generation,
            ready: ready.holds,
            deployment_name: name(&self.deployment),
            service_name: name(&self.service),
            conditions: Some(vec![ready.condition(old, generation, now)]),
        }
    }

    fn is_over(&self) -> bool {
        let over = |error: &Error| matches!(error, Error::NamespaceTerminating { .. });
        self.deployment.as_ref().is_err_and(over) || self.service.as_ref().is_err_and(over)
    }

    fn again(self) -> Result<Again, Error> {
        let deployment = self.deployment.map_or_else(Error::again, |_| Ok(None))?;
        let service = self.service.map_or_else(Error::again, |_| Ok(None))?;
        Ok(deployment.or(service))
    }
}

fn name<K: Resource>(applied: &Result<Arc<Owned<K>>, Error>) -> Option<String> {
    applied.as_ref().ok().and_then(|object| object.meta().name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn foreign() -> Error {
        Error::Foreign { kind: "Service".into(), name: "w1".to_owned(), owner: "Welcome".to_owned() }
    }

    fn deployment(available: i32) -> Arc<Owned<Deployment>> {
        let status = json!({"availableReplicas": available, "updatedReplicas": available});
        let deployment = json!({"metadata": {"name": "w1"}, "status": status,
            "spec": {"replicas": 1, "selector": {}, "template": {}}});
        Arc::new(serde_json::from_value(deployment).unwrap())
    }

    fn service() -> Arc<Owned<Service>> {
        Arc::new(serde_json::from_value(json!({"metadata": {"name": "w1"}})).unwrap())
    }

    fn status(outcome: &Outcome, old: Option<WelcomeStatus>, second: i64) -> WelcomeStatus {
        let mut welcome = Welcome { status: old, ..Welcome::default() };
        welcome.metadata.generation = Some(3);
        outcome.status(&welcome, outcome.statement(), Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn the_status_follows_the_deployment_and_is_a_fixed_point() {
        let waiting = Outcome { deployment: Ok(deployment(0)), service: Ok(service()) };
        let first = status(&waiting, None, 10);
        assert_eq!(
            json!(first),
            json!({"observedGeneration": 3, "ready": false, "deploymentName": "w1", "serviceName": "w1", "conditions": [
                {"type": "Ready", "status": "False", "reason": "DeploymentProgressing", "observedGeneration": 3,
                    "message": "0 of 1 replicas are available", "lastTransitionTime": "1970-01-01T00:00:10Z"}]})
        );
        assert_eq!(status(&waiting, Some(first.clone()), 20), first);
        let available = Outcome { deployment: Ok(deployment(1)), service: Ok(service()) };
        let second = status(&available, Some(first), 30);
        assert!(second.ready);
        assert_eq!(status(&available, Some(second.clone()), 40), second);
        assert_eq!(available.again().unwrap(), None);
    }

    #[test]
    fn a_foreign_object_is_told_and_looked_at_again() {
        let outcome = Outcome { deployment: Ok(deployment(1)), service: Err(foreign()) };
        let status = status(&outcome, None, 10);
        assert!(!status.ready && status.service_name.is_none() && status.deployment_name.is_some());
        let ready = &status.conditions.unwrap()[0];
        assert_eq!(ready.reason, "NotOurs");
        assert_eq!(
            ready.message,
            "Service \"w1\" exists and is not controlled by this Welcome; delete it, or give this Welcome another name"
        );
        assert!(outcome.again().unwrap().is_some());
    }
}
