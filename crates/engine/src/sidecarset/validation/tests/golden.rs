//! Replies as they leave the endpoint, and so as users see them.

use admission::Registry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{cluster, set};
use crate::sidecarset::defaults::SidecarSetDefaults;
use crate::sidecarset::validation::SidecarSetValidation;
use crate::sidecarset::{mutating_rule, validating_rule};
use crate::snapshot::Snapshot;

fn response(path: &str, object: &Value) -> Value {
    let registry = Registry::<Snapshot>::default()
        .defaulting(mutating_rule(), SidecarSetDefaults)
        .validating(validating_rule(), SidecarSetValidation);
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "name": object["metadata"]["name"], "object": object,
        "kind": {"group": "apps.outrider.dev", "version": "v1alpha1", "kind": "SidecarSet"},
    }});
    let body = serde_json::to_vec(&review).unwrap();
    let answer = registry.find(path).unwrap().endpoint.answer(&body, &cluster(&[])).unwrap();
    serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take()
}

#[test]
fn every_fault_of_a_set_is_told_at_once_with_code_422() {
    let object = json!({"metadata": {"name": "a.b"}, "spec": {
        "initContainers": [{"name": "init", "imagePullPolicy": "Always", "podInjectPolicy": "AfterAppContainer"}],
        "comtainers": [], "clashPolicy": "Ask",
    }});
    let response = response("/validate-apps-outrider-dev-v1alpha1-sidecarset", &object);
    assert_eq!(
        response,
        json!({
            "uid": "u",
            "allowed": false,
            "status": {
                "status": "Failure",
                "code": 422,
                "reason": "Invalid",
                "message": "SidecarSet.apps.outrider.dev \"a.b\" is invalid: [metadata.name: Invalid value: \"a.b\": a SidecarSet's \
                    name must consist of lower case alphanumeric characters or '-', start and end with an alphanumeric character, \
                    and be no more than 63 characters (e.g. 'log-agent'), spec.clashPolicy: Unsupported value: \"Ask\": supported \
                    values: \"Refuse\", \"Skip\", spec.selector: Required value: no selector defined for sidecarset, \
                    spec.initContainers[0].image: Required value]",
                "details": {
                    "name": "a.b",
                    "group": "apps.outrider.dev",
                    "kind": "SidecarSet",
                    "causes": [
                        {
                            "reason": "FieldValueInvalid",
                            "message": "Invalid value: \"a.b\": a SidecarSet's name must consist of lower case alphanumeric characters or \
                                '-', start and end with an alphanumeric character, and be no more than 63 characters (e.g. 'log-agent')",
                            "field": "metadata.name",
                        },
                        {
                            "reason": "FieldValueNotSupported",
                            "message": "Unsupported value: \"Ask\": supported values: \"Refuse\", \"Skip\"",
                            "field": "spec.clashPolicy",
                        },
                        {
                            "reason": "FieldValueRequired",
                            "message": "Required value: no selector defined for sidecarset",
                            "field": "spec.selector",
                        },
                        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.initContainers[0].image"},
                    ],
                },
            },
            "warnings": [
                "unknown field \"spec.comtainers\" (did you mean \"containers\"?); an API server drops it"
            ],
        })
    );
}

#[test]
fn defaults_arrive_as_a_patch_that_keeps_unknown_fields() {
    let object = set(&json!({"containers": [{"name": "log", "image": "log:1", "comand": ["x"]}]}));
    let response = response("/mutate-apps-outrider-dev-v1alpha1-sidecarset", &object);
    assert_eq!(response["allowed"], true);
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let operations: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut result = object.clone();
    json_patch::patch(&mut result, &operations).unwrap();
    assert_eq!(result["spec"]["containers"][0]["comand"], json!(["x"]));
    assert_eq!(result["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(result["spec"]["updateStrategy"], json!({"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1}));
}
