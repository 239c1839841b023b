//! `transferEnv` and the sharing of mounts, as they are written in a set.

use serde_json::{Value, json};

use super::{assert_container_errors, cluster, errors, judged, set, with_container};
use crate::testing::compile;

fn entry(entry: &Value) -> Value {
    json!({"transferEnv": [entry]})
}

fn from(field: &Value) -> Value {
    entry(&json!({"envName": "A", "sourceContainerNameFrom": field}))
}

fn field(path: &str) -> Value {
    from(&json!({"fieldRef": {"fieldPath": path}}))
}

#[test]
fn cases_38_and_82_entries_that_name_no_container_or_no_variable_are_refused() {
    const ALLOWED: &str = r#"supported values: "metadata.labels['<key>']", "metadata.annotations['<key>']""#;
    let unsupported = |path: &str| {
        format!("transferEnv[0].sourceContainerNameFrom.fieldRef.fieldPath: Unsupported value: {path:?}: {ALLOWED}")
    };
    let (name, labels, annotations) =
        (unsupported("metadata.name"), unsupported("metadata.labels"), unsupported("metadata.annotations"));
    assert_container_errors(&[
        (entry(&json!({"sourceContainerName": "main", "envName": "A"})), &[]),
        (entry(&json!({"sourceContainerName": "main", "envNames": ["A", "B"]})), &[]),
        (field("metadata.labels['biz']"), &[]),
        (field("metadata.annotations['example.com/biz']"), &[]),
        (field("metadata.name"), &[&name]),
        (field("metadata.labels"), &[&labels]),
        (field("metadata.annotations"), &[&annotations]),
        (
            from(&json!({"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.labels['a']"}})),
            &["transferEnv[0].sourceContainerNameFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['a']\": \
               error converting fieldPath: unsupported pod version: v2"],
        ),
        (from(&json!({})), &["transferEnv[0].sourceContainerNameFrom.fieldRef: Required value"]),
        (
            from(&json!({"fieldRef": {}})),
            &["transferEnv[0].sourceContainerNameFrom.fieldRef.fieldPath: Required value"],
        ),
        (
            entry(&json!({})),
            &[
                "transferEnv[0].sourceContainerName: Required value",
                "transferEnv[0].envName: Required value: envName or envNames is required",
            ],
        ),
        (
            entry(&json!({"sourceContainerName": "main", "envNames": [""]})),
            &["transferEnv[0].envNames[0]: Invalid value: \"\": must not be empty"],
        ),
        (
            entry(&json!({"sourceContainerName": "main", "envName": "A=B"})),
            &[
                "transferEnv[0].envName: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
            ],
        ),
        (json!({"shareVolumePolicy": {"type": "enabled"}, "shareVolumeDevicePolicy": {"type": "enabled"}}), &[]),
        (json!({"shareServiceAccountToken": true}), &[]),
        (
            json!({"shareServiceAccountToken": "yes"}),
            &[r#"shareServiceAccountToken: Invalid value: "yes": must be true or false"#],
        ),
    ]);
    let init =
        |entry: Value| set(&json!({"initContainers": [{"name": "init", "image": "i:1", "transferEnv": [entry]}]}));
    assert_eq!(
        errors(&init(json!({"envName": "A"}))),
        "spec.initContainers[0].transferEnv[0].sourceContainerName: Required value"
    );
}

#[test]
fn a_name_beside_a_field_has_no_effect_and_a_warning_says_so() {
    let mut both = field("metadata.labels['biz']");
    both["transferEnv"][0]["sourceContainerName"] = json!("main");
    let expected =
        "spec.containers[0].transferEnv[0].sourceContainerName: has no effect beside sourceContainerNameFrom";
    assert_eq!(judged(&with_container(&both), &cluster(&[])), (String::new(), vec![expected.to_owned()]));
}

#[test]
fn a_must_that_shares_mounts_can_be_evaded_and_a_warning_says_so() {
    let mut object = with_container(&json!({"shareVolumePolicy": {"type": "enabled"}}));
    assert_eq!(judged(&object, &cluster(&[])).1, [""; 0]);
    object["spec"]["optOut"] = json!("Denied");
    let expected = "spec.containers[0].shareVolumePolicy: the author of a pod decides what the container mounts, also \
     over its own programs; no pod may opt out of the set, and this lets one evade it";
    assert_eq!(judged(&object, &cluster(&[])), (String::new(), vec![expected.to_owned()]));
}

#[test]
fn what_a_container_takes_from_pods_is_in_the_hash_and_its_defaults_are_not() {
    let hash = |more: &Value| compile(&with_container(more)).hash;
    let plain = hash(&json!({}));
    for taking in [
        entry(&json!({"sourceContainerName": "main", "envName": "A"})),
        json!({"shareVolumePolicy": {"type": "enabled"}}),
        json!({"shareVolumeDevicePolicy": {"type": "enabled"}}),
        json!({"shareServiceAccountToken": true}),
    ] {
        assert_ne!(hash(&taking), plain, "{taking}");
    }
    let versioned = from(&json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['a']"}}));
    assert_eq!(hash(&versioned), hash(&field("metadata.labels['a']")));
    assert_eq!(hash(&json!({"shareServiceAccountToken": false, "transferEnv": []})), plain);
}
