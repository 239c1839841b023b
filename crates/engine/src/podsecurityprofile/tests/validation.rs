//! What makes a `PodSecurityProfile` wrong.

use serde_json::{Value, json};

use super::profile;
use crate::podsecurityprofile::validation::compile;

fn faults(more: &Value) -> String {
    compile(&profile("p", more)).map_or_else(|errors| errors.to_string(), |_| String::new())
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn every_fault_of_a_policy_is_one_here() {
    let strategy = |rule: &str, min: i64, max: i64| json!({"rule": rule, "ranges": [{"min": min, "max": max}]});
    for (more, expected) in [
        (
            json!({"runAsUser": {"rule": "x"}}),
            "spec.runAsUser.rule: Unsupported value: \"x\": supported values: \"MustRunAs\", \"MustRunAsNonRoot\", \"RunAsAny\"",
        ),
        (json!({"runAsUser": {"rule": "MayRunAs"}}), "spec.runAsUser.rule: Unsupported value: \"MayRunAs\""),
        (
            json!({"seLinux": {"rule": ""}}),
            "spec.seLinux.rule: Unsupported value: \"\": supported values: \"MustRunAs\", \"RunAsAny\"",
        ),
        (
            json!({"fsGroup": {"rule": "x"}}),
            "spec.fsGroup.rule: Unsupported value: \"x\": supported values: \"MayRunAs\", \"MustRunAs\", \"RunAsAny\"",
        ),
        (json!({"supplementalGroups": {"rule": "x"}}), "spec.supplementalGroups.rule: Unsupported value"),
        (json!({"runAsGroup": {"rule": "x"}}), "spec.runAsGroup.rule: Unsupported value"),
        (
            json!({"runAsUser": strategy("MustRunAs", -1, 3)}),
            "spec.runAsUser.ranges[0].min: Invalid value: -1: min cannot be negative",
        ),
        (
            json!({"fsGroup": strategy("MustRunAs", 1, -3)}),
            "spec.fsGroup.ranges[0].max: Invalid value: -3: max cannot be negative",
        ),
        (
            json!({"fsGroup": strategy("MustRunAs", 3, 1)}),
            "spec.fsGroup.ranges[0].min: Invalid value: 3: min cannot be greater than max",
        ),
        (
            json!({"runAsUser": {"rule": "MustRunAs", "ranges": []}}),
            "spec.runAsUser.ranges: Required value: MustRunAs requires at least one range",
        ),
        (
            json!({"seLinux": {"rule": "MustRunAs"}}),
            "spec.seLinux.seLinuxOptions: Required value: MustRunAs requires SELinuxOptions",
        ),
        (
            json!({"volumes": ["x"]}),
            "spec.volumes: Unsupported value: \"x\": supported values: \"*\", \"awsElasticBlockStore\"",
        ),
        (
            json!({"requiredDropCapabilities": ["a"], "allowedCapabilities": ["*"]}),
            "spec.requiredDropCapabilities: Invalid value: [\"a\"]: must be empty when all capabilities are allowed by a wildcard",
        ),
        (
            json!({"requiredDropCapabilities": ["a"], "defaultAddCapabilities": ["a"]}),
            "spec.defaultAddCapabilities: Invalid value: \"a\": capability is listed in defaultAddCapabilities and requiredDropCapabilities",
        ),
        (
            json!({"requiredDropCapabilities": ["a"], "allowedCapabilities": ["a"]}),
            "capability is listed in allowedCapabilities and requiredDropCapabilities",
        ),
        (
            json!({"defaultAllowPrivilegeEscalation": true, "allowPrivilegeEscalation": false}),
            "spec.defaultAllowPrivilegeEscalation: Invalid value: true: Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true",
        ),
        (json!({"allowedHostPaths": [{}]}), "spec.allowedHostPaths[0]: Required value: is required"),
        (
            json!({"allowedHostPaths": [{"pathPrefix": "/a/../b"}]}),
            "spec.allowedHostPaths[0]: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            json!({"allowedFlexVolumes": [{}]}),
            "spec.allowedFlexVolumes[0].driver: Required value: must specify a driver",
        ),
        (json!({"allowedCSIDrivers": [{"name": ""}]}), "spec.allowedCSIDrivers[0].name: Required value"),
        (
            json!({"allowedUnsafeSysctls": [""]}),
            "spec.allowedUnsafeSysctls[0]: Invalid value: \"\": empty sysctl not allowed",
        ),
        (
            json!({"allowedUnsafeSysctls": ["a..b"]}),
            "spec.allowedUnsafeSysctls[0]: Invalid value: \"a..b\": must have at most 253 characters and match regex",
        ),
        (json!({"forbiddenSysctls": ["a.*b"]}), "spec.forbiddenSysctls[0]: Invalid value"),
        (
            json!({"forbiddenSysctls": ["*", "a"]}),
            "spec.forbiddenSysctls.items: Forbidden: if '*' is present, must not specify other sysctls",
        ),
        (
            json!({"allowedUnsafeSysctls": ["a.b.*"], "forbiddenSysctls": ["a.*"]}),
            "spec.allowedUnsafeSysctls[0]: Invalid value: \"a.b.*\": sysctl overlaps with a.*",
        ),
        (
            json!({"allowedUnsafeSysctls": ["a.*"], "forbiddenSysctls": ["a.b.*"]}),
            "spec.forbiddenSysctls[0]: Invalid value: \"a.b.*\": sysctl overlaps with a.*",
        ),
        (
            json!({"allowedUnsafeSysctls": ["a.*"], "forbiddenSysctls": ["a.b"]}),
            "spec.forbiddenSysctls[0]: Invalid value: \"a.b\": sysctl overlaps with a.*",
        ),
        (
            json!({"allowedUnsafeSysctls": ["a.b"], "forbiddenSysctls": ["a.*"]}),
            "spec.allowedUnsafeSysctls[0]: Invalid value: \"a.b\": sysctl overlaps with a.*",
        ),
        (
            json!({"allowedUnsafeSysctls": ["a.b"], "forbiddenSysctls": ["a.b"]}),
            "spec.allowedUnsafeSysctls[0]: Invalid value: \"a.b\": sysctl overlaps with a.b",
        ),
        (json!({"allowedProcMountTypes": ["x"]}), "spec.allowedProcMountTypes: Unsupported value: \"x\""),
        (
            json!({"runtimeClass": {"allowedRuntimeClassNames": ["*", "a"]}}),
            "if '*' is present, must not specify other RuntimeClass names",
        ),
        (
            json!({"runtimeClass": {"allowedRuntimeClassNames": ["a"], "defaultRuntimeClassName": "b"}}),
            "spec.runtimeClass.allowedRuntimeClassNames: Required value",
        ),
        (json!({"allowedSeccompProfiles": ["x"]}), "spec.allowedSeccompProfiles[0]: Invalid value: \"x\""),
        (json!({"defaultSeccompProfile": "localhost/"}), "spec.defaultSeccompProfile: Invalid value"),
        (json!({"allowedAppArmorProfiles": ["*"]}), "spec.allowedAppArmorProfiles[0]: Invalid value: \"*\""),
        (json!({"defaultAppArmorProfile": "x"}), "spec.defaultAppArmorProfile: Invalid value"),
        (
            json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "x"}]}}),
            "spec.namespaceSelector.matchExpressions[0].operator",
        ),
    ] {
        let found = faults(&more);
        assert!(found.contains(expected), "{more}: {found}");
    }
}

#[test]
fn what_a_policy_may_say_is_accepted() {
    for more in [
        json!({}),
        json!({"allowedUnsafeSysctls": ["a.*"], "forbiddenSysctls": ["b.*", "a"]}),
        json!({"allowedUnsafeSysctls": ["*"]}),
        json!({"allowedUnsafeSysctls": ["net.ipv4.conf/eth0.x-y_z", "kernel.*"]}),
        json!({"runAsUser": {"rule": "RunAsAny", "ranges": [{"min": 1, "max": 1}]}}),
        json!({"allowPrivilegeEscalation": null, "volumes": null, "runtimeClass": null}),
        json!({"runtimeClass": {"allowedRuntimeClassNames": ["*"], "defaultRuntimeClassName": "b"}}),
        json!({"allowedSeccompProfiles": ["*", "docker/default", "localhost/a/b", "unconfined"]}),
    ] {
        assert_eq!(faults(&more), "", "{more}");
    }
}

#[test]
fn lists_and_texts_that_every_pod_would_pay_for_have_a_most() {
    let texts = |count: usize| json!((0..count).map(|at| format!("a{at}")).collect::<Vec<_>>());
    for (field, list) in [
        ("requiredDropCapabilities", texts(65)),
        ("defaultAddCapabilities", texts(65)),
        ("allowedCapabilities", texts(65)),
        ("allowedUnsafeSysctls", texts(65)),
        ("forbiddenSysctls", texts(65)),
        ("volumes", texts(65)),
        ("allowedSeccompProfiles", texts(65)),
        ("allowedAppArmorProfiles", texts(65)),
        ("hostPorts", json!(vec![json!({"min": 1, "max": 1}); 65])),
        ("allowedHostPaths", json!(vec![json!({"pathPrefix": "/a"}); 65])),
        ("allowedCSIDrivers", json!(vec![json!({"name": "a"}); 65])),
        ("allowedFlexVolumes", json!(vec![json!({"driver": "a"}); 65])),
    ] {
        let found = faults(&json!({ field: list }));
        assert!(found.contains(&format!("spec.{field}: Too many: 65: must have at most 64 items")), "{found}");
    }
    let ranges = json!({"rule": "MustRunAs", "ranges": vec![json!({"min": 1, "max": 1}); 65]});
    assert!(faults(&json!({"runAsUser": ranges})).contains("spec.runAsUser.ranges: Too many: 65"));
    let long = faults(&json!({"allowedCapabilities": ["a".repeat(513)]}));
    assert!(long.contains("spec.allowedCapabilities[0]: Too long: may not be more than 512 bytes"), "{long}");
}
