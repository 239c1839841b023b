//! Faults of a set that no pod can be blamed for, and near misses.

use serde_json::{Value, json};

use crate::pair::{KINDS, Kind, Pair, push_in, put};

/// Fields of a container and their values, right and wrong.
const FAULTS: &[(&[&str], &str)] = &[
    (&["image"], "\"\""),
    (&["imagePullPolicy"], "\"Sometimes\""),
    (&["terminationMessagePolicy"], "\"Shout\""),
    (&["name"], "\"Upper\""),
    (&["ports"], r#"[{"containerPort": 0}]"#),
    (&["ports"], r#"[{"containerPort": 65536}]"#),
    (&["ports"], r#"[{"containerPort": 80, "name": "same"}, {"containerPort": 81, "name": "same"}]"#),
    (&["ports"], r#"[{"containerPort": 80, "name": "-odd-"}]"#),
    (&["ports"], r#"[{"containerPort": 80, "protocol": "HTTP"}]"#),
    (&["ports"], r#"[{"containerPort": 80, "hostPort": 90}, {"containerPort": 81, "hostPort": 90}]"#),
    (
        &["ports"],
        r#"[{"containerPort": 80, "hostPort": 90}, {"containerPort": 81, "hostPort": 90, "hostIP": "192.0.2.1"}]"#,
    ),
    (&["env"], r#"[{"name": "A=B"}]"#),
    (&["env"], r#"[{"name": ""}]"#),
    (&["env"], r#"[{"name": "A B", "value": "1"}]"#),
    (&["env"], r#"[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]"#),
    (&["env"], r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.surname"}}}]"#),
    (&["env"], r#"[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.sense"}}}]"#),
    (&["envFrom"], "[{}]"),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a"}, {"name": "scratch", "mountPath": "/a"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a"}, {"name": "scratch", "mountPath": "/a/"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "relative"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a", "subPath": "../up"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a", "mountPropagation": "Bidirectional"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a", "recursiveReadOnly": "Enabled"}]"#),
    (&["volumeMounts"], r#"[{"name": "absent", "mountPath": "/a"}]"#),
    (&["volumeDevices"], r#"[{"name": "scratch", "devicePath": "/dev/a"}]"#),
    (&["volumeDevices"], r#"[{"name": "block", "devicePath": "/dev/a"}, {"name": "block", "devicePath": "/dev/b"}]"#),
    (&["resources"], r#"{"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}"#),
    (&["resources"], r#"{"requests": {"hugepages-2Mi": "2Mi", "cpu": "1"}}"#),
    (&["resources"], r#"{"limits": {"hugepages-2Mi": "2Mi"}}"#),
    (&["resources"], r#"{"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}"#),
    (&["resources"], r#"{"limits": {"example.com/card": "1500m"}}"#),
    (&["resources"], r#"{"limits": {"cards": "1"}}"#),
    (&["resources"], r#"{"limits": {"cpu": "-1"}}"#),
    (&["resizePolicy"], r#"[{"resourceName": "cpu", "restartPolicy": "Maybe"}]"#),
    (&["readinessProbe"], r#"{"periodSeconds": 1}"#),
    (&["readinessProbe"], r#"{"exec": {"command": ["true"]}, "tcpSocket": {"port": 1}}"#),
    (&["readinessProbe"], r#"{"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}"#),
    (&["livenessProbe"], r#"{"tcpSocket": {"port": 1}, "successThreshold": 2}"#),
    (&["livenessProbe"], r#"{"httpGet": {"port": "no_port"}}"#),
    (&["livenessProbe"], r#"{"grpc": {"port": 0}}"#),
    (&["lifecycle"], r#"{"preStop": {}}"#),
    (&["lifecycle"], r#"{"preStop": {"sleep": {"seconds": -1}}}"#),
    (&["lifecycle"], r#"{"preStop": {"exec": {"command": []}}}"#),
    (&["securityContext"], r#"{"privileged": true, "allowPrivilegeEscalation": false}"#),
    (&["securityContext"], r#"{"runAsUser": -1}"#),
    (&["securityContext"], r#"{"seccompProfile": {"type": "Localhost"}}"#),
    (&["securityContext"], r#"{"appArmorProfile": {"type": "Localhost", "localhostProfile": " "}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": ""}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": "a/b"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": "DOMAIN\\User"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"gmsaCredentialSpecName": "Not A Name"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"gmsaCredentialSpec": ""}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": "A\\B\\C"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": ".odd\\User"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": "a.long-domain.example\\User"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": "DOMAIN\\"}}"#),
    (&["securityContext"], r#"{"windowsOptions": {"runAsUserName": ". ."}}"#),
    (&["securityContext"], r#"{"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": false}"#),
    (&["securityContext"], r#"{"seccompProfile": {"type": "Localhost", "localhostProfile": "../up"}}"#),
    (&["securityContext"], r#"{"seccompProfile": {}}"#),
    (&["securityContext"], r#"{"runAsUser": 2147483647}"#),
    (&["securityContext"], r#"{"runAsUser": 2147483648}"#),
    (&["restartPolicy"], "\"Sometimes\""),
    (&["restartPolicy"], "\"OnFailure\""),
    (&["resizePolicy"], r#"[{"resourceName": "memory", "restartPolicy": "RestartContainer"}]"#),
    (
        &["resizePolicy"],
        r#"[{"resourceName": "cpu", "restartPolicy": "NotRequired"}, {"resourceName": "cpu", "restartPolicy": "NotRequired"}]"#,
    ),
    (&["resources"], r#"{"claims": [{"name": "gpu"}, {"name": "gpu"}]}"#),
    (&["resources"], r#"{"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}]}"#),
    (&["resources"], r#"{"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "a"}]}"#),
    (&["resources"], r#"{"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu"}]}"#),
    (&["resources"], r#"{"claims": [{"name": "gpu", "request": "Upper"}]}"#),
    (&["resources"], r#"{"claims": [{"name": ""}]}"#),
    (&["resources"], r#"{"limits": {"example.com/card": "1"}, "requests": {"example.com/card": "2"}}"#),
    (&["resources"], r#"{"requests": {"example.com/card": "1"}}"#),
    (&["resources"], r#"{"limits": {"kubernetes.io/own": "1"}}"#),
    (&["resources"], r#"{"limits": {"ephemeral-storage": "1Gi"}, "requests": {"ephemeral-storage": "2Gi"}}"#),
    (&["readinessProbe"], r#"{"tcpSocket": {"port": "named"}, "periodSeconds": -1}"#),
    (&["readinessProbe"], r#"{"httpGet": {"port": 80, "path": "no-slash", "scheme": "HTTPS"}}"#),
    (&["readinessProbe"], r#"{"httpGet": {"port": 80, "scheme": "FTP"}}"#),
    (&["readinessProbe"], r#"{"httpGet": {"port": 80, "httpHeaders": [{"name": "X Y", "value": ""}]}}"#),
    (&["livenessProbe"], r#"{"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 0}"#),
    (&["startupProbe"], r#"{"exec": {"command": ["true"]}, "failureThreshold": -1}"#),
    (&["lifecycle"], "{}"),
    (&["lifecycle"], r#"{"postStart": {"sleep": {"seconds": 0}}}"#),
    (&["lifecycle"], r#"{"postStart": {"tcpSocket": {"port": 80}}}"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a:b"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": ""}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a", "subPath": "/absolute"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a", "subPath": "x", "subPathExpr": "$(Y)"}]"#),
    (&["volumeMounts"], r#"[{"name": "scratch", "mountPath": "/a", "mountPropagation": "Sideways"}]"#),
    (
        &["volumeMounts"],
        r#"[{"name": "scratch", "mountPath": "/a", "readOnly": true, "recursiveReadOnly": "IfPossible"}]"#,
    ),
    (&["volumeDevices"], r#"[{"name": "block", "devicePath": "/dev/../a"}]"#),
    (&["volumeDevices"], r#"[{"name": "block", "devicePath": ""}]"#),
    (&["env"], r#"[{"name": "1st"}, {"name": "with.dot"}, {"name": "with-dash"}]"#),
    (&["env"], r#"[{"name": "A", "valueFrom": {}}]"#),
    (&["env"], r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]"#),
    (
        &["env"],
        r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['example.com/Upper']"}}}]"#,
    ),
    (&["env"], r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}}]"#),
    (&["env"], r#"[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a/b"}}}]"#),
    (&["env"], r#"[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "", "key": "k"}}}]"#),
    (
        &["env"],
        r#"[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "3Mi"}}}]"#,
    ),
    (
        &["env"],
        r#"[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}}]"#,
    ),
    (&["envFrom"], r#"[{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]"#),
    (&["envFrom"], r#"[{"prefix": "A=B", "configMapRef": {"name": "c"}}]"#),
    (&["envFrom"], r#"[{"configMapRef": {"name": "Upper"}}]"#),
    (&["image"], "\" padded\""),
    (&["terminationMessagePath"], "\"relative\""),
    (&["workingDir"], "\"relative\""),
    (&["ports"], r#"[{"containerPort": 80, "hostPort": 65536}]"#),
    (&["ports"], r#"[{"containerPort": 80, "hostIP": "nowhere"}]"#),
    (&["ports"], r#"[{"containerPort": 80}, {"containerPort": 80}]"#),
    (&["restartPolicyRules"], r#"[{"action": "Restart"}]"#),
    (&["restartPolicyRules"], r#"[{"action": "Dance", "exitCodes": {"operator": "In", "values": [1]}}]"#),
    (&["securityContext"], r#"{"procMount": "Half"}"#),
    (&["restartPolicyRules"], r#"[{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]"#),
];

/// Volumes, right and wrong.
const VOLUMES: &[&str] = &[
    r#"{"name": "v"}"#,
    r#"{"name": "Upper", "emptyDir": {}}"#,
    r#"{"name": "v", "emptyDir": {}, "hostPath": {"path": "/a"}}"#,
    r#"{"name": "v", "emptyDir": {"sizeLimit": "-1"}}"#,
    r#"{"name": "v", "emptyDir": {"medium": "HugePages-2Mi", "sizeLimit": "2Mi"}}"#,
    r#"{"name": "v", "emptyDir": {"medium": "Paper"}}"#,
    r#"{"name": "v", "hostPath": {"path": ""}}"#,
    r#"{"name": "v", "hostPath": {"path": "/a/../b"}}"#,
    r#"{"name": "v", "hostPath": {"path": "relative"}}"#,
    r#"{"name": "v", "hostPath": {"path": "/a", "type": "Door"}}"#,
    r#"{"name": "v", "secret": {"secretName": ""}}"#,
    r#"{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}"#,
    r#"{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../up"}]}}"#,
    r#"{"name": "v", "configMap": {"name": ""}}"#,
    r#"{"name": "v", "configMap": {"name": "c", "items": [{"key": "", "path": "p"}]}}"#,
    r#"{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "..p"}]}}"#,
    r#"{"name": "v", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "status.podIP"}}]}}"#,
    r#"{"name": "v", "downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}}"#,
    r#"{"name": "v", "downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu", "containerName": "gone"}}]}}"#,
    r#"{"name": "v", "persistentVolumeClaim": {"claimName": ""}}"#,
    r#"{"name": "v", "persistentVolumeClaim": {"claimName": "Upper"}}"#,
    r#"{"name": "v", "nfs": {"server": "s", "path": "relative"}}"#,
    r#"{"name": "v", "nfs": {"server": "", "path": "/a"}}"#,
    r#"{"name": "v", "csi": {"driver": ""}}"#,
    r#"{"name": "v", "csi": {"driver": "-odd-"}}"#,
    r#"{"name": "v", "csi": {"driver": "csi.example.com", "nodePublishSecretRef": {"name": ""}}}"#,
    r#"{"name": "v", "ephemeral": {}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": [], "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}"#,
    r#"{"name": "v", "image": {"reference": ""}}"#,
    r#"{"name": "v", "image": {"reference": "registry.example/data:1", "pullPolicy": "Sometimes"}}"#,
    r#"{"name": "v", "image": {"reference": "registry.example/data:1"}}"#,
    r#"{"name": "v", "projected": {"sources": []}}"#,
    r#"{"name": "v", "projected": {"sources": [{}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 60}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": ""}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "a"}}, {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}"#,
    r#"{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "ca.crt", "name": "a:b"}}]}}"#,
    r#"{"name": "v", "gitRepo": {"repository": ""}}"#,
    r#"{"name": "v", "iscsi": {"targetPortal": "", "iqn": "iqn.2020-01.example:a", "lun": 0}}"#,
    r#"{"name": "v", "fc": {"lun": 1}}"#,
    r#"{"name": "v", "fc": {"targetWWNs": ["500a"]}}"#,
    r#"{"name": "v", "fc": {"targetWWNs": ["500a"], "lun": 256}}"#,
    r#"{"name": "v", "fc": {"targetWWNs": ["500a"], "wwids": ["3600"], "lun": 1}}"#,
    r#"{"name": "v", "fc": {"wwids": ["3600"]}}"#,
    r#"{"name": "v", "iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "odd", "lun": 0}}"#,
    r#"{"name": "v", "iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2020-01.example:a", "lun": 0}}"#,
    r#"{"name": "v", "iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2020-01.example:a", "lun": 0, "chapAuthSession": true}}"#,
    r#"{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "/subscriptions/d", "kind": "Managed"}}"#,
    r#"{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "/subscriptions/d"}}"#,
    r#"{"name": "v", "glusterfs": {"endpoints": "e", "path": ""}}"#,
    r#"{"name": "v", "cinder": {"volumeID": ""}}"#,
    r#"{"name": "v", "quobyte": {"registry": "", "volume": "v"}}"#,
    r#"{"name": "v", "photonPersistentDisk": {"pdID": ""}}"#,
    r#"{"name": "v", "portworxVolume": {"volumeID": ""}}"#,
    r#"{"name": "v", "scaleIO": {"gateway": "g", "system": "", "volumeName": "v", "secretRef": {"name": "s"}}}"#,
    r#"{"name": "v", "storageos": {"volumeName": ""}}"#,
    r#"{"name": "v", "gcePersistentDisk": {"pdName": "d", "partition": 256}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0"}}}}}}"#,
    r#"{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}"#,
    r#"{"name": "v", "flexVolume": {"driver": ""}}"#,
    r#"{"name": "v", "rbd": {"monitors": [], "image": "i"}}"#,
    r#"{"name": "v", "cephfs": {"monitors": []}}"#,
    r#"{"name": "v", "azureFile": {"secretName": "", "shareName": "s"}}"#,
    r#"{"name": "v", "azureDisk": {"diskName": "", "diskURI": ""}}"#,
    r#"{"name": "v", "awsElasticBlockStore": {"volumeID": ""}}"#,
    r#"{"name": "v", "gcePersistentDisk": {"pdName": ""}}"#,
    r#"{"name": "v", "vsphereVolume": {"volumePath": ""}}"#,
];

/// Every fault in a container of every kind, with a word for it.
fn pairs_with_odd_containers() -> impl Iterator<Item = (String, Pair)> {
    FAULTS.iter().flat_map(|(path, value)| {
        KINDS.map(|kind| {
            let mut pair = Pair::new();
            put(pair.sidecar(kind), path, serde_json::from_str(value).unwrap());
            pair.give_set(json!({"name": "scratch", "emptyDir": {}}));
            pair.give_set(json!({"name": "block", "persistentVolumeClaim": {"claimName": "block"}}));
            if value.contains("claims") {
                pair.push("resourceClaims", json!({"name": "gpu", "resourceClaimName": "gpu"}));
            }
            if value.contains("windowsOptions") {
                pair.spec().insert("nodeSelector".to_owned(), json!({"kubernetes.io/os": "windows"}));
            }
            (format!("{kind:?} container with {}: {value}", path.join(".")), pair)
        })
    })
}

/// Every volume, mounted.
fn pairs_with_odd_volumes() -> impl Iterator<Item = (String, Pair)> {
    VOLUMES.iter().map(|volume| {
        let mut pair = Pair::new();
        let volume: Value = serde_json::from_str(volume).unwrap();
        push_in(pair.sidecar(Kind::Plain), "volumeMounts", json!({"name": volume["name"], "mountPath": "/v"}));
        pair.give_set(volume.clone());
        (format!("volume {volume}"), pair)
    })
}

/// A pair for each fault and each near miss, with a word for it.
pub fn pairs_with_faults() -> impl Iterator<Item = (String, Pair)> {
    pairs_with_odd_containers().chain(pairs_with_odd_volumes())
}
