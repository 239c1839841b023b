//! Counting pods, electing a leader, keeping the caBundle.

use cluster::{Cluster, Options};
use serde_json::{Value, json};

use crate::process::{self, Outrider, eventually, install, service_account};
use crate::rollout::status;

const SET: &str = r"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: NAME}
spec:
  namespace: NAMESPACE
  selector: {matchLabels: {app: web}}
  containers: [{name: proxy, image: 'proxy:TAG'}]
";

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: 'app:1'}]}
";

fn set(name: &str, namespace: &str, tag: &str) -> String {
    SET.replace("NAMESPACE", namespace).replace("NAME", name).replace("TAG", tag)
}

fn get(cluster: &Cluster, args: &[&str]) -> Value {
    let args = [&["get", "-o", "json"], args].concat();
    serde_json::from_str(&cluster.kubectl_ok(&args, None).unwrap()).unwrap()
}

/// `[matched, updated, ready]` of a set.
fn counts(cluster: &Cluster, set: &str) -> [i64; 3] {
    let status = status(cluster, set);
    ["matchedPods", "updatedPods", "readyPods"].map(|field| status[field].as_i64().unwrap_or(-1))
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_status_follows_the_pods_and_the_set() {
    let cluster = Cluster::start().unwrap();
    install(&cluster);
    let namespace = cluster.namespace("counting").unwrap();
    // Stored while no webhook looks: neither may stop the watch.
    let broken = set("broken", namespace.name(), "1")
        .replace("matchLabels: {app: web}", "matchExpressions: [{key: a, operator: Like}]");
    let applied = cluster.kubectl(&["apply", "-f", "-"], Some(&broken)).unwrap();
    println!("a set with a bad selector: {}{}", applied.stdout, applied.stderr);

    let outrider = Outrider::registered(&cluster);
    outrider.ready();
    outrider.called(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&set("counted", namespace.name(), "1"))).unwrap();
    let ready = ["wait", "--for=condition=Ready", "sidecarset/counted", "--timeout=120s"];
    eventually("the set is in force", || cluster.kubectl(&ready, None).unwrap().success());
    namespace.apply(DEPLOYMENT).unwrap();
    eventually("three pods are counted", || counts(&cluster, "counted") == [3, 3, 3]);
    let stored = get(&cluster, &["sidecarset", "counted"]);
    assert_eq!(stored["status"]["observedGeneration"], stored["metadata"]["generation"]);

    // A relabelled pod is no longer selected, and the ReplicaSet replaces it by one that is.
    let pods = namespace.kubectl_ok(&["get", "pods", "-l", "app=web", "-o", "name"], None).unwrap();
    let pod = pods.lines().next().unwrap();
    namespace.kubectl_ok(&["label", "--overwrite", pod, "app=other"], None).unwrap();
    eventually("the replacement is there", || {
        let pods = namespace.kubectl_ok(&["get", "pods", "-o", "name"], None).unwrap();
        pods.lines().count() == 4
    });
    eventually("the relabelled pod is not counted", || counts(&cluster, "counted") == [3, 3, 3]);
    namespace.kubectl_ok(&["label", "--overwrite", pod, "app=web"], None).unwrap();
    namespace.kubectl_ok(&["scale", "deployment/web", "--replicas=1"], None).unwrap();
    eventually("scaling down is counted", || counts(&cluster, "counted") == [1, 1, 1]);

    let paused = set("counted", namespace.name(), "2") + "  updateStrategy: {paused: true}\n";
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&paused)).unwrap();
    eventually("pods of the old revision are not updated", || counts(&cluster, "counted") == [1, 0, 1]);
    namespace.kubectl_ok(&["delete", "deployment/web", "--cascade=foreground"], None).unwrap();
    eventually("no pod is left", || counts(&cluster, "counted") == [0, 0, 0]);

    outrider.end();
    let left = cluster
        .kubectl_ok(&["get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name"], None);
    assert!(!left.unwrap().contains("outrider"), "a process outside the cluster takes its registration with it");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn one_replica_leads_and_another_takes_over() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    install(&cluster);
    let account = service_account(&cluster);
    let flags = [
        "--leader-elect",
        // A busy machine renews it in this time.
        "--leader-elect-lease-duration=10s",
        "--leader-elect-renew-deadline=8s",
        "--leader-elect-retry-period=500ms",
        "--enable-webhooks=false",
    ];
    let first = Outrider::start(&cluster, &account, &flags);
    eventually("the first leads", || first.leads());
    let second = Outrider::start(&cluster, &account, &flags);
    second.ready();
    let holder = || {
        let lease = get(&cluster, &["lease", "-n", "outrider-system", "outrider.outrider.dev"]);
        lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    };
    let leader = holder();
    assert!(first.leads() && !second.leads());

    first.kill();
    eventually("the second takes over from a leader that vanished", || second.leads());
    assert_ne!(holder(), leader);

    let third = Outrider::start(&cluster, &account, &flags);
    third.ready();
    second.end();
    eventually("a lease given back is taken", || third.leads());
    third.end();
    assert_eq!(holder(), "");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_leader_keeps_the_ca_bundle_and_touches_nothing_else() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    install(&cluster);
    let account = service_account(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&set("counted", "default", "1"))).unwrap();
    let webhooks = process::outrider(&["manifests", "webhooks"]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks)).unwrap();
    let configuration = || get(&cluster, &["mutatingwebhookconfiguration", "outrider-mutating"]);
    let before = configuration();

    // It reads the caBundles twice in this time.
    let flags = ["--certificates=self", "--ca-bundle-settle=2s"];
    let outrider = Outrider::start(&cluster, &account, &flags);
    outrider.ready();
    let secret = || get(&cluster, &["secret", "-n", "outrider-system", "outrider-ca"])["data"]["tls.crt"].clone();
    let bundles = |configuration: &Value| -> Vec<Value> {
        let entries = configuration["webhooks"].as_array().unwrap();
        entries.iter().map(|entry| entry["clientConfig"]["caBundle"].clone()).collect()
    };
    let complete = || bundles(&configuration()).iter().all(|bundle| *bundle == secret());
    eventually("every entry has the caBundle", complete);
    eventually("the status can be written", || counts(&cluster, "counted") == [0, 0, 0]);
    let without_bundle = |mut configuration: Value| {
        for entry in configuration["webhooks"].as_array_mut().unwrap() {
            entry["clientConfig"].as_object_mut().unwrap().remove("caBundle");
        }
        configuration["webhooks"].take()
    };
    assert_eq!(without_bundle(configuration()), without_bundle(before));

    // What an upgrade does; and one that drops the caBundle by force.
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks)).unwrap();
    assert!(complete(), "applying the manifests again leaves the caBundle");
    let patch = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]).to_string();
    let args = ["patch", "mutatingwebhookconfiguration", "outrider-mutating", "--type=json", "-p", patch.as_str()];
    cluster.kubectl_ok(&args, None).unwrap();
    eventually("a removed caBundle comes back", complete);

    let ca = secret();
    outrider.end();
    let next = Outrider::start(&cluster, &account, &flags);
    next.ready();
    assert_eq!(secret(), ca, "the authority outlives the process");
    next.end();
}
