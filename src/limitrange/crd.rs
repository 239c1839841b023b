//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};

use crate::crd::schema::{
    atomic_list, condition_column, int_or_string, label_selector, map_of, object, requiring, root, short_text,
    status_of_conditions,
};
use crate::crd::{Definition, Scope};
use engine::limitrange::api::{GROUP, KIND, PLURAL, TYPES, VERSION};
use engine::limitrange::compiled::MAX_RESOURCES;

const DESCRIPTION: &str = "ClusterLimitRange is a LimitRange for every namespace that it selects: it bounds what containers, pods and \
     claims ask for, and fills in what containers leave open.";

/// The definition of the resource `clusterlimitranges`.
pub fn cluster_limit_range() -> CustomResourceDefinition {
    let definition = Definition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        scope: Scope::Cluster,
        schema: object_schema(),
        columns: vec![
            condition_column("Accepted", "Whether the object can be used."),
            condition_column("Programmed", "Whether the API server calls for it."),
        ],
        scale: None,
    };
    definition.into_crd()
}

/// The schema of the whole object.
pub fn object_schema() -> JSONSchemaProps {
    let spec = object(
        "What is bounded and filled in, and in which namespaces.",
        [
            (
                "namespaceSelector",
                label_selector(
                    "Namespaces, by their labels. Default: all but those that Outrider leaves alone, which are never among them.",
                ),
            ),
            ("limits", limits()),
        ],
    );
    let status = status_of_conditions("Accepted and Programmed.");
    requiring(&["spec"], root(DESCRIPTION, requiring(&["limits"], spec), status))
}

fn limits() -> JSONSchemaProps {
    let amounts = |description: &str| JSONSchemaProps {
        max_properties: Some(MAX_RESOURCES.into()),
        ..map_of(int_or_string("A quantity."), description)
    };
    let limit = object(
        "Limits of one type, as LimitRange has them.",
        [
            ("type", short_text(64, "Container, Pod or PersistentVolumeClaim.")),
            ("min", amounts("The least that must be asked for, by resource.")),
            ("max", amounts("The most that a limit may be, by resource; of claims the most that may be asked for.")),
            (
                "default",
                amounts("Limits of containers that have none, by resource. Default: max. Only for type: Container."),
            ),
            (
                "defaultRequest",
                amounts(
                    "Requests of containers that have none, by resource. Default: default, or else min. Only for type: Container.",
                ),
            ),
            (
                "maxLimitRequestRatio",
                amounts("The most that a limit may be as a multiple of the request, by resource."),
            ),
        ],
    );
    let limit = requiring(&["type"], limit);
    let most = i64::try_from(TYPES.len()).ok();
    JSONSchemaProps { max_items: most, ..atomic_list(limit, "Limits, each of another type.") }
}
