//! `DefaultStorageClass` beside the API server's own plugin.

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

fn classes_of(cluster: &Cluster) -> BTreeMap<String, Value> {
    let list = cluster.kubectl_ok(&["get", "persistentvolumeclaims", "-o", "json"], None).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let class = |claim: &Value| (claim["metadata"]["name"].to_string(), claim["spec"]["storageClassName"].clone());
    list["items"].as_array().unwrap().iter().map(class).collect()
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
    for cluster in all {
        apply(cluster, &[class("standard", true)]);
        eventually("the default is known", || {
            run(cluster, "create", "", &[claim("probe", &Value::Null, &json!({}))]);
            let found = classes_of(cluster)["\"probe\""] == "standard";
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
        assert_eq!(run(cluster, "create", "", &claims("some")), Vec::<String>::new());
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
    assert_eq!(
        outrider.plugin_decisions(),
        Vec::<String>::new(),
        "where the original is on as well, ours changes nothing"
    );

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
