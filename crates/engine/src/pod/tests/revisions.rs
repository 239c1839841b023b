//! Older revisions in new pods.

use admission::Decision;
use serde_json::{Value, json};

use crate::pod::explain::explain;
use crate::reasons;
use crate::sidecarset::canonical::injected_fields;
use crate::sidecarset::compiled::revision_name;
use crate::testing::{Cluster, compile, pod, review, set};

/// The set with containers of these names, and images of this tag.
pub(super) fn form(names: &[&str], tag: u32, more: Value) -> Value {
    let container = |name: &&str| json!({"name": name, "image": format!("{name}:{tag}")});
    let mut spec = json!({"containers": names.iter().map(container).collect::<Vec<_>>()});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    set("s", spec)
}

/// The revision of a form, as the controller writes it.
pub(super) fn revision(form: &Value, owner: &str, version: &str) -> Value {
    let compiled = compile(form);
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(&compiled.name, &compiled.hash),
            "labels": {"apps.outrider.dev/sidecarset-custom-version": version},
            "ownerReferences": [{"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "name": owner, "uid": "u", "controller": true}],
        },
        "revision": 1, "data": {"spec": injected_fields(&compiled.spec())},
    })
}

pub(super) fn pinned(policy: &str, update: Value) -> Value {
    let strategy = json!({"revision": {"customVersion": "old", "policy": policy}});
    json!({"injectionStrategy": strategy, "updateStrategy": update})
}

fn images(pod: &Value) -> Vec<&str> {
    pod["spec"]["containers"].as_array().unwrap().iter().filter_map(|it| it["image"].as_str()).collect()
}

#[test]
fn case_52_a_pinned_pod_gets_exactly_what_the_revision_has_and_its_record_names_it() {
    let mut old = form(&["dns"], 1, json!({}));
    old["spec"]["initContainers"] = json!([{"name": "init", "image": "init:2"}]);
    let new = form(&["proxy", "log"], 5, pinned("Always", json!({})));
    let kept = revision(&old, "s", "old");
    let cluster = Cluster::from_objects(&[new, kept.clone()]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.names("initContainers"), reply.names("containers")), (vec!["init"], vec!["dns", "app"]));
    assert_eq!(reply.record()["s"]["revision"], kept["metadata"]["name"]);
    let again = cluster.mutate(&reply.pod);
    assert_eq!((again.reason, &again.patch), (reasons::ALREADY_INJECTED, &None));
    assert_eq!(cluster.validate(&reply.pod).reason, reasons::ALREADY_INJECTED);
}

#[test]
fn case_54_of_six_versions_the_one_that_is_pinned_is_injected() {
    let forms: Vec<Value> = (0..6).map(|tag| form(&["proxy"], tag, json!({}))).collect();
    let mut objects: Vec<Value> =
        forms.iter().zip(0..).map(|(form, tag)| revision(form, "s", &format!("{tag}"))).collect();
    let strategy =
        json!({"injectionStrategy": {"revision": {"customVersion": "3"}}, "updateStrategy": {"paused": true}});
    objects.push(form(&["proxy"], 5, strategy));
    let reply = Cluster::from_objects(&objects).mutate(&pod(json!({})));
    assert_eq!(images(&reply.pod)[0], "proxy:3");
    assert_eq!(reply.record()["s"]["revision"], objects[3]["metadata"]["name"]);
}

#[test]
fn case_55_pods_that_the_update_selector_matches_get_the_new_form_and_others_the_old() {
    let update = json!({"selector": {"matchLabels": {"version": "canary"}}});
    let kept = revision(&form(&["proxy"], 1, json!({})), "s", "old");
    for policy in ["Partial", "Always"] {
        let cluster = Cluster::from_objects(&[form(&["proxy"], 2, pinned(policy, update.clone())), kept.clone()]);
        for (label, expected) in [("stable", "proxy:1"), ("canary", "proxy:2")] {
            let mut pod = pod(json!({}));
            pod["metadata"]["labels"]["version"] = json!(label);
            assert_eq!(images(&cluster.mutate(&pod).pod)[0], expected, "{policy} {label}");
        }
    }
}

/// The form that a pod of this owner gets at 50 percent.
fn at_half(metadata: Value) -> String {
    let kept = revision(&form(&["proxy"], 1, json!({})), "s", "old");
    let cluster = Cluster::from_objects(&[form(&["proxy"], 2, pinned("Partial", json!({"partition": "50%"}))), kept]);
    let mut pod = pod(json!({}));
    pod["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    pod["metadata"]["labels"]["app"] = json!("web");
    images(&cluster.mutate(&pod).pod)[0].to_owned()
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}])
}

#[test]
fn the_pods_of_a_workload_get_one_form_and_workloads_differ() {
    let mut forms = Vec::new();
    for web in 0..20 {
        let of = |hash: &str, pod: &str| {
            let labels = json!({"app": "web", "pod-template-hash": hash});
            at_half(
                json!({"name": pod, "labels": labels, "ownerReferences": owner("ReplicaSet", &format!("web-{web}-{hash}"))}),
            )
        };
        let found = of("5d4f", "a");
        assert_eq!(
            [of("5d4f", "b"), of("77c9", "c")],
            [found.clone(), found.clone()],
            "another template, the same workload"
        );
        forms.push(found);
    }
    assert!(forms.contains(&"proxy:1".to_owned()) && forms.contains(&"proxy:2".to_owned()));
    let of_sets: Vec<String> = (0..20)
        .map(|ordinal| at_half(json!({"name": format!("db-{ordinal}"), "generateName": "db-", "ownerReferences": owner("StatefulSet", "db")})))
        .collect();
    assert!(of_sets.iter().any(|form| *form != of_sets[0]), "each pod of a StatefulSet for itself");
    for web in 0..20 {
        // Before and after the API server has made up the name.
        let prefix = format!("bare-{web}-");
        let named = json!({"name": format!("{prefix}x7kq2"), "generateName": prefix});
        assert_eq!(at_half(json!({"generateName": prefix, "name": ""})), at_half(named));
    }
}

#[test]
fn a_revision_that_is_missing_or_changed_or_of_another_set_is_a_clash_of_the_set_alone() {
    let old = form(&["proxy"], 1, json!({}));
    let mut forged = revision(&old, "s", "old");
    forged["data"]["spec"]["containers"][0]["image"] = json!("evil:1");
    let mut of_a_deployment = revision(&old, "s", "old");
    of_a_deployment["metadata"]["ownerReferences"][0]["kind"] = json!("Deployment");
    assert!(crate::snapshot::revisions::Revision::of(&of_a_deployment).is_none());
    for (kept, text) in [
        (vec![], "no ControllerRevision of the set has the custom version \"old\""),
        (vec![revision(&old, "another", "old")], "no ControllerRevision of the set"),
        (vec![forged], "its name does not match the hash of its content"),
    ] {
        for (policy, decision) in [("Refuse", Decision::Denied), ("Skip", Decision::Allowed)] {
            let mut more = pinned("Always", json!({}));
            more["clashPolicy"] = json!(policy);
            let mut objects = kept.clone();
            objects.push(form(&["proxy"], 2, more));
            let reply = Cluster::from_objects(&objects).mutate(&pod(json!({})));
            assert_eq!(reply.decision, decision);
            assert_eq!(reply.audit["skipped"], "s=EvaluationFailed");
            let said = format!("{} {}", reply.message, reply.warnings.join(" "));
            assert!(said.contains(text) && !said.contains("evil:1"), "{said}");
        }
    }
}

#[test]
fn a_forged_record_of_the_pinned_revision_does_not_evade_a_must() {
    let mut more = pinned("Always", json!({}));
    more["optOut"] = json!("Denied");
    let kept = revision(&form(&["proxy"], 1, json!({})), "s", "old");
    let cluster = Cluster::from_objects(&[form(&["proxy"], 2, more), kept.clone()]);
    let honest = cluster.mutate(&pod(json!({}))).pod;
    assert_eq!(cluster.validate(&honest).decision, Decision::Allowed);
    let mut forged = honest;
    let place = forged["spec"]["containers"].as_array().unwrap().iter().position(|it| it["name"] == "proxy").unwrap();
    forged["spec"]["containers"][place]["image"] = json!("evil:1");
    assert_eq!(cluster.validate(&forged).decision, Decision::Denied);
    assert_eq!(cluster.mutate(&forged).decision, Decision::Denied);
}

#[test]
fn explain_names_the_revision_and_why_the_pod_gets_it() {
    let kept = revision(&form(&["proxy"], 1, json!({})), "s", "old");
    let name = kept["metadata"]["name"].as_str().unwrap().to_owned();
    for (policy, update, reason, why) in [
        ("Always", json!({}), reasons::INJECTED, "spec.injectionStrategy.revision)"),
        (
            "Partial",
            json!({"partition": "100%"}),
            reasons::PARTIAL_HELD_BACK,
            "as spec.updateStrategy does not include the pod yet)",
        ),
    ] {
        let cluster = Cluster::from_objects(&[form(&["proxy"], 2, pinned(policy, update)), kept.clone()]);
        let found = explain(review("shop", &pod(json!({}))).to_string().as_bytes(), &cluster.snapshot).unwrap();
        let told = &found.sets[0].why;
        assert_eq!(told.reason, reason);
        assert!(told.text.contains(&format!("of revision {name:?}")) && told.text.ends_with(why), "{}", told.text);
    }
}
