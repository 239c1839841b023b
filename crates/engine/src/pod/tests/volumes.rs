//! Volumes: which are added, which are taken for the same.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn mounting(volumes: Value, mounts: &[&str]) -> Value {
    let mounts: Value = mounts.iter().map(|name| json!({"name": name, "mountPath": format!("/{name}")})).collect();
    set("s", json!({"containers": [{"name": "log", "image": "l:1", "volumeMounts": mounts}], "volumes": volumes}))
}

#[test]
fn cases_21_and_24_only_volumes_in_use_are_added_in_order_of_use() {
    let volumes: Value =
        ["v1", "v2", "v3", "v4", "unused", "d0", "d1"].iter().map(|n| json!({"name": n, "emptyDir": {}})).collect();
    let container = |name: &str, mounts: [&str; 2], device: &str| {
        json!({
            "name": name, "image": "i:1",
            "volumeMounts": mounts.map(|mount| json!({"name": mount, "mountPath": format!("/{mount}")})),
            "volumeDevices": [{"name": device, "devicePath": format!("/dev/{device}")}],
        })
    };
    let spec = json!({
        "volumes": volumes,
        "containers": [container("c", ["v3", "v4"], "d1")],
        "initContainers": [container("i", ["v1", "v2"], "d0")],
    });
    let own = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]);
    let reply = Cluster::from_objects(&[set("s", spec)]).mutate(&pod(json!({"volumes": own})));
    assert_eq!(reply.names("volumes"), ["a", "b", "v1", "v2", "d0", "v3", "v4", "d1"]);
}

#[test]
fn a_volume_shared_by_sets_is_added_once() {
    let cluster = Cluster::from_objects(&[
        mounting(json!([{"name": "v", "hostPath": {"path": "/x"}}]), &["v"]),
        set(
            "t",
            json!({
                "containers": [{"name": "t", "image": "t:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
                "volumes": [{"name": "v", "hostPath": {"path": "/x", "type": ""}}],
            }),
        ),
    ]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.names("volumes"), reply.names("containers")), (vec!["v"], vec!["log", "t", "app"]));
}

// Left: as a set may say it. Right: as the API server gives it back.
fn same_sources() -> Vec<(Value, Value)> {
    vec![
        (json!({}), json!({"emptyDir": {}})),
        (json!({"emptyDir": null}), json!({"emptyDir": {}})),
        (json!({"emptyDir": {"medium": ""}}), json!({"emptyDir": {}})),
        (json!({"emptyDir": {"sizeLimit": "1024Mi"}}), json!({"emptyDir": {"sizeLimit": "1Gi"}})),
        (json!({"emptyDir": {"sizeLimit": 1000}}), json!({"emptyDir": {"sizeLimit": "1k"}})),
        (json!({"hostPath": {"path": "/x"}}), json!({"hostPath": {"path": "/x", "type": ""}})),
        (json!({"secret": {"secretName": "s"}}), json!({"secret": {"secretName": "s", "defaultMode": 420}})),
        (
            json!({"secret": {"secretName": "s", "optional": false}}),
            json!({"secret": {"secretName": "s", "defaultMode": 420}}),
        ),
        (json!({"configMap": {"name": "c"}}), json!({"configMap": {"name": "c", "defaultMode": 420}})),
        (
            json!({"downwardAPI": {"items": [
                {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "c", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu"}},
                {"path": "m", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "1000m"}},
            ]}}),
            json!({"downwardAPI": {"defaultMode": 420, "items": [
                {"path": "l", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}},
                {"path": "c", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "0"}},
                {"path": "m", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "1"}},
            ]}}),
        ),
        (
            json!({"projected": {"sources": [
                {"serviceAccountToken": {"path": "t"}},
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]}}),
            json!({"projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}},
            ]}}),
        ),
        (
            json!({"iscsi": {"targetPortal": "p", "iqn": "q"}}),
            json!({"iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0, "iscsiInterface": "default"}}),
        ),
        (json!({"image": {"reference": "a:1"}}), json!({"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}})),
        (
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}}}),
            json!({"ephemeral": {"volumeClaimTemplate": {
                "metadata": {"creationTimestamp": null},
                "spec": {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}},
            }}}),
        ),
        (json!({"nfs": {"server": "s", "path": "/", "readOnly": false}}), json!({"nfs": {"server": "s", "path": "/"}})),
    ]
}

fn named(mut source: Value) -> Value {
    source["name"] = json!("v");
    source
}

#[test]
fn a_volume_with_the_same_source_is_reused_defaulted_or_not() {
    for (left, right) in same_sources() {
        for (of_set, of_pod) in [(&left, &right), (&right, &left), (&left, &left)] {
            let cluster = Cluster::from_objects(&[mounting(json!([named(of_set.clone())]), &["v"])]);
            let pod = pod(json!({"volumes": [named(of_pod.clone())]}));
            let reply = cluster.mutate(&pod);
            assert_eq!(reply.reason, reasons::INJECTED, "{of_set} {of_pod}: {}", reply.message);
            assert_eq!(reply.pod["spec"]["volumes"], pod["spec"]["volumes"]);
        }
    }
}

#[test]
fn case_22_a_volume_with_another_source_is_a_clash() {
    for (of_set, of_pod) in [
        (json!({"emptyDir": {}}), json!({"hostPath": {"path": "/x"}})),
        (json!({"emptyDir": {}}), json!({"emptyDir": {"medium": "Memory"}})),
        (json!({"emptyDir": {}}), json!({"projected": {"defaultMode": 420}})),
        (json!({"emptyDir": {"sizeLimit": "1Gi"}}), json!({"emptyDir": {"sizeLimit": "1G"}})),
        (json!({"hostPath": {"path": "/x"}}), json!({"hostPath": {"path": "/x", "type": "File"}})),
        (json!({"secret": {"secretName": "a"}}), json!({"secret": {"secretName": "b"}})),
        (json!({"secret": {"secretName": "a"}}), json!({"secret": {"secretName": "a", "defaultMode": 0}})),
        (json!({"secret": {"secretName": "a"}}), json!({"secret": {"secretName": "a", "optional": true}})),
        (json!({"csi": {"driver": "d"}}), json!({"csi": {"driver": "d", "volumeAttributes": {"a": ""}}})),
        (json!({"sourceOfTomorrow": {"a": 1}}), json!({"sourceOfTomorrow": {"a": 2}})),
    ] {
        let cluster = Cluster::from_objects(&[mounting(json!([named(of_set.clone())]), &["v"])]);
        let reply = cluster.mutate(&pod(json!({"volumes": [{"name": "w", "emptyDir": {}}, named(of_pod.clone())]})));
        assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::VOLUME_CLASH), "{of_set} {of_pod}");
        assert_eq!(reply.causes[0]["field"], "spec.volumes[1]");
    }
}

#[test]
fn case_23_a_mount_without_a_volume_makes_no_illegal_pod() {
    let cluster = Cluster::from_objects(&[mounting(json!([]), &["missing"])]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::RESULT_ILLEGAL));
    let reply = cluster.mutate(&pod(json!({"volumes": [{"name": "missing", "emptyDir": {}}]})));
    assert_eq!(reply.reason, reasons::INJECTED);
    for mount in [json!({"mountPath": "/x"}), json!({"name": null, "mountPath": "/x"}), json!("x"), json!(null)] {
        let spec = json!({"containers": [{"name": "log", "image": "l:1", "volumeMounts": [mount]}], "volumes": [{"name": null}, {}]});
        let reply = Cluster::from_objects(&[set("s", spec)]).mutate(&pod(json!({})));
        assert!(reply.pod["spec"]["volumes"].is_null(), "{mount}");
    }
}
