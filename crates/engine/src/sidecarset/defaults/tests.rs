#![allow(clippy::unwrap_used)]

use admission::patch::PatchBuilder;
use admission::{Defaulting, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{SidecarSetDefaults, fill};
use crate::sidecarset::test_objects::arbitrary_set;
use crate::snapshot::Snapshot;

fn filled(object: &Value) -> Value {
    let mut patch = PatchBuilder::new(object);
    fill(&mut patch).unwrap();
    let expected = patch.document().clone();
    let mut result = object.clone();
    let writer = patch.finish();
    if !writer.is_empty() {
        let operations: json_patch::Patch = serde_json::from_slice(writer.document()).unwrap();
        json_patch::patch(&mut result, &operations).unwrap();
    }
    assert_eq!(result, expected, "the patch makes another object than the builder says");
    result
}

/// The container as filled, in a set that has nothing else.
fn container(container: &Value) -> Value {
    filled(&json!({"spec": {"containers": [container]}}))["spec"]["containers"][0].take()
}

fn volume(volume: &Value) -> Value {
    filled(&json!({"spec": {"volumes": [volume]}}))["spec"]["volumes"][0].take()
}

#[test]
fn minimal_set_gets_every_default_of_its_own() {
    let set = filled(&json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "initContainers": [{"name": "init", "image": "init"}],
        "containers": [{"name": "dns", "image": "dns:1.0"}],
        "volumes": [{"name": "cache"}],
        "injectionStrategy": {"revision": {"revisionName": "a-1"}},
        "patchPodMetadata": [{"annotations": {"a": "b"}}],
    }}));
    let common = json!({
        "upgradeStrategy": {"upgradeType": "ColdUpgrade"}, "shareVolumePolicy": {"type": "disabled"},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    });
    let with_common = |mut own: Value| {
        own.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
        own
    };
    assert_eq!(
        set["spec"],
        json!({
            "selector": {"matchLabels": {"app": "web"}},
            "initContainers": [with_common(json!({
                "name": "init", "image": "init", "podInjectPolicy": "AfterAppContainer", "imagePullPolicy": "Always",
            }))],
            "containers": [with_common(json!({
                "name": "dns", "image": "dns:1.0", "podInjectPolicy": "BeforeAppContainer", "imagePullPolicy": "IfNotPresent",
            }))],
            "volumes": [{"name": "cache", "emptyDir": {}}],
            "injectionStrategy": {"revision": {"revisionName": "a-1", "policy": "Always"}},
            "patchPodMetadata": [{"annotations": {"a": "b"}, "patchPolicy": "Retain"}],
            "updateStrategy": {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1},
            "revisionHistoryLimit": 10, "order": 0, "clashPolicy": "Refuse", "optOut": "Allowed", "jobPods": "NativeSidecar", "platform": "linux", "podSecurity": "AsWritten",
        })
    );
}

#[test]
fn running_pods_follow_a_set_that_does_not_say_otherwise() {
    let native = json!([{"name": "a", "restartPolicy": "Always"}]);
    let cases = [
        (json!({"initContainers": native}), "RollingUpdate"),
        (json!({"initContainers": native, "updateStrategy": {"partition": 1}}), "RollingUpdate"),
        (json!({"initContainers": native, "updateStrategy": {"type": "NotUpdate"}}), "NotUpdate"),
        (json!({"initContainers": [{"name": "a"}]}), "RollingUpdate"),
        (json!({"containers": native}), "RollingUpdate"),
    ];
    for (spec, expected) in cases {
        assert_eq!(filled(&json!({"spec": spec}))["spec"]["updateStrategy"]["type"], expected, "{spec}");
    }
}

#[test]
fn containers_get_what_the_api_server_fills_into_a_pod() {
    let probe = json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
    let with = |own: Value| {
        let mut whole = probe.clone();
        whole.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        whole
    };
    let http = json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}});
    let cases = [
        ("imagePullPolicy", json!(""), json!("Always")),
        ("imagePullPolicy", json!("Never"), json!("Never")),
        ("terminationMessagePath", json!("/x"), json!("/x")),
        (
            "ports",
            json!([{"containerPort": 1}, {"protocol": "UDP"}]),
            json!([{"containerPort": 1, "protocol": "TCP"}, {"protocol": "UDP"}]),
        ),
        (
            "env",
            json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}, {"name": "B", "value": "b"}, {"valueFrom": {"fileKeyRef": {"key": "k"}}}]),
            json!([
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x", "apiVersion": "v1"}}},
                {"name": "B", "value": "b"},
                {"valueFrom": {"fileKeyRef": {"key": "k", "optional": false}}},
            ]),
        ),
        (
            "resources",
            json!({"limits": {"cpu": "0.1234", "memory": "1.5Gi", "example.com/gpu": 1}, "requests": {"cpu": 0.000_1}}),
            json!({"limits": {"cpu": "124m", "memory": "1.5Gi", "example.com/gpu": 1}, "requests": {"cpu": "1m"}}),
        ),
        ("livenessProbe", json!({"httpGet": {"port": 80}}), with(http.clone())),
        (
            "readinessProbe",
            json!({"tcpSocket": {"port": 80}, "periodSeconds": 5}),
            with(json!({"tcpSocket": {"port": 80}, "periodSeconds": 5})),
        ),
        ("startupProbe", json!({"httpGet": {"port": 80}, "timeoutSeconds": 0}), with(http.clone())),
        ("startupProbe", json!({"grpc": {"port": 9}}), with(json!({"grpc": {"port": 9, "service": ""}}))),
        (
            "lifecycle",
            json!({"postStart": {"httpGet": {"port": 80}}, "preStop": {"exec": {}}}),
            json!({"postStart": http, "preStop": {"exec": {}}}),
        ),
        ("shareVolumeDevicePolicy", json!({}), json!({"type": "disabled"})),
        (
            "transferEnv",
            json!([{"sourceContainerNameFrom": {}}, {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "x"}}}]),
            json!([{"sourceContainerNameFrom": {}}, {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "x", "apiVersion": "v1"}}}]),
        ),
    ];
    for (field, written, expected) in cases {
        assert_eq!(
            container(&json!({"name": "a", "image": "a", field: written}))[field],
            expected,
            "{field}: {written}"
        );
    }
}

#[test]
fn absent_probes_hooks_and_resources_stay_absent() {
    let container = container(&json!({"name": "a", "image": "a:1", "livenessProbe": null}));
    for field in ["readinessProbe", "startupProbe", "lifecycle", "resources", "ports", "env", "shareVolumeDevicePolicy"]
    {
        assert!(container.get(field).is_none(), "{field}");
    }
    assert_eq!(container["livenessProbe"], Value::Null);
}

#[test]
fn volumes_get_what_the_api_server_fills_into_a_pod() {
    let cases = [
        (json!({}), json!({"emptyDir": {}})),
        (json!({"emptyDir": null}), json!({"emptyDir": {}})),
        (json!({"hostPath": {"path": "/a"}}), json!({"hostPath": {"path": "/a", "type": ""}})),
        (json!({"secret": {}}), json!({"secret": {"defaultMode": 420}})),
        (json!({"configMap": {"defaultMode": 256}}), json!({"configMap": {"defaultMode": 256}})),
        (json!({"configMap": {"defaultMode": 0}}), json!({"configMap": {"defaultMode": 0}})),
        (
            json!({"downwardAPI": {"items": [{"fieldRef": {}}, {}]}}),
            json!({"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1"}}, {}], "defaultMode": 420}}),
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {}}, {"downwardAPI": {"items": [{"fieldRef": {}}]}}]}}),
            json!({"projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3600}}, {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1"}}]}},
            ]}}),
        ),
        (json!({"iscsi": {}}), json!({"iscsi": {"iscsiInterface": "default"}})),
        (json!({"rbd": {"pool": "p"}}), json!({"rbd": {"pool": "p", "user": "admin", "keyring": "/etc/ceph/keyring"}})),
        (
            json!({"azureDisk": {}}),
            json!({"azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": false}}),
        ),
        (json!({"scaleIO": {}}), json!({"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}})),
        (json!({"image": {"reference": "a:1"}}), json!({"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}})),
        (
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1.0001"}}}}}}),
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1001m"}}, "volumeMode": "Filesystem"}}}}),
        ),
        (json!({"nfs": {"server": "s"}}), json!({"nfs": {"server": "s"}})),
        (json!({"sourceOfTomorrow": {}}), json!({"sourceOfTomorrow": {}})),
    ];
    for (written, expected) in cases {
        assert_eq!(volume(&written), expected, "{written}");
    }
}

#[test]
fn object_that_is_being_deleted_is_left_alone() {
    let filled = |operation: &str, time: Value| {
        let object = json!({"metadata": {"deletionTimestamp": time}, "spec": {"containers": [{"name": "a"}]}});
        let request = json!({"uid": "u", "operation": operation}).to_string();
        let request: Request<'_, Value> = serde_json::from_str(&request).unwrap();
        let mut patch = PatchBuilder::new(&object);
        SidecarSetDefaults.default(&request, &mut patch, &Snapshot::default()).unwrap();
        !patch.finish().is_empty()
    };
    assert!(!filled("UPDATE", json!("2026-01-01T00:00:00Z")));
    assert!(filled("UPDATE", json!(null)));
    // Nothing that is being created is being deleted.
    assert!(filled("CREATE", json!("2026-01-01T00:00:00Z")));
}

#[test]
fn wrong_shapes_are_left_for_validation_to_name() {
    for object in [json!(null), json!([]), json!("x"), json!({"spec": "x"}), json!({"spec": []})] {
        assert_eq!(filled(&object), object);
    }
    let set = filled(
        &json!({"spec": {"updateStrategy": "x", "containers": [1, {"upgradeStrategy": "x", "livenessProbe": [], "resources": {"limits": {"cpu": "?"}}}], "volumes": {}}}),
    );
    assert_eq!(set["spec"]["updateStrategy"], "x");
    assert_eq!(set["spec"]["containers"][0], 1);
    assert_eq!(set["spec"]["containers"][1]["upgradeStrategy"], "x");
    assert_eq!(set["spec"]["containers"][1]["resources"]["limits"]["cpu"], "?");
    assert_eq!(set["spec"]["containers"][1]["imagePullPolicy"], "IfNotPresent");
}

/// Whether everything that `before` holds is in `after`, empty values and amounts aside.
fn keeps(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| after.get(key).is_some_and(|there| keeps(value, there)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| keeps(before, after))
        }
        (Value::Null, _) => true,
        (Value::String(text), _) if text.is_empty() || text.ends_with('u') => true,
        (Value::Number(number), _) if number.as_f64().is_some_and(|n| n == 0.0 || n.fract() != 0.0) => true,
        _ => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn defaulting_twice_changes_nothing_more_and_loses_nothing(object in arbitrary_set()) {
        let once = filled(&object);
        prop_assert!(keeps(&object, &once), "{object} became {once}");
        prop_assert_eq!(filled(&once), once);
    }
}

#[test]
fn the_platform_of_a_set_is_linux_but_for_one_with_options_for_windows() {
    let platform = |spec: Value| filled(&json!({"spec": spec}))["spec"]["platform"].clone();
    let windows = json!([{"name": "a", "securityContext": {"windowsOptions": {}}}]);
    assert_eq!(platform(json!({"containers": [{"name": "a"}]})), "linux");
    assert_eq!(platform(json!({"containers": windows})), "windows");
    assert_eq!(platform(json!({"initContainers": windows})), "windows");
    assert_eq!(platform(json!({"initContainers": windows, "platform": "linux"})), "linux");
    assert_eq!(platform(json!({"platform": "windows"})), "windows");
}
