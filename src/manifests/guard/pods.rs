//! What the service account may write in pods, as CEL.

use std::collections::BTreeSet;

use engine::sidecarset::injection::INJECTED_ANNOTATION;
use engine::snapshot::{EXCLUDE_LABEL, Exclusion};
use k8s_openapi::api::admissionregistration::v1::{Validation, Variable};

use super::cel::{field, list, same_but, text};
use super::validations::{PolicyRules, metadata_variables, on_update, refusal, variable};
use super::{EXCLUDED_VARIABLE, NAMESPACE_VARIABLE};
use crate::names::UPGRADABLE;

/// Of pods, which rollouts change while they run, images, requests and limits, annotations and one condition, and which they evict.
pub fn of_pods(excluded: &[String]) -> PolicyRules {
    let mut validations = vec![updates_and_evictions(), evictions(), outside_excluded_namespaces()];
    validations.extend([
        on_update(
            &same_but("object", "oldObject", &list(&["metadata", "spec", "status"])),
            "no other field may change",
        ),
        on_update(
            &format!(
                "{} && variables.oldAnnotations.all(k, k in variables.newAnnotations)",
                same_but("object.metadata", "oldObject.metadata", "variables.freeOfMetadata")
            ),
            "of a pod's metadata only annotations may change, and none may go",
        ),
        // Else the account could give any pod a record, or an application's container a place in one, and then any image.
        on_update(
            &format!("{} && {}", named_before("variables.newContainers"), named_before("variables.newInitContainers")),
            "the record of a pod's sets names no container that it did not name before",
        ),
        containers(),
        status(),
    ]);
    PolicyRules { variables: variables(excluded), validations }
}

fn variables(excluded: &[String]) -> Vec<Variable> {
    // In the chart's order.
    let excluded: BTreeSet<&str> = Exclusion::ALWAYS.into_iter().chain(excluded.iter().map(String::as_str)).collect();
    let excluded: Vec<&str> = excluded.into_iter().collect();
    let list_of = |object: &str, path: &str| field(object, path, "[]");
    let record = |annotations: &str| {
        let key = text(INJECTED_ANNOTATION);
        format!("{key} in variables.{annotations} ? variables.{annotations}[{key}] : ''")
    };
    let mut variables = metadata_variables();
    variables.extend([
        variable(EXCLUDED_VARIABLE, list(&excluded)),
        variable("namespaceLabels", field("namespaceObject", "metadata.labels", "{}")),
        variable("oldRecord", record("oldAnnotations")),
        variable("newRecord", record("newAnnotations")),
        variable("oldContainers", list_of("oldObject", "spec.containers")),
        variable("newContainers", list_of("object", "spec.containers")),
        variable("oldInitContainers", list_of("oldObject", "spec.initContainers")),
        variable("newInitContainers", list_of("object", "spec.initContainers")),
        variable("oldStatus", field("oldObject", "status", "{}")),
        variable("newStatus", field("object", "status", "{}")),
        variable("freeOfContainer", free_of_container()),
    ]);
    variables
}

fn free_of_container() -> String {
    "[has(request.subResource) && request.subResource == 'resize' ? 'resources' : 'image']".to_owned()
}

fn updates_and_evictions() -> Validation {
    let expression = format!(
        "(request.operation == 'UPDATE' && (!has(request.subResource) || request.subResource in ['', 'status', 'resize'])) || {IS_EVICTION}"
    );
    Validation {
        expression,
        message: Some(refusal(
            "a pod and its status may be updated, a pod resized and evicted, and pods neither created nor deleted",
        )),
        ..Validation::default()
    }
}

const IS_EVICTION: &str =
    "(request.operation == 'CREATE' && has(request.subResource) && request.subResource == 'eviction')";

/// As rollouts evict: the pod that they have read, with the time that it has to end.
fn evictions() -> Validation {
    Validation {
        expression: format!(
            "!{IS_EVICTION} || (has(object.deleteOptions) && object.deleteOptions.all(k, k in ['preconditions', 'dryRun']) && \
             has(object.deleteOptions.preconditions) && has(object.deleteOptions.preconditions.uid) && \
             has(object.deleteOptions.preconditions.resourceVersion))"
        ),
        message: Some(refusal("an eviction names uid and resourceVersion of its pod, and has no other options")),
        ..Validation::default()
    }
}

fn outside_excluded_namespaces() -> Validation {
    Validation {
        expression: format!(
            "!(request.namespace in variables.{EXCLUDED_VARIABLE}) && request.namespace != variables.{NAMESPACE_VARIABLE} && \
             !({} in variables.namespaceLabels)",
            text(EXCLUDE_LABEL)
        ),
        message: Some(refusal("pods of excluded namespaces and of its own stay as they are")),
        ..Validation::default()
    }
}

fn containers() -> Validation {
    on_update(
        &format!(
            "{} && {} && {}",
            same_but("object.spec", "oldObject.spec", &list(&["containers", "initContainers"])),
            all_but_free("variables.newContainers", "variables.oldContainers"),
            all_but_free("variables.newInitContainers", "variables.oldInitContainers")
        ),
        "of a pod's spec only images may change, and by a resize requests and limits, of containers that the record of its sets names",
    )
}

fn status() -> Validation {
    let others = |status: &str| {
        let conditions = field(&format!("variables.{status}"), "conditions", "[]");
        format!("{conditions}.filter(c, c.type != {})", text(UPGRADABLE))
    };
    on_update(
        &format!(
            "{} && {} == {}",
            same_but("variables.newStatus", "variables.oldStatus", &list(&["conditions"])),
            others("newStatus"),
            others("oldStatus")
        ),
        &format!("of a pod's status only the condition {UPGRADABLE} may change"),
    )
}

/// Every container is as it was, but for the image of those that the record names, or their resources.
fn all_but_free(new: &str, old: &str) -> String {
    let container = same_but("n", "o", "variables.freeOfContainer");
    let is_named = is_named("oldRecord");
    let may_be = format!("o.name == n.name && (n == o || ({is_named} && {container}))");
    format!("{new}.map(n, n.name) == {old}.map(o, o.name) && {new}.all(n, {old}.exists(o, {may_be}))")
}

/// No container of the list is new to the record.
fn named_before(containers: &str) -> String {
    format!("{containers}.all(n, !{} || {})", is_named("newRecord"), is_named("oldRecord"))
}

fn is_named(record: &str) -> String {
    format!("variables.{record}.contains('\"' + n.name + '\"')")
}
