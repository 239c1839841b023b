//! The `CustomResourceDefinition`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceSubresourceScale, JSONSchemaProps, WebhookClientConfig,
};
use serde_json::json;

use super::api::{DEFAULT_REPLICAS, SimpleDeploymentSpec};
use crate::crd::Definition;
use crate::crd::schema::{between, column, conditions, default, int32, int64, object, root, text};
use crate::workshop::object::definition;

/// The definition of the resource `simpledeployments`.
pub fn simpledeployment(_: &WebhookClientConfig) -> CustomResourceDefinition {
    let description = "SimpleDeployment keeps a Deployment that always has the number of replicas asked for.";
    Definition {
        columns: vec![
            column("Desired", "integer", ".spec.replicas", "Replicas asked for."),
            column("Ready", "integer", ".status.readyReplicas", "Replicas that are ready."),
            column("Available", "integer", ".status.availableReplicas", "Replicas that are available."),
        ],
        scale: Some(CustomResourceSubresourceScale {
            label_selector_path: Some(".status.selector".to_owned()),
            spec_replicas_path: ".spec.replicas".to_owned(),
            status_replicas_path: ".status.replicas".to_owned(),
        }),
        ..definition::<SimpleDeploymentSpec>(root(description, spec(), status()))
    }
    .into_crd()
}

/// The defaults are here and not in a webhook, so that `scale` finds the field also while no webhook is served.
fn spec() -> JSONSchemaProps {
    // The format alone does not keep a larger number out.
    let replicas = between(0, i32::MAX.into(), int32("Replicas of the Deployment. Default: 1."));
    let replicas = default(DEFAULT_REPLICAS.into(), replicas);
    default(json!({}), object("How many replicas to keep.", [("replicas", replicas)]))
}

fn status() -> JSONSchemaProps {
    object(
        "What the controller saw.",
        [
            ("observedGeneration", int64("The generation of the SimpleDeployment that the rest is about.")),
            ("replicas", int32("Pods of the Deployment.")),
            ("readyReplicas", int32("Pods that are ready.")),
            ("availableReplicas", int32("Pods that have been ready for as long as the Deployment asks.")),
            ("selector", text("Selects the pods, for autoscalers.")),
            ("conditions", conditions("Ready, and why not.")),
        ],
    )
}
