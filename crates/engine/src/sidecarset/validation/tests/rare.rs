//! Windows, claims of devices, and volume sources that few people use.

use serde_json::{Value, json};

use super::{assert_container_errors, assert_errors, set};

#[test]
fn windows_options() {
    const NAME: &str = "securityContext.windowsOptions.runAsUserName: Invalid value:";
    let named = |name: &str| json!({"securityContext": {"windowsOptions": {"runAsUserName": name}}});
    let wrong = |name: &str, detail: &str| (named(name), format!("{NAME} {}: {detail}", json!(name)));
    for (container, fault) in [
        wrong("", "runAsUserName cannot be an empty string"),
        wrong("a\tb", "runAsUserName cannot contain control characters"),
        wrong("A\\B\\C", "runAsUserName cannot contain more than one backslash"),
        wrong(".odd\\User", "runAsUserName's Domain doesn't match the NetBios nor the DNS format"),
        wrong("DOMAIN\\", "runAsUserName's User cannot be empty"),
        wrong(". .", "runAsUserName's User cannot contain only periods or spaces"),
        wrong("a/b", r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#),
    ] {
        assert_container_errors(&[(container, &[&fault])]);
    }
    for name in ["ContainerUser", "DOMAIN\\User", "a.long-domain.example\\User"] {
        assert_container_errors(&[(named(name), &[])]);
    }
}

#[test]
fn claims_of_devices_are_named_once() {
    let claims = |claims: Value| json!({"resources": {"claims": claims}});
    assert_container_errors(&[
        (claims(json!([{"name": "gpu"}, {"name": "nic"}])), &[]),
        (claims(json!([{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}])), &[]),
        (claims(json!([{"name": ""}])), &["resources.claims[0]: Required value"]),
        (claims(json!([{"name": "gpu"}, {"name": "gpu"}])), &["resources.claims[1]: Duplicate value: \"gpu\""]),
        (
            claims(json!([{"name": "gpu", "request": "a"}, {"name": "gpu"}])),
            &["resources.claims[1]: Duplicate value: \"gpu\""],
        ),
    ]);
}

#[test]
fn rare_volume_sources() {
    let volume = |source: &str, value: Value| set(&json!({"volumes": [{"name": "v", source: value}]}));
    let claim = |spec: Value| volume("ephemeral", json!({"volumeClaimTemplate": {"spec": spec}}));
    let storage = |amount: &str| json!({"requests": {"storage": amount}});
    assert_errors(&[
        (volume("gitRepo", json!({})), "spec.volumes[0].gitRepo.repository: Required value"),
        (volume("cephfs", json!({})), "spec.volumes[0].cephfs.monitors: Required value"),
        (
            volume("gcePersistentDisk", json!({"pdName": "d", "partition": 256})),
            "spec.volumes[0].gcePersistentDisk.partition: Invalid value: 256: must be between 0 and 255, inclusive",
        ),
        (
            volume("fc", json!({"lun": 1})),
            "spec.volumes[0].fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both",
        ),
        (
            volume("fc", json!({"targetWWNs": ["500a"]})),
            "spec.volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified",
        ),
        (volume("fc", json!({"wwids": ["3600"]})), ""),
        (volume("azureDisk", json!({"diskName": "d", "diskURI": "/subscriptions/d", "kind": "Managed"})), ""),
        (
            claim(json!({"resources": storage("1Gi")})),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: \
             at least 1 access mode is required",
        ),
        (
            claim(json!({"accessModes": ["ReadWriteOnce"], "resources": storage("0")})),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: Invalid value: \"0\": \
             must be greater than zero",
        ),
        (claim(json!({"accessModes": ["ReadWriteOnce"], "resources": storage("1Gi")})), ""),
    ]);
}
