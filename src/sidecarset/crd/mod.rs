//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

mod container;
mod schema;
mod strategy;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use self::container::container;
use self::schema::{
    atomic_list, int32, int64, keyed_list, label_selector, moment, named_list, object, object_requiring, open, text,
    text_map, word,
};
use self::strategy::{injection_strategy, update_strategy};
use crate::sidecarset::api::{GROUP, KIND, PLURAL, VERSION};
use crate::sidecarset::vocabulary as words;

/// The definition of the resource `sidecarsets`.
pub fn sidecarset() -> CustomResourceDefinition {
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(format!("{PLURAL}.{GROUP}")), ..ObjectMeta::default() },
        spec: CustomResourceDefinitionSpec {
            group: GROUP.to_owned(),
            scope: "Cluster".to_owned(),
            names: CustomResourceDefinitionNames {
                kind: KIND.to_owned(),
                list_kind: Some(format!("{KIND}List")),
                plural: PLURAL.to_owned(),
                singular: Some(KIND.to_lowercase()),
                ..CustomResourceDefinitionNames::default()
            },
            versions: vec![version()],
            ..CustomResourceDefinitionSpec::default()
        },
        ..CustomResourceDefinition::default()
    }
}

fn version() -> CustomResourceDefinitionVersion {
    CustomResourceDefinitionVersion {
        name: VERSION.to_owned(),
        served: true,
        storage: true,
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(root()) }),
        subresources: Some(CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(serde_json::Value::Object(serde_json::Map::new()))),
            ..CustomResourceSubresources::default()
        }),
        additional_printer_columns: Some(vec![
            column("Matched", "integer", ".status.matchedPods", "Pods that the set selects and that carry it."),
            column("Updated", "integer", ".status.updatedPods", "Matched pods that carry the current revision."),
            column("Ready", "integer", ".status.readyPods", "Matched pods that are ready."),
            column("Age", "date", ".metadata.creationTimestamp", "Time since the set was created."),
        ]),
        ..CustomResourceDefinitionVersion::default()
    }
}

fn column(name: &str, type_: &str, json_path: &str, description: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        description: Some(description.to_owned()),
        ..CustomResourceColumnDefinition::default()
    }
}

fn root() -> JSONSchemaProps {
    object(
        "SidecarSet puts containers beside the pods that it selects, when they are created.",
        [
            ("apiVersion", text("Version of the API that the object is written in.")),
            ("kind", text("Kind of the object.")),
            (
                "metadata",
                // The API server knows the rest, and refuses any other schema here.
                JSONSchemaProps { type_: Some("object".to_owned()), ..JSONSchemaProps::default() },
            ),
            ("spec", spec_schema()),
            ("status", status()),
        ],
    )
}

/// The schema of `spec`.
///
/// Nothing is required here: the webhook says what is missing in one reply, and more kindly.
///
/// Containers and volumes are keyed by name, as in a pod: with server-side apply one manager can own one container, or just its
/// image, beside another's. The price is that the API server itself refuses a name that is there twice.
pub fn spec_schema() -> JSONSchemaProps {
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
            (
                "initContainers",
                named_list(
                    container(
                        "An init container to add; with restartPolicy Always it is a native sidecar.",
                        words::AFTER_APP_CONTAINER,
                    ),
                    "Init containers to add when a pod is created.",
                ),
            ),
            (
                "containers",
                named_list(
                    container("A container to add.", words::BEFORE_APP_CONTAINER),
                    "Containers to add when a pod is created.",
                ),
            ),
            (
                "volumes",
                named_list(volume(), "Volumes that the added containers may mount. Unused ones are not added."),
            ),
            ("updateStrategy", update_strategy()),
            ("injectionStrategy", injection_strategy()),
            ("imagePullSecrets", named_list(pull_secret(), "Pull secrets to add to the pod.")),
            ("revisionHistoryLimit", int32("How many old revisions of the set are kept. Default: 10.")),
            ("patchPodMetadata", atomic_list(pod_metadata(), "Annotations to put on the pod.")),
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
        ],
    )
}

fn volume() -> JSONSchemaProps {
    open(object_requiring(
        &["name"],
        "A volume. Every field of a pod's volume can be used; see `kubectl explain pod.spec.volumes`. \
         Without a source it is an emptyDir.",
        [("name", text("Name of the volume, which volumeMounts refer to: a DNS label."))],
    ))
}

fn pull_secret() -> JSONSchemaProps {
    object_requiring(
        &["name"],
        "A pull secret.",
        [("name", text("Name of the Secret. It must exist in the pod's namespace."))],
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
                     into it by RFC 7386.",
                ),
            ),
        ],
    )
}

fn conditions() -> JSONSchemaProps {
    let condition = object_requiring(
        &["type", "status", "lastTransitionTime", "reason", "message"],
        "Something that is the case with the set, or is not.",
        [
            (
                "type",
                text("What. Programmed: the API server asks about the pods of the set; only with --narrow-webhooks."),
            ),
            ("status", word(&["True", "False", "Unknown"], "Whether it is the case.")),
            ("observedGeneration", int64("The generation of the set that it is about.")),
            ("lastTransitionTime", moment("When status last changed.")),
            ("reason", text("Why, in one word.")),
            ("message", text("Why, for people.")),
        ],
    );
    keyed_list("type", condition, "What is the case with the set.")
}

fn status() -> JSONSchemaProps {
    object(
        "What the controller counted.",
        [
            ("observedGeneration", int64("The generation of the set that the numbers are about.")),
            ("matchedPods", int32("Pods that the set selects and that carry it.")),
            ("updatedPods", int32("Matched pods that carry the current revision.")),
            ("readyPods", int32("Matched pods that are ready.")),
            ("updatedReadyPods", int32("Matched pods that are ready and carry the current revision.")),
            ("latestRevision", text("Name of the newest ControllerRevision.")),
            ("collisionCount", int32("How often the name of a new revision was taken already.")),
            ("conditions", conditions()),
        ],
    )
}
