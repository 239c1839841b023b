//! The fields that are the set's own.

use admission::Findings;
use serde_json::{Value, json};

use super::super::{FieldValidation, create};
use super::{assert_errors, cluster, container, defaulted, errors, judged, named_set, set, with_container};

#[test]
fn valid_sets_have_no_errors_and_no_warnings() {
    let sets = [
        set(&json!({})),
        set(&json!({"namespace": "shop"})),
        set(&json!({"selector": {}, "namespaceSelector": {"matchLabels": {"team": "shop"}}})),
        set(&json!({"selector": {}, "namespace": "shop"})),
        set(&json!({"containers": null, "initContainers": [{"name": "init", "image": "init"}]})),
        set(
            &json!({"containers": null, "initContainers": [{"name": "native", "image": "n:1", "restartPolicy": "Always"}]}),
        ),
        set(&json!({"updateStrategy": {"type": "NotUpdate"}})),
        set(&json!({"updateStrategy": {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1}})),
        set(&json!({"injectionStrategy": {"paused": true}})),
        set(&json!({"injectionStrategy": {"revision": null}, "patchPodMetadata": []})),
        set(&json!({"imagePullSecrets": [{"name": "registry"}], "customVersion": "v1.2", "order": -5})),
        with_container(&json!({"shareVolumePolicy": {}})),
        with_container(&json!({"transferEnv": [], "resourcesPolicy": {}, "shareVolumeDevicePolicy": {}})),
    ];
    for object in sets {
        assert_eq!(judged(&object, &cluster(&[])), (String::new(), vec![]), "{}", object["spec"]);
    }
}

#[test]
fn selectors_are_checked() {
    let terms = |terms: Value| set(&json!({"selector": {"matchExpressions": [terms]}}));
    assert_errors(&[
        (set(&json!({"selector": null})), "spec.selector: Required value: no selector defined for sidecarset"),
        (
            set(&json!({"selector": {}})),
            "spec.selector: Invalid value: {}: empty selector is not valid for sidecarset. It may be empty only beside a \
             namespaceSelector or namespace",
        ),
        (
            set(&json!({"namespaceSelector": {}})),
            "spec.namespaceSelector: Invalid value: {}: empty namespaceSelector is not valid for sidecarset. Leave it out to reach \
             every namespace",
        ),
        (
            set(&json!({"namespace": "shop", "namespaceSelector": {"matchLabels": {"a": "b"}}})),
            "spec.namespaceSelector: Forbidden: may not be set together with namespace; choose one",
        ),
        (
            set(&json!({"namespace": "Shop"})),
            "spec.namespace: Invalid value: \"Shop\": a lowercase RFC 1123 label must consist of lower case alphanumeric \
             characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used \
             for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        (
            terms(json!({"key": "a", "operator": "In"})),
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            terms(json!({"key": "a", "operator": "Near"})),
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator",
        ),
    ]);
    let bad_value = json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["app-risk-"]}]});
    for field in ["selector", "namespaceSelector"] {
        let text = errors(&set(&json!({field: bad_value})));
        assert!(
            text.starts_with(&format!("spec.{field}.matchExpressions[0].values[0]: Invalid value: \"app-risk-\"")),
            "{text}"
        );
    }
}

#[test]
fn names_are_checked() {
    const FORM: &str = "a SidecarSet's name must consist of lower case alphanumeric characters or '-', start and end with an \
                        alphanumeric character, and be no more than 63 characters (e.g. 'log-agent')";
    for name in ["a.b", "A", "-a", &"a".repeat(64)] {
        assert_eq!(errors(&named_set(name, &json!({}))), format!("metadata.name: Invalid value: \"{name}\": {FORM}"));
    }
    let mut generated = named_set("", &json!({}));
    assert_eq!(errors(&generated), "metadata.name: Required value: name or generateName is required");
    generated["metadata"]["generateName"] = json!("agent-");
    assert_eq!(errors(&generated), "");

    let twice = json!([container(&json!({})), container(&json!({}))]);
    let hot = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"}});
    assert_errors(&[
        (
            set(&json!({"containers": null})),
            "spec.containers: Required value: no containers, initContainers or appContainers defined for sidecarset",
        ),
        (
            set(&json!({"containers": [], "initContainers": []})),
            "spec.containers: Required value: no containers, initContainers or appContainers defined for sidecarset",
        ),
        (set(&json!({"containers": twice})), r#"spec.containers[1].name: Duplicate value: "log""#),
        (
            set(&json!({"initContainers": [container(&json!({}))]})),
            r#"spec.initContainers[0].name: Duplicate value: "log""#,
        ),
        (
            set(&json!({"containers": [container(&hot), container(&json!({"name": "log-2"}))]})),
            r#"spec.containers[1].name: Duplicate value: "log-2""#,
        ),
        (
            set(&json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]})),
            r#"spec.imagePullSecrets[1].name: Duplicate value: "a""#,
        ),
        (set(&json!({"imagePullSecrets": [{"name": ""}]})), "spec.imagePullSecrets[0].name: Required value"),
        (set(&json!({"initContainers": [{"name": "test", "image": "a"}], "containers": null})), ""),
    ]);
    assert!(
        errors(&set(&json!({"customVersion": "v 1"})))
            .starts_with("spec.customVersion: Invalid value: \"v 1\": a valid label must")
    );
}

#[test]
fn unknown_words_are_refused_with_the_known_ones() {
    let policies = r#"supported values: "BeforeAppContainer", "AfterAppContainer""#;
    assert_errors(&[
        (
            set(&json!({"clashPolicy": "Foo"})),
            r#"spec.clashPolicy: Unsupported value: "Foo": supported values: "Refuse", "Skip""#,
        ),
        (
            set(&json!({"optOut": "Foo"})),
            r#"spec.optOut: Unsupported value: "Foo": supported values: "Allowed", "Denied""#,
        ),
        (
            set(&json!({"updateStrategy": {"type": "Foo"}})),
            r#"spec.updateStrategy.type: Unsupported value: "Foo": supported values: "NotUpdate", "RollingUpdate""#,
        ),
        (
            set(&json!({"updateStrategy": {"repair": "Always"}})),
            r#"spec.updateStrategy.repair: Unsupported value: "Always": supported values: "Never", "Evict""#,
        ),
        (
            with_container(&json!({"podInjectPolicy": "Foo"})),
            &format!(r#"spec.containers[0].podInjectPolicy: Unsupported value: "Foo": {policies}"#),
        ),
        (
            set(&json!({"initContainers": [{"name": "i", "image": "i", "podInjectPolicy": "Foo"}]})),
            &format!(r#"spec.initContainers[0].podInjectPolicy: Unsupported value: "Foo": {policies}"#),
        ),
        (
            with_container(&json!({"upgradeStrategy": {"upgradeType": "Foo"}})),
            r#"spec.containers[0].upgradeStrategy.upgradeType: Unsupported value: "Foo": supported values: "ColdUpgrade", "HotUpgrade""#,
        ),
        (
            with_container(&json!({"shareVolumePolicy": {"type": "Foo"}})),
            r#"spec.containers[0].shareVolumePolicy.type: Unsupported value: "Foo": supported values: "disabled", "enabled""#,
        ),
        (
            with_container(&json!({"shareVolumeDevicePolicy": {"type": "Foo"}})),
            r#"spec.containers[0].shareVolumeDevicePolicy.type: Unsupported value: "Foo": supported values: "disabled", "enabled""#,
        ),
        (
            set(&json!({"injectionStrategy": {"revision": {"policy": "Foo"}}})),
            r#"[spec.injectionStrategy.revision.policy: Unsupported value: "Foo": supported values: "Always", "Partial", spec.injectionStrategy.revision: Required value: name a revision by revisionName or customVersion, or remove revision to inject the current form]"#,
        ),
    ]);
}

#[test]
fn update_strategy_is_checked() {
    let form = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for \
                validation is '[0-9]+%')";
    let stuck = "may not be 0, as then no pod could ever be updated; set paused to stop a rollout";
    let selector = json!({"matchLabels": {"a": "b"}});
    let cases = [
        (json!({"maxUnavailable": 0}), format!("spec.updateStrategy.maxUnavailable: Invalid value: 0: {stuck}")),
        (json!({"maxUnavailable": "00%"}), format!("spec.updateStrategy.maxUnavailable: Invalid value: \"00%\": {stuck}")),
        (json!({"maxUnavailable": "200%"}), "spec.updateStrategy.maxUnavailable: Invalid value: \"200%\": must not be greater than 100%".to_owned()),
        (json!({"maxUnavailable": "x"}), format!("spec.updateStrategy.maxUnavailable: Invalid value: \"x\": {form}")),
        (json!({"partition": -1}), "spec.updateStrategy.partition: Invalid value: -1: must be greater than or equal to 0".to_owned()),
        (json!({"partition": "abc%"}), format!("spec.updateStrategy.partition: Invalid value: \"abc%\": {form}")),
        (
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            "spec.updateStrategy.selector.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator".to_owned(),
        ),
        (json!({"partition": "101%"}), "spec.updateStrategy.partition: Invalid value: \"101%\": must not be greater than 100%".to_owned()),
        (json!({"partition": "1%", "selector": selector}), "spec.updateStrategy.partition: Forbidden: may not be set together with selector; choose one".to_owned()),
        (json!({"partition": "0%", "selector": selector}), String::new()),
        (json!({"selector": {}}), "spec.updateStrategy.selector: Invalid value: {}: empty selector is not valid. Leave it out to update every pod".to_owned()),
        (json!({"scatterStrategy": [{"key": "a", "value": "b"}, {"key": "a", "value": "b"}]}), "spec.updateStrategy.scatterStrategy[1]: Duplicate value: \"a=b\"".to_owned()),
        (json!({"scatterStrategy": [{"value": "b"}]}), "spec.updateStrategy.scatterStrategy[0].key: Required value".to_owned()),
        (json!({"priorityStrategy": {"orderPriority": [{}]}}), "spec.updateStrategy.priorityStrategy.orderPriority[0].orderedKey: Required value".to_owned()),
        (
            json!({"priorityStrategy": {"weightPriority": [{"weight": 0, "matchSelector": selector}, {"weight": 100, "matchSelector": {}}]}}),
            "[spec.updateStrategy.priorityStrategy.weightPriority[0].weight: Invalid value: 0: must be between 1 and 100, inclusive, \
             spec.updateStrategy.priorityStrategy.weightPriority[1].matchSelector: Required value: must select some pods by label]"
                .to_owned(),
        ),
        (
            json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "a"}], "weightPriority": [{"weight": 1, "matchSelector": selector}]}}),
            "spec.updateStrategy.priorityStrategy.weightPriority: Forbidden: may not be set together with orderPriority; choose one".to_owned(),
        ),
    ];
    for (strategy, expected) in cases {
        assert_eq!(errors(&set(&json!({"updateStrategy": strategy}))), expected, "{strategy}");
    }
    // OpenKruise refuses native sidecars here.
    let native = json!([{"name": "native", "image": "n:1", "restartPolicy": "Always"}]);
    assert_eq!(errors(&set(&json!({"initContainers": native, "updateStrategy": {"type": "RollingUpdate"}}))), "");
    assert_errors(&[
        (
            set(&json!({"updateStrategy": {"maxUnavailablePerOwner": "0%"}})),
            "spec.updateStrategy.maxUnavailablePerOwner: Invalid value: \"0%\": may not be 0, as then no pod could ever be updated; set \
             paused to stop a rollout",
        ),
        (
            set(&json!({"revisionHistoryLimit": -1})),
            "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        ),
    ]);
}

#[test]
fn recreate_and_repair_beside_a_revision_for_all_new_pods_are_warned_about() {
    for (field, strategy) in [("recreate", json!({"recreate": true})), ("repair", json!({"repair": "Evict"}))] {
        let pinned = |policy: &str, strategy: &Value| {
            set(&json!({
                "updateStrategy": strategy,
                "injectionStrategy": {"revision": {"revisionName": "r", "policy": policy}},
            }))
        };
        let start = format!("spec.updateStrategy.{field}: ");
        let warned = |object: &Value| judged(object, &cluster(&[])).1.iter().any(|warning| warning.starts_with(&start));
        assert!(warned(&pinned("Always", &strategy)));
        assert!(!warned(&pinned("Partial", &strategy)) && !warned(&set(&json!({"updateStrategy": strategy}))));
        assert!(!warned(&pinned("Always", &json!({"recreate": false, "repair": "Never"}))));
    }
}

#[test]
fn sets_that_can_never_match_are_warned_about() {
    let by_name = |names: &[&str]| json!({"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]}});
    let never = "so the set will never be injected into any pod";
    let cases = [
        (
            json!({"namespace": "kube-system"}),
            format!("spec.namespace: kube-system is excluded from injection, {never}"),
        ),
        (
            by_name(&["outrider-system", "kube-system"]),
            format!(
                "spec.namespaceSelector: selects only namespaces that are excluded from injection (kube-system, outrider-system), {never}"
            ),
        ),
        (
            json!({"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}),
            "spec.selector: the conditions contradict each other, so the set will never match any pod".to_owned(),
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(judged(&set(&fields), &cluster(&[])), (String::new(), vec![expected]), "{fields}");
    }
    assert_eq!(judged(&set(&by_name(&["shop", "kube-system"])), &cluster(&[])), (String::new(), vec![]));
}

#[test]
fn set_of_absurd_size_is_refused_whole_and_gets_no_defaults() {
    let object = set(&json!({"containers": [{"name": "a", "env": vec![json!({}); 30_000]}]}));
    assert_eq!(defaulted(&object), object);
    assert_eq!(errors(&object), "spec: Too many: 30008: must have at most 20000 items");
    for (list, most) in [("containers", 100), ("initContainers", 100), ("volumes", 200), ("imagePullSecrets", 200)] {
        let object = set(&json!({list: vec![json!({}); most + 1]}));
        assert_eq!(errors(&object), format!("spec.{list}: Too many: {}: must have at most {most} items", most + 1));
    }
}

#[test]
fn very_many_faults_and_unknown_fields_are_told_in_part() {
    let ports: Vec<Value> = (0..1000).map(|_| json!({"containerPort": 0, "prot": 1})).collect();
    let mut findings = Findings::default();
    create(&defaulted(&with_container(&json!({"ports": ports}))), FieldValidation::Warn, &cluster(&[]), &mut findings);
    assert_eq!(findings.errors.len(), 100);
    let ends: Vec<&str> = findings.warnings.iter().skip(20).map(String::as_str).collect();
    assert_eq!(ends, ["980 more unknown fields", "900 more errors are not listed"]);
}

#[test]
fn allowed_changes_are_checked() {
    let allowed = |changes: Value| set(&json!({"allowedChanges": changes, "volumes": [{"name": "data"}]}));
    let many: Vec<String> = (0..65).map(|number| format!("V{number}")).collect();
    assert_errors(&[
        (
            allowed(
                json!({"env": ["DD_*", "A"], "mountPaths": ["/x", "*/y"], "volumes": ["data"], "fields": ["resources"]}),
            ),
            "",
        ),
        (allowed(json!({"env": [""]})), "spec.allowedChanges.env[0]: Required value"),
        (
            allowed(json!({"env": ["A=B"]})),
            "spec.allowedChanges.env[0]: Invalid value: \"A=B\": must be the name of a variable, which has no '='; * \
             matches any characters",
        ),
        (
            allowed(json!({"mountPaths": ["etc"]})),
            "spec.allowedChanges.mountPaths[0]: Invalid value: \"etc\": must be an absolute path; * matches any \
             characters",
        ),
        (
            allowed(json!({"mountPaths": ["/etc/../*"]})),
            "spec.allowedChanges.mountPaths[0]: Invalid value: \"/etc/../*\": must have no '.', '..' or empty part and no '/' at \
             its end",
        ),
        (
            allowed(json!({"mountPaths": ["/etc/"]})),
            "spec.allowedChanges.mountPaths[0]: Invalid value: \"/etc/\": must have no '.', '..' or empty part and no '/' at its \
             end",
        ),
        (
            allowed(json!({"volumes": ["other"]})),
            "spec.allowedChanges.volumes[0]: Invalid value: \"other\": must be the name of a volume of the set (spec.volumes)",
        ),
        (
            allowed(json!({"fields": ["image"]})),
            "spec.allowedChanges.fields[0]: Unsupported value: \"image\": supported values: \"imageDigest\", \
             \"imagePullPolicy\", \"lifecycle\", \"livenessProbe\", \"readinessProbe\", \"resizePolicy\", \"resources\", \
             \"securityContext\", \"startupProbe\", \"terminationMessagePath\", \"terminationMessagePolicy\"",
        ),
        (allowed(json!({"env": many})), "spec.allowedChanges.env: Too many: 65: must have at most 64 items"),
        (
            allowed(json!({"env": [1]})),
            "spec.allowedChanges.env[0]: Invalid value: 1: must be a string; put it in quotes",
        ),
    ]);
}

#[test]
fn to_allow_everything_is_warned_about() {
    let warnings = |changes: Value| judged(&set(&json!({"allowedChanges": changes})), &cluster(&[])).1;
    assert_eq!(
        warnings(json!({"env": ["A", "*"], "mountPaths": ["**"]})),
        [
            "spec.allowedChanges.env[1]: allows every variable, also those that decide what a program loads, such as \
             LD_PRELOAD; name what you need",
            "spec.allowedChanges.mountPaths[0]: allows mounts at every path, also over the container's programs; name what you \
             need",
        ]
    );
    assert_eq!(warnings(json!({"env": ["A*"], "mountPaths": ["/*"]})), [""; 0]);
}
