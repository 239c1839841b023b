//! Plugins of storage beside the API server's own.

use std::collections::BTreeMap;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::differential::{Random, seed, size};
use crate::plugins::{apply, plugin, served, small, webhooks};
use crate::plugins_asking::{programmed, run};
use crate::process::eventually;

fn class(name: &str, is_default: bool) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/none", "metadata": {
        "name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": is_default.to_string()}}})
}

fn claim(name: &str, class: &Value, annotations: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn claims(prefix: &str) -> Vec<Value> {
    let mut random = Random(seed(20_261_132) as u64);
    let mut one = |at: usize| {
        let class =
            random.pick(&[Value::Null, Value::Null, json!(""), json!("other"), json!("standard"), json!("gone")]);
        let annotations = random.pick(&[
            json!({}),
            json!({}),
            json!({}),
            json!({"volume.beta.kubernetes.io/storage-class": "other"}),
        ]);
        claim(&format!("{prefix}-{at}"), &class, &annotations)
    };
    (0..size(150)).map(&mut one).collect()
}

/// A field of every object of these kinds, by its name.
fn by_name(cluster: &Cluster, kinds: &str, pointer: &str) -> BTreeMap<String, Value> {
    let list = cluster.kubectl_ok(&["get", kinds, "-o", "json"], None).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let field = |it: &Value| (it["metadata"]["name"].to_string(), it.pointer(pointer).cloned().unwrap_or_default());
    list["items"].as_array().unwrap().iter().map(field).collect()
}

fn classes_of(cluster: &Cluster) -> BTreeMap<String, Value> {
    by_name(cluster, "persistentvolumeclaims", "/spec/storageClassName")
}

#[test]
#[ignore = "needs a control plane: make test"]
fn claims_get_the_class_that_the_plugin_of_the_api_server_gives_them() {
    let original = small(&[]);
    let (replaced, _outrider) = served(&["--disable-admission-plugins=DefaultStorageClass".to_owned()]);
    let (both, outrider) = served(&[]);
    let like_the_original = plugin("storage", &json!({"plugin": "DefaultStorageClass"}));
    for cluster in [&replaced, &both] {
        apply(cluster, std::slice::from_ref(&like_the_original));
        programmed(cluster, "storage");
    }
    let all = [&original, &replaced, &both];
    // Without a default there is nothing to fill in.
    for cluster in all {
        apply(cluster, &[class("other", false), class("standard", false)]);
        assert_eq!(run(cluster, "create", "", &claims("none")), Vec::<String>::new());
    }
    assert_eq!(outrider.plugin_decisions(), Vec::<String>::new(), "there was nothing to fill in");
    for cluster in all {
        apply(cluster, &[class("standard", true)]);
        // Outrider may know of it before the API server does, and fills it in then.
        eventually("the default is known", || {
            let before = outrider.plugin_decisions();
            run(cluster, "create", "", &[claim("probe", &Value::Null, &json!({}))]);
            let found = classes_of(cluster)["\"probe\""] == "standard" && outrider.plugin_decisions() == before;
            cluster.kubectl_ok(&["delete", "persistentvolumeclaim/probe", "--wait=false"], None).unwrap();
            cluster
                .kubectl(
                    &[
                        "patch",
                        "persistentvolumeclaim/probe",
                        "--type=merge",
                        "-p",
                        r#"{"metadata":{"finalizers":null}}"#,
                    ],
                    None,
                )
                .unwrap();
            found
        });
        let before = outrider.plugin_decisions();
        assert_eq!(run(cluster, "create", "", &claims("some")), Vec::<String>::new());
        assert_eq!(outrider.plugin_decisions(), before, "where the original is on as well, ours changes nothing");
    }
    let theirs = classes_of(&original);
    for cluster in [&replaced, &both] {
        assert_eq!(classes_of(cluster), theirs);
    }
    let named: BTreeMap<String, Value> = claims("some")
        .iter()
        .map(|claim| (claim["metadata"]["name"].to_string(), claim["spec"]["storageClassName"].clone()))
        .collect();
    let changed = named.iter().filter(|(name, class)| class.is_null() && theirs[*name] == "standard").count();
    eprintln!("{changed} of {} claims were changed, alike", named.len());
    assert!(changed * 5 > named.len(), "the claims show little: {changed}");

    // What the original filled in is replaced where so configured, in chosen namespaces.
    let section = json!({"storageClassName": "other", "replaceClusterDefault": true});
    let scope = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}});
    apply(
        &both,
        &[plugin("storage", &json!({"plugin": "DefaultStorageClass", "match": scope, "defaultStorageClass": section}))],
    );
    let mut round = 0;
    eventually("it is in force", || {
        round += 1;
        let name = format!("replaced-{round}");
        run(&both, "create", "", &[claim(&name, &Value::Null, &json!({}))]);
        classes_of(&both)[&format!("\"{name}\"")] == "other"
    });
    both.kubectl_ok(&["delete", "admissionplugin/storage"], None).unwrap();
    eventually("the entry is withdrawn", || webhooks(&both).is_empty());
}

/// Claims, volumes and classes of attributes, with and without finalizers.
fn objects_of_storage() -> Vec<Value> {
    let mut random = Random(seed(20_261_133) as u64);
    let mut one = |at: usize| {
        let name = format!("protected-{at}");
        let mut object = match at % 3 {
            0 => claim(&name, &json!("gold"), &json!({})),
            1 => json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
            _ => json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": name},
                "driverName": "example.com", "parameters": {"iops": "1"}}),
        };
        let all = [
            "kubernetes.io/pvc-protection",
            "kubernetes.io/pv-protection",
            "kubernetes.io/vac-protection",
            "a.example/b",
        ];
        let mut chosen: Vec<&str> =
            all.into_iter().filter(|_| random.pick(&[json!(true), json!(false), json!(false)]) == true).collect();
        if random.pick(&[json!(true), json!(false)]) == true {
            chosen.reverse();
        }
        if !chosen.is_empty() {
            object["metadata"]["finalizers"] = json!(chosen);
        }
        object
    };
    (0..size(90)).map(&mut one).collect()
}

fn finalizers(cluster: &Cluster) -> BTreeMap<String, Value> {
    by_name(cluster, "persistentvolumeclaims,persistentvolumes,volumeattributesclasses", "/metadata/finalizers")
}

#[test]
#[ignore = "needs a control plane: make test"]
fn objects_of_storage_are_protected_as_by_the_plugin_of_the_api_server() {
    let original = small(&[]);
    let (replaced, _outrider) = served(&["--disable-admission-plugins=StorageObjectInUseProtection".to_owned()]);
    let (both, outrider) = served(&[]);
    for cluster in [&replaced, &both] {
        apply(cluster, &[plugin("in-use", &json!({"plugin": "StorageObjectInUseProtection"}))]);
        programmed(cluster, "in-use");
    }
    let objects = objects_of_storage();
    for cluster in [&original, &replaced, &both] {
        assert_eq!(run(cluster, "create", "", &objects), Vec::<String>::new());
    }
    let theirs = finalizers(&original);
    assert_eq!(theirs.len(), objects.len());
    for cluster in [&replaced, &both] {
        assert_eq!(finalizers(cluster), theirs);
    }
    let written = |object: &Value| object["metadata"]["finalizers"].clone();
    let changed = objects.iter().filter(|it| theirs[&it["metadata"]["name"].to_string()] != written(it)).count();
    assert!(changed * 3 > objects.len(), "the objects show little: {changed}");
    assert_eq!(
        outrider.plugin_decisions(),
        Vec::<String>::new(),
        "where the original is on as well, ours is not called"
    );
}

/// What becomes of claims that grow, shrink and stay; the words of a refusal, sorted.
fn grow(cluster: &Cluster) -> (Vec<String>, BTreeMap<String, Value>) {
    let mut said = Vec::new();
    for (at, class) in ["gold", "silver", "iron", "", "gone"].into_iter().enumerate() {
        for (phase, is_bound) in [("bound", true), ("pending", false)] {
            for size in ["1Gi", "512Mi", "2Gi"] {
                let name = format!("{phase}-{at}-{}", size.to_lowercase());
                let mut object = claim(&name, &json!(class), &json!({}));
                object["spec"]["volumeName"] = json!(format!("volume-{name}"));
                said.extend(run(cluster, "create", "", &[object]));
                let name = format!("persistentvolumeclaim/{name}");
                let status = json!({"status": {"phase": if is_bound { "Bound" } else { "Pending" }}}).to_string();
                cluster
                    .kubectl_ok(&["patch", &name, "--subresource=status", "--type=merge", "-p", &status], None)
                    .unwrap();
                let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}}).to_string();
                let patched = cluster.kubectl(&["patch", &name, "--type=merge", "-p", &patch], None).unwrap();
                said.extend(crate::plugins_asking::said(&patched));
            }
        }
    }
    said.sort();
    (said, by_name(cluster, "persistentvolumeclaims", "/spec/resources/requests"))
}

#[test]
#[ignore = "needs a control plane: make test"]
fn claims_grow_where_the_plugin_of_the_api_server_lets_them() {
    let original = small(&[]);
    let (replaced, _outrider) = served(&["--disable-admission-plugins=PersistentVolumeClaimResize".to_owned()]);
    let (both, outrider) = served(&[]);
    let expanding = |name: &str, expands: Value| {
        let mut class = class(name, false);
        class["allowVolumeExpansion"] = expands;
        class
    };
    for cluster in [&original, &replaced, &both] {
        apply(cluster, &[expanding("gold", json!(true)), expanding("silver", json!(false)), class("iron", false)]);
    }
    for cluster in [&replaced, &both] {
        apply(cluster, &[plugin("resize", &json!({"plugin": "PersistentVolumeClaimResize"}))]);
        programmed(cluster, "resize");
    }
    let theirs = grow(&original);
    let refused =
        theirs.0.iter().filter(|line| line.contains("the storageclass that provisions the pvc must support resize"));
    assert!(refused.count() > 3, "the claims show little: {:?}", theirs.0);
    assert!(theirs.1["\"bound-0-2gi\""]["storage"] == "2Gi", "{:?}", theirs.1);
    for cluster in [&replaced, &both] {
        assert_eq!(grow(cluster), theirs);
    }
    let denied = outrider.plugin_decisions();
    assert_eq!(denied, Vec::<String>::new(), "where the original is on as well, it refuses first");
}
