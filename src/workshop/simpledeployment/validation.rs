//! Validation of a `SimpleDeployment`: its name. The schema checks everything else.

use admission::Operation;
use admission::format::names::label_value;
use admission::registry::Rule;

use super::api::SimpleDeploymentSpec;
use crate::workshop::name_check::NameCheck;
use crate::workshop::object::rule;

/// New objects only: a name never changes.
pub const fn validating_rule() -> Rule {
    rule::<SimpleDeploymentSpec>(&[Operation::Create])
}

/// A label of the pods has the name of the `SimpleDeployment` as its value.
pub const NAME_CHECK: NameCheck =
    NameCheck { faults: label_value, because: "the pods have the name of the SimpleDeployment as a label" };

#[cfg(test)]
mod tests {
    use admission::Registry;
    use engine::snapshot::Snapshot;
    use serde_json::{Value, json};

    use super::*;

    fn answer(name: &str) -> Value {
        let registry = Registry::default().validating(validating_rule(), NAME_CHECK);
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
