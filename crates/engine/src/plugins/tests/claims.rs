//! `DefaultStorageClass` (4.3).

use std::sync::Arc;

use admission::{Decision, Unserved};
use serde_json::{Value, json};

use super::{namespace, plugin};
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const PATH: &str = "/mutate--v1-persistentvolumeclaim-defaultstorageclass";
const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-01-01T00:00:01Z";

fn class(name: &str, created: &str, is_default: bool) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name, "creationTimestamp": created,
        "annotations": {"storageclass.kubernetes.io/is-default-class": is_default.to_string()}}})
}

fn on(name: &str, section: Value) -> Value {
    plugin(name, json!({"plugin": "DefaultStorageClass", "defaultStorageClass": section}))
}

fn cluster(objects: &[Value], classes: &[Value]) -> Cluster {
    Cluster::from_objects(&[objects, classes, &[namespace(json!({}))]].concat())
}

fn claim(spec: Value, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "annotations": annotations}, "spec": spec})
}

fn review(claim: &Value) -> Value {
    let mut review = crate::testing::review("shop", claim);
    review["request"]["kind"]["kind"] = "PersistentVolumeClaim".into();
    review["request"]["resource"]["resource"] = "persistentvolumeclaims".into();
    review
}

/// What becomes of a new claim; the second call changes nothing.
fn created(cluster: &Cluster, claim: &Value) -> Reply {
    let reply = cluster.ask(PATH, &review(claim)).unwrap();
    assert_eq!(cluster.ask(PATH, &review(&reply.pod)).unwrap().patch, None, "the second call changes nothing");
    reply
}

fn class_of(cluster: &Cluster, claim: &Value) -> Value {
    created(cluster, claim).pod["spec"]["storageClassName"].take()
}

#[test]
fn without_a_name_the_default_of_the_cluster_is_filled_in_as_the_table_says() {
    let none = json!({});
    let two = vec![class("default2", OLD, true), class("default1", OLD, true)];
    for (row, classes, spec, expected) in [
        (1, vec![], json!({}), Value::Null),
        (1, vec![class("other", NEW, false)], json!({}), Value::Null),
        (2, vec![class("default1", OLD, true), class("other", NEW, false)], json!({}), json!("default1")),
        (2, vec![class("default1", OLD, true)], json!({"storageClassName": null}), json!("default1")),
        (3, vec![class("default1", OLD, true)], json!({"storageClassName": ""}), json!("")),
        (4, vec![class("default1", OLD, true)], json!({"storageClassName": "foo"}), json!("foo")),
        (5, two.clone(), json!({}), json!("default1")),
        (6, vec![class("default1", OLD, true), class("default2", NEW, true)], json!({}), json!("default2")),
        (7, two, json!({"storageClassName": "foo"}), json!("foo")),
    ] {
        let cluster = cluster(&[on("a", none.clone())], &classes);
        assert_eq!(class_of(&cluster, &claim(spec.clone(), json!({}))), expected, "row {row}: {spec}");
        let annotated = claim(json!({}), json!({"volume.beta.kubernetes.io/storage-class": "foo"}));
        assert_eq!(class_of(&cluster, &annotated), Value::Null, "row {row}");
    }
}

#[test]
fn a_class_of_the_namespace_goes_to_claims_that_name_none() {
    let cluster = cluster(&[on("a", json!({"storageClassName": "fast"}))], &[class("standard", OLD, true)]);
    for (spec, expected) in [
        (json!({}), json!("fast")),
        (json!({"storageClassName": ""}), json!("")),
        // Who wrote it, and whether anybody did, is not known.
        (json!({"storageClassName": "standard"}), json!("standard")),
    ] {
        assert_eq!(class_of(&cluster, &claim(spec.clone(), json!({}))), expected, "{spec}");
    }
    let reply = created(&cluster, &claim(json!({}), json!({})));
    assert_eq!(reply.audit["plugins"], "a=PluginChanged");
    assert_eq!(reply.patch.unwrap(), json!([{"op": "add", "path": "/spec/storageClassName", "value": "fast"}]));
}

#[test]
fn what_the_api_server_filled_in_is_replaced_where_so_configured() {
    let section = json!({"storageClassName": "fast", "replaceClusterDefault": true});
    let cluster = cluster(&[on("a", section)], &[class("standard", OLD, true), class("slow", NEW, false)]);
    for (spec, expected) in [
        (json!({}), json!("fast")),
        (json!({"storageClassName": "standard"}), json!("fast")),
        (json!({"storageClassName": "slow"}), json!("slow")),
        (json!({"storageClassName": ""}), json!("")),
        (json!({"storageClassName": "fast"}), json!("fast")),
    ] {
        assert_eq!(class_of(&cluster, &claim(spec.clone(), json!({}))), expected, "{spec}");
    }
    let annotated =
        claim(json!({"storageClassName": "standard"}), json!({"volume.beta.kubernetes.io/storage-class": "x"}));
    assert_eq!(class_of(&cluster, &annotated), json!("standard"));
}

#[test]
fn of_several_objects_the_first_by_name_counts_and_updates_are_left_alone() {
    let objects =
        [on("b", json!({"storageClassName": "b"})), on("a", json!({})), on("c", json!({"storageClassName": "c"}))];
    assert_eq!(class_of(&cluster(&objects, &[]), &claim(json!({}), json!({}))), json!("b"), "a knows no default");
    assert_eq!(class_of(&cluster(&objects, &[class("d", OLD, true)]), &claim(json!({}), json!({}))), json!("d"));
    let mut update = review(&claim(json!({}), json!({})));
    update["request"]["operation"] = "UPDATE".into();
    assert_eq!(cluster(&objects, &[]).ask(PATH, &update).unwrap().patch, None);
}

#[test]
fn classes_that_were_not_read_are_waited_for_only_where_they_decide() {
    let live = |section: Value, mode: &str| {
        let spec = json!({"plugin": "DefaultStorageClass", "mode": mode, "defaultStorageClass": section});
        Cluster::from_objects(&[plugin("a", spec), namespace(json!({}))]).live()
    };
    let waits = |cluster: &Cluster, spec: Value| {
        let found = cluster.ask(PATH, &review(&claim(spec, json!({}))));
        matches!(found, Err(Unserved::NotReady(_)))
    };
    let (any, named) = (live(json!({}), "Enforce"), live(json!({"storageClassName": "fast"}), "Enforce"));
    assert!(waits(&any, json!({})));
    assert!(!waits(&any, json!({"storageClassName": "x"})) && !waits(&named, json!({})));
    let replacing = live(json!({"storageClassName": "fast", "replaceClusterDefault": true}), "Enforce");
    assert!(waits(&replacing, json!({"storageClassName": "x"})) && !waits(&replacing, json!({})));
    assert!(!waits(&replacing, json!({"storageClassName": ""})), "no class has that name");
    let warned = live(json!({}), "Warn").ask(PATH, &review(&claim(json!({}), json!({})))).unwrap();
    assert!(warned.decision == Decision::Allowed && warned.warnings[0].contains("have not been read yet"));
    let mut read = live(json!({}), "Enforce");
    let mut known = crate::plugins::storage_classes::StorageClasses::default();
    known.is_complete = true;
    read.snapshot.storage_classes = Arc::new(known);
    assert!(!waits(&read, json!({})));
    // Offline there are the classes of the manifests.
    let offline = created(&cluster(&[on("a", json!({}))], &[]), &claim(json!({}), json!({})));
    assert!(offline.warnings[0].contains("no StorageClass among the manifests"), "{:?}", offline.warnings);
}

#[test]
fn a_mode_that_does_not_enforce_says_which_class_it_would_set_and_exemptions_hold() {
    let spec =
        json!({"plugin": "DefaultStorageClass", "mode": "Warn", "defaultStorageClass": {"storageClassName": "fast"}});
    let reply = created(&cluster(&[plugin("a", spec)], &[]), &claim(json!({}), json!({})));
    assert_eq!(
        reply.warnings,
        ["PluginWouldChange: AdmissionPlugin \"a\" (DefaultStorageClass) would set the storage class fast"]
    );
    let spec = json!({"plugin": "DefaultStorageClass", "match": {"excludeUsers": ["kim"]},
        "defaultStorageClass": {"storageClassName": "fast"}});
    let mut review = review(&claim(json!({}), json!({})));
    review["request"]["userInfo"] = json!({"username": "kim"});
    let reply = cluster(&[plugin("a", spec)], &[]).ask(PATH, &review).unwrap();
    assert_eq!((reply.patch, reply.audit["plugins"].as_str()), (None, "a=PluginExempt"));
}

#[test]
fn the_entry_is_there_while_an_object_is_and_leaves_excluded_namespaces_alone() {
    let cluster = cluster(&[on("a", json!({"storageClassName": "fast"}))], &[]);
    let names: Vec<String> = demands(&cluster.snapshot).into_iter().map(|demand| demand.name).collect();
    assert_eq!(names, ["defaultstorageclass.policy.outrider.dev"]);
    for namespace in ["kube-system", "outrider-system"] {
        let mut review = review(&claim(json!({}), json!({})));
        review["request"]["namespace"] = namespace.into();
        assert_eq!(cluster.ask(PATH, &review).unwrap().patch, None, "{namespace}");
    }
}
