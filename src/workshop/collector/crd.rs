//! The `CustomResourceDefinition`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, WebhookClientConfig,
};

use super::api::{CollectorSpec, DEFAULT_MAX_IPS, DEPLOYMENT, MOST_IPS, RESET_MAX_BYTES};
use crate::crd::Definition;
use crate::crd::schema::{
    atomic_list, between, column, conditions, default, flag, int32, int64, label_selector, not_negative, object,
    requiring, root, short_text, text, time, word,
};
use crate::workshop::object::definition;

const DESCRIPTION: &str = "Collector reports where pods are, and counts the events of their Deployment.";

/// The definition of the resource `collectors`.
pub fn collector(_: &WebhookClientConfig) -> CustomResourceDefinition {
    let definition = Definition {
        columns: vec![
            column("Target", "string", ".spec.target.name", "The Deployment whose pods are meant."),
            column("Pods", "integer", ".status.matchedPods", "Pods that have not finished."),
            column("Ready", "integer", ".status.readyPods", "Pods that are ready."),
            column("Events", "integer", ".status.events.total", "Events of the Deployment."),
        ],
        ..definition::<CollectorSpec>(requiring(&["spec"], root(DESCRIPTION, spec(), status())))
    };
    let mut crd = definition.into_crd();
    crd.spec.names.short_names = Some(vec!["coll".to_owned()]);
    crd
}

/// The defaults are here and not in a webhook, so that they are seen also while no webhook is served.
fn spec() -> JSONSchemaProps {
    let target = object(
        "The workload whose pods are meant, and whose events are counted.",
        [
            ("kind", default(DEPLOYMENT.into(), word(&[DEPLOYMENT], "Kind of the workload."))),
            (
                "name",
                JSONSchemaProps { min_length: Some(1), ..text("Name of the workload, in the Collector's namespace.") },
            ),
        ],
    );
    let max_ips = between(1, MOST_IPS.into(), int32("How many pods are listed, the first by name. Default: 1000."));
    object(
        "Which pods to report on: those of a selector or those of a target.",
        [
            ("selector", label_selector("Pods of the Collector's namespace, by their labels.")),
            ("target", requiring(&["name"], target)),
            ("includeIPv6", default(true.into(), flag("Whether IPv6 addresses are listed. Default: true."))),
            ("maxIPs", default(DEFAULT_MAX_IPS.into(), max_ips)),
            ("reset", short_text(RESET_MAX_BYTES, "Any text; another one makes the counters begin at zero.")),
        ],
    )
}

fn status() -> JSONSchemaProps {
    object(
        "What the controller saw.",
        [
            ("observedGeneration", int64("The generation of the Collector that the rest is about.")),
            ("matchedPods", int32("Pods that are meant and have not finished.")),
            ("readyPods", int32("Of these, those that are ready.")),
            ("ips", atomic_list(address(), "Pods that have an address, by name.")),
            ("events", events()),
            ("lastOperation", last_operation()),
            ("conditions", conditions("Ready, and why not; TargetNotFound for a Collector with a target.")),
        ],
    )
}

fn address() -> JSONSchemaProps {
    let fields = [
        ("pod", text("Name of the pod.")),
        ("node", text("Name of its node.")),
        ("podIP", text("Its first address.")),
        ("podIPs", atomic_list(text("An address."), "All its addresses.")),
        ("ready", flag("Whether it is ready.")),
    ];
    requiring(&["pod"], object("Where a pod is.", fields))
}

fn events() -> JSONSchemaProps {
    let count = |description| not_negative(int64(description));
    object(
        "Events of the Deployment since the count began, one for each version of it that was seen.",
        [
            ("deployment", text("The Deployment that is counted.")),
            ("reset", text("spec.reset when the count began.")),
            ("total", count("All events.")),
            ("added", count("How often it was created.")),
            ("modified", count("How often it was changed, its status included.")),
            ("deleted", count("How often it was deleted.")),
            (
                "lastResourceVersion",
                text("Up to which version of the Deployment is counted; absent while there is no Deployment."),
            ),
            ("lastEventTime", time("When the last event was counted.")),
        ],
    )
}

fn last_operation() -> JSONSchemaProps {
    object(
        "What happened to the Deployment last, with all that followed from it.",
        [
            ("description", text("What happened.")),
            ("events", not_negative(int64("How many events it made so far."))),
            ("generation", int64("Generation of the Deployment.")),
        ],
    )
}
