//! The list of annotations that sets may give to pods, in the `ConfigMap` of each side.

use admission::field::Path;
use serde_json::{Value, json};

use super::{Converted, Findings};
use crate::snapshot::configuration::{ALLOW_LIST_KEY, CONFIG_MAP};

const OF_OPENKRUISE: &str = "kruise-configuration";
const NAMESPACE: &str = "kruise-system";

/// The path of OpenKruise's `ConfigMap` in a cluster.
pub fn configuration_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{OF_OPENKRUISE}")
}

/// Whether an object is the `ConfigMap` with OpenKruise's configuration.
pub fn is_configuration(object: &Value) -> bool {
    let is = |pointer: &str, expected: &str| object.pointer(pointer).is_some_and(|found| found == expected);
    is("/apiVersion", "v1") && is("/kind", "ConfigMap") && is("/metadata/name", OF_OPENKRUISE)
}

/// Our `ConfigMap` in `namespace` for OpenKruise's; `None` where that has no list of annotations. The list has one format and one key
/// on both sides.
pub fn configuration(object: &Value, namespace: &str) -> Option<Converted> {
    let data = object.get("data").and_then(Value::as_object)?;
    let list = data.get(ALLOW_LIST_KEY)?;
    let mut findings = Findings::default();
    for key in data.keys().filter(|key| *key != ALLOW_LIST_KEY) {
        findings.note(&Path::new("data").key(key.as_str()), "left out: it does not concern SidecarSets");
    }
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": namespace},
        "data": {ALLOW_LIST_KEY: list},
    });
    Some(Converted { object, remarks: findings.remarks })
}
