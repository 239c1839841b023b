//! The schema of an injected container: its steering fields in full, the pod API's own fields open.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::crd::schema::{atomic_list, flag, object, open, requiring, text, word};
use engine::sidecarset::vocabulary as words;

/// A container or init container. `side` says where it goes by default.
pub fn container(description: &str, side: &str) -> JSONSchemaProps {
    open(requiring(
        &["name"],
        object(
            &format!(
                "{description} Every field of a pod's container can be used; see `kubectl explain pod.spec.containers`."
            ),
            [
                (
                    "name",
                    text("Name of the container in the pod: a DNS label, unique within the set and within the pod."),
                ),
                ("image", text("Container image.")),
                (
                    "podInjectPolicy",
                    word(
                        &words::INJECT_POLICIES,
                        &format!("On which side of the pod's own containers it is put. Default: {side}."),
                    ),
                ),
                ("upgradeStrategy", upgrade_strategy()),
                ("shareVolumePolicy", share_policy("volume mounts")),
                ("shareVolumeDevicePolicy", share_policy("block devices")),
                (
                    "shareServiceAccountToken",
                    flag(
                        "Whether the container gets the mount of the service account's token that the pod's own containers have. \
                         The API server mounts it into every container unless automountServiceAccountToken is false; this makes \
                         it explicit. Default: false.",
                    ),
                ),
                ("transferEnv", transfer_env()),
                ("resourcesPolicy", resources_policy()),
            ],
        ),
    ))
}

fn upgrade_strategy() -> JSONSchemaProps {
    object(
        "How the container in running pods follows a change of the set.",
        [
            (
                "upgradeType",
                word(
                    &words::UPGRADE_TYPES,
                    "ColdUpgrade (default) restarts the container in place. HotUpgrade puts it into the pod twice, as <name>-1 \
                     and <name>-2: one works, the other waits with hotUpgradeEmptyImage until a new version is started in it.",
                ),
            ),
            (
                "hotUpgradeEmptyImage",
                text(
                    "Image of the container that waits; required with HotUpgrade, and another than the container's own.",
                ),
            ),
        ],
    )
}

fn share_policy(what: &str) -> JSONSchemaProps {
    object(
        &format!(
            "Whether the container also gets the {what} of the pod's own containers and native sidecars. Its own take precedence over those \
             at the same path, and of two containers of the pod those of the first."
        ),
        [("type", word(&words::SHARE_TYPES, "disabled (default) or enabled."))],
    )
}

fn transfer_env() -> JSONSchemaProps {
    let field_ref = object(
        "A field of the pod.",
        [
            ("apiVersion", text("Version of the pod API that fieldPath is written in. Default: v1.")),
            ("fieldPath", text("metadata.labels['<key>'] or metadata.annotations['<key>'].")),
        ],
    );
    let entry = object(
        "Environment variables to copy from one container of the pod: one of sourceContainerName and sourceContainerNameFrom, and \
         envName or envNames or both.",
        [
            ("sourceContainerName", text("Name of the container to copy from.")),
            (
                "sourceContainerNameFrom",
                object("Where the name of the container to copy from is found.", [("fieldRef", field_ref)]),
            ),
            ("envName", text("Name of a variable to copy.")),
            ("envNames", atomic_list(text("Name of a variable to copy."), "Names of variables to copy.")),
        ],
    );
    atomic_list(
        entry,
        "Environment variables to copy from the pod's own containers, with their value or source as it is there. A variable of the \
         container itself takes precedence. What the pod does not have is left out.",
    )
}

fn resources_policy() -> JSONSchemaProps {
    let amounts = |which: &str| {
        object(
            &format!("Expressions for the {which}."),
            [
                ("cpu", text("Expression in the variable cpu, such as max(cpu*50%, 50m). Empty: none.")),
                (
                    "memory",
                    text("Expression in the variable memory, such as memory*20% + 100Mi, or 200Mi. Empty: none."),
                ),
            ],
        )
    };
    object(
        "Requests and limits computed from those of the pod's own containers and native sidecars when the pod is created. Not together \
         with resources.limits or resources.requests. Operators: + - * / ( ), max(a, b), min(a, b); numbers, percentages and \
         quantities. A limit whose expression has the variable is left out where one of the containers has no limit.",
        [
            (
                "targetContainersMode",
                word(&words::TARGET_MODES, "How several containers count: their sum, or the maximum."),
            ),
            (
                "targetContainersNameRegex",
                text("Regular expression that the names of the containers that count match somewhere. Default: .*"),
            ),
            (
                "resourcesExpr",
                object(
                    "Expressions for limits and requests.",
                    [("limits", amounts("limits")), ("requests", amounts("requests"))],
                ),
            ),
        ],
    )
}
