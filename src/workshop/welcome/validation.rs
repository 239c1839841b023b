//! Validation of a `Welcome`: its name. The schema checks everything else.

use admission::Operation;
use admission::format::names::dns1035_label;
use admission::registry::Rule;

use super::api::WelcomeSpec;
use crate::workshop::name_check::NameCheck;
use crate::workshop::object::rule;

/// New objects only: a name never changes.
pub const fn validating_rule() -> Rule {
    rule::<WelcomeSpec>(&[Operation::Create])
}

/// The Service has the name of the Welcome.
pub const NAME_CHECK: NameCheck =
    NameCheck { faults: dns1035_label, because: "the Service has the name of the Welcome" };

#[cfg(test)]
mod tests {
    use admission::Registry;
    use engine::snapshot::Snapshot;
    use serde_json::{Value, json};

    use super::*;

    fn answer(name: &str) -> Value {
        let registry = Registry::default().validating(validating_rule(), NAME_CHECK);
        let entry = registry.find("/validate-webapp-outrider-dev-v1-welcome").unwrap();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "CREATE", "name": name,
            "kind": {"group": "webapp.outrider.dev", "version": "v1", "kind": "Welcome"},
            "object": {"metadata": {"name": name}},
        }});
        let answer = entry.endpoint.answer(review.to_string().as_bytes(), &Snapshot::default()).unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take()
    }

    #[test]
    fn a_name_that_no_service_can_have_is_refused() {
        for name in ["w1", "a-b", &"a".repeat(63)] {
            assert_eq!(answer(name)["allowed"], true, "{name}");
        }
        for name in ["1w", "a.b", &"a".repeat(64)] {
            let response = answer(name);
            assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(422)), "{name}");
            assert_eq!(response["status"]["details"]["causes"][0]["field"], "metadata.name", "{name}");
        }
        let message = answer(&"a".repeat(64))["status"]["message"].as_str().unwrap().to_owned();
        assert_eq!(
            message,
            format!(
                "Welcome.webapp.outrider.dev \"{0}\" is invalid: metadata.name: Invalid value: \"{0}\": the Service has the \
                 name of the Welcome: must be no more than 63 characters",
                "a".repeat(64)
            )
        );
    }
}
