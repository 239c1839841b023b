//! `--fail-open-when-scaled-to-zero`.

use cluster::Cluster;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, outrider, outrider_on};
use crate::replicas::{bundles_in_force, get, small_cluster, webhooks_at};
use crate::room::POD;
use crate::ways_out::policies;

/// With so many replicas asked for.
fn deployment(replicas: u32) -> String {
    let labels = json!({"app": "outrider"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "outrider", "namespace": "outrider-system"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "outrider", "image": "outrider"}]}},
        },
    })
    .to_string()
}

/// As the Deployment's controller reports it.
fn ready(cluster: &Cluster, replicas: u32) {
    let generation =
        get(cluster, &["deployment", "-n", "outrider-system", "outrider"])["metadata"]["generation"].clone();
    let status = json!({"status": {"replicas": replicas, "readyReplicas": replicas, "observedGeneration": generation}})
        .to_string();
    let patch = [
        "patch",
        "deployment",
        "-n",
        "outrider-system",
        "outrider",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ];
    cluster.kubectl_ok(&patch, None).unwrap();
}

fn annotations(cluster: &Cluster) -> Value {
    get(cluster, &["mutatingwebhookconfiguration", "outrider-mutating"])["metadata"]["annotations"].take()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn requests_pass_while_the_deployment_is_scaled_to_zero_and_not_longer() {
    let (cluster, account) = small_cluster();
    let rbac = outrider(&["manifests", "rbac", "--fail-open-when-scaled-to-zero"]);
    let apply = |manifest: &str| cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(manifest)).unwrap();
    apply(&rbac);
    apply(&deployment(1));
    let flags = ["--certificates=self", "--fail-open-when-scaled-to-zero"];
    let all = |policy: &str| policies(&cluster).iter().all(|found| found == policy);
    let pod = POD.replace("ROOM", "open").replace("name: web", "generateName: web-");
    let create = || cluster.kubectl(&["create", "-f", "-"], Some(&pod)).unwrap().success();

    let first = Outrider::start(&cluster, &account, &flags);
    first.ready();
    apply(&webhooks_at(first.webhooks));
    bundles_in_force(&cluster);
    ready(&cluster, 1);
    // A restart alone changes nothing.
    first.end();
    assert!(all("Fail"));
    let second = Outrider::start(&cluster, &account, &flags);
    second.ready();
    apply(&deployment(0));
    second.end();
    assert!(all("Ignore"));
    eventually("pods pass", create);
    let record: Value =
        serde_json::from_str(annotations(&cluster)["outrider.dev/fail-open"].as_str().unwrap()).unwrap();
    assert_eq!(record["was"], json!({"pod.outrider.dev": "Fail", "sidecarset.apps.outrider.dev": "Fail"}));

    apply(&deployment(1));
    let third = Outrider::start(&cluster, &account, &flags);
    third.ready();
    assert!(all("Ignore"), "nobody is routed to it yet");
    ready(&cluster, 1);
    eventually("it is as before", || all("Fail"));
    assert!(annotations(&cluster).get("outrider.dev/fail-open").is_none());

    // What a person decided stays.
    let person = |args: &[&str]| assert!(outrider_on(&cluster.kubeconfig(), args).success());
    person(&["break-glass"]);
    apply(&deployment(0));
    third.end();
    assert!(annotations(&cluster).get("outrider.dev/fail-open").is_none());
    person(&["break-glass", "--undo"]);
    assert!(all("Fail"));
}
