//! `StorageObjectInUseProtection` (4.20) and `PersistentVolumeClaimResize` (4.16).

use std::sync::Arc;

use admission::registry::Phase;
use admission::{Decision, Unserved};
use serde_json::{Value, json};

use super::{namespace, plugin};
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const PROTECT: &str = "/mutate--v1-persistentvolumeclaim-storageobjectinuseprotection";
const RESIZE: &str = "/validate--v1-persistentvolumeclaim-persistentvolumeclaimresize";

fn review(kind: &str, resource: &str, namespace: &str, old: &Value, new: &Value) -> Value {
    let group = if resource == "volumeattributesclasses" { "storage.k8s.io" } else { "" };
    let mut review = crate::testing::review(namespace, new);
    let request = json!({
        "operation": if old.is_null() { "CREATE" } else { "UPDATE" }, "oldObject": old, "name": "c",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
    });
    json_patch::merge(&mut review, &json!({"request": request}));
    review
}

fn protecting(more: Value) -> Cluster {
    let mut spec = json!({"plugin": "StorageObjectInUseProtection"});
    json_patch::merge(&mut spec, &more);
    Cluster::from_objects(&[plugin("p", spec), namespace(json!({}))])
}

#[test]
fn each_object_of_storage_gets_its_finalizer_once_as_the_table_says() {
    let claims = ("PersistentVolumeClaim", "persistentvolumeclaims", "shop");
    let volumes = ("PersistentVolume", "persistentvolumes", "");
    let classes = ("VolumeAttributesClass", "volumeattributesclasses", "");
    let (pvc, pv, vac) =
        ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "kubernetes.io/vac-protection");
    let cluster = protecting(json!({}));
    for ((kind, resource, namespace), had, expected) in [
        (claims, json!(null), json!([pvc])),
        (claims, json!([]), json!([pvc])),
        (claims, json!(["a.example/b"]), json!(["a.example/b", pvc])),
        (claims, json!([pvc]), json!([pvc])),
        (claims, json!([pv]), json!([pv, pvc])),
        (volumes, json!(null), json!([pv])),
        (volumes, json!([pvc, pv]), json!([pvc, pv])),
        (classes, json!(null), json!([vac])),
        (classes, json!([vac]), json!([vac])),
    ] {
        let mut object = json!({"metadata": {"name": "c"}});
        if !had.is_null() {
            object["metadata"]["finalizers"] = had.clone();
        }
        let reply = cluster.ask(PROTECT, &review(kind, resource, namespace, &Value::Null, &object)).unwrap();
        assert_eq!(reply.pod["metadata"]["finalizers"], expected, "{kind} with {had}");
        let again = cluster.ask(PROTECT, &review(kind, resource, namespace, &Value::Null, &reply.pod)).unwrap();
        assert_eq!(again.patch, None, "a second call changes nothing");
    }
    let claim = json!({"metadata": {"name": "c"}});
    let changed = cluster.ask(PROTECT, &review(claims.0, claims.1, "shop", &claim, &claim)).unwrap();
    assert_eq!(changed.patch, None, "one that is stored is left alone");
}

#[test]
fn what_would_be_protected_is_said_in_other_modes_and_volumes_are_in_no_namespace() {
    let volume = review("PersistentVolume", "persistentvolumes", "", &Value::Null, &json!({"metadata": {"name": "v"}}));
    let claim = |namespace: &str| {
        review(
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            namespace,
            &Value::Null,
            &json!({"metadata": {"name": "c"}}),
        )
    };
    let warned = protecting(json!({"mode": "Warn"})).ask(PROTECT, &volume).unwrap();
    assert_eq!(warned.patch, None);
    assert!(
        warned.warnings[0].ends_with("would add the finalizer kubernetes.io/pv-protection"),
        "{:?}",
        warned.warnings
    );
    let selecting = protecting(json!({"match": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}));
    assert_eq!(selecting.ask(PROTECT, &volume).unwrap().decision, Decision::Patched);
    assert_eq!(selecting.ask(PROTECT, &claim("shop")).unwrap().decision, Decision::Allowed);
    assert_eq!(protecting(json!({})).ask(PROTECT, &claim("kube-system")).unwrap().decision, Decision::Allowed);
    let exempt = protecting(json!({"match": {"excludeUsers": ["kim"]}}));
    let mut by_kim = volume;
    by_kim["request"]["userInfo"] = json!({"username": "kim"});
    assert_eq!(exempt.ask(PROTECT, &by_kim).unwrap().decision, Decision::Allowed);
}

/// Hundreds of thousands of finalizers are read where they are, and none is kept.
#[test]
fn many_finalizers_are_searched_in_one_walk() {
    let many: Vec<String> = (0..200_000).map(|at| format!("a.example/f{at}")).collect();
    let object = json!({"metadata": {"name": "c", "finalizers": many}});
    let reply = protecting(json!({}))
        .ask(PROTECT, &review("PersistentVolume", "persistentvolumes", "", &Value::Null, &object))
        .unwrap();
    assert_eq!(reply.pod["metadata"]["finalizers"].as_array().unwrap().len(), 200_001);
}

fn class(name: &str, expands: Value) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "allowVolumeExpansion": expands})
}

fn claim(size: Value, class: &Value, phase: &str) -> Value {
    json!({"metadata": {"name": "c"}, "status": {"phase": phase},
        "spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}}})
}

fn resizing(more: Value) -> Cluster {
    let mut spec = json!({"plugin": "PersistentVolumeClaimResize"});
    json_patch::merge(&mut spec, &more);
    let classes = [class("gold", json!(true)), class("silver", json!(null)), class("iron", json!(false))];
    Cluster::from_objects(&[&[plugin("r", spec), namespace(json!({}))][..], &classes].concat())
}

fn resized(cluster: &Cluster, old: &Value, new: &Value) -> Result<Reply, Unserved> {
    cluster.ask(RESIZE, &review("PersistentVolumeClaim", "persistentvolumeclaims", "shop", old, new))
}

#[test]
fn claims_grow_as_the_table_says() {
    const UNBOUND: &str = "Only bound persistent volume claims can be expanded";
    const NOT: &str = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    let gold = || json!("gold");
    for (row, old, new, why) in [
        ("gold grows", claim(json!("1Gi"), &gold(), "Bound"), claim(json!("2Gi"), &gold(), "Bound"), ""),
        ("no class", claim(json!("1Gi"), &json!(null), "Bound"), claim(json!("2Gi"), &json!(null), "Bound"), NOT),
        ("an empty class", claim(json!("1Gi"), &json!(""), "Bound"), claim(json!("2Gi"), &json!(""), "Bound"), NOT),
        ("silver", claim(json!("1Gi"), &json!("silver"), "Bound"), claim(json!("2Gi"), &json!("silver"), "Bound"), NOT),
        ("iron", claim(json!("1Gi"), &json!("iron"), "Bound"), claim(json!("2Gi"), &json!("iron"), "Bound"), NOT),
        (
            "a class that is gone",
            claim(json!("1Gi"), &json!("x"), "Bound"),
            claim(json!("2Gi"), &json!("x"), "Bound"),
            NOT,
        ),
        ("another class", claim(json!("1Gi"), &json!("silver"), "Bound"), claim(json!("2Gi"), &gold(), "Bound"), NOT),
        (
            "no change",
            claim(json!("1Gi"), &json!("silver"), "Bound"),
            claim(json!("1Gi"), &json!("silver"), "Bound"),
            "",
        ),
        (
            "another spelling",
            claim(json!("1Gi"), &json!("silver"), "Bound"),
            claim(json!("1024Mi"), &json!("silver"), "Bound"),
            "",
        ),
        (
            "it shrinks",
            claim(json!("2Gi"), &json!("silver"), "Bound"),
            claim(json!("1Gi"), &json!("silver"), "Bound"),
            "",
        ),
        ("pending", claim(json!("1Gi"), &gold(), "Pending"), claim(json!("2Gi"), &gold(), "Bound"), UNBOUND),
        ("no phase", claim(json!("1Gi"), &gold(), ""), claim(json!("2Gi"), &gold(), ""), UNBOUND),
        ("a number", claim(json!(1), &gold(), "Bound"), claim(json!(2), &gold(), "Bound"), ""),
    ] {
        let reply = resized(&resizing(json!({})), &old, &new).unwrap();
        let expected = if why.is_empty() { Decision::Allowed } else { Decision::Denied };
        assert_eq!(reply.decision, expected, "{row}: {}", reply.message);
        if !why.is_empty() {
            let text = format!("persistentvolumeclaims \"c\" is forbidden: {why}");
            assert_eq!((reply.code, reply.message.as_str()), (Some(403), text.as_str()), "{row}");
        }
    }
    // The annotation from before there was a field goes first.
    let annotated = |size: &str| {
        let mut claim = claim(json!(size), &json!("silver"), "Bound");
        claim["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "gold"});
        claim
    };
    assert_eq!(
        resized(&resizing(json!({})), &annotated("1Gi"), &annotated("2Gi")).unwrap().decision,
        Decision::Allowed
    );
}

#[test]
fn a_claim_that_grows_waits_for_the_classes_and_nothing_else_does() {
    let mut cluster = resizing(json!({})).live();
    let (small, large) = (claim(json!("1Gi"), &json!("gold"), "Bound"), claim(json!("2Gi"), &json!("gold"), "Bound"));
    let waits = resized(&cluster, &small, &large).unwrap_err();
    assert!(matches!(&waits, Unserved::NotReady(why) if why == "StorageClasses have not been read yet"), "{waits:?}");
    assert_eq!(resized(&cluster, &large, &small).unwrap().decision, Decision::Allowed);
    let pending = claim(json!("1Gi"), &json!("gold"), "Pending");
    assert_eq!(resized(&cluster, &pending, &large).unwrap().decision, Decision::Denied);
    Arc::make_mut(&mut cluster.snapshot.storage_classes).is_complete = true;
    assert_eq!(resized(&cluster, &small, &large).unwrap().decision, Decision::Allowed);
    let warned = resized(&resizing(json!({"mode": "Warn"})).live(), &small, &large).unwrap();
    assert!(warned.warnings[0].contains("cannot say whether it would refuse it"), "{:?}", warned.warnings);
}

#[test]
fn a_claim_that_goes_grows_no_more_than_another() {
    let mut old = claim(json!("1Gi"), &json!("silver"), "Bound");
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let new = claim(json!("2Gi"), &json!("silver"), "Bound");
    assert_eq!(resized(&resizing(json!({})), &old, &new).unwrap().decision, Decision::Denied);
}

#[test]
fn each_plugin_has_its_entry() {
    let entry = |cluster: &Cluster| {
        let found = demands(&cluster.snapshot);
        found.iter().map(|entry| (entry.phase, entry.name.clone())).collect::<Vec<_>>()
    };
    let name = |plugin: &str| format!("{plugin}.policy.outrider.dev");
    assert_eq!(entry(&protecting(json!({}))), [(Phase::Mutating, name("storageobjectinuseprotection"))]);
    assert_eq!(entry(&resizing(json!({}))), [(Phase::Validating, name("persistentvolumeclaimresize"))]);
}
