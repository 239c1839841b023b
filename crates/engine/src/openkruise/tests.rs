#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value)]

use serde_json::{Map, Value, json};

use super::{Converted, configuration, convert, is_configuration, is_set};

fn set(version: &str, more: Value) -> Value {
    let mut set = json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "SidecarSet", "metadata": {"name": "s"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "containers": [{"name": "c", "image": "c:1"}]},
    });
    json_patch::merge(&mut set, &more);
    set
}

fn converted(version: &str, more: Value) -> Converted {
    let set = set(version, more);
    convert(&set).unwrap_or_else(|errors| panic!("{errors}: {set}"))
}

/// The fields of the remarks that only this set has.
fn remarked(converted: &Converted) -> Vec<&str> {
    const ALWAYS: [&str; 5] =
        ["spec.namespaceSelector", "spec.jobPods", "spec.clashPolicy", "spec.optOut", "spec.platform"];
    let fields = converted.remarks.iter().map(|remark| remark.field.as_str());
    fields.filter(|field| !ALWAYS.contains(field)).collect()
}

#[test]
fn every_default_that_differs_is_written_out_and_named() {
    let Converted { object, remarks } = converted("v1alpha1", json!({}));
    let expected = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}}, "containers": [{"name": "c", "image": "c:1"}],
            "namespaceSelector": {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]},
            "jobPods": "Inject", "clashPolicy": "Refuse", "optOut": "Allowed", "platform": "linux",
        },
    });
    assert_eq!(object, expected);
    let fields: Vec<&str> = remarks.iter().map(|remark| remark.field.as_str()).collect();
    let expected = ["spec.namespaceSelector", "spec.jobPods", "spec.clashPolicy", "spec.optOut", "spec.platform"];
    assert_eq!(fields, expected);
    assert!(remarks.iter().all(|remark| !remark.needs_action));
}

#[test]
fn the_containers_decide_on_jobs_and_the_platform() {
    let of = |container: Value| {
        let mut containers = json!([{"name": "c", "image": "c:1"}]);
        json_patch::merge(&mut containers[0], &container);
        converted("v1beta1", json!({"spec": {"containers": containers}})).object["spec"].take()
    };
    let windows = of(json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}));
    assert_eq!((&windows["platform"], &windows["jobPods"]), (&json!("windows"), &json!("Inject")));
    for (value, expected) in [("True", "NativeSidecar"), ("false", "Inject")] {
        let spec = of(json!({"env": [{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": value}]}));
        assert_eq!(spec["jobPods"], expected, "{value}");
    }
}

/// A change of a field: what is in OpenKruise's spec, what is in ours (null: nothing), and the field of the remark.
#[test]
fn fields_that_mean_something_else_are_written_as_openkruise_takes_them() {
    let update = |fields: Value| json!({"updateStrategy": fields});
    let table = [
        (update(json!({"type": "Foo"})), "/updateStrategy/type", json!("RollingUpdate"), "spec.updateStrategy.type"),
        (
            update(json!({"partition": "101%"})),
            "/updateStrategy/partition",
            json!("100%"),
            "spec.updateStrategy.partition spec.updateStrategy.partition",
        ),
        (
            update(json!({"type": "NotUpdate", "maxUnavailable": 0})),
            "/updateStrategy/maxUnavailable",
            json!(null),
            "spec.updateStrategy.maxUnavailable",
        ),
        (
            update(json!({"priorityStrategy": {"weightPriority": [{"weight": 0}]}})),
            "/updateStrategy/priorityStrategy/weightPriority",
            json!([]),
            "spec.updateStrategy.priorityStrategy.weightPriority",
        ),
        (
            json!({"injectionStrategy": {"revision": {}}}),
            "/injectionStrategy/revision",
            json!(null),
            "spec.injectionStrategy.revision",
        ),
        (
            json!({"imagePullSecrets": [{"name": "a"}, {"name": ""}, {}, {"name": "a"}]}),
            "/imagePullSecrets",
            json!([{"name": "a"}]),
            "spec.imagePullSecrets",
        ),
        (
            json!({"initContainers": [{"name": "b"}, {"name": "a"}]}),
            "/initContainers",
            json!([{"name": "a"}, {"name": "b"}]),
            "spec.initContainers",
        ),
        (
            json!({"initContainers": [{"name": "a", "upgradeStrategy": {"upgradeType": "Foo"}}]}),
            "/initContainers/0/upgradeStrategy/upgradeType",
            json!("ColdUpgrade"),
            "spec.initContainers[0].upgradeStrategy.upgradeType",
        ),
        (
            json!({"initContainers": [{"name": "a", "env": [{"name": "IS_INJECTED", "value": "no"}]}]}),
            "/initContainers/0/env",
            json!(null),
            "spec.initContainers[0].env",
        ),
        (
            json!({"initContainers": [{"name": "a", "env": [{"name": "IS_INJECTED", "value": "true"}]}]}),
            "/initContainers/0/env/0/value",
            json!("true"),
            "",
        ),
    ];
    for (spec, pointer, expected, remark) in table {
        let converted = converted("v1beta1", json!({"spec": spec}));
        let found = converted.object["spec"].pointer(pointer).cloned().unwrap_or_default();
        assert_eq!((pointer, found), (pointer, expected));
        assert_eq!(
            remarked(&converted),
            remark.split(' ').filter(|it| !it.is_empty()).collect::<Vec<_>>(),
            "{pointer}"
        );
    }
}

#[test]
fn what_cannot_be_carried_over_is_an_error_by_field() {
    let table = [
        ("v1beta1", json!({"spec": {"namespace": "shop"}}), "spec.namespace"),
        ("v1alpha1", json!({"spec": {"customVersion": "1"}}), "spec.customVersion"),
        ("v1alpha1", json!({"spec": {"strategy": {}}}), "spec.strategy"),
        ("v1beta1", json!({"spec": {"jobPods": "Inject"}}), "spec.jobPods"),
        ("v1beta1", json!({"spec": {"updateStrategy": {"recreate": true}}}), "spec.updateStrategy.recreate"),
        ("v1beta1", json!({"spec": {"updateStrategy": {"repair": "Evict"}}}), "spec.updateStrategy.repair"),
        (
            "v1beta1",
            json!({"spec": {"updateStrategy": {"maxUnavailable": "0%"}}}),
            "spec.updateStrategy.maxUnavailable",
        ),
        (
            "v1beta1",
            json!({"spec": {"injectionStrategy": {"revision": {"revisionName": "s-1", "customVersion": "1"}}}}),
            "spec.injectionStrategy.revision.revisionName",
        ),
        (
            "v1beta1",
            json!({"spec": {"initContainers": [{"shareServiceAccountToken": true}]}}),
            "spec.initContainers[0].shareServiceAccountToken",
        ),
        ("v1beta1", json!({"spec": null}), "spec"),
        ("v1beta1", json!({"metadata": {"name": null, "generateName": "a-"}}), "metadata.name"),
        ("v1beta1", json!({"metadata": {"nmae": "a"}}), "metadata.nmae"),
        ("v1beta1", json!({"data": {}}), "data"),
        ("v1", json!({}), "apiVersion"),
    ];
    for (version, more, expected) in table {
        let errors = convert(&set(version, more)).unwrap_err();
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields.join(" "), expected, "{errors}");
    }
}

#[test]
fn namespaces_of_the_control_plane_are_left_out_unless_the_set_lists_its_namespaces() {
    const NAME: &str = "kubernetes.io/metadata.name";
    let term = |key: &str, operator: &str| json!({"key": key, "operator": operator});
    let of = |selector: Value| {
        let found = converted("v1beta1", json!({"spec": {"namespaceSelector": selector}}));
        let terms = found.object["spec"]["namespaceSelector"]["matchExpressions"].as_array().cloned();
        let left_out = term("control-plane", "DoesNotExist");
        let count = terms.into_iter().flatten().filter(|term| *term == left_out).count();
        let remarks = found.remarks.into_iter().filter(|remark| remark.field == "spec.namespaceSelector");
        (count, remarks.map(|remark| remark.text).collect::<Vec<_>>().join(" "))
    };
    for (key, operator) in [(NAME, "NotIn"), (NAME, "Exists"), ("control-plane", "Exists"), ("control-plane", "NotIn")]
    {
        let (count, remarks) = of(json!({"matchExpressions": [term(key, operator)]}));
        assert_eq!(count, 1, "{key} {operator}");
        assert!(remarks.starts_with("leaves out namespaces"), "{remarks}");
    }
    for selector in [json!({"matchLabels": {NAME: "shop"}}), json!({"matchExpressions": [term(NAME, "In")]})] {
        let (count, remarks) = of(selector.clone());
        assert_eq!(count, 0, "{selector}");
        assert!(remarks.starts_with("no term is added"), "{remarks}");
    }
    assert_eq!(of(json!({"matchExpressions": [term("control-plane", "DoesNotExist")]})), (1, String::new()));
}

#[test]
fn a_pinned_version_has_to_be_there_first() {
    let revision = json!({"customVersion": "1", "policy": "Partial"});
    let spec = json!({"injectionStrategy": {"revision": revision}, "updateStrategy": {"partition": "50%"}});
    let found = converted("v1beta1", json!({"spec": spec}));
    assert_eq!(found.object["spec"]["injectionStrategy"]["revision"], revision);
    let to_do: Vec<&str> =
        found.remarks.iter().filter(|it| it.needs_action).map(|remark| remark.field.as_str()).collect();
    assert_eq!(to_do, ["spec.injectionStrategy.revision.customVersion"]);
    assert!(remarked(&found).contains(&"spec.injectionStrategy.revision.policy"));
}

#[test]
fn a_canary_is_one_here_only_if_it_is_one_there() {
    let of = |canary: &str, base: &str| {
        let annotations = json!({"apps.kruise.io/sidecarset-canary": canary, "apps.kruise.io/sidecarset-base": base});
        converted("v1alpha1", json!({"metadata": {"annotations": annotations}})).object["metadata"]["annotations"]
            .take()
    };
    let ours = json!({"apps.outrider.dev/sidecarset-canary": "true", "apps.outrider.dev/sidecarset-base": "b"});
    assert_eq!(of("true", "b"), ours);
    for (canary, base) in [("TRUE", "b"), ("1", "b"), ("true", "")] {
        assert_eq!(of(canary, base), json!(null), "{canary} {base}");
    }
}

#[test]
fn the_custom_version_of_v1alpha1_is_a_label_or_an_annotation() {
    const KEY: &str = "apps.kruise.io/sidecarset-custom-version";
    for map in ["labels", "annotations"] {
        let metadata = json!({"metadata": {map: {KEY: "v1", "team": "a"}}});
        let alpha = converted("v1alpha1", metadata.clone());
        assert_eq!(alpha.object["spec"]["customVersion"], "v1");
        assert_eq!(alpha.object["metadata"][map], json!({"team": "a"}));
        let beta = converted("v1beta1", metadata);
        assert_eq!(beta.object["spec"].get("customVersion"), None);
        for converted in [alpha, beta] {
            assert_eq!(remarked(&converted), [format!("metadata.{map}[{KEY}]")]);
        }
    }
    let both = json!({"metadata": {"annotations": {KEY: "v1"}, "labels": {KEY: "v2"}}});
    assert_eq!(converted("v1alpha1", both).object["spec"]["customVersion"], "v2");
}

#[test]
fn case_84_both_versions_of_a_set_have_one_hash() {
    let hash = |version: &str| crate::testing::compile(&json!(converted(version, json!({})).object)).hash;
    assert_eq!(hash("v1alpha1"), hash("v1beta1"));
}

/// Paths of all values that are no maps; of lists, the whole list counts.
fn leaves(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let path = match path {
                    "" => name.clone(),
                    "metadata.labels" | "metadata.annotations" => format!("{path}[{name}]"),
                    _ => format!("{path}.{name}"),
                };
                leaves(value, &path, found);
            }
        }
        value => found.push((path.to_owned(), value.clone())),
    }
}

#[test]
fn what_means_something_else_in_a_container_is_remarked() {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    let transfer = json!([{"sourceContainerName": "web", "envName": "TZ"}]);
    let containers = |container: Value| json!({"spec": {"containers": [container]}});
    for (container, field) in [
        (json!({"name": "a", "image": "a:1", "upgradeStrategy": upgrade}), "upgradeStrategy.upgradeType"),
        (json!({"name": "a", "image": "a:1", "transferEnv": transfer}), "transferEnv"),
    ] {
        let converted = converted("v1beta1", containers(container));
        assert_eq!(remarked(&converted), [format!("spec.containers[0].{field}")]);
    }
}

#[test]
fn nothing_but_what_programs_wrote_is_left_out_without_a_remark() {
    const OF_PROGRAMS: [&str; 11] = [
        "apiVersion",
        "status.matchedPods",
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.generation",
        "metadata.creationTimestamp",
        "metadata.managedFields",
        "metadata.selfLink",
        "metadata.annotations[kruise.io/sidecarset-hash]",
        "metadata.annotations[kruise.io/sidecarset-hash-without-image]",
        "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
    ];
    let set = set(
        "v1alpha1",
        json!({
            "metadata": {
                "uid": "u", "resourceVersion": "1", "generation": 2, "creationTimestamp": "t", "managedFields": [], "selfLink": "/",
                "namespace": "default", "finalizers": ["a"], "ownerReferences": [{}], "generateName": "s-",
                "labels": {"apps.kruise.io/sidecarset-custom-version": "v1", "apps.kruise.io/other": "x", "team": "a"},
                "annotations": {
                    "kruise.io/sidecarset-hash": "a", "kruise.io/sidecarset-hash-without-image": "b",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}", "apps.kruise.io/sidecarset-canary": "1",
                    "kruise.io/other": "x", "example.com/kept": "x",
                },
            },
            "spec": {
                "namespace": "shop", "namespaceSelector": {"matchLabels": {"a": "b"}}, "initContainers": [{"name": "i"}],
                "volumes": [{"name": "v"}], "imagePullSecrets": [{"name": "p"}], "revisionHistoryLimit": 3,
                "patchPodMetadata": [{"annotations": {"a": "b"}}],
                "injectionStrategy": {"paused": true, "revision": {"customVersion": "v1"}},
                "updateStrategy": {
                    "type": "NotUpdate", "paused": true, "selector": {"matchLabels": {"a": "b"}}, "partition": 0, "maxUnavailable": 0,
                    "priorityStrategy": {"orderPriority": [{"orderedKey": "a"}]}, "scatterStrategy": [{"key": "a", "value": "b"}],
                },
            },
            "status": {"matchedPods": 1},
        }),
    );
    let Converted { object, remarks } = convert(&set).unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    leaves(&set, "", &mut before);
    leaves(&object, "", &mut after);
    let is_covered = |path: &str| {
        OF_PROGRAMS.contains(&path) || remarks.iter().any(|remark| path.starts_with(remark.field.as_str()))
    };
    let silent: Vec<&String> = before
        .iter()
        .filter(|leaf| !after.contains(leaf))
        .map(|(path, _)| path)
        .filter(|path| !is_covered(path))
        .collect();
    // A name makes the prefix of a generated one meaningless.
    assert_eq!(silent, ["metadata.generateName"]);
}

#[test]
fn whatever_is_written_converts_or_is_refused() {
    let odd =
        [json!(null), json!(1), json!("x"), json!([]), json!([1]), json!({}), json!({"a": [{}]}), json!([{"name": 1}])];
    let fields =
        ["selector", "namespaceSelector", "initContainers", "updateStrategy", "injectionStrategy", "imagePullSecrets"];
    for value in &odd {
        for field in fields {
            let mut spec = Map::new();
            spec.insert(field.to_owned(), value.clone());
            let object = json!({
                "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "s", "labels": value}, "spec": spec,
            });
            if let Ok(converted) = convert(&object) {
                assert!(converted.object["spec"].is_object());
            }
        }
        assert!(convert(value).is_err());
    }
}

#[test]
fn a_set_of_absurd_size_is_refused_in_one_line() {
    let set = set("v1beta1", json!({"spec": {"containers": vec![json!({}); 300_000]}}));
    let errors = convert(&set).unwrap_err();
    assert_eq!(errors.to_string(), "spec.containers: Too many: 300000: must have at most 100 items");
}

#[test]
fn the_list_of_annotations_moves_and_nothing_else_of_the_configuration() {
    let list = r#"{"rules": []}"#;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kruise-configuration", "namespace": "kruise-system"},
        "data": {"SidecarSet_PatchPodMetadata_WhiteList": list, "Other": "x"},
    });
    assert!(is_configuration(&map) && !is_set(&map));
    let Converted { object, remarks } = configuration(&map, "here").unwrap();
    assert_eq!(object["metadata"], json!({"name": "outrider-configuration", "namespace": "here"}));
    assert_eq!(object["data"], json!({"SidecarSet_PatchPodMetadata_WhiteList": list}));
    assert_eq!(remarks.iter().map(|remark| remark.field.as_str()).collect::<Vec<_>>(), ["data[Other]"]);
    assert_eq!(configuration(&json!({"data": {"Other": "x"}}), "here"), None);
}

/// What kubectl prints of a stored set holds empty strategies.
#[test]
fn what_holds_nothing_is_not_printed() {
    let more = json!({"spec": {
        "updateStrategy": {}, "injectionStrategy": {"revision": {}}, "imagePullSecrets": [{"name": ""}],
        "containers": [{
            "name": "c", "image": "c:1", "upgradeStrategy": {"hotUpgradeEmptyImage": "e:1"},
            "env": [{"name": "IS_INJECTED", "value": "false"}],
        }],
    }});
    let plain = json!({"spec": {"containers": [{"name": "c", "image": "c:1"}]}});
    assert_eq!(converted("v1beta1", more).object, converted("v1beta1", plain).object);
}

/// A share of a partition is of workloads where new pods are divided by it.
#[test]
fn a_partition_has_one_meaning_in_the_notes() {
    let fields = |policy: &str, partition: Value| {
        let converted = converted(
            "v1beta1",
            json!({"spec": {
                "updateStrategy": {"partition": partition},
                "injectionStrategy": {"revision": {"customVersion": "1", "policy": policy}},
            }}),
        );
        remarked(&converted).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (partition, policy) = ("spec.updateStrategy.partition", "spec.injectionStrategy.revision.policy");
    let of_revision = "spec.injectionStrategy.revision.customVersion";
    assert_eq!(fields("Partial", json!("50%")), [of_revision, policy]);
    assert_eq!(fields("Partial", json!(5)), [partition, of_revision]);
    assert_eq!(fields("Always", json!("50%")), [partition, of_revision]);
}
