//! The schemas of fields that OpenKruise does not have.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::crd::schema::{FieldSchema, atomic_list, flag, int_or_string, map_of, object, open, requiring, text, word};
use engine::sidecarset::vocabulary as words;

/// All of them.
pub fn fields() -> Vec<FieldSchema> {
    vec![
        ("resourceDefaults", resource_defaults()),
        ("jobPods", job_pods()),
        ("appContainers", app_containers()),
        ("podOverrides", pod_overrides()),
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

/// `spec.appContainers`
fn app_containers() -> JSONSchemaProps {
    let named =
        |field: &'static str, about: &str, key: &str| open(requiring(&[field], object(about, [(field, text(key))])));
    let variable = named(
        "name",
        "An environment variable; see `kubectl explain pod.spec.containers.env`.",
        "Name of the variable.",
    );
    let mount = named(
        "name",
        "A volume mount; see `kubectl explain pod.spec.containers.volumeMounts`.",
        "Name of a volume of the set (spec.volumes).",
    );
    let entry = object(
        "What is added to some of the pod's own containers.",
        [
            (
                "containerNames",
                atomic_list(text("Name of a container."), "The containers. Default: all of the pod's own."),
            ),
            (
                "initContainers",
                flag("The pod's own init containers, native sidecars among them, count too. Default: false."),
            ),
            (
                "env",
                atomic_list(
                    variable,
                    "Variables, put in front of the container's own, so that these may refer to them. One that the container has stays.",
                ),
            ),
            ("overwriteEnv", flag("A variable that the container has is changed where it is. Default: false.")),
            (
                "volumeMounts",
                atomic_list(
                    mount,
                    "Mounts of volumes of the set. One at a path where the container has another is left out.",
                ),
            ),
        ],
    );
    atomic_list(entry, "What is added to the pod's own containers when the pod is created.")
}

/// `spec.podOverrides`
fn pod_overrides() -> JSONSchemaProps {
    let bounds = object(
        "Requests and limits may be changed within these bounds: cpu, memory and ephemeral-storage.",
        [
            ("min", amounts("The least amount. Default: 0.")),
            ("max", amounts("The largest amount. A resource that has none may not be changed.")),
        ],
    );
    object(
        "What a pod may change of the set's containers for itself, by the annotation outrider.dev/overrides: JSON, a map from names of \
         containers to image, env (values by name) and resources. Default: nothing. Anything else in the annotation is a clash.",
        [
            (
                "containerNames",
                atomic_list(text("Name of a container of the set."), "The containers. Default: all of the set."),
            ),
            ("resources", bounds),
            ("env", atomic_list(text("Name of a variable."), "Variables that may have another value.")),
            ("imageTag", flag("The image may have another tag of the same repository. Default: false.")),
        ],
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
