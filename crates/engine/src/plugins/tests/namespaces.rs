//! `NamespaceLifecycle` (4.13) and `PodSecurity` (4.25).

use admission::Decision;
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const DELETION: &str = "/validate--v1-namespace-namespacelifecycle";
const LABELLING: &str = "/mutate--v1-namespace-podsecurity";
const LABELLED: &str = "/validate--v1-namespace-podsecurity";

fn namespace(name: &str, labels: Value, annotations: Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}})
}

fn ask(cluster: &Cluster, path: &str, operation: &str, object: Value, old: Value, user: &str) -> Reply {
    let name = if operation == "DELETE" { &json!("") } else { &object["metadata"]["name"] };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": name, "namespace": name, "operation": operation, "userInfo": {"username": user},
        "kind": {"group": "", "version": "v1", "kind": "Namespace"},
        "resource": {"group": "", "version": "v1", "resource": "namespaces"},
        "object": object, "oldObject": old, "dryRun": true,
    }});
    cluster.ask(path, &review).unwrap()
}

#[test]
fn protected_namespaces_are_not_deleted_alone_or_with_many() {
    let section = json!({
        "protectedNamespaces": ["prod-*", "vault"], "protectedLabelSelector": {"matchLabels": {"keep": "yes"}},
        "breakGlassAnnotation": "example.com/delete",
    });
    let cluster = Cluster::from_objects(&[plugin(
        "n",
        json!({"plugin": "NamespaceLifecycle", "namespaceLifecycle": section, "match": {"excludeUsers": ["root"]}}),
    )]);
    let none = || json!({});
    for (name, labels, annotations, user, is_allowed) in [
        ("prod-a", none(), none(), "kim", false),
        ("vault", none(), none(), "kim", false),
        ("other", json!({"keep": "yes"}), none(), "kim", false),
        ("other", json!({"keep": "no"}), none(), "kim", true),
        ("test", none(), none(), "kim", true),
        ("vault", none(), none(), "root", true),
        ("vault", none(), json!({"example.com/delete": "true"}), "kim", true),
        ("vault", none(), json!({"example.com/delete": "false"}), "kim", false),
        // Who may label a namespace does not evade what protects it.
        ("vault", json!({"outrider.dev/exclude": ""}), none(), "kim", false),
        ("kube-node-lease", json!({"keep": "yes"}), none(), "kim", false),
        ("outrider-system", json!({"keep": "yes"}), none(), "kim", true),
    ] {
        // As deletecollection has it, the request does not name the object.
        let reply = ask(&cluster, DELETION, "DELETE", Value::Null, namespace(name, labels, annotations), user);
        assert_eq!(reply.decision == Decision::Allowed, is_allowed, "{name} {user}");
        if !is_allowed {
            let text = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
            assert!(reply.message.starts_with(&text) && reply.code == Some(403), "{}", reply.message);
        }
    }
}

fn labelled(mode: &str) -> Cluster {
    let defaults = json!({"enforce": "baseline", "enforce-version": "latest", "warn": "restricted"});
    let spec = json!({
        "plugin": "PodSecurity", "mode": mode, "podSecurity": {"defaults": defaults},
        "match": {"excludeNamespaces": ["free"], "excludeUsers": ["root"]},
    });
    Cluster::from_objects(&[plugin("s", spec)])
}

fn label(name: &str) -> String {
    format!("pod-security.kubernetes.io/{name}")
}

#[test]
fn a_new_namespace_gets_the_labels_that_it_lacks() {
    let cluster = labelled("Enforce");
    let create = |path: &str, object: &Value| ask(&cluster, path, "CREATE", object.clone(), Value::Null, "kim");
    let plain = namespace("a", Value::Null, json!({}));
    let reply = create(LABELLING, &plain);
    let labels = json!({label("enforce"): "baseline", label("enforce-version"): "latest", label("warn"): "restricted"});
    assert_eq!(reply.pod["metadata"]["labels"], labels);
    assert_eq!(create(LABELLING, &reply.pod).patch, None, "the second call changes nothing");
    assert_eq!(create(LABELLED, &reply.pod).decision, Decision::Allowed);
    assert!(create(LABELLED, &plain).message.contains("enforce=baseline is missing"));
    let own = create(LABELLING, &namespace("a", json!({label("enforce"): "privileged"}), json!({})));
    assert_eq!(own.pod["metadata"]["labels"][label("enforce")], "privileged");
    assert_eq!(create(LABELLING, &namespace("free", json!({}), json!({}))).patch, None);
    let warned = ask(&labelled("Warn"), LABELLING, "CREATE", plain.clone(), Value::Null, "kim");
    assert!(warned.patch.is_none() && warned.warnings[0].contains("would add the labels"), "{:?}", warned.warnings);
    assert_eq!(ask(&labelled("Warn"), LABELLED, "CREATE", plain, Value::Null, "kim").decision, Decision::Allowed);
}

#[test]
fn what_is_enforced_is_not_weakened_below_the_default() {
    let cluster = labelled("Enforce");
    let with = |level: &str| {
        let labels = if level.is_empty() { json!({}) } else { json!({label("enforce"): level}) };
        namespace("a", labels, json!({}))
    };
    for (old, new, user, is_allowed) in [
        ("baseline", "", "kim", false),
        ("baseline", "", "root", true),
        ("baseline", "privileged", "kim", false),
        ("restricted", "privileged", "kim", false),
        ("restricted", "baseline", "kim", true),
        ("baseline", "restricted", "kim", true),
        ("privileged", "privileged", "kim", true),
        ("", "", "kim", true),
        ("", "privileged", "kim", true),
    ] {
        let reply = ask(&cluster, LABELLED, "UPDATE", with(new), with(old), user);
        assert_eq!(reply.decision == Decision::Allowed, is_allowed, "{old:?} {new:?} {user}: {}", reply.message);
    }
}

#[test]
fn the_version_of_what_is_enforced_does_not_become_older() {
    let with = |version: &str| {
        namespace("a", json!({label("enforce"): "restricted", label("enforce-version"): version}), json!({}))
    };
    for (old, new, is_allowed) in [("latest", "v1.0", false), ("v1.30", "v1.20", false), ("v1.30", "latest", true)] {
        let reply = ask(&labelled("Enforce"), LABELLED, "UPDATE", with(new), with(old), "kim");
        assert_eq!(reply.decision == Decision::Allowed, is_allowed, "{old} {new}");
    }
}

#[test]
fn each_needs_its_entries() {
    let found = demands(&labelled("Enforce").snapshot);
    let names: Vec<&str> = found.iter().map(|demand| demand.name.as_str()).collect();
    assert_eq!(names, ["podsecurity.policy.outrider.dev"; 2]);
}

#[test]
fn a_namespace_is_excluded_from_a_call_by_its_name_and_never_by_a_label() {
    let spec = json!({
        "plugin": "PodSecurity", "podSecurity": {"defaults": {"enforce": "baseline"}},
        "match": {"excludeNamespaces": ["free"], "namespaceSelector": {"matchLabels": {"a": "b"}}},
    });
    for demand in demands(&Cluster::from_objects(&[plugin("s", spec)]).snapshot) {
        assert!(demand.namespaces.is_none() && demand.excluded_namespaces.is_empty());
        let (name, expression) = &demand.match_conditions[0];
        assert!(name == "outrider.dev/excluded-namespaces" && expression.ends_with("in [\"free\"])"), "{expression}");
    }
}

#[test]
fn labels_of_several_objects_come_to_rest_and_what_does_not_enforce_refuses_no_change() {
    let object = |name: &str, mode: &str, defaults: Value, scope: Value| {
        plugin(
            name,
            json!({"plugin": "PodSecurity", "mode": mode, "match": scope, "podSecurity": {"defaults": defaults}}),
        )
    };
    let cluster = Cluster::from_objects(&[
        object("a", "Enforce", json!({"enforce": "baseline", "warn": "restricted"}), json!({})),
        object(
            "b",
            "Enforce",
            json!({"enforce": "restricted", "audit": "baseline"}),
            json!({"excludeUsers": ["root"]}),
        ),
        object("c", "Warn", json!({"warn-version": "latest"}), json!({})),
    ]);
    for user in ["kim", "root"] {
        let create = |path: &str, object: &Value| ask(&cluster, path, "CREATE", object.clone(), Value::Null, user);
        let first = create(LABELLING, &namespace("x", json!({}), json!({})));
        let labels = &first.pod["metadata"]["labels"];
        assert_eq!(labels[label("enforce")], "baseline", "the first by name counts");
        assert_eq!((labels.get(label("audit")).is_some(), labels.get(label("warn-version"))), (user == "kim", None));
        assert_eq!(create(LABELLING, &first.pod).patch, None);
        assert_eq!(create(LABELLED, &first.pod).decision, Decision::Allowed);
    }
    for (mode, warnings) in [("Warn", 1), ("Audit", 0)] {
        let with = |level: &str| namespace("x", json!({label("enforce"): level}), json!({}));
        let weakened = ask(&labelled(mode), LABELLED, "UPDATE", with("privileged"), with("baseline"), "kim");
        assert_eq!((weakened.decision, weakened.warnings.len()), (Decision::Allowed, warnings), "{mode}");
        assert_eq!(weakened.audit["plugins"], "s=PluginWouldDeny");
    }
}
