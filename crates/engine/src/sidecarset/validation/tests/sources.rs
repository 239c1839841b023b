//! Every volume source by Kubernetes' own rules, and values that are null or of the wrong type.

use serde_json::{Value, json};

use super::{assert_errors, defaulted, errors, set, with_container};

/// Each source, in a volume `v`, has exactly the errors beside it, at that source.
fn assert_sources(source: &str, cases: &[(Value, &str)]) {
    for (value, expected) in cases {
        let expected = expected.replace('@', &format!("spec.volumes[0].{source}"));
        assert_eq!(errors(&set(&json!({"volumes": [{"name": "v", source: value}]}))), expected, "{source}: {value}");
    }
}

/// A claim template with these fields of its spec in place of its own.
fn template(fields: &Value) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"volumeClaimTemplate": {"spec": spec}})
}

#[test]
fn claim_templates_are_judged_as_claims() {
    let source = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "s"});
    assert_sources(
        "ephemeral",
        &[
            (template(&json!({})), ""),
            (
                template(&json!({"accessModes": ["ReadWrite"]})),
                r#"@.volumeClaimTemplate.spec.accessModes[0]: Unsupported value: "ReadWrite": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod""#,
            ),
            (
                template(&json!({"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]})),
                "@.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
            ),
            (
                template(&json!({"volumeMode": "Loop"})),
                r#"@.volumeClaimTemplate.spec.volumeMode: Unsupported value: "Loop": supported values: "Block", "Filesystem""#,
            ),
            (
                template(&json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}})),
                r#"@.volumeClaimTemplate.spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator"#,
            ),
            (
                template(&json!({"resources": {"requests": {"storage": "1Gi", "x": "odd"}}})),
                "@.volumeClaimTemplate.spec.resources.requests[x]: Invalid value: \"odd\": quantities must match the regular \
                 expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                template(&json!({"dataSource": source("", "VolumeSnapshot")})),
                r#"@.volumeClaimTemplate.spec.dataSource: Invalid value: "VolumeSnapshot": must be 'PersistentVolumeClaim' when referencing the default apiGroup"#,
            ),
            (template(&json!({"dataSource": source("a.b", "A"), "dataSourceRef": source("a.b", "A")})), ""),
            (
                json!({"volumeClaimTemplate": {"metadata": {"name": "n", "finalizers": []},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}),
                "[@.volumeClaimTemplate.metadata.name: Forbidden: cannot be set, \
                 @.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set]",
            ),
            (
                json!({"volumeClaimTemplate": {"metadata": {"labels": {"a b": "c", "d": "e f"}, "annotations": {"a b": "c"}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}),
                r#"[@.volumeClaimTemplate.metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), @.volumeClaimTemplate.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), @.volumeClaimTemplate.metadata.labels: Invalid value: "e f": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]"#,
            ),
            (
                json!({"volumeClaimTemplate": {"metadata": {"creationTimestamp": null, "name": "", "labels": {"a": "b"}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}),
                "",
            ),
        ],
    );
    for class in ["storageClassName", "volumeAttributesClassName"] {
        let found = errors(&set(&json!({"volumes": [{"name": "v", "ephemeral": template(&json!({class: "Upper"}))}]})));
        assert!(
            found.starts_with(&format!("spec.volumes[0].ephemeral.volumeClaimTemplate.spec.{class}: Invalid value"))
        );
    }
    let ends = errors(&set(&json!({"volumes": [{"name": "v", "ephemeral": template(
        &json!({"dataSource": source("a.b", "A"), "dataSourceRef": source("a.b", "B")}))}]})));
    assert!(ends.ends_with("must match dataSourceRef"), "{ends}");
}

#[test]
fn older_sources_are_judged_by_their_rules() {
    const NO_PAIR: &str = "must be a host:port pair or multiple pairs separated by commas";
    assert_sources(
        "flocker",
        &[
            (json!({}), "@: Required value: one of datasetName and datasetUUID is required"),
            (
                json!({"datasetName": "a", "datasetUUID": "b"}),
                "@: Invalid value: \"resource\": datasetName and datasetUUID can not be specified simultaneously",
            ),
            (json!({"datasetName": "a/b"}), "@.datasetName: Invalid value: \"a/b\": must not contain '/'"),
            (json!({"datasetUUID": "a/b"}), ""),
        ],
    );
    assert_sources(
        "quobyte",
        &[
            (json!({"registry": "h:1,[::1]:2", "volume": "v"}), ""),
            (json!({"registry": "h", "volume": "v"}), &format!("@.registry: Invalid value: \"h\": {NO_PAIR}")),
            (
                json!({"registry": "h:1,::1:2", "volume": "v"}),
                &format!("@.registry: Invalid value: \"h:1,::1:2\": {NO_PAIR}"),
            ),
        ],
    );
    assert_sources("cinder", &[(json!({"volumeID": "i", "secretRef": {}}), "@.secretRef.name: Required value")]);
    assert_sources(
        "flexVolume",
        &[
            (json!({"driver": "d", "options": {"example.com/x": "", "mykubernetes.io/x": ""}}), ""),
            (
                json!({"driver": "d", "options": {"K8s.io/x": ""}}),
                "@.options[K8s.io/x]: Invalid value: \"K8s.io/x\": kubernetes.io and k8s.io namespaces are reserved",
            ),
        ],
    );
    assert_sources(
        "iscsi",
        &[(
            json!({"targetPortal": "p", "iqn": "iqn.2020-01.a:b", "initiatorName": ""}),
            "@.initiatorName: Invalid value: \"\": must be valid format starting with iqn, eui, or naa",
        )],
    );
    let storageos =
        errors(&set(&json!({"volumes": [{"name": "v", "storageos": {"volumeName": "A", "volumeNamespace": "B"}}]})));
    assert!(
        storageos.contains("storageos.volumeName: Invalid value")
            && storageos.contains("volumeNamespace: Invalid value")
    );
}

#[test]
fn newer_projections_are_judged_by_their_rules() {
    let projected = |source: Value| json!({"sources": [source]});
    let bundle = |fields: Value| projected(json!({"clusterTrustBundle": fields}));
    let certificate = |fields: &Value| {
        let mut all = json!({"signerName": "a.b/c", "keyType": "ED25519", "credentialBundlePath": "x"});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        projected(json!({"podCertificate": all}))
    };
    assert_sources(
        "projected",
        &[
            (
                bundle(json!({"path": "p"})),
                "@.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified",
            ),
            (bundle(json!({"name": "b"})), "@.sources[0].clusterTrustBundle.path: Required value"),
            (
                bundle(json!({"name": "b", "path": "/x"})),
                "@.sources[0].clusterTrustBundle.path: Invalid value: \"/x\": must be a relative path",
            ),
            (bundle(json!({"name": "a.b:c:own", "path": "x"})), ""),
            (
                bundle(json!({"name": "b", "signerName": "a.b/c", "path": "x"})),
                r#"@.sources[0].clusterTrustBundle: Invalid value: {"name":"b","path":"x","signerName":"a.b/c"}: only one of name and signerName may be used"#,
            ),
            (
                bundle(json!({"signerName": "bad", "path": "x"})),
                r#"@.sources[0].clusterTrustBundle.signerName: Invalid value: "bad": must be a fully qualified domain and path of the form 'example.com/signer-name'"#,
            ),
            (
                bundle(json!({"name": "b", "path": "x", "labelSelector": {}})),
                "@.sources[0].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified",
            ),
            (certificate(&json!({})), ""),
            (
                certificate(&json!({"keyType": "Foo"})),
                r#"@.sources[0].podCertificate.keyType: Unsupported value: "Foo": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519""#,
            ),
            (
                certificate(&json!({"maxExpirationSeconds": 3599})),
                "@.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600",
            ),
            (
                certificate(&json!({"signerName": "kubernetes.io/c", "maxExpirationSeconds": 86401})),
                "@.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400",
            ),
            (
                certificate(&json!({"credentialBundlePath": ""})),
                "@.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
            ),
            (
                certificate(&json!({"keyPath": "x"})),
                "@.sources[0].podCertificate.keyPath: Invalid value: \"x\": conflicting duplicate paths",
            ),
        ],
    );
}

#[test]
fn a_port_is_a_whole_number_or_a_name() {
    const WHOLE: &str = "Invalid value: 1.5: must be a whole number from -2147483648 to 2147483647, or a string";
    assert_errors(&[
        (
            with_container(&json!({"livenessProbe": {"tcpSocket": {"port": 1.5}}})),
            &format!("spec.containers[0].livenessProbe.tcpSocket.port: {WHOLE}"),
        ),
        (
            with_container(&json!({"lifecycle": {"preStop": {"httpGet": {"port": 1.5}}}})),
            &format!("spec.containers[0].lifecycle.preStop.httpGet.port: {WHOLE}"),
        ),
    ]);
}

#[test]
fn an_empty_value_of_another_type_is_refused_and_not_repaired() {
    let field_ref = json!([{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": 0, "fieldPath": "metadata.name"}}}]);
    for (field, value, at) in [
        ("ports", json!([{"containerPort": 80, "protocol": 0}]), "ports[0].protocol"),
        ("imagePullPolicy", json!(0), "imagePullPolicy"),
        ("livenessProbe", json!({"tcpSocket": {"port": 1}, "failureThreshold": ""}), "livenessProbe.failureThreshold"),
        ("env", field_ref, "env[0].valueFrom.fieldRef.apiVersion"),
        ("terminationMessagePath", json!(0), "terminationMessagePath"),
        ("livenessProbe", json!({"httpGet": {"port": 80, "scheme": 0}}), "livenessProbe.httpGet.scheme"),
    ] {
        let found = errors(&with_container(&json!({ field: value })));
        assert!(found.starts_with(&format!("spec.containers[0].{at}: Invalid value: ")), "{found}");
    }
}

#[test]
fn null_in_a_list_or_a_map_is_the_empty_value_that_a_pod_gets() {
    let given = set(&json!({
        "containers": [{
            "name": "log", "image": "log:1", "args": [null], "command": ["a", null],
            "resources": {"limits": {"cpu": null}},
            "securityContext": {"capabilities": {"drop": [null]}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }],
        "volumes": [{"name": "v", "projected": {"sources": [null]}}],
    }));
    assert_eq!(errors(&given), "");
    let spec = &defaulted(&given)["spec"];
    let container = &spec["containers"][0];
    assert_eq!(container["args"], json!([""]));
    assert_eq!(container["command"], json!(["a", ""]));
    assert_eq!(container["resources"]["limits"], json!({"cpu": "0"}));
    assert_eq!(container["securityContext"]["capabilities"]["drop"], json!([""]));
    assert_eq!(spec["volumes"][0]["projected"]["sources"], json!([{}]));
    assert_eq!(
        errors(&with_container(&json!({"ports": [null]}))),
        "spec.containers[0].ports[0].containerPort: Required value"
    );
}
