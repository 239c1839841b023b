//! Older revisions that new pods are to get.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{cluster, judged, named_set};
use crate::sidecarset::compiled::CompiledSet;
use crate::snapshot::Snapshot;
use crate::snapshot::revisions::{Revision, RevisionIndex};

fn with_revisions(live: bool) -> Snapshot {
    let revision = |name: &str, set: &str, uid: &str, version: Option<&str>, content: Option<&str>| {
        Arc::new(Revision {
            name: name.into(),
            set: set.into(),
            set_uid: uid.into(),
            custom_version: version.map(Into::into),
            number: 1,
            content: content.map(Into::into),
        })
    };
    let revisions = [
        revision("a-1", "a", "uid-a", Some("blue"), Some("{}")),
        revision("a-2", "a", "uid-a", None, None),
        revision("b-1", "b", "uid-b", Some("green"), Some("{}")),
        revision("a-0", "a", "uid-of-an-a-that-is-gone", Some("red"), Some("{}")),
    ];
    Snapshot { revisions: Arc::new(RevisionIndex::build(revisions)), namespaces_may_appear: live, ..cluster(&[]) }
}

fn errors(revision: &Value, live: bool) -> String {
    let mut object = named_set("a", &json!({"injectionStrategy": {"revision": revision}}));
    object["metadata"]["uid"] = json!("uid-a");
    judged(&object, &with_revisions(live)).0
}

#[test]
fn case_72_a_revision_that_does_not_exist_is_refused_and_one_of_the_set_is_not() {
    for named in [
        json!({"revisionName": "a-1"}),
        json!({"customVersion": "blue"}),
        json!({"revisionName": "a-1", "policy": "Partial"}),
        // The name counts.
        json!({"revisionName": "a-1", "customVersion": "missing"}),
    ] {
        assert_eq!(errors(&named, true), "", "{named}");
    }
    assert_eq!(
        errors(&json!({"revisionName": "a-9"}), true),
        "spec.injectionStrategy.revision.revisionName: Invalid value: \"a-9\": no ControllerRevision \"a-9\" belongs to the set; name one that \
         is kept, or remove spec.injectionStrategy.revision to inject the current form"
    );
    assert_eq!(
        errors(&json!({"customVersion": "v9"}), false),
        "spec.injectionStrategy.revision.customVersion: Invalid value: \"v9\": no ControllerRevision of the set has the custom version \
         \"v9\"; add it to the manifests, or remove spec.injectionStrategy.revision to inject the current form"
    );
    for unnamed in [json!({}), json!({"policy": "Partial"}), json!({"revisionName": "", "customVersion": null})] {
        assert_eq!(
            errors(&unnamed, true),
            "spec.injectionStrategy.revision: Required value: name a revision by revisionName or customVersion, or remove revision to inject \
             the current form"
        );
    }
    assert_eq!(errors(&Value::Null, true), "");
    assert!(errors(&json!({"revisionName": "a-2"}), true).contains("is not held"));
}

#[test]
fn case_61_a_revision_of_another_set_is_refused_by_name_and_by_version() {
    for named in [
        json!({"revisionName": "b-1"}),
        json!({"customVersion": "green"}),
        json!({"revisionName": "a-0"}),
        json!({"customVersion": "red"}),
    ] {
        assert!(errors(&named, true).contains("no ControllerRevision"), "{named}");
    }
}

#[test]
fn a_rollout_that_takes_new_pods_off_the_revision_is_warned_of() {
    for (policy, update, warns) in [
        ("Always", json!({}), true),
        ("Always", json!({"partition": "50%"}), true),
        ("Always", json!({"paused": true}), false),
        ("Always", json!({"type": "NotUpdate"}), false),
        ("Partial", json!({"partition": "50%"}), false),
    ] {
        let strategy = json!({"revision": {"revisionName": "a-1", "policy": policy}});
        let mut object = named_set("a", &json!({"injectionStrategy": strategy, "updateStrategy": update}));
        object["metadata"]["uid"] = json!("uid-a");
        let (errors, warnings) = judged(&object, &with_revisions(true));
        assert_eq!((errors.as_str(), warnings.len()), ("", usize::from(warns)), "{policy} {update}: {warnings:?}");
    }
}

const LABEL: &str = "apps.kruise.io/sidecarset-custom-version";

fn versions(field: &Value, metadata: &Value) -> (Option<String>, String, Vec<String>) {
    let mut object = named_set("a", &json!({"customVersion": field}));
    json_patch::merge(&mut object["metadata"], metadata);
    let (errors, warnings) = judged(&object, &cluster(&[]));
    let compiled = CompiledSet::compile(&serde_json::from_value(object).unwrap()).unwrap();
    (compiled.custom_version.map(Into::into), errors, warnings)
}

#[test]
fn openkruises_label_or_annotation_is_the_custom_version_where_the_field_is_absent() {
    let ours = "apps.outrider.dev/sidecarset-custom-version";
    for (field, metadata, counts, warning) in [
        (Value::Null, json!({"labels": {LABEL: "v1"}}), "v1", None),
        (json!(""), json!({"annotations": {LABEL: "v1"}}), "v1", None),
        (Value::Null, json!({"annotations": {ours: "v1"}}), "v1", None),
        (json!("v1"), json!({"labels": {LABEL: "v1"}}), "v1", None),
        (
            json!("v2"),
            json!({"labels": {LABEL: "v1"}}),
            "v2",
            Some(
                "metadata.labels[apps.kruise.io/sidecarset-custom-version]: \"v1\" does not count, as spec.customVersion is \"v2\"; remove one of them",
            ),
        ),
        (
            Value::Null,
            json!({"labels": {LABEL: "v1"}, "annotations": {ours: "v2"}}),
            "v1",
            Some(
                "metadata.annotations[apps.outrider.dev/sidecarset-custom-version]: \"v2\" does not count, as metadata.labels[apps.kruise.io/sidecarset-custom-version] is \"v1\"; remove one of them",
            ),
        ),
    ] {
        let warnings: Vec<String> = warning.into_iter().map(str::to_owned).collect();
        assert_eq!(
            versions(&field, &metadata),
            (Some(counts.to_owned()), String::new(), warnings),
            "{field} {metadata}"
        );
    }
    let (_, errors, _) = versions(&Value::Null, &json!({"annotations": {LABEL: "a b"}}));
    assert!(
        errors.starts_with("metadata.annotations[apps.kruise.io/sidecarset-custom-version]: Invalid value: \"a b\""),
        "{errors}"
    );
}
