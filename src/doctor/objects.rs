//! Objects of Outrider's kinds that do not do what they say, and annotations of namespaces that admission plugins cannot read.

use crate::doctor::facts::{ExaminedObject, Facts, UnreadableAnnotation};
use crate::doctor::report::{Check, Finding, Severity};
use crate::kind::Diagnosis;
use crate::kinds;

/// What is wrong with objects, by their conditions, and with the annotations that plugins read.
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let objects = kinds::product().filter_map(|kind| Some((kind.name, kind.diagnosis?, facts.objects.get(kind.name)?)));
    let examined =
        objects.flat_map(|(kind, diagnosis, all)| all.iter().flat_map(move |it| of_object(kind, diagnosis, it)));
    examined.chain(facts.unreadable_annotations.iter().map(unreadable)).collect()
}

/// What the leader wrote into the status: of a generation that it has not seen it says nothing.
fn of_object(kind: &str, diagnosis: Diagnosis, object: &ExaminedObject) -> Vec<Finding> {
    let ExaminedObject { metadata, status, .. } = object;
    let finding = |(found, remedy): (String, &str)| Finding {
        severity: Severity::Warning,
        check: Check::AdmissionPlugin,
        object: format!("{kind}/{}", metadata.name.as_deref().unwrap_or_default()),
        webhook: None,
        found,
        remedy: remedy.to_owned(),
    };
    let Some(status) = status.as_ref().filter(|status| status.observed_generation == metadata.generation) else {
        let found = "its status is not of its last change: no leader has seen it".to_owned();
        return vec![finding((found, "read the log of the replica that holds the lease"))];
    };
    status.conditions.iter().flatten().filter_map(diagnosis).map(finding).collect()
}

fn unreadable(annotation: &UnreadableAnnotation) -> Finding {
    let UnreadableAnnotation { namespace, key, why } = annotation;
    Finding {
        severity: Severity::Warning,
        check: Check::UnreadableAnnotation,
        object: format!("namespace/{namespace}"),
        webhook: None,
        found: format!("admission plugins cannot read its annotation {key}, and refuse its pods: {why}"),
        remedy: format!("kubectl annotate --overwrite namespace {namespace} {key}=…"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn facts(kind: &str, generation: i64, conditions: &[Value]) -> Facts {
        let status = json!({"observedGeneration": 2, "conditions": conditions});
        let object = json!({"metadata": {"name": "a", "generation": generation}, "status": status});
        serde_json::from_value(json!({"objects": {kind: [object]}})).unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "because"})
    }

    #[test]
    fn plugins_that_cannot_be_used_are_not_called_or_contradict_each_other_are_found() {
        for (condition, expected) in [
            (condition("Accepted", "True", "Accepted"), None),
            (condition("Programmed", "True", "Programmed"), None),
            (condition("Accepted", "False", "Invalid"), Some("it cannot be used: because")),
            (condition("Programmed", "False", "Off"), None),
            (condition("Programmed", "False", "Pending"), Some("the API server does not call for it: because")),
            (condition("Programmed", "False", "NoBackend"), Some("images are not reviewed: because")),
            (condition("Conflict", "True", "Contradicted"), Some("another object contradicts it: because")),
        ] {
            let found = examine(&facts("admissionplugin", 2, &[condition]));
            let found: Vec<&str> = found.iter().map(|finding| finding.found.as_str()).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
        assert!(examine(&facts("admissionplugin", 3, &[]))[0].found.contains("no leader has seen it"));
    }

    #[test]
    fn objects_of_every_kind_without_which_a_cluster_may_be_are_examined() {
        let kinds: Vec<&str> = kinds::product().filter(|kind| kind.is_optional).map(|kind| kind.name).collect();
        assert_eq!(kinds, ["admissionplugin", "clusterlimitrange", "podsecurityprofile"]);
        for kind in kinds {
            let found = examine(&facts(kind, 2, &[condition("Programmed", "False", "Pending")])).remove(0);
            assert_eq!(found.object, format!("{kind}/a"));
            assert_eq!(found.found, "the API server does not call for it: because");
        }
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_found_with_its_namespace() {
        let annotation = UnreadableAnnotation {
            namespace: "shop".to_owned(),
            key: "k".to_owned(),
            why: "expected key=value".to_owned(),
        };
        let found = examine(&Facts { unreadable_annotations: vec![annotation], ..Facts::default() }).remove(0);
        assert_eq!((found.object.as_str(), found.check), ("namespace/shop", Check::UnreadableAnnotation));
        assert!(found.found.contains("expected key=value"));
    }
}
