//! What the pod API says about containers and what runs in them.

use serde_json::{Value, json};

use super::{assert_container_errors, assert_errors, container, set};

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
        (
            json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}),
            &[],
        ),
        (
            json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Dance"}]}),
            &[
                "restartPolicyRules[0].action: Unsupported value: \"Dance\": supported values: \"Restart\", \"RestartAllContainers\"",
                "restartPolicyRules[0].exitCodes: Required value: must be specified",
            ],
        ),
        (
            json!({"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}),
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
            &[r#"ports[0].containerPort: Invalid value: "80": must be a whole number from -2147483648 to 2147483647"#],
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
