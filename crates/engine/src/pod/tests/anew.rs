//! What a pod would be that is created in place of a running one.

use serde_json::{Value, json};

use super::canary::canary;
use super::revisions::{form, pinned, revision};
use crate::pod::anew::why_not;
use crate::testing::{Cluster, NAMESPACE, pod, set};

/// A set of one container with these fields, and with these beside it in the spec.
fn with(container: Value, more: Value) -> Value {
    let mut whole = json!({"name": "log", "image": "log:1"});
    json_patch::merge(&mut whole, &container);
    let mut spec = json!({"containers": [whole]});
    json_patch::merge(&mut spec, &more);
    set("log", spec)
}

/// Why the pod that the set makes, with this in its spec, would not have the other form if it were created anew.
fn asked(spec: Value, before: &Value, after: &[Value]) -> Option<String> {
    let pod = Cluster::from_objects(std::slice::from_ref(before)).mutate(&pod(spec)).pod;
    why_not(&pod, NAMESPACE, "log", &Cluster::from_objects(after).snapshot).unwrap()
}

#[test]
fn a_new_pod_has_whatever_the_set_changes() {
    let volume = |source: Value| json!({"volumes": [{"name": "logs", "emptyDir": source["emptyDir"], "configMap": source["configMap"]}]});
    let mounts = json!({"volumeMounts": [{"name": "logs", "mountPath": "/logs"}]});
    let init = |image: &str| json!({"initContainers": [{"name": "setup", "image": image}]});
    for (case, before, after) in [
        ("env", with(json!({}), json!({})), with(json!({"env": [{"name": "A", "value": "b"}]}), json!({}))),
        (
            "a volume from elsewhere",
            with(mounts.clone(), volume(json!({"emptyDir": {}}))),
            with(mounts, volume(json!({"configMap": {"name": "logs"}}))),
        ),
        ("an init container", with(json!({}), init("setup:1")), with(json!({}), init("setup:2"))),
        ("a container less", with(json!({}), init("setup:1")), with(json!({}), json!({}))),
        ("the image", with(json!({}), json!({})), with(json!({"image": "log:2"}), json!({}))),
        (
            "a native sidecar in pods that end",
            with(json!({}), json!({"jobPods": "NativeSidecar"})),
            with(json!({"env": [{"name": "A", "value": "b"}]}), json!({"jobPods": "NativeSidecar"})),
        ),
    ] {
        let spec = if case.contains("that end") { json!({"restartPolicy": "Never"}) } else { json!({}) };
        assert_eq!(asked(spec, &before, &[after]), None, "{case}");
    }
}

#[test]
fn a_new_pod_that_would_go_without_the_form_is_no_help() {
    let before = with(json!({}), json!({}));
    let env = json!({"env": [{"name": "A", "value": "b"}]});
    let own = json!({"volumes": [{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}]});
    let clashing = |policy: &str| {
        let mounts = json!({"volumeMounts": [{"name": "logs", "mountPath": "/logs"}]});
        with(mounts, json!({"volumes": [{"name": "logs", "emptyDir": {}}], "clashPolicy": policy}))
    };
    for (case, after, expected) in [
        ("clash, refused", vec![clashing("Refuse")], "a new pod would be refused for SidecarSet \"log\": "),
        ("clash, skipped", vec![clashing("Skip")], "a new pod would go without the set: "),
        (
            "paused",
            vec![with(env.clone(), json!({"injectionStrategy": {"paused": true}}))],
            "a new pod would go without the set: injection by SidecarSet \"log\" is paused",
        ),
        (
            "another platform",
            vec![with(env.clone(), json!({"platform": "windows"}))],
            "a new pod would go without the set: ",
        ),
        (
            "other labels",
            vec![with(env.clone(), json!({"selector": {"matchLabels": {"app": "other"}}}))],
            "no new pod of these labels gets the set",
        ),
        (
            "a canary",
            vec![with(env, json!({})), canary("canary", "log", json!({}))],
            "a new pod would go without the set: ",
        ),
    ] {
        let found = asked(own.clone(), &before, &after).unwrap_or_default();
        assert!(found.starts_with(expected), "{case}: {found}");
    }
}

#[test]
fn another_set_that_refuses_the_new_pod_leaves_the_workload_without_it() {
    let mounts = json!({"volumeMounts": [{"name": "logs", "mountPath": "/logs"}]});
    let refusing = set(
        "other",
        json!({
            "containers": [{"name": "other", "image": "o:1", "volumeMounts": mounts["volumeMounts"]}],
            "volumes": [{"name": "logs", "emptyDir": {}}], "clashPolicy": "Refuse",
        }),
    );
    let own = json!({"volumes": [{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}]});
    let after = with(json!({"env": [{"name": "A", "value": "b"}]}), json!({}));
    let found = asked(own, &with(json!({}), json!({})), &[after, refusing]).unwrap();
    assert!(found.starts_with("a new pod would be refused for SidecarSet \"other\": "), "{found}");
}

#[test]
fn a_pinned_revision_and_an_opt_out_keep_the_form_from_a_new_pod() {
    let old = form(&["proxy"], 1, json!({}));
    let kept = revision(&old, "s", "old");
    let mut running = Cluster::from_objects(std::slice::from_ref(&old)).mutate(&pod(json!({}))).pod;
    let why = |running: &Value, objects: &[Value]| {
        why_not(running, NAMESPACE, "s", &Cluster::from_objects(objects).snapshot).unwrap()
    };
    let pin = form(&["proxy"], 2, pinned("Always", json!({})));
    let found = why(&running, &[pin, kept.clone()]).unwrap();
    assert_eq!(found, "a new pod would get an older revision of the set");
    let partial = form(&["proxy"], 2, pinned("Partial", json!({"partition": "0%"})));
    assert_eq!(why(&running, &[partial, kept]), None);
    running["metadata"]["annotations"]["outrider.dev/skip"] = "s".into();
    let found = why(&running, &[form(&["proxy"], 2, json!({}))]).unwrap();
    assert!(found.contains("opted out"), "{found}");
}

/// The template of the workload has the container itself, without a record.
#[test]
fn an_older_container_of_the_template_stays_in_a_new_pod() {
    let mut running =
        pod(json!({"containers": [{"name": "app", "image": "app:1"}, {"name": "log", "image": "log:0"}]}));
    running["metadata"]["labels"] = json!({"app": "web"});
    let cluster = Cluster::from_objects(&[with(json!({"env": [{"name": "A", "value": "b"}]}), json!({}))]);
    assert!(why_not(&running, NAMESPACE, "log", &cluster.snapshot).unwrap().is_some());
}
