//! Right parts of sets, which between them have every field of a container and of a volume.

use std::sync::LazyLock;

use serde_json::Value;

/// Containers without a name and an image.
const CONTAINERS: &[&str] = &[
    r#"{"args": ["a", "b"], "command": ["run"], "workingDir": "/w", "stdin": true, "stdinOnce": true, "tty": true,
        "imagePullPolicy": "Always", "terminationMessagePath": "/t", "terminationMessagePolicy": "File"}"#,
    r#"{"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c", "optional": true}}, {"secretRef": {"name": "s", "optional": true}}]}"#,
    r#"{"env": [{"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": true}}},
        {"name": "D", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}},
        {"name": "E", "valueFrom": {"resourceFieldRef": {"containerName": "app", "resource": "limits.memory", "divisor": "1Mi"}}},
        {"name": "F", "valueFrom": {"fileKeyRef": {"volumeName": "scratch", "path": "f.env", "key": "K", "optional": true}}}]}"#,
    r#"{"ports": [{"name": "web", "containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "192.0.2.1"}, {"containerPort": 81}]}"#,
    r#"{"resources": {"limits": {"cpu": "2", "memory": "1Gi", "example.com/card": "1"}, "requests": {"cpu": "500m", "ephemeral-storage": "1Gi"}},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}"#,
    r#"{"livenessProbe": {"httpGet": {"port": 80, "path": "/", "host": "h", "scheme": "HTTP", "httpHeaders": [{"name": "X", "value": "y"}]},
        "initialDelaySeconds": 1, "timeoutSeconds": 2, "periodSeconds": 3, "successThreshold": 1, "failureThreshold": 4, "terminationGracePeriodSeconds": 5}}"#,
    r#"{"readinessProbe": {"tcpSocket": {"port": "web", "host": "h"}, "successThreshold": 2},
        "startupProbe": {"grpc": {"port": 80, "service": "s"}, "failureThreshold": 30}}"#,
    r#"{"lifecycle": {"postStart": {"exec": {"command": ["a", "b"]}}, "preStop": {"sleep": {"seconds": 1}}}}"#,
    r#"{"lifecycle": {"postStart": {"httpGet": {"port": 80, "path": "/p", "scheme": "HTTPS"}}, "preStop": {"tcpSocket": {"port": 80, "host": "h"}}}}"#,
    r#"{"securityContext": {"allowPrivilegeEscalation": true, "privileged": true, "procMount": "Default", "readOnlyRootFilesystem": true,
        "runAsGroup": 1, "runAsNonRoot": true, "runAsUser": 1, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "seLinuxOptions": {"level": "s0", "role": "r", "type": "t", "user": "u"}, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}}"#,
    r#"{"securityContext": {"windowsOptions": {"gmsaCredentialSpec": "spec", "gmsaCredentialSpecName": "name", "hostProcess": false, "runAsUserName": "User"}}}"#,
    r#"{"volumeMounts": [{"name": "scratch", "mountPath": "/m", "readOnly": true, "recursiveReadOnly": "IfPossible", "subPath": "s", "mountPropagation": "None"},
        {"name": "scratch", "mountPath": "/n", "subPathExpr": "$(X)"}], "volumeDevices": [{"name": "block", "devicePath": "/dev/a"}]}"#,
    r#"{"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1, 2]}}]}"#,
];

/// Volumes.
const VOLUMES: &[&str] = &[
    r#"{"name": "v", "awsElasticBlockStore": {"volumeID": "i", "fsType": "ext4", "partition": 1, "readOnly": true}}"#,
    r#"{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "https://a/b", "kind": "Shared", "cachingMode": "None", "fsType": "ext4", "readOnly": true}}"#,
    r#"{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "/subscriptions/b", "kind": "Managed"}}"#,
    r#"{"name": "v", "azureFile": {"secretName": "s", "shareName": "n", "readOnly": true}}"#,
    r#"{"name": "v", "cephfs": {"monitors": ["a", "b"], "path": "/", "readOnly": true, "secretFile": "/f", "secretRef": {"name": "s"}, "user": "u"}}"#,
    r#"{"name": "v", "cinder": {"volumeID": "i", "fsType": "ext4", "readOnly": true, "secretRef": {"name": "s"}}}"#,
    r#"{"name": "v", "configMap": {"name": "c", "defaultMode": 256, "optional": true, "items": [{"key": "k", "path": "p", "mode": 256}]}}"#,
    r#"{"name": "v", "csi": {"driver": "csi.example.com", "fsType": "ext4", "readOnly": true, "nodePublishSecretRef": {"name": "s"}, "volumeAttributes": {"a": "b"}}}"#,
    r#"{"name": "v", "downwardAPI": {"defaultMode": 256, "items": [{"path": "p", "mode": 256, "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}},
        {"path": "q", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "1m"}}]}}"#,
    r#"{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a": "b"}, "labels": {"a": "b"}},
        "spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
        "storageClassName": "fast", "volumeAttributesClassName": "gold", "volumeMode": "Filesystem", "volumeName": "disk"}}}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {"creationTimestamp": null, "name": "", "generation": 0},
        "spec": {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}},
        "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
        "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}}}}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
        "dataSourceRef": {"apiGroup": "example.com", "kind": "Book", "name": "b", "namespace": "library"}}}}}"#,
    r#"{"name": "v", "fc": {"targetWWNs": ["500a"], "lun": 1, "fsType": "ext4", "readOnly": true}}"#,
    r#"{"name": "v", "fc": {"wwids": ["3600"]}}"#,
    r#"{"name": "v", "flexVolume": {"driver": "d", "fsType": "ext4", "options": {"a": "b"}, "readOnly": true, "secretRef": {"name": "s"}}}"#,
    r#"{"name": "v", "flocker": {"datasetName": "d"}}"#,
    r#"{"name": "v", "flocker": {"datasetUUID": "u"}}"#,
    r#"{"name": "v", "gcePersistentDisk": {"pdName": "d", "fsType": "ext4", "partition": 1, "readOnly": true}}"#,
    r#"{"name": "v", "gitRepo": {"repository": "r", "revision": "x", "directory": "d"}}"#,
    r#"{"name": "v", "glusterfs": {"endpoints": "e", "path": "p", "readOnly": true}}"#,
    r#"{"name": "v", "hostPath": {"path": "/p", "type": "Directory"}}"#,
    r#"{"name": "v", "image": {"reference": "registry.example/data:1", "pullPolicy": "Always"}}"#,
    r#"{"name": "v", "iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2020-01.example:a", "lun": 1, "iscsiInterface": "default", "fsType": "ext4",
        "readOnly": true, "portals": ["192.0.2.2"], "chapAuthDiscovery": true, "chapAuthSession": true, "secretRef": {"name": "s"}, "initiatorName": "iqn.2020-01.example:b"}}"#,
    r#"{"name": "v", "nfs": {"server": "s", "path": "/p", "readOnly": true}}"#,
    r#"{"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": true}}"#,
    r#"{"name": "v", "photonPersistentDisk": {"pdID": "i", "fsType": "ext4"}}"#,
    r#"{"name": "v", "portworxVolume": {"volumeID": "i", "fsType": "ext4", "readOnly": true}}"#,
    r#"{"name": "v", "projected": {"defaultMode": 256, "sources": [
        {"configMap": {"name": "c", "optional": true, "items": [{"key": "k", "path": "a", "mode": 256}]}},
        {"secret": {"name": "s", "optional": true, "items": [{"key": "k", "path": "b", "mode": 256}]}},
        {"downwardAPI": {"items": [{"path": "c", "mode": 256, "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
            {"path": "d", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "1"}}]}},
        {"serviceAccountToken": {"audience": "a", "expirationSeconds": 600, "path": "e"}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p", "optional": true}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"signerName": "example.com/s", "path": "p",
        "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"]}]}}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"podCertificate": {"signerName": "example.com/s", "keyType": "ED25519", "maxExpirationSeconds": 3600,
        "credentialBundlePath": "b", "keyPath": "k", "certificateChainPath": "c", "userAnnotations": {"example.com/a": "b"}}}]}}"#,
    r#"{"name": "v", "quobyte": {"registry": "h:1,i:2", "volume": "v", "group": "g", "readOnly": true, "tenant": "t", "user": "u"}}"#,
    r#"{"name": "v", "rbd": {"monitors": ["m"], "image": "i", "fsType": "ext4", "keyring": "/k", "pool": "p", "readOnly": true, "secretRef": {"name": "s"}, "user": "u"}}"#,
    r#"{"name": "v", "scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}, "fsType": "xfs", "protectionDomain": "p", "readOnly": true,
        "sslEnabled": true, "storageMode": "ThickProvisioned", "storagePool": "p"}}"#,
    r#"{"name": "v", "secret": {"secretName": "s", "defaultMode": 256, "optional": true, "items": [{"key": "k", "path": "p", "mode": 256}]}}"#,
    r#"{"name": "v", "storageos": {"volumeName": "v", "volumeNamespace": "n", "fsType": "ext4", "readOnly": true, "secretRef": {"name": "s"}}}"#,
    r#"{"name": "v", "vsphereVolume": {"volumePath": "p", "fsType": "ext4", "storagePolicyID": "i", "storagePolicyName": "n"}}"#,
];

fn parsed(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

pub static CONTAINER_EXAMPLES: LazyLock<Vec<Value>> = LazyLock::new(|| parsed(CONTAINERS));
pub static VOLUME_EXAMPLES: LazyLock<Vec<Value>> = LazyLock::new(|| parsed(VOLUMES));

/// JSON pointers to every value in `value`, itself left out.
pub fn places(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(list) => list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = |(step, child): (String, &Value)| {
        let inner = places(child).into_iter().map(|place| format!("/{step}{place}")).collect::<Vec<_>>();
        std::iter::once(format!("/{step}")).chain(inner)
    };
    children.into_iter().flat_map(below).collect()
}

/// The examples leave out no field: one that comes with a new API is missed here.
#[test]
fn every_field_of_containers_and_volumes_is_in_an_example() {
    let schemas: Value = serde_json::from_str(engine::schema::SCHEMAS).unwrap();
    let mut missing = Vec::new();
    for (kind, examples) in [("Container", &*CONTAINER_EXAMPLES), ("Volume", &*VOLUME_EXAMPLES)] {
        let examples: Vec<&Value> = examples.iter().collect();
        look_for(&schemas[kind], &examples, kind, &mut missing);
    }
    // Of objects inside a claim template only these two may be set, and the name and image are every container's.
    missing.retain(|place| !place.starts_with("Volume.ephemeral.volumeClaimTemplate.metadata."));
    let rare = ["Container.image", "Container.name", "Container.lifecycle.stopSignal", "Container.resources.claims"];
    missing.retain(|place| !rare.contains(&place.as_str()));
    assert_eq!(missing, Vec::<String>::new());
}

/// Adds the fields of `schema` that none of `examples` has. Handlers of probes and hooks are the same for each.
fn look_for(schema: &Value, examples: &[&Value], at: &str, missing: &mut Vec<String>) {
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        let found: Vec<&Value> = examples.iter().filter_map(|example| example.get(field)).collect();
        let found: Vec<&Value> = found
            .into_iter()
            .flat_map(|value| value.as_array().map_or_else(|| vec![value], |list| list.iter().collect()))
            .collect();
        let at = format!("{at}.{field}");
        if found.is_empty() {
            let is_handler = at.contains("Probe.") || at.contains("lifecycle.");
            missing.extend((!is_handler).then_some(at));
        } else {
            look_for(if schema["items"].is_object() { &schema["items"] } else { schema }, &found, &at, missing);
        }
    }
}
