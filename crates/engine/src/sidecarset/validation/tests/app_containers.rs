//! `spec.appContainers` and `spec.podOverrides`.

use serde_json::{Value, json};

use super::{assert_errors, defaulted, errors, set};

fn with_app(entry: &Value) -> Value {
    set(&json!({"appContainers": [entry], "volumes": [{"name": "data"}]}))
}

#[test]
fn additions_are_judged_as_parts_of_a_container() {
    let at = |text: &str| format!("spec.appContainers[0]{text}");
    for (entry, expected) in [
        (
            json!({"env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "data", "mountPath": "/d"}]}),
            String::new(),
        ),
        (json!({}), at(": Required value: an entry has env or volumeMounts")),
        (json!({"env": [], "volumeMounts": null}), at(": Required value: an entry has env or volumeMounts")),
        (json!({"env": [{"value": "1"}]}), at(".env[0].name: Required value")),
        (json!({"env": [{"name": "A"}, {"name": "A"}]}), at(r#".env[1].name: Duplicate value: "A""#)),
        (
            json!({"volumeMounts": [{"name": "gone", "mountPath": "/d"}]}),
            at(r#".volumeMounts[0].name: Not found: "gone""#),
        ),
        (
            json!({"volumeMounts": [{"name": "data", "mountPath": "/d"}, {"name": "data", "mountPath": "/d"}]}),
            at(r#".volumeMounts[1].mountPath: Invalid value: "/d": must be unique"#),
        ),
        (
            json!({"env": [{"name": "A"}], "containerNames": []}),
            at(".containerNames: Required value: at least one name; leave it out for all containers"),
        ),
        (
            json!({"env": [{"name": "A", "value": 1}]}),
            at(".env[0].value: Invalid value: 1: must be a string; put it in quotes"),
        ),
    ] {
        assert_eq!(errors(&with_app(&entry)), expected, "{entry}");
    }
    assert!(
        errors(&with_app(&json!({"env": [{"name": "A"}], "containerNames": ["A_b"]}))).contains("containerNames[0]")
    );
}

#[test]
fn a_set_that_only_adds_to_the_pods_containers_is_whole() {
    let fields = json!({"containers": null, "appContainers": [{"env": [{"name": "A", "value": "1"}]}]});
    assert_errors(&[(set(&fields), "")]);
    assert!(
        errors(&set(&json!({"containers": null, "appContainers": []})))
            .contains("no containers, initContainers or appContainers")
    );
}

#[test]
fn variables_of_additions_get_the_defaults_of_variables() {
    let entry = json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]});
    let object = defaulted(&with_app(&entry));
    assert_eq!(object.pointer("/spec/appContainers/0/env/0/valueFrom/fieldRef/apiVersion").unwrap(), "v1");
}

#[test]
fn what_pods_may_change_is_named_and_bounded() {
    let with = |overrides: Value| set(&json!({"podOverrides": overrides}));
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    let container = json!({"name": "h", "image": "h:1", "upgradeStrategy": upgrade});
    let hot = |names: Value| set(&json!({"containers": [container], "podOverrides": {"containerNames": names}}));
    assert_errors(&[
        (with(json!({"containerNames": ["log"], "env": ["A"], "imageTag": true})), ""),
        (with(json!({"resources": {"min": {"cpu": "10m"}, "max": {"cpu": "1", "memory": "1Gi"}}})), ""),
        (with(json!({"containerNames": ["gone"]})), r#"spec.podOverrides.containerNames[0]: Not found: "gone""#),
        (
            with(json!({"env": ["IS_INJECTED"]})),
            r#"spec.podOverrides.env[0]: Invalid value: "IS_INJECTED": is the variable by which injected containers are recognised, and no pod may change it"#,
        ),
        (hot(json!(["h"])), ""),
        (
            hot(json!(["h-1"])),
            r#"spec.podOverrides.containerNames[0]: Invalid value: "h-1": is one of the two of "h" (HotUpgrade), which change together; name "h""#,
        ),
        (with(json!({"env": [""]})), "spec.podOverrides.env[0]: Required value"),
        (
            with(json!({"resources": {"min": {"cpu": "2"}, "max": {"cpu": "1"}}})),
            r#"spec.podOverrides.resources.min[cpu]: Invalid value: "2": must be less than or equal to max 1"#,
        ),
        (
            with(json!({"resources": {"min": {"cpu": "2"}}})),
            "spec.podOverrides.resources.max[cpu]: Required value: without a max the resource may not be changed at all",
        ),
        (
            with(json!({"resources": {"max": {"cpu": "-1"}}})),
            r#"spec.podOverrides.resources.max[cpu]: Invalid value: "-1": must be greater than or equal to 0"#,
        ),
        (
            with(json!({"resources": {"max": {"gpu": "1"}}})),
            r#"spec.podOverrides.resources.max[gpu]: Unsupported value: "gpu": supported values: "cpu", "memory", "ephemeral-storage""#,
        ),
    ]);
}
