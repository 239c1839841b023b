//! The `CustomResourceDefinition`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};

use super::api::WelcomeSpec;
use crate::crd::Definition;
use crate::crd::schema::{column, conditions, flag, int64, object, root, text};
use crate::workshop::object::definition;

/// The definition of the resource `welcomes`.
pub fn welcome(_: &WebhookClientConfig) -> CustomResourceDefinition {
    let spec = object("Whom to greet.", [("name", text("Who is greeted. Default: world."))]);
    let status = object(
        "What the controller saw.",
        [
            ("observedGeneration", int64("The generation of the Welcome that the rest is about.")),
            ("ready", flag("Whether the web server is available.")),
            ("deploymentName", text("Name of the Deployment.")),
            ("serviceName", text("Name of the Service.")),
            ("conditions", conditions("Ready, and why not.")),
        ],
    );
    let description = "Welcome runs a web server that returns a greeting: a Deployment and a Service.";
    Definition {
        columns: vec![
            column("Name to greet", "string", ".spec.name", "Who is greeted; world when empty."),
            column("Ready", "boolean", ".status.ready", "Whether the web server is available."),
        ],
        ..definition::<WelcomeSpec>(root(description, spec, status))
    }
    .into_crd()
}
