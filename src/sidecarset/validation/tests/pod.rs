//! What the pod API says about containers and volumes.

use serde_json::{Value, json};

use super::{assert_errors, container, errors, set, with_container};

/// Each container, alone in a set with a volume `data`, has exactly the errors beside it, at `spec.containers[0]`.
fn assert_container_errors(cases: &[(Value, &[&str])]) {
    for (fields, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|text| format!("spec.containers[0].{text}")).collect();
        let expected = match expected.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        assert_eq!(errors(&with_container(fields)), expected, "{fields}");
    }
}

#[test]
fn names_images_and_policies_of_containers() {
    assert_container_errors(&[
        (json!({"image": null}), &["image: Required value"]),
        (json!({"image": ""}), &["image: Required value"]),
        (
            json!({"image": " log:1"}),
            &["image: Invalid value: \" log:1\": must not have leading or trailing whitespace"],
        ),
        (json!({"image": 5}), &["image: Invalid value: 5: must be a string; put it in quotes"]),
        (json!({"name": null}), &["name: Required value"]),
        (json!({"name": "a.b"}), &["name: Invalid value: \"a.b\": must not contain dots"]),
        (
            json!({"imagePullPolicy": "Foo"}),
            &[r#"imagePullPolicy: Unsupported value: "Foo": supported values: "Always", "IfNotPresent", "Never""#],
        ),
        (
            json!({"terminationMessagePolicy": "Foo"}),
            &[
                r#"terminationMessagePolicy: Unsupported value: "Foo": supported values: "File", "FallbackToLogsOnError""#,
            ],
        ),
        (
            json!({"restartPolicy": "Foo"}),
            &[r#"restartPolicy: Unsupported value: "Foo": supported values: "Always", "Never", "OnFailure""#],
        ),
        (json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}), &[]),
        (
            json!({"restartPolicyRules": [{"action": "Restart"}]}),
            &["restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
        ),
        (
            json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "Foo"}, {"resourceName": "cpu", "restartPolicy": "NotRequired"}, {"resourceName": "gpu"}]}),
            &[
                r#"resizePolicy[0].restartPolicy: Unsupported value: "Foo": supported values: "NotRequired", "RestartContainer""#,
                r#"resizePolicy[1].resourceName: Duplicate value: "cpu""#,
                r#"resizePolicy[2].resourceName: Unsupported value: "gpu": supported values: "cpu", "memory""#,
                "resizePolicy[2].restartPolicy: Required value",
            ],
        ),
    ]);
}

#[test]
fn ports() {
    assert_container_errors(&[
        (
            json!({"ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 80, "name": "http"}]}),
            &[r#"ports[1].name: Duplicate value: "http""#],
        ),
        (json!({"ports": [{"name": "http"}]}), &["ports[0].containerPort: Required value"]),
        (
            json!({"ports": [{"containerPort": 70000}]}),
            &["ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (
            json!({"ports": [{"containerPort": "80"}]}),
            &[r#"ports[0].containerPort: Invalid value: "80": must be a whole number of at most 32 bits"#],
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": -1}]}),
            &["ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"],
        ),
        (
            json!({"ports": [{"containerPort": 1, "protocol": "tcp"}]}),
            &[r#"ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP""#],
        ),
        (
            json!({"ports": [{"containerPort": 1, "name": "too-long-a-name-x"}]}),
            &[r#"ports[0].name: Invalid value: "too-long-a-name-x": must be no more than 15 characters"#],
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1}]}),
            &[r#"ports[1].hostPort: Duplicate value: "TCP//1""#],
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1, "protocol": "UDP"}]}),
            &[],
        ),
    ]);
    let port = json!({"ports": [{"containerPort": 1, "hostPort": 9}]});
    let mut other = port.clone();
    other["name"] = json!("other");
    assert_errors(&[
        (
            set(&json!({"containers": [container(&port), container(&other)]})),
            r#"spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//9""#,
        ),
        (set(&json!({"containers": null, "initContainers": [container(&port), container(&other)]})), ""),
    ]);
}

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
fn probes_and_hooks() {
    let http = json!({"httpGet": {"port": 80}});
    assert_container_errors(&[
        (
            json!({"startupProbe": http, "livenessProbe": http, "readinessProbe": {"grpc": {"port": 9}, "successThreshold": 2}}),
            &[],
        ),
        (json!({"livenessProbe": {}}), &["livenessProbe: Required value: must specify a handler type"]),
        (
            json!({"livenessProbe": {"exec": {"command": ["a"]}, "httpGet": {"port": 80}}}),
            &["livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type"],
        ),
        (json!({"livenessProbe": {"exec": {}}}), &["livenessProbe.exec.command: Required value"]),
        (
            json!({"livenessProbe": {"httpGet": {}}}),
            &["livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": "no port"}}}),
            &[
                "livenessProbe.httpGet.port: Invalid value: \"no port\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            ],
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": 80, "scheme": "http", "httpHeaders": [{"name": "a b"}]}}}),
            &[
                r#"livenessProbe.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS""#,
                "livenessProbe.httpGet.httpHeaders[0].name: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
            ],
        ),
        (
            json!({"livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1, "successThreshold": 2}}),
            &[
                "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            json!({"livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 0}}),
            &["livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            json!({"readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 5}}),
            &["readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"],
        ),
        (
            json!({"lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {}}}),
            &["lifecycle.postStart: Required value: must specify a handler type"],
        ),
        (
            json!({"lifecycle": {"preStop": {"sleep": {"seconds": -5}}}}),
            &["lifecycle.preStop.sleep.seconds: Invalid value: -5: must be greater than or equal to 0"],
        ),
    ]);
    let init = |fields: &Value| set(&json!({"containers": null, "initContainers": [container(fields)]}));
    let plain = "may not be set for init containers without restartPolicy=Always";
    assert_errors(&[
        (init(&json!({"restartPolicy": "Always", "startupProbe": http})), ""),
        (init(&json!({"startupProbe": http})), &format!("spec.initContainers[0].startupProbe: Forbidden: {plain}")),
        (init(&json!({"lifecycle": {}})), &format!("spec.initContainers[0].lifecycle: Forbidden: {plain}")),
        (init(&json!({"image": ""})), "spec.initContainers[0].image: Required value"),
        (
            init(&json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]})),
            "spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: \"RestartContainer\": must not be set to \
             'RestartContainer' for non-sidecar initContainers",
        ),
    ]);
}

#[test]
fn resources() {
    let resources = |limits: Value, requests: Value| json!({"resources": {"limits": limits, "requests": requests}});
    assert_container_errors(&[
        (
            resources(
                json!({"cpu": 1, "memory": "1Gi", "example.com/gpu": "2"}),
                json!({"cpu": "500m", "example.com/gpu": 2}),
            ),
            &[],
        ),
        (
            resources(json!({"cpu": "1"}), json!({"cpu": "1500m"})),
            &["resources.requests[cpu]: Invalid value: \"1500m\": must be less than or equal to cpu limit of 1"],
        ),
        (
            resources(json!({"example.com/gpu": 2}), json!({"example.com/gpu": 1})),
            &["resources.requests[example.com/gpu]: Invalid value: \"1\": must be equal to example.com/gpu limit of 2"],
        ),
        (
            resources(json!({}), json!({"example.com/gpu": 1})),
            &["resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            resources(json!({"example.com/gpu": "1500m"}), json!({})),
            &["resources.limits[example.com/gpu]: Invalid value: \"1500m\": must be an integer"],
        ),
        (
            resources(json!({"cpu": "-1"}), json!({})),
            &["resources.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
        ),
        (
            resources(json!({"memory": "1 Gi"}), json!({})),
            &[
                "resources.limits[memory]: Invalid value: \"1 Gi\": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ],
        ),
        (
            resources(json!({"gpu": "1"}), json!({})),
            &["resources.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers"],
        ),
        (
            resources(json!({"hugepages-2Mi": "3Mi", "memory": "1Gi"}), json!({})),
            &[
                "resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
            ],
        ),
        (
            resources(json!({"hugepages-2Mi": "4Mi"}), json!({})),
            &["resources: Forbidden: HugePages require cpu or memory"],
        ),
    ]);
}

#[test]
fn security_contexts() {
    let context = |context: Value| json!({"securityContext": context});
    assert_container_errors(&[
        (
            context(json!({"runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}, "procMount": "Default"})),
            &[],
        ),
        (
            context(json!({"runAsUser": -1, "runAsGroup": 2_147_483_648_i64})),
            &[
                "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "securityContext.runAsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
            ],
        ),
        (
            context(json!({"seccompProfile": {}})),
            &["securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"],
        ),
        (
            context(json!({"seccompProfile": {"type": "Foo"}})),
            &[
                r#"securityContext.seccompProfile.type: Unsupported value: "Foo": supported values: "Localhost", "RuntimeDefault", "Unconfined""#,
            ],
        ),
        (
            context(json!({"seccompProfile": {"type": "Localhost"}})),
            &[
                "securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            ],
        ),
        (
            context(json!({"appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}})),
            &[
                r#"securityContext.appArmorProfile.localhostProfile: Invalid value: "x": can only be set when AppArmor type is Localhost"#,
            ],
        ),
        (
            context(json!({"procMount": "Foo"})),
            &[r#"securityContext.procMount: Unsupported value: "Foo": supported values: "Default", "Unmasked""#],
        ),
        (
            context(json!({"privileged": true, "allowPrivilegeEscalation": false})),
            &[
                r#"securityContext: Invalid value: {"allowPrivilegeEscalation":false,"privileged":true}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"#,
            ],
        ),
        (
            context(json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}})),
            &[
                r#"securityContext: Invalid value: {"allowPrivilegeEscalation":false,"capabilities":{"add":["CAP_SYS_ADMIN"]}}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"#,
            ],
        ),
    ]);
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
