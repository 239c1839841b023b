//! `patchPodMetadata`, the list of what is allowed, and `upgradeStrategy`.

use serde_json::{Value, json};

use super::{assert_container_errors, assert_errors, cluster, container, judged, named_set, set};
use crate::snapshot::Snapshot;
use crate::snapshot::collection::Collection as _;
use crate::snapshot::configuration::{ConfigurationMap, ConfigurationMaps};

fn allowing(list: Option<&str>, sets: &[Value]) -> Snapshot {
    let mut maps = ConfigurationMaps::default();
    maps.apply(&ConfigurationMap { allow_list: list.map(str::to_owned) });
    Snapshot { configuration: maps.view(), ..cluster(sets) }
}

const ALL: Option<&str> = Some(r#"{"rules":[{"allowedAnnotationKeyExprs":[".*"]}]}"#);

fn gives(entries: &Value) -> Value {
    set(&json!({"patchPodMetadata": entries}))
}

fn key1() -> Value {
    let mut object = gives(&json!([{"annotations": {"key1": "v"}, "patchPolicy": "Retain"}]));
    object["metadata"]["labels"] = json!({"app": "sidecar"});
    object
}

#[test]
fn case_45_annotations_are_allowed_by_a_list() {
    const AT: &str = "spec.patchPodMetadata[0].annotations[key1]: Forbidden: ";
    const PLACE: &str =
        "key SidecarSet_PatchPodMetadata_WhiteList of ConfigMap outrider-configuration in Outrider's namespace";
    let none = format!("{AT}no rule allows this annotation for the set; they are in {PLACE}");
    let rule = |expression: &str| format!(r#"{{"rules":[{{"allowedAnnotationKeyExprs":["{expression}"]}}]}}"#);
    let of = |app: &str| {
        format!(
            r#"{{"rules":[{{"selector":{{"matchLabels":{{"app":"{app}"}}}},"allowedAnnotationKeyExprs":["key.*"]}}]}}"#
        )
    };
    for (list, expected) in [
        (None, format!("{AT}no annotation is allowed, as there is no {PLACE}")),
        (Some(rule("key.*")), String::new()),
        (Some(rule("key2")), none.clone()),
        (Some(of("other")), none),
        (Some(of("sidecar")), String::new()),
        (
            Some(r#"{"rulez":[]}"#.to_owned()),
            format!(
                "{AT}no annotation is allowed, as {PLACE} cannot be read: unknown field `rulez`, expected `rules` at line 1 column 8"
            ),
        ),
    ] {
        assert_eq!(judged(&key1(), &allowing(list.as_deref(), &[])).0, expected, "{list:?}");
    }
    assert_eq!(judged(&set(&json!({})), &allowing(None, &[])).0, "");
}

#[test]
fn entries_are_judged_with_their_fields() {
    let cases = [
        (json!([{}]), "spec.patchPodMetadata[0].annotations: Required value: an entry needs annotations"),
        (
            json!([{"annotations": {}}]),
            "spec.patchPodMetadata[0].annotations: Required value: an entry needs annotations",
        ),
        (
            json!([{"annotations": {"a": "1"}}, {"annotations": {"a": "2"}, "patchPolicy": "Overwrite"}]),
            r#"spec.patchPodMetadata[1].annotations[a]: Duplicate value: "a""#,
        ),
        (
            json!([{"annotations": {"a": "1"}, "patchPolicy": "Foo"}]),
            r#"spec.patchPodMetadata[0].patchPolicy: Unsupported value: "Foo": supported values: "Retain", "Overwrite", "MergePatchJson""#,
        ),
        (
            json!([{"annotations": {"a": "{"}, "patchPolicy": "MergePatchJson"}]),
            r#"spec.patchPodMetadata[0].annotations[a]: Invalid value: "{": MergePatchJson takes JSON: EOF while parsing an object at line 1 column 1"#,
        ),
        (
            json!([{"annotations": {"outrider.dev/injected": "{}"}}]),
            "spec.patchPodMetadata[0].annotations[outrider.dev/injected]: Forbidden: annotations of this domain are Outrider's own",
        ),
        (
            json!([{"annotations": {"version.sidecarset.outrider.dev/a-1": "0"}}]),
            "spec.patchPodMetadata[0].annotations[version.sidecarset.outrider.dev/a-1]: Forbidden: annotations of this domain are Outrider's own",
        ),
        (json!([{"annotations": {"notoutrider.dev/a": "0"}}]), ""),
        (
            json!([{"annotations": {"a": "x".repeat(256 * 1024)}}]),
            "spec.patchPodMetadata: Too long: may not be more than 262144 bytes",
        ),
    ];
    for (entries, expected) in cases {
        let (errors, _) = judged(&gives(&entries), &allowing(ALL, &[]));
        assert_eq!(errors, expected, "{}", entries.to_string().chars().take(200).collect::<String>());
    }
    let (errors, _) = judged(&gives(&json!([{"annotations": {"a b": "1"}}])), &allowing(ALL, &[]));
    assert!(
        errors.starts_with(r#"spec.patchPodMetadata[0].annotations[a b]: Invalid value: "a b": name part"#),
        "{errors}"
    );
}

#[test]
fn case_77_sets_that_meet_do_not_overwrite_each_others_annotations() {
    let other = |policy: &str, key: &str| {
        let containers = json!([container(&json!({"name": "other"}))]);
        named_set(
            "other",
            &json!({"containers": containers, "patchPodMetadata": [{"annotations": {key: "{}"}, "patchPolicy": policy}]}),
        )
    };
    for (own, their, key, conflicts) in [
        ("Overwrite", "MergePatchJson", "k", true),
        ("MergePatchJson", "Overwrite", "k", true),
        ("Overwrite", "Overwrite", "k", true),
        ("MergePatchJson", "MergePatchJson", "k", false),
        ("Retain", "Overwrite", "k", false),
        ("Overwrite", "Retain", "k", false),
        ("Overwrite", "Overwrite", "another", false),
    ] {
        let object = gives(&json!([{"annotations": {"k": "{}"}, "patchPolicy": own}]));
        let (errors, _) = judged(&object, &allowing(ALL, &[other(their, key)]));
        let expected = format!(
            "spec.patchPodMetadata[0].annotations[k]: Invalid value: \"k\": SidecarSet \"other\" changes this annotation too ({their}) \
             in pods that both sets select, and one of the two overwrites it"
        );
        assert_eq!(errors, if conflicts { expected } else { String::new() }, "{own} {their} {key}");
    }
}

fn hot(more: &Value) -> Value {
    let mut fields = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}});
    super::overlay(&mut fields, more);
    fields
}

#[test]
fn case_79_a_hot_upgrade_needs_another_image_for_the_container_that_waits() {
    let upgrade = |upgrade: Value| json!({"upgradeStrategy": upgrade});
    assert_container_errors(&[
        (hot(&json!({})), &[]),
        (
            upgrade(json!({"upgradeType": "HotUpgrade"})),
            &["upgradeStrategy.hotUpgradeEmptyImage: Required value: the container that waits needs an image"],
        ),
        (
            upgrade(json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "log:1"})),
            &[
                "upgradeStrategy.hotUpgradeEmptyImage: Invalid value: \"log:1\": must be another image than the container's",
            ],
        ),
        (
            upgrade(json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": " empty:1"})),
            &[
                "upgradeStrategy.hotUpgradeEmptyImage: Invalid value: \" empty:1\": must not have leading or trailing whitespace",
            ],
        ),
        (
            upgrade(json!({"hotUpgradeEmptyImage": "empty:1"})),
            &["upgradeStrategy.hotUpgradeEmptyImage: Forbidden: may only be specified with upgradeType HotUpgrade"],
        ),
        (
            hot(&json!({"ports": [{"containerPort": 80, "hostPort": 80}]})),
            &[
                "ports[0].hostPort: Forbidden: a container with a hot upgrade is there twice, and both cannot take one port of the node",
            ],
        ),
        (
            upgrade(json!({"upgradeType": "Foo"})),
            &[
                r#"upgradeStrategy.upgradeType: Unsupported value: "Foo": supported values: "ColdUpgrade", "HotUpgrade""#,
            ],
        ),
    ]);
    let plain = container(&hot(&json!({"name": "init"})));
    let mut native = plain.clone();
    native["restartPolicy"] = json!("Always");
    assert_errors(&[
        (
            set(&json!({"initContainers": [plain]})),
            "spec.initContainers[0].upgradeStrategy.upgradeType: Forbidden: an init container that ends before the others start has nothing to hand over",
        ),
        (set(&json!({"initContainers": [native]})), ""),
        // Case 18.
        (
            set(&json!({"containers": [container(&hot(&json!({}))), container(&json!({"name": "log-1"}))]})),
            r#"spec.containers[1].name: Duplicate value: "log-1""#,
        ),
        (
            set(&json!({"containers": [container(&hot(&json!({"name": "a".repeat(62)})))]})),
            &format!(
                "[spec.containers[0].name: Invalid value: \"{name}\": the hot upgrade's container \"{name}-1\" would have more than 63 characters, \
                 spec.containers[0].name: Invalid value: \"{name}\": the hot upgrade's container \"{name}-2\" would have more than 63 characters]",
                name = "a".repeat(62)
            ),
        ),
    ]);
}
