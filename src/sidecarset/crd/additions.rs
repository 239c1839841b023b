//! The schemas of fields that OpenKruise does not have.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::crd::schema::{Field, int_or_string, map_of, object, word};
use engine::sidecarset::vocabulary as words;

/// All of them.
pub fn fields() -> Vec<Field> {
    vec![
        ("resourceDefaults", resource_defaults()),
        ("jobPods", job_pods()),
        ("platform", platform()),
        ("podSecurity", pod_security()),
    ]
}

/// `spec.resourceDefaults`
fn resource_defaults() -> JSONSchemaProps {
    object(
        "Requests and limits for the added containers that lack them, resource by resource, after resourcesPolicy: cpu, memory and \
         ephemeral-storage. A default limit is raised to what the container requests, a default request lowered to what it is \
         limited to.",
        [
            ("limits", amounts("Limits for containers that have none of the resource.")),
            ("requests", amounts("Requests for containers that have none of the resource.")),
        ],
    )
}

/// `spec.jobPods`
fn job_pods() -> JSONSchemaProps {
    word(
        &words::JOB_PODS,
        "What pods get that are to end: those of a Job, and those with restartPolicy Never or OnFailure. NativeSidecar (default) makes \
         native sidecars of the containers, which end with the pod's own: BeforeAppContainer ones go before the other init \
         containers, AfterAppContainer ones behind them. Skip leaves such pods alone, Inject gives them what others get.",
    )
}

/// `spec.platform`
fn platform() -> JSONSchemaProps {
    word(
        &words::PLATFORMS,
        "The operating system that the containers run on. Pods of another one go without the set. Default: linux, and windows for a \
         set with windowsOptions.",
    )
}

/// `spec.podSecurity`
fn pod_security() -> JSONSchemaProps {
    word(
        &words::POD_SECURITIES,
        "AsWritten (default) leaves security contexts as they are. Complete fills in what the level restricted of the Pod Security \
         Standards demands of each container and the set leaves open: runAsNonRoot, allowPrivilegeEscalation, seccompProfile and \
         capabilities.drop.",
    )
}

/// Amounts by resource.
fn amounts(description: &str) -> JSONSchemaProps {
    map_of(int_or_string("An amount, such as 100m or 64Mi."), description)
}
