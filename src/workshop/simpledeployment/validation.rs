//! What no `SimpleDeployment` may be.

use admission::field::{Error, Path};
use admission::format::names::label_value;
use admission::registry::Rule;
use admission::{Findings, Operation, Request, Validating};
use serde::Deserialize;

use super::api::SimpleDeploymentSpec;
use crate::workshop::object::rule;
use engine::snapshot::Snapshot;

/// Only new objects are looked at: a name never changes, and the schema says all else.
pub const fn validating_rule() -> Rule {
    rule::<SimpleDeploymentSpec>(&[Operation::Create], concat!("simpledeployment.apps.", api_domain!()))
}

/// Refuses a name that the label of the pods could not hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimpleDeploymentValidation;

/// What is read of a `SimpleDeployment`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Named {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

impl Validating<Snapshot> for SimpleDeploymentValidation {
    type Object<'a> = Named;

    fn create(&self, object: &Named, _: &Request<'_, Named>, _: &Snapshot, findings: &mut Findings) {
        let name = &object.metadata.name;
        let path = Path::new("metadata").child("name");
        for fault in label_value(name) {
            let why = format!("the pods have the name of the SimpleDeployment as a label: {fault}");
            findings.errors.push(Error::invalid(&path, name, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use admission::Registry;
    use serde_json::{Value, json};

    use super::*;

    fn answer(name: &str) -> Value {
        let registry = Registry::default().validating(validating_rule(), SimpleDeploymentValidation);
        let entry = registry.find("/validate-apps-outrider-dev-v1-simpledeployment").unwrap();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "CREATE", "name": name,
            "kind": {"group": "apps.outrider.dev", "version": "v1", "kind": "SimpleDeployment"},
            "object": {"metadata": {"name": name}},
        }});
        let answer = entry.endpoint.answer(review.to_string().as_bytes(), &Snapshot::default()).unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take()
    }

    #[test]
    fn a_name_that_no_label_can_hold_is_refused() {
        for name in ["s1", "1s", "a-b.c", &"a".repeat(63)] {
            assert_eq!(answer(name)["allowed"], true, "{name}");
        }
        let long = "a".repeat(64);
        let response = answer(&long);
        assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(422)));
        assert_eq!(
            response["status"]["message"],
            format!(
                "SimpleDeployment.apps.outrider.dev \"{long}\" is invalid: metadata.name: Invalid value: \"{long}\": the pods \
                 have the name of the SimpleDeployment as a label: must be no more than 63 bytes"
            )
        );
    }
}
