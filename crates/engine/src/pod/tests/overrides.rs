//! What a pod changes for itself (`spec.podOverrides`).

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

const ANNOTATION: &str = "outrider.dev/overrides";

fn cluster(more: Value) -> Cluster {
    let mut spec = json!({
        "containers": [{"name": "proxy", "image": "proxy:1", "env": [{"name": "LEVEL", "value": "info"}]}],
        "podOverrides": {"resources": {"max": {"cpu": "2"}}, "env": ["LEVEL"], "imageTag": true},
    });
    json_patch::merge(&mut spec, &more);
    Cluster::from_objects(&[set("s", spec)])
}

fn asking(text: &str) -> Value {
    let mut pod = pod(json!({}));
    pod["metadata"]["annotations"] = json!({ANNOTATION: text});
    pod
}

#[test]
fn a_pod_gets_what_it_may_ask_for_and_keeps_it_when_asked_again() {
    for more in [json!({}), json!({"optOut": "Denied"})] {
        let cluster = cluster(more);
        let asked = r#"{"proxy":{"image":"proxy:2","env":{"LEVEL":"debug"},"resources":{"limits":{"cpu":"1500m"}}}}"#;
        let reply = cluster.mutate(&asking(asked));
        assert_eq!((reply.reason, &reply.warnings), (reasons::INJECTED, &Vec::new()), "{}", reply.message);
        assert_eq!(
            reply.pod["spec"]["containers"][0],
            json!({
                "name": "proxy", "image": "proxy:2", "resources": {"limits": {"cpu": "1500m"}},
                "env": [{"name": "LEVEL", "value": "debug"}, {"name": "IS_INJECTED", "value": "true"}],
            })
        );
        assert_eq!(cluster.mutate(&reply.pod).patch, None);
        assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed);
        assert_eq!(reply.record()["s"]["hash"], cluster.mutate(&pod(json!({}))).record()["s"]["hash"]);
    }
}

#[test]
fn anything_else_is_a_clash_with_the_fields_name() {
    for (asked, says) in [
        (r#"{"proxy":{"command":["sh"]}}"#, "changes proxy.command of SidecarSet \"s\", which it may not"),
        (r#"{"proxy":{"image":"evil:1"}}"#, "changes proxy.image of"),
        (r#"{"proxy":{"env":{"LD_PRELOAD":"x"}}}"#, "changes proxy.env[LD_PRELOAD] of"),
        (r#"{"proxy":{"resources":{"limits":{"cpu":"3"}}}}"#, "changes proxy.resources.limits[cpu] of"),
        (r#"{"proxy":[]}"#, "changes proxy of"),
        ("{", "the annotation must be JSON"),
        ("[]", "the annotation must be JSON"),
    ] {
        let reply = cluster(json!({})).mutate(&asking(asked));
        assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::OVERRIDE_CLASH), "{asked}");
        assert_eq!(reply.causes[0]["field"], "metadata.annotations[outrider.dev/overrides]");
        assert!(reply.message.contains(says), "{}", reply.message);
        let skipped = cluster(json!({"clashPolicy": "Skip"})).mutate(&asking(asked));
        assert_eq!((skipped.decision, skipped.reason), (Decision::Allowed, reasons::OVERRIDE_CLASH), "{asked}");
        // A must is not evaded by asking for what cannot be had.
        assert_eq!(cluster(json!({"optOut": "Denied"})).validate(&asking(asked)).decision, Decision::Denied);
    }
    let none = cluster(json!({"podOverrides": null})).mutate(&asking(r#"{"proxy":{}}"#));
    assert!(none.message.contains("the set does not let pods change anything"), "{}", none.message);
    let other =
        cluster(json!({"podOverrides": {"containerNames": ["gone"]}})).mutate(&asking(r#"{"proxy":{"env":{}}}"#));
    assert!(other.message.contains("the set lets pods change other containers alone"), "{}", other.message);
}

#[test]
fn an_annotation_that_asks_for_something_of_nobody_is_warned_about() {
    let reply = cluster(json!({})).mutate(&asking(r#"{"porxy":{"image":"proxy:2"}}"#));
    assert_eq!(reply.reason, reasons::INJECTED);
    assert_eq!(
        reply.warnings,
        [r#"outrider.dev/overrides names container "porxy", which no SidecarSet that selects the pod has"#]
    );
    let unreadable = cluster(json!({"podOverrides": null})).mutate(&asking("{"));
    assert_eq!(unreadable.reason, reasons::INJECTED);
    assert!(unreadable.warnings[0].starts_with("outrider.dev/overrides must be JSON"), "{:?}", unreadable.warnings);
}

#[test]
fn what_is_asked_of_a_hot_upgrade_container_is_for_both_of_its_pair() {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    let more = json!({
        "containers": [{"name": "h", "image": "h:1", "upgradeStrategy": upgrade}],
        "podOverrides": {"containerNames": ["h"]},
    });
    let must = json!({"optOut": "Denied"});
    for must in [json!({}), must] {
        let mut more = more.clone();
        json_patch::merge(&mut more, &must);
        let asked = r#"{"h":{"image":"h:2","env":{"LEVEL":"debug"},"resources":{"limits":{"cpu":"1"}}}}"#;
        let reply = cluster(more.clone()).mutate(&asking(asked));
        assert_eq!((reply.reason, &reply.warnings), (reasons::INJECTED, &vec![]), "{}", reply.message);
        for (name, image) in [("h-1", "h:2"), ("h-2", "empty:1")] {
            let containers = reply.pod["spec"]["containers"].as_array().unwrap();
            let container = containers.iter().find(|container| container["name"] == name).unwrap();
            assert_eq!(container["image"], image);
            assert_eq!(container["env"][0], json!({"name": "LEVEL", "value": "debug"}));
            assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}}));
        }
        assert_eq!(cluster(more.clone()).mutate(&reply.pod).patch, None);
        assert_eq!(cluster(more.clone()).validate(&reply.pod).decision, Decision::Allowed);

        let one = cluster(more).mutate(&asking(r#"{"h-1":{"env":{"LEVEL":"debug"}}}"#));
        assert_eq!((one.decision, one.reason), (Decision::Denied, reasons::OVERRIDE_CLASH));
        let says = r#"changes h-1 of SidecarSet "s", which it may not: it is one of the two of "h" (HotUpgrade), which change together: name "h""#;
        assert!(one.message.contains(says), "{}", one.message);
    }
}

#[test]
fn no_pod_lets_both_containers_of_a_pair_wait() {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "h:empty"});
    let reply = cluster(json!({
        "containers": [{"name": "h", "image": "h:1", "upgradeStrategy": upgrade}],
        "podOverrides": {"containerNames": ["h"]},
    }))
    .mutate(&asking(r#"{"h":{"image":"h:empty"}}"#));
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::OVERRIDE_CLASH));
    assert!(reply.message.contains("neither container of the pair would work"), "{}", reply.message);
}

/// It is no warning that nothing is changed: the pod is refused.
#[test]
fn an_annotation_that_cannot_be_read_is_reported_once() {
    assert_eq!(cluster(json!({})).mutate(&asking("x")).warnings, [""; 0]);
    let skipped = cluster(json!({"clashPolicy": "Skip"})).mutate(&asking("x"));
    assert_eq!((skipped.decision, skipped.warnings.len()), (Decision::Allowed, 1), "{:?}", skipped.warnings);
}

#[test]
fn hostile_annotations_are_a_clash_or_nothing() {
    let deep = format!(r#"{{"proxy":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let many: serde_json::Map<String, Value> = (0..10_000).map(|at| (format!("c{at}"), json!({}))).collect();
    assert_eq!(cluster(json!({})).mutate(&asking(&deep)).reason, reasons::OVERRIDE_CLASH);
    let reply = cluster(json!({})).mutate(&asking(&Value::Object(many).to_string()));
    assert_eq!((reply.reason, reply.warnings.len()), (reasons::INJECTED, 3));
}

#[test]
fn a_pod_that_changes_its_mind_after_injection_carries_another_form() {
    let injected = cluster(json!({})).mutate(&asking(r#"{"proxy":{"image":"proxy:2"}}"#)).pod;
    let mut changed = injected;
    changed["metadata"]["annotations"][ANNOTATION] = json!(r#"{"proxy":{"image":"proxy:3"}}"#);
    assert_eq!(cluster(json!({})).mutate(&changed).reason, reasons::OUTDATED);
    assert_eq!(cluster(json!({"optOut": "Denied"})).mutate(&changed).decision, Decision::Denied);
}

#[test]
fn a_limit_of_zero_is_none_and_so_above_every_bound() {
    for list in ["limits", "requests"] {
        for amount in [json!("0"), json!(0), json!("0.0"), json!("0e9")] {
            let asked = json!({"proxy": {"resources": {list: {"cpu": amount}}}}).to_string();
            let reply = cluster(json!({"optOut": "Denied"})).mutate(&asking(&asked));
            let expected = if list == "limits" { Decision::Denied } else { Decision::Patched };
            assert_eq!(reply.decision, expected, "{asked}");
            assert_eq!(reply.message.contains("a limit of 0 is none"), list == "limits", "{}", reply.message);
        }
    }
}
