//! The schemas of the two strategies: for pods that carry the set, and for new pods.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::crd::schema::{atomic_list, flag, int_or_string, int32, label_selector, object, text, word};
use engine::sidecarset::vocabulary as words;

const UPDATE_STRATEGY: &str = "\
    How running pods that carry the set follow a change of it. Images of containers and of native sidecars are changed in the \
    running pod, which restarts these containers alone; a container with upgradeType HotUpgrade is started anew beside the one that \
    works, which is not restarted before the new one serves. Requests and limits of cpu and memory are changed through pods/resize, where \
    the API server has it, and annotations of patchPodMetadata at once. A pod that differs in anything else keeps what it has until it \
    is created anew, or is evicted (recreate); its condition outrider.dev/SidecarSetUpgradable has the difference.";

/// `spec.updateStrategy`
pub fn update_strategy() -> JSONSchemaProps {
    object(
        UPDATE_STRATEGY,
        [
            (
                "type",
                word(
                    &words::UPDATE_TYPES,
                    "RollingUpdate (default) updates running pods step by step, NotUpdate leaves them as they are.",
                ),
            ),
            (
                "paused",
                flag(
                    "Stops the rollout: pods in the middle of a hot upgrade stay so, with both containers. The status is still kept up to date.",
                ),
            ),
            ("selector", label_selector("Only pods with these labels are updated.")),
            (
                "partition",
                int_or_string(
                    "How many pods, or what share of them (such as 10%), stay at an older form. Pods that cannot be updated are among them. \
                     Default: 0.",
                ),
            ),
            (
                "maxUnavailable",
                int_or_string(
                    "How many pods, or what share of them (such as 10%, rounded up), the rollout may make unavailable at a time. Pods that are \
                     not ready are free. Each PodDisruptionBudget about a pod is kept besides. Default: 1.",
                ),
            ),
            (
                "maxUnavailablePerOwner",
                int_or_string(
                    "The same for the pods of each workload (Deployment, StatefulSet and so on) by itself. Default: no limit beyond \
                     maxUnavailable.",
                ),
            ),
            (
                "recreate",
                flag(
                    "Evicts pods that cannot be updated in place, so that their workloads create new ones, within the same limits. Pods of \
                     Jobs, and pods without a controller, are never evicted. Default: false.",
                ),
            ),
            (
                "repair",
                word(
                    &words::REPAIRS,
                    "Never (default) leaves pods that lack the set as they are, Evict evicts them, so that their workloads create new ones, \
                     within the same limits and with the same exceptions as recreate. They count as pods in an older form.",
                ),
            ),
            ("priorityStrategy", priority_strategy()),
            ("scatterStrategy", scatter_strategy()),
        ],
    )
}

fn priority_strategy() -> JSONSchemaProps {
    let by_order = object(
        "A label whose values order the pods.",
        [(
            "orderedKey",
            text("Key of the label. The number at the end of its value counts, higher first; pods without it go last."),
        )],
    );
    let by_weight = object(
        "A weight for pods with certain labels.",
        [
            ("weight", int32("1 to 100; the weights of a pod add up, higher first.")),
            ("matchSelector", label_selector("Pods that the weight is for.")),
        ],
    );
    object(
        "Which pods are updated first: by order or by weight, not both.",
        [
            (
                "orderPriority",
                atomic_list(by_order, "Labels whose values order the pods; the first one that a pod has counts."),
            ),
            ("weightPriority", atomic_list(by_weight, "Weights that order the pods.")),
        ],
    )
}

fn scatter_strategy() -> JSONSchemaProps {
    let term = object(
        "A label whose pods are spread over the rollout.",
        [("key", text("Key of the label.")), ("value", text("Value of the label, or * for every value that occurs."))],
    );
    atomic_list(term, "Labels whose pods are spread over the rollout, so that they are not updated one after another.")
}

/// `spec.injectionStrategy`
pub fn injection_strategy() -> JSONSchemaProps {
    object(
        "Whether new pods are injected, and with which revision of the set.",
        [
            ("paused", flag("New pods are left alone.")),
            (
                "revision",
                object(
                    "An older revision of the set to inject in place of the current one.",
                    [
                        ("customVersion", text("The revision with this spec.customVersion.")),
                        ("revisionName", text("The ControllerRevision of this name.")),
                        (
                            "policy",
                            word(
                                &words::REVISION_POLICIES,
                                "Always (default) injects the revision into every new pod that updateStrategy.selector does not match, \
                                 Partial only into those that a rollout does not include yet: with a percentage as \
                                 updateStrategy.partition into the pods of that share of the workloads.",
                            ),
                        ),
                    ],
                ),
            ),
        ],
    )
}
