//! Pods that are larger than what is read of one, when they are changed while there is a must: nothing may hide behind a limit, and what
//! concerns no must is left alone.

use std::fmt::Write as _;

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::pod::limits;
use crate::testing::{Cluster, Reply, pod, review, set};

const PATH: &str = "/validate--v1-pod-update";

/// A must for `app: web`, and a set of another label that is none.
fn cluster() -> Cluster {
    let soft =
        set("soft", json!({"selector": {"matchLabels": {"soft": "1"}}, "containers": [{"name": "s", "image": "s:1"}]}));
    Cluster::from_objects(&[set("log", json!({"optOut": "Denied"})), soft])
}

fn carrying() -> Value {
    cluster().mutate(&pod(json!({}))).pod
}

fn update(sub_resource: &str, old: &Value, new: &Value) -> Reply {
    let mut review = review("shop", new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["subResource"] = sub_resource.into();
    review["request"]["oldObject"] = old.clone();
    cluster().ask(PATH, &review).unwrap()
}

fn of_set(pod: &Value) -> usize {
    let list = pod["spec"]["containers"].as_array().unwrap();
    list.iter().position(|container| container["name"] != "app").unwrap()
}

fn with_pairs(mut pod: Value, map: &str, count: usize) -> Value {
    for number in 0..count {
        pod["metadata"][map][format!("a{number}")] = "".into();
    }
    pod
}

fn evil(mut pod: Value) -> Value {
    let at = of_set(&pod);
    pod["spec"]["containers"][at]["image"] = "evil:1".into();
    pod
}

fn unlabelled(mut pod: Value) -> Value {
    pod["metadata"]["labels"].as_object_mut().unwrap().remove("app");
    pod
}

#[test]
fn many_annotations_hide_no_must_and_stop_no_rollout() {
    let many = with_pairs(carrying(), "annotations", 5_000);
    for new in [evil(unlabelled(carrying())), unlabelled(carrying()), unlabelled(many.clone()), evil(many.clone())] {
        let reply = update("", &many, &new);
        assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(403)), "{}", reply.message);
    }
    // A rollout's change.
    assert_eq!(update("", &evil(many.clone()), &many).decision, Decision::Allowed);
    // A pod that is created with them carries the set as any other.
    let created = with_pairs(pod(json!({})), "annotations", 5_000);
    let reply = cluster().mutate(&created);
    assert_eq!(
        (reply.decision, reply.pod["spec"]["containers"].as_array().map(Vec::len)),
        (Decision::Patched, Some(2))
    );
    assert_eq!(cluster().validate(&reply.pod).decision, Decision::Allowed);
}

#[test]
fn of_a_pod_with_more_labels_than_are_read_no_label_changes() {
    let many = with_pairs(pod(json!({})), "labels", limits::PAIRS);
    let without = unlabelled(with_pairs(pod(json!({})), "labels", limits::PAIRS + 1));
    let mut gained = without.clone();
    gained["metadata"]["labels"]["app"] = "web".into();
    for (old, new) in [(&without, &gained), (&gained, &without), (&many, &without)] {
        let reply = update("", old, new);
        assert_eq!((reply.reason, reply.code), (Reason::TOO_LARGE, Some(422)), "{}", reply.message);
    }
    let mut annotated = gained.clone();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(update("", &gained, &annotated).decision, Decision::Allowed, "nothing that matters changes");
    let mut changed = gained.clone();
    changed["spec"]["containers"][0]["image"] = "shop:2".into();
    assert_eq!(update("", &gained, &changed).reason, Reason::TOO_LARGE, "it is unknown whether that is a set's");
}

#[test]
fn no_ephemeral_container_hides_behind_a_thousand_others() {
    let old = carrying();
    let target = old["spec"]["containers"][of_set(&old)]["name"].clone();
    for (others, code) in [(limits::CONTAINERS - 1, 403), (limits::CONTAINERS, 422), (limits::CONTAINERS + 1, 422)] {
        let mut list: Vec<Value> = (0..others).map(|at| json!({"name": format!("e{at}"), "image": "sh"})).collect();
        list.push(json!({"name": "evil", "image": "sh", "targetContainerName": target}));
        let mut new = old.clone();
        new["spec"]["ephemeralContainers"] = list.into();
        let reply = update("ephemeralcontainers", &old, &new);
        assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(code)), "{others}: {}", reply.message);
    }
}

#[test]
fn a_large_pod_is_refused_only_for_what_concerns_a_must() {
    let volumes: Vec<Value> =
        (0..=limits::VOLUMES).map(|at| json!({"name": format!("v{at}"), "emptyDir": {}})).collect();
    let labelled = |labels: Value| {
        let mut pod = pod(json!({"volumes": volumes}));
        pod["metadata"]["labels"] = labels;
        pod
    };
    let image = |mut pod: Value| {
        pod["spec"]["containers"][0]["image"] = "shop:2".into();
        pod
    };
    let (soft, must) = (labelled(json!({"soft": "1"})), labelled(json!({"app": "web"})));
    let (soft_more, must_more) = (labelled(json!({"soft": "1", "b": "c"})), labelled(json!({"app": "web", "b": "c"})));
    for (old, new, is_allowed) in [
        (&soft, &soft_more, true),
        (&soft, &image(soft.clone()), true),
        (&must, &must_more, true),
        (&must, &image(must.clone()), false),
        (&soft, &must, false),
        (&must, &soft, false),
    ] {
        let reply = update("", old, new);
        let expected = if is_allowed { None } else { Some(422) };
        assert_eq!(reply.code.filter(|code| *code != 200), expected, "{} {}", new["metadata"]["labels"], reply.message);
    }
}

#[test]
fn the_mark_of_injection_is_read_without_decoding_the_container() {
    let mut args = String::from("[");
    for _ in 0..1_000 {
        write!(args, r#"{{"":0}},"#).unwrap();
    }
    let container = |env: &str| format!(r#"{{"args":{args}0],"env":{env}}}"#);
    for (env, expected) in [
        (r#"[{"name":"IS_INJECTED","value":"true"}]"#, true),
        (r#"[{"name":"IS_INJECTED","value":"true"},{"name":"IS_INJECTED","value":"no"}]"#, false),
        (r#"[{"name":"IS_INJECTED","value":"no"},{"name":"B"},{"name":"IS_INJECTED","value":"true"}]"#, true),
        (r#"[{"name":"B","value":"IS_INJECTED"}]"#, false),
        ("null", false),
        ("{}", false),
    ] {
        let json = container(env);
        let raw: &serde_json::value::RawValue = serde_json::from_str(&json).unwrap();
        assert_eq!(crate::sidecarset::mark::is_marked_raw(raw), expected, "{env}");
    }
}
