//! `resourcesPolicy` and `spec.resourceDefaults`. The numbers are those of the cases of OpenKruise.

use serde_json::{Value, json};

use super::{assert_container_errors, assert_errors, container, defaulted, errors, set, with_container};

fn policy(fields: &Value) -> Value {
    let mut policy = json!({"targetContainersMode": "sum", "resourcesExpr": {"limits": {"cpu": "cpu*50%"}}});
    super::overlay(&mut policy, fields);
    json!({"resourcesPolicy": policy})
}

fn limits(cpu: &str, memory: &str) -> Value {
    policy(&json!({"resourcesExpr": {"limits": {"cpu": cpu, "memory": memory}}}))
}

#[test]
fn case_71_a_policy_that_cannot_be_used_is_refused_with_one_error() {
    let mut both = policy(&json!({}));
    both["resources"] = json!({"requests": {"cpu": "1"}});
    let pattern = "resourcesPolicy.targetContainersNameRegex";
    assert_container_errors(&[
        (
            both,
            &[
                "resourcesPolicy: Forbidden: may not be set together with resources.limits or resources.requests; choose one",
            ],
        ),
        (
            policy(&json!({"targetContainersMode": null})),
            &["resourcesPolicy.targetContainersMode: Required value: one of sum, max"],
        ),
        (
            policy(&json!({"targetContainersMode": "min"})),
            &[r#"resourcesPolicy.targetContainersMode: Unsupported value: "min": supported values: "sum", "max""#],
        ),
        (
            policy(&json!({"targetContainersNameRegex": ""})),
            &[&format!(r#"{pattern}: Required value: ".*" is every container"#)],
        ),
        (
            policy(&json!({"targetContainersNameRegex": "a("})),
            &[&format!(r#"{pattern}: Invalid value: "a(": is no regular expression: unclosed group"#)],
        ),
        (
            policy(&json!({"targetContainersNameRegex": "a".repeat(1025)})),
            &[&format!("{pattern}: Too long: may not be more than 1024 bytes")],
        ),
        (
            policy(&json!({"resourcesExpr": null})),
            &["resourcesPolicy.resourcesExpr: Required value: an expression for limits or requests"],
        ),
        (
            policy(&json!({"resourcesExpr": {"limits": {}, "requests": {"cpu": ""}}})),
            &["resourcesPolicy.resourcesExpr: Required value: an expression for limits or requests"],
        ),
        (
            limits("(cpu", ""),
            &[
                r#"resourcesPolicy.resourcesExpr.limits.cpu: Invalid value: "(cpu": at character 5: expected ')' before the end"#,
            ],
        ),
        (
            limits("cpu", "cpu"),
            &[
                r#"resourcesPolicy.resourcesExpr.limits.memory: Invalid value: "cpu": at character 1: unknown name "cpu"; known are memory, max(a, b) and min(a, b)"#,
            ],
        ),
        (
            policy(&json!({"resourcesExpr": {"limits": {"cpu": "100m"}, "requests": {"cpu": "0.2"}}})),
            &[
                r#"resourcesPolicy.resourcesExpr.requests.cpu: Invalid value: "200m": must be less than or equal to cpu limit of 100m"#,
            ],
        ),
        (policy(&json!({})), &[]),
    ]);
}

#[test]
fn case_70_what_would_fail_on_pods_is_refused_and_what_would_not_is_accepted() {
    for text in ["5X", "12abc", "8%3", "1e", "cpu*100m", "4/cpu", "cpu/0"] {
        assert!(errors(&with_container(&limits(text, ""))).contains("at character"), "{text}");
    }
    for text in ["cpu-2", "CPU*0.3", "0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)"] {
        assert_eq!(errors(&with_container(&limits(text, "MEMORY*0.1"))), "", "{text}");
    }
}

#[test]
fn case_71_of_init_containers_only_native_sidecars_may_have_a_policy() {
    let init = |restart: Value| {
        let mut container = container(&policy(&json!({})));
        super::overlay(&mut container, &json!({"name": "init", "restartPolicy": restart}));
        set(&json!({"initContainers": [container]}))
    };
    assert_errors(&[
        (
            init(Value::Null),
            "spec.initContainers[0].resourcesPolicy: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
        (init(json!("Always")), ""),
    ]);
}

#[test]
fn defaults_are_amounts_of_three_resources() {
    assert_errors(&[
        (
            set(
                &json!({"resourceDefaults": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"ephemeral-storage": 5}}}),
            ),
            "",
        ),
        (
            set(&json!({"resourceDefaults": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}})),
            r#"spec.resourceDefaults.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1"#,
        ),
        (
            set(&json!({"resourceDefaults": {"limits": {"cpu": "many"}}})),
            "spec.resourceDefaults.limits[cpu]: Invalid value: \"many\": quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            set(&json!({"resourceDefaults": {"limits": {"nvidia.com/gpu": 1}}})),
            r#"spec.resourceDefaults.limits[nvidia.com/gpu]: Unsupported value: "nvidia.com/gpu": supported values: "cpu", "memory", "ephemeral-storage""#,
        ),
    ]);
}

#[test]
fn a_policy_gets_the_default_of_its_names_and_nothing_else_does() {
    let names = |fields: &Value| {
        let object = defaulted(&with_container(fields));
        object["spec"]["containers"][0]["resourcesPolicy"]["targetContainersNameRegex"].clone()
    };
    assert_eq!(names(&policy(&json!({}))), ".*");
    assert_eq!(names(&policy(&json!({"targetContainersNameRegex": ""}))), "");
    assert_eq!(names(&json!({"resourcesPolicy": {}})), Value::Null);
    assert_eq!(names(&json!({})), Value::Null);
}

#[test]
fn options_for_windows_are_refused_in_a_set_for_linux() {
    let with = |platform: &str| {
        let container = json!({"name": "log", "image": "log:1", "securityContext": {"windowsOptions": {}}});
        set(&json!({"containers": [container], "platform": platform}))
    };
    assert_errors(&[
        (with("windows"), ""),
        (with(""), ""),
        (
            with("linux"),
            "spec.containers[0].securityContext.windowsOptions: Forbidden: may not be set with spec.platform linux; set it to windows",
        ),
        (with("darwin"), r#"spec.platform: Unsupported value: "darwin": supported values: "linux", "windows""#),
    ]);
}

#[test]
fn what_completion_does_not_change_and_a_way_around_a_must_are_warnings() {
    let warnings = |fields: &Value| super::judged(&set(fields), &super::cluster(&[])).1;
    let with = |context: &Value| {
        warnings(
            &json!({"podSecurity": "Complete", "containers": [{"name": "log", "image": "log:1", "securityContext": context}]}),
        )
    };
    for (context, field) in [
        (json!({"privileged": true}), "privileged"),
        (json!({"allowPrivilegeEscalation": true}), "allowPrivilegeEscalation"),
        (json!({"runAsNonRoot": false}), "runAsNonRoot"),
        (json!({"runAsUser": 0}), "runAsUser"),
        (json!({"seccompProfile": {"type": "Unconfined"}}), "seccompProfile.type"),
        (json!({"capabilities": {"add": ["CHOWN"]}}), "capabilities.add"),
        (json!({"capabilities": {"drop": ["CHOWN"]}}), "capabilities.drop"),
    ] {
        let expected =
            format!("spec.containers[0].securityContext.{field}: the level restricted does not allow this value");
        let found = with(&context);
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
    }
    assert!(
        with(&json!({"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "runAsUser": 1000})).is_empty()
    );
    let skip = json!({"jobPods": "Skip", "optOut": "Denied"});
    assert!(warnings(&skip)[0].starts_with("spec.jobPods: with Skip every pod"));
    assert!(warnings(&json!({"jobPods": "Skip"})).is_empty());
}
