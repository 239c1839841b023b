//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

mod additions;
mod container;
mod strategy;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};

use self::container::container;
use self::strategy::{injection_strategy, update_strategy};
use crate::crd::schema::{
    FieldSchema, atomic_list, column, conditions, int32, int64, keyed_list, label_selector, object, open, requiring,
    root, text, text_map, wide, word,
};
use crate::crd::{Definition, Scope};
use engine::sidecarset::api::{GROUP, KIND, PLURAL, VERSION};
use engine::sidecarset::vocabulary as words;

const DESCRIPTION: &str = "SidecarSet puts containers beside the pods that it selects, when they are created.";

/// The definition of the resource `sidecarsets`.
pub fn sidecarset() -> CustomResourceDefinition {
    let definition = Definition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        scope: Scope::Cluster,
        schema: object_schema(),
        columns: vec![
            column("Matched", "integer", ".status.matchedPods", "Pods that the set selects and that carry it."),
            column("Updated", "integer", ".status.updatedPods", "Matched pods that carry the current revision."),
            column("Ready", "integer", ".status.readyPods", "Matched pods that are ready."),
            wide("Uninjected", "integer", ".status.uninjectedPods", "Selected pods that lack the set."),
            wide(
                "Known",
                "string",
                ".status.conditions[?(@.type=='Ready')].status",
                "Whether the next pod gets this set.",
            ),
            wide(
                "Rollout",
                "string",
                ".status.conditions[?(@.type=='Progressing')].reason",
                "How running pods follow the set.",
            ),
            wide("Degraded", "string", ".status.conditions[?(@.type=='Degraded')].reason", "What needs attention."),
            wide(
                "Conflict",
                "string",
                ".status.conditions[?(@.type=='Conflict')].status",
                "Whether another set brings the same.",
            ),
            wide("Paused", "boolean", ".spec.injectionStrategy.paused", "Whether new pods go without the set."),
            wide("Order", "integer", ".spec.order", "Place among the sets of one pod."),
            wide("Revision", "string", ".status.latestRevision", "The current revision."),
        ],
        scale: None,
    };
    let mut crd = definition.into_crd();
    // Another project's SidecarSet has the same plural, and kubectl takes the first group that has it.
    crd.spec.names.short_names = Some(vec!["oss".to_owned()]);
    crd
}

/// The schema of the whole object.
pub fn object_schema() -> JSONSchemaProps {
    root(DESCRIPTION, spec_schema(), status())
}

/// The schema of `spec`.
///
/// Nothing is required here: the webhook says what is missing in one reply, and more kindly.
///
/// Containers and volumes are keyed by name, as in a pod: with server-side apply one manager can own one container, or just its
/// image, beside another's. The price is that the API server itself refuses a name that is there twice.
fn spec_schema() -> JSONSchemaProps {
    object(
        "What to put beside which pods.",
        [
            (
                "selector",
                label_selector(
                    "Pods to inject, by their labels. Required; may be empty only beside a namespaceSelector or namespace.",
                ),
            ),
            ("namespace", text("The one namespace to inject in. Not together with namespaceSelector.")),
            ("namespaceSelector", label_selector("Namespaces to inject in, by their labels. Default: all.")),
            ("updateStrategy", update_strategy()),
            ("injectionStrategy", injection_strategy()),
            ("imagePullSecrets", keyed_list("name", pull_secret(), "Pull secrets to add to the pod.")),
            (
                "revisionHistoryLimit",
                int32(
                    "How many revisions of the set are kept, as ControllerRevisions in Outrider's namespace; at least 1. The current one, \
                     those that pods carry and the one that injectionStrategy.revision names are never deleted. Default: 10.",
                ),
            ),
            (
                "patchPodMetadata",
                atomic_list(
                    pod_metadata(),
                    "Annotations to put on the pod. Each key has to be allowed by SidecarSet_PatchPodMetadata_WhiteList in the \
                     ConfigMap outrider-configuration of Outrider's namespace.",
                ),
            ),
            ("customVersion", text("Your own name for this revision of the set; a label value.")),
            ("order", int32("Place among the sets of one pod: lower first, then by name. Default: 0.")),
            (
                "clashPolicy",
                word(
                    &words::CLASH_POLICIES,
                    "What happens to a pod that cannot carry the set, as it has another container or volume of the same name: \
                     Refuse (default) refuses the pod, Skip lets it go without the set, with a warning.",
                ),
            ),
            (
                "optOut",
                word(
                    &words::OPT_OUTS,
                    "Whether a pod may keep the set away by the annotation outrider.dev/skip. Default: Allowed.",
                ),
            ),
            ("allowedChanges", allowed_changes()),
        ]
        .into_iter()
        .chain(added())
        .chain(additions::fields()),
    )
}

/// What is added to pods.
fn added() -> [FieldSchema; 3] {
    [
        (
            "initContainers",
            keyed_list(
                "name",
                container(
                    "An init container to add; with restartPolicy Always it is a native sidecar.",
                    words::AFTER_APP_CONTAINER,
                ),
                "Init containers to add when a pod is created.",
            ),
        ),
        (
            "containers",
            keyed_list(
                "name",
                container("A container to add.", words::BEFORE_APP_CONTAINER),
                "Containers to add when a pod is created.",
            ),
        ),
        (
            "volumes",
            keyed_list("name", volume(), "Volumes that the added containers may mount. Unused ones are not added."),
        ),
    ]
}

fn allowed_changes() -> JSONSchemaProps {
    object(
        "Differences between a container in the pod and the set's container that are allowed. With optOut Denied, a pod with any \
         other difference is refused; without, it is reported as Outdated. Always allowed: imagePullPolicy Always, requests and \
         limits that the set leaves open, and what the API server and the identity webhooks of EKS and Azure add.",
        [
            (
                "env",
                atomic_list(
                    text("Name of a variable; * matches any characters."),
                    "Environment variables that may be added, changed or missing.",
                ),
            ),
            (
                "mountPaths",
                atomic_list(
                    text("A mountPath; * matches any characters."),
                    "Paths at which a volume mount may be added, changed or missing.",
                ),
            ),
            (
                "volumes",
                atomic_list(text("Name of a volume of the set."), "Volumes of the set that may have another source."),
            ),
            (
                "fields",
                atomic_list(
                    word(
                        &words::ALLOWED_FIELDS,
                        "A field of a container. imageDigest: a digest for the image's own tag.",
                    ),
                    "Fields of a container that may have any value.",
                ),
            ),
        ],
    )
}

fn volume() -> JSONSchemaProps {
    open(requiring(
        &["name"],
        object(
            "A volume. Every field of a pod's volume can be used; see `kubectl explain pod.spec.volumes`. \
         Without a source it is an emptyDir.",
            [("name", text("Name of the volume, which volumeMounts refer to: a DNS label."))],
        ),
    ))
}

fn pull_secret() -> JSONSchemaProps {
    requiring(
        &["name"],
        object("A pull secret.", [("name", text("Name of the Secret. It must exist in the pod's namespace."))]),
    )
}

fn pod_metadata() -> JSONSchemaProps {
    object(
        "Annotations with the policy for those that the pod has already.",
        [
            ("annotations", text_map("Annotations to put on the pod.")),
            (
                "patchPolicy",
                word(
                    &words::PATCH_POLICIES,
                    "Retain (default) leaves a value that the pod has already, Overwrite replaces it, MergePatchJson merges \
                     the value, which is JSON, into it as RFC 7386 says.",
                ),
            ),
        ],
    )
}

fn status() -> JSONSchemaProps {
    object(
        "What the controller found.",
        [
            ("observedGeneration", int64("The generation of the set that the numbers are about.")),
            ("matchedPods", int32("Pods that the set selects and that carry it.")),
            ("updatedPods", int32("Matched pods that carry the current revision.")),
            (
                "readyPods",
                int32("Matched pods that are ready, and whose containers run the images that the pod asks for."),
            ),
            ("updatedReadyPods", int32("Matched pods that are ready and carry the current revision.")),
            (
                "uninjectedPods",
                int32(
                    "Pods that the set selects and that lack it, though they would get it if they were created now. \
                     Pods that opted out, that the set leaves out, or of excluded namespaces do not count.",
                ),
            ),
            ("latestRevision", text("Name of the newest ControllerRevision.")),
            ("collisionCount", int32("How often the name of a new revision was taken already.")),
            (
                "conditions",
                conditions(
                    "State of the set. Ready: the next pod gets it, as every replica knows this generation. \
                     Available: every pod that carries it is ready. Progressing: how running \
                    pods follow it. Degraded: pods lack it or its current form, and stay so. \
                    Conflict: another set brings the same. Programmed: the API server sends its pods to Outrider; \
                    only with --narrow-webhooks.",
                ),
            ),
        ],
    )
}
