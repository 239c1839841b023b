//! What no Welcome may be.

use admission::field::{Error, Path};
use admission::format::names::dns1035_label;
use admission::registry::Rule;
use admission::{Findings, Operation, Request, Validating};
use serde::Deserialize;

use super::api::WelcomeSpec;
use crate::workshop::object::rule;
use engine::snapshot::Snapshot;

/// Only new objects are looked at: a name never changes, and the schema says all else.
pub const fn validating_rule() -> Rule {
    rule::<WelcomeSpec>(&[Operation::Create], concat!("welcome.webapp.", api_domain!()))
}

/// Refuses a name that the Service could not have.
#[derive(Debug, Clone, Copy, Default)]
pub struct WelcomeValidation;

/// What is read of a Welcome.
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

impl Validating<Snapshot> for WelcomeValidation {
    type Object<'a> = Named;

    fn create(&self, welcome: &Named, _: &Request<'_, Named>, _: &Snapshot, findings: &mut Findings) {
        let name = &welcome.metadata.name;
        let path = Path::new("metadata").child("name");
        for fault in dns1035_label(name) {
            let why = format!("the Service has the name of the Welcome: {fault}");
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
        let registry = Registry::default().validating(validating_rule(), WelcomeValidation);
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
