//! What the pod API says about environment variables, mounts and volumes.

use serde_json::{Value, json};

use super::{assert_container_errors, assert_errors, errors, set};

#[test]
fn environment() {
    let from = |from: Value| json!({"env": [{"name": "A", "valueFrom": from}]});
    let sources =
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
    let nothing = format!("env[0].valueFrom: Invalid value: \"\": {sources}");
    assert_container_errors(&[
        (json!({"env": [{"value": "x"}]}), &["env[0].name: Required value"]),
        (
            json!({"env": [{"name": "A=B"}]}),
            &[
                "env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
            ],
        ),
        (
            json!({"env": [{"name": "A", "value": 8080}]}),
            &["env[0].value: Invalid value: 8080: must be a string; put it in quotes"],
        ),
        (from(json!({})), &[&nothing]),
        (
            json!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            &["env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"],
        ),
        (
            from(json!({"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}})),
            &["env[0].valueFrom: Invalid value: \"\": may not have more than one field specified at a time"],
        ),
        (from(json!({"fieldRef": {"fieldPath": "metadata.labels['app']"}})), &[]),
        (
            from(json!({"fieldRef": {"fieldPath": "metadata.labels['a b']"}})),
            &[
                "env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
        (from(json!({"fieldRef": {"fieldPath": "spec.host"}})), &[]),
        (
            from(json!({"fieldRef": {"fieldPath": "metadata.foo"}})),
            &[
                "env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.foo\": error converting fieldPath: field label not supported: metadata.foo",
            ],
        ),
        (
            from(json!({"fieldRef": {"fieldPath": "status.phase"}})),
            &[
                r#"env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs""#,
            ],
        ),
        (
            from(json!({"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}})),
            &[
                "env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name\": error converting fieldPath: unsupported pod version: v2",
            ],
        ),
        (from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}})), &[]),
        (
            from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}})),
            &[
                "env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource",
            ],
        ),
        (
            from(json!({"resourceFieldRef": {"resource": "limits.gpu"}})),
            &[
                r#"env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory""#,
            ],
        ),
        (from(json!({"secretKeyRef": {"name": "s"}})), &["env[0].valueFrom.secretKeyRef.key: Required value"]),
        (
            from(json!({"configMapKeyRef": {"name": "c", "key": ".."}})),
            &["env[0].valueFrom.configMapKeyRef.key: Invalid value: \"..\": must not be '..'"],
        ),
        (from(json!({"fileKeyRef": {"key": "K", "path": "p", "volumeName": "data"}})), &[]),
        (
            from(json!({"fileKeyRef": {"key": "K", "path": "../p", "volumeName": "gone"}})),
            &[
                "env[0].valueFrom.fileKeyRef.path: Invalid value: \"../p\": must not contain '..'",
                "env[0].valueFrom.fileKeyRef.volumeName: Not found: \"gone\"",
            ],
        ),
        (
            json!({"envFrom": [{}]}),
            &["envFrom[0]: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"],
        ),
        (
            json!({"envFrom": [{"secretRef": {}, "prefix": "a="}]}),
            &[
                "envFrom[0].prefix: Invalid value: \"a=\": a valid environment variable name must consist only of printable ASCII characters other than '='",
                "envFrom[0].secretRef.name: Required value",
            ],
        ),
    ]);
}

#[test]
fn mounts_and_devices() {
    let mounts = |mounts: Value| json!({"volumeMounts": mounts});
    assert_container_errors(&[
        (mounts(json!([{"name": "data", "mountPath": "/a"}])), &[]),
        (mounts(json!([{"name": "gone", "mountPath": "/a"}])), &[r#"volumeMounts[0].name: Not found: "gone""#]),
        (mounts(json!([{"name": "data"}])), &["volumeMounts[0].mountPath: Required value"]),
        (
            mounts(json!([{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/a"}])),
            &[r#"volumeMounts[1].mountPath: Invalid value: "/a": must be unique"#],
        ),
        (
            mounts(json!([{"name": "data", "mountPath": "/a", "subPath": "/x"}])),
            &[r#"volumeMounts[0].subPath: Invalid value: "/x": must be a relative path"#],
        ),
        (
            mounts(json!([{"name": "data", "mountPath": "/a", "subPath": "x", "subPathExpr": "../y"}])),
            &[
                r#"volumeMounts[0].subPathExpr: Invalid value: "../y": must not contain '..'"#,
                r#"volumeMounts[0].subPathExpr: Invalid value: "../y": subPathExpr and subPath are mutually exclusive"#,
            ],
        ),
        (
            mounts(json!([{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}])),
            &[
                "volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
            ],
        ),
        (
            json!({"securityContext": {"privileged": true}, "volumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}]}),
            &[],
        ),
        (
            mounts(json!([{"name": "data", "mountPath": "/a", "recursiveReadOnly": "Enabled"}])),
            &["volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
        ),
        (
            json!({"volumeDevices": [{"name": "gone", "devicePath": "/dev/x"}]}),
            &[r#"volumeDevices[0].name: Not found: "gone""#],
        ),
        (
            json!({"volumeDevices": [{"name": "data", "devicePath": "/dev/../x"}]}),
            &[
                r#"volumeDevices[0].name: Invalid value: "data": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"#,
                r#"volumeDevices[0].devicePath: Invalid value: "/dev/../x": can not contain backsteps ('..')"#,
            ],
        ),
        (
            json!({"volumeMounts": [{"name": "data", "mountPath": "/a"}], "volumeDevices": [{"name": "gone", "devicePath": "/a"}]}),
            &[
                r#"volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices"#,
                r#"volumeDevices[0].name: Not found: "gone""#,
                r#"volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts"#,
            ],
        ),
    ]);
}

#[test]
fn case_30_a_device_at_the_path_of_a_mount_is_refused_twice() {
    let volumes = json!([{"name": "data"}, {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]);
    let container = json!({
        "name": "log", "image": "log:1", "volumeMounts": [{"name": "data", "mountPath": "/a"}],
        "volumeDevices": [{"name": "disk", "devicePath": "/a"}],
    });
    assert_errors(&[(
        set(&json!({"containers": [container], "volumes": volumes})),
        r#"[spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices, spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts]"#,
    )]);
}

#[test]
fn cases_32_and_33_what_defaults_complete_in_a_volume_is_accepted() {
    for volume in [
        json!({"name": "a", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}}),
        json!({"name": "a", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
        // As in a pod it is an empty directory.
        json!({"name": "a"}),
    ] {
        assert_eq!(errors(&set(&json!({"volumes": [volume]}))), "", "{volume}");
    }
}

#[test]
fn volumes() {
    let cases: [(Value, &str); 23] = [
        (json!({"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}), ""),
        (json!({"name": "a", "sourceOfTomorrow": {}}), ""),
        (json!({"name": "a", "emptyDir": {}, "comment": "x"}), ""),
        (json!({"name": "a", "csi": {"driver": "Some.Driver"}}), ""),
        (
            json!({"name": "a", "csi": {"driver": "-d"}}),
            ".csi.driver: Invalid value: \"-d\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (json!({"emptyDir": {}}), ".name: Required value"),
        (json!({"name": "a.b"}), ".name: Invalid value: \"a.b\": must not contain dots"),
        (
            json!({"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}),
            ".secret: Forbidden: may not specify more than 1 volume type",
        ),
        (
            json!({"name": "a", "emptyDir": {"sizeLimit": "-1"}}),
            ".emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
        ),
        (json!({"name": "a", "hostPath": {}}), ".hostPath.path: Required value"),
        (
            json!({"name": "a", "hostPath": {"path": "/a/../b"}}),
            ".hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            json!({"name": "a", "hostPath": {"path": "/a", "type": "Foo"}}),
            r#".hostPath.type: Unsupported value: "Foo": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket""#,
        ),
        (json!({"name": "a", "secret": {}}), ".secret.secretName: Required value"),
        (
            json!({"name": "a", "configMap": {"name": "c", "defaultMode": 1000}}),
            ".configMap.defaultMode: Invalid value: 1000: must be a number between 0 and 0777 (octal), both inclusive",
        ),
        (
            json!({"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "..p"}]}}),
            ".configMap.items[0].path: Invalid value: \"..p\": must not start with '..'",
        ),
        (
            json!({"name": "a", "configMap": {"name": "c", "items": [{"path": "/p"}]}}),
            ".configMap.items[0].key: Required value| .configMap.items[0].path: Invalid value: \"/p\": must be a relative path",
        ),
        (
            json!({"name": "a", "downwardAPI": {"items": [{"path": "p"}]}}),
            ".downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required",
        ),
        (
            json!({"name": "a", "projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}),
            ".projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
        ),
        (
            json!({"name": "a", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 60, "path": "t"}}]}}),
            ".projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"name": "a", "projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}}, {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}]}}),
            ".projected.sources[1].configMap.items[0].path: Invalid value: \"p\": conflicting duplicate paths",
        ),
        (json!({"name": "a", "persistentVolumeClaim": {}}), ".persistentVolumeClaim.claimName: Required value"),
        (
            json!({"name": "a", "nfs": {"server": "s", "path": "p"}}),
            ".nfs.path: Invalid value: \"p\": must be an absolute path",
        ),
        (json!({"name": "a", "ephemeral": {}}), ".ephemeral.volumeClaimTemplate: Required value"),
    ];
    for (volume, expected) in cases {
        let parts: Vec<String> =
            expected.split("| ").filter(|p| !p.is_empty()).map(|part| format!("spec.volumes[0]{part}")).collect();
        let expected = match parts.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        assert_eq!(errors(&set(&json!({"volumes": [volume]}))), expected, "{volume}");
    }
    assert_errors(&[
        (set(&json!({"volumes": [{"name": "a"}, {"name": "a"}]})), r#"spec.volumes[1].name: Duplicate value: "a""#),
        (set(&json!({"volumes": "x"})), r#"spec.volumes: Invalid value: "x": must be a list"#),
        (set(&json!({"volumes": [5]})), "spec.volumes[0]: Invalid value: 5: must be a map"),
    ]);
}
