//! What tools do that put objects back as they are in Git, and what `docs/gitops.md` says of it.

use cluster::{Cluster, Options};
use engine::yaml;
use serde_json::{Value, json};

use crate::process::{install, outrider, outrider_on};
use crate::replicas::{get, list};

const NAME: &str = "outrider-validating";

fn printed() -> Value {
    let printed = yaml::read(&outrider(&["manifests", "webhooks", "--enable-kinds=cronjob"])).unwrap();
    let mut all = printed.into_iter().map(|document| document.value);
    all.find(|object| object["metadata"]["name"] == NAME).unwrap()
}

fn apply(cluster: &Cluster, manager: &str, object: &Value) -> cluster::Output {
    let manager = format!("--field-manager={manager}");
    cluster
        .kubectl(&["apply", "--server-side", "--force-conflicts", &manager, "-f", "-"], Some(&object.to_string()))
        .unwrap()
}

/// As cert-manager's injector writes it.
fn inject(cluster: &Cluster, configuration: &Value) {
    let entries: Vec<Value> = configuration["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!({"name": entry["name"], "clientConfig": {"caBundle": "Y2E="}}))
        .collect();
    let owned = json!({
        "apiVersion": configuration["apiVersion"], "kind": configuration["kind"], "metadata": {"name": NAME}, "webhooks": entries,
    });
    let injected = apply(cluster, "cert-manager-cainjector", &owned);
    assert!(injected.success(), "{}", injected.stderr);
}

fn bundles(cluster: &Cluster) -> Vec<Value> {
    let stored = get(cluster, &["validatingwebhookconfiguration", NAME]);
    stored["webhooks"].as_array().unwrap().iter().map(|entry| entry["clientConfig"]["caBundle"].clone()).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn an_apply_that_drops_an_entry_is_refused_once_another_owns_its_ca_bundle() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    let whole = printed();
    let mut less = whole.clone();
    less["webhooks"].as_array_mut().unwrap().retain(|entry| !entry["name"].as_str().unwrap().starts_with("cronjob"));
    assert!(apply(&cluster, "argocd", &whole).success());
    inject(&cluster, &whole);

    // What is in Git is applied again, and the caBundles stay.
    assert!(apply(&cluster, "argocd", &whole).success());
    assert!(bundles(&cluster).iter().all(|bundle| bundle == "Y2E="), "{:?}", bundles(&cluster));

    let refused = apply(&cluster, "argocd", &less);
    assert!(!refused.success() && refused.stderr.contains("clientConfig"), "{}", refused.stderr);

    // The way out: the entry is deleted before it is left out.
    let mut stored = get(&cluster, &["validatingwebhookconfiguration", NAME]);
    stored["webhooks"].as_array_mut().unwrap().retain(|entry| !entry["name"].as_str().unwrap().starts_with("cronjob"));
    cluster.kubectl_ok(&["replace", "-f", "-"], Some(&list(&[stored]))).unwrap();
    let applied = apply(&cluster, "argocd", &less);
    assert!(applied.success(), "{}", applied.stderr);

    // A replace with what is in Git empties them.
    cluster.kubectl_ok(&["replace", "-f", "-"], Some(&list(&[less]))).unwrap();
    assert!(bundles(&cluster).iter().all(Value::is_null), "{:?}", bundles(&cluster));
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_sets_of_a_live_cluster_decide_on_a_manifest() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    install(&cluster);
    let set = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "live"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {"matchLabels": {"team": "a"}},
            "containers": [{"name": "agent", "image": "agent:1"}],
        },
    });
    cluster.kubectl_ok(&["create", "-f", "-"], Some(&set.to_string())).unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    let file = cluster.dir().join("pod.json");
    std::fs::write(&file, pod.to_string()).unwrap();
    let render = || {
        let rendered = outrider_on(&cluster.kubeconfig(), &["render", "--from-cluster", "-f", file.to_str().unwrap()]);
        assert!(rendered.success(), "{}", rendered.stderr);
        rendered.stdout.contains("name: agent")
    };
    assert!(!render(), "the namespace has no label yet");
    cluster.kubectl_ok(&["label", "namespace", "default", "team=a"], None).unwrap();
    assert!(render());
}
