//! Keeps a Deployment for every `SimpleDeployment`.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;

use super::api::{SimpleDeployment, SimpleDeploymentStatus};
use super::objects;
use crate::controller::apply::{Applier, Error};
use crate::controller::owned::Owned;
use crate::controller::{Again, Context, Operator};
use crate::events::Events;
use crate::workshop::{owned, readiness};

const FIELD_MANAGER: &str = "simpledeployment_controller";

/// Environment variable with the image of the pods.
const IMAGE_VARIABLE: &str = "SIMPLEDEPLOYMENT_IMAGE";
const DEFAULT_IMAGE: &str = "nginx:1.14.2";

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    let client = context.client.clone();
    let mut operator = Operator::new(SimpleDeployment::NAME, context);
    let controller = Controller {
        deployments: operator.keeping(FIELD_MANAGER, Some(&owned::selector())),
        events: Events::new(client.clone(), SimpleDeployment::NAME),
        image: std::env::var(IMAGE_VARIABLE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned()).into(),
        client,
    };
    operator.run(controller, |controller, simple| async move { controller.reconcile(&simple).await })
}

struct Controller {
    client: Client,
    events: Events,
    deployments: Applier<Deployment>,
    image: Arc<str>,
}

impl Controller {
    async fn reconcile(&self, simple: &SimpleDeployment) -> Result<Again, Error> {
        // Garbage collection deletes the Deployment.
        if simple.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let applied = self.deployments.apply(&objects::deployment(simple, &self.image)).await;
        if matches!(applied, Err(Error::NamespaceTerminating { .. })) {
            return Ok(None);
        }
        if let Err(error @ Error::Foreign { .. }) = &applied {
            let ready = readiness::of_error(error);
            let old = simple.status.as_ref();
            if ready.is_news(old.and_then(|status| status.conditions.as_deref()).unwrap_or_default()) {
                self.events.warn(simple, ready.reason, &ready.message).await;
            }
        }
        let new = status_of(simple, applied.as_deref(), Timestamp::now());
        simple.write_status(&self.client, &new).await?;
        applied.map_or_else(Error::again, |_| Ok(None))
    }
}

/// The numbers are those of our Deployment; where it is not ours there are no pods.
fn status_of(
    simple: &SimpleDeployment,
    applied: Result<&Owned<Deployment>, &Error>,
    now: Timestamp,
) -> SimpleDeploymentStatus {
    let old = simple.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let generation = simple.metadata.generation;
    let ready = applied.map_or_else(readiness::of_error, readiness::of_deployment);
    let counted = |field| applied.map_or(0, |deployment| readiness::pods(deployment, field));
    SimpleDeploymentStatus {
        observed_generation: generation,
        replicas: counted("replicas"),
        ready_replicas: counted("readyReplicas"),
        available_replicas: counted("availableReplicas"),
        selector: Some(objects::selector(simple)),
        conditions: Some(vec![ready.condition(old, generation, now)]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn simple(status: Option<SimpleDeploymentStatus>) -> SimpleDeployment {
        let metadata = json!({"name": "s1", "namespace": "n", "uid": "u", "generation": 2});
        let mut simple: SimpleDeployment = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        simple.status = status;
        simple
    }

    #[test]
    fn the_status_follows_the_deployment_and_is_a_fixed_point() {
        let deployment: Owned<Deployment> = serde_json::from_value(json!({
            "metadata": {"name": "s1", "generation": 4},
            "spec": {"replicas": 3, "selector": {}, "template": {}},
            "status": {"observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 1},
        }))
        .unwrap();
        let status = status_of(&simple(None), Ok(&deployment), at(10));
        assert_eq!(
            json!(status),
            json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 2, "availableReplicas": 1,
                "selector": "app.kubernetes.io/instance=s1,app.kubernetes.io/name=simpledeployment", "conditions": [
                {"type": "Ready", "status": "False", "reason": "DeploymentProgressing", "observedGeneration": 2,
                    "message": "1 of 3 replicas are available", "lastTransitionTime": "1970-01-01T00:00:10Z"}]})
        );
        assert_eq!(status_of(&simple(Some(status.clone())), Ok(&deployment), at(20)), status);
    }

    #[test]
    fn the_pods_of_a_foreign_deployment_are_not_counted() {
        let error =
            Error::Foreign { kind: "Deployment".into(), name: "s1".to_owned(), owner: "SimpleDeployment".to_owned() };
        let status = status_of(&simple(None), Err(&error), at(10));
        let ready = &status.conditions.as_ref().unwrap()[0];
        assert_eq!((status.replicas, ready.reason.as_str(), ready.status.as_str()), (0, "NotOurs", "False"));
        assert_eq!(
            ready.message,
            "Deployment \"s1\" exists and is not controlled by this SimpleDeployment; delete it, or give this \
             SimpleDeployment another name"
        );
    }
}
