//! Objects that users of one namespace may store, small in JSON and large once they are decoded, against a leader that has the
//! memory of the chart: it keeps leading, and pods of others are reviewed as before.

use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, MemoryGroup, Namespace, Options};
use serde_json::{Value, json};

use crate::beside::{AtRest, Server};
use crate::cronjob::{KINDS, cronjob, registered};
use crate::forged_pods::{PODS, forged_pods};
use crate::hostile_objects::{large_cronjobs, sets};
use crate::process::{Outrider, binary, eventually, install_of, outrider_on};
use crate::replicas::{CONFIGURATIONS, get, list};

/// Bytes: the chart's memory limit of a replica.
const MEMORY: u64 = 256 << 20;
/// Pods in one request of kubectl.
const PODS_AT_ONCE: usize = 50;

const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: log-agent}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: log-agent, image: 'agent:1'}]
";

/// Where reviews of pods are answered.
pub fn reviews_of(cluster: &Cluster, outrider: &Outrider) -> Server {
    let found = get(cluster, &["mutatingwebhookconfiguration", "outrider-mutating"]);
    let bundle = STANDARD.decode(found["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap()).unwrap();
    Server { webhooks: outrider.webhooks, name: "127.0.0.1", ca: String::from_utf8(bundle).unwrap().into() }
}

/// Creates pods in a dry run, through the API server. All must be answered, and no review be refused or out of time: the API server would
/// ask again, and the pod be created late.
fn creates(namespace: &Namespace<'_>, outrider: &Outrider, what: &str) {
    let pod = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{number}"), "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
    };
    let pods = list(&(0..PODS_AT_ONCE).map(pod).collect::<Vec<_>>());
    let created = namespace.kubectl(&["create", "--dry-run=server", "-o", "name", "-f", "-"], Some(&pods)).unwrap();
    assert!(created.success(), "{what}: {}", created.stderr);
    assert_eq!(created.stdout.lines().count(), PODS_AT_ONCE, "{what}");
    let metrics = outrider.metrics();
    let is_unserved =
        |line: &&str| line.contains("path=\"/mutate--v1-pod\",verdict=\"unserved\"") && !line.ends_with(" 0");
    assert_eq!(metrics.lines().find(is_unserved), None, "{what}");
}

/// What reviews take by a process of which nothing else is asked; no webhook is registered afterwards.
pub fn at_rest(cluster: &Cluster, shop: &Namespace<'_>) -> AtRest {
    let outrider = Outrider::registered_as(cluster, &cluster.kubeconfig(), &[KINDS]);
    registered(cluster, &outrider);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(SET)).unwrap();
    let probe = ["run", "probe", "--image=app:1", "--labels=app=web", "--dry-run=server", "-o", "yaml"];
    eventually("the set is in force", || {
        let probed = shop.kubectl(&probe, None).unwrap();
        probed.success() && probed.stdout.contains("log-agent")
    });
    let at_rest = AtRest::of(&reviews_of(cluster, &outrider));
    outrider.end();
    cluster.kubectl_ok(&["delete", CONFIGURATIONS, "--all"], None).unwrap();
    at_rest
}

/// Objects of 1 MB each that are not stored: such as is decided on as a whole, in both versions, and such as is refused for its values.
fn large_dry_runs(namespace: &Namespace<'_>) {
    let create =
        |object: &str| namespace.kubectl(&["create", "--dry-run=server", "-o", "name", "-f", "-"], Some(object));
    for (version, schedule) in [("v1", json!("@every 5h")), ("v2", json!({"minute": "5"}))] {
        let mut object = cronjob("large", &json!({"schedule": schedule}));
        object["apiVersion"] = json!(format!("batch.outrider.dev/{version}"));
        object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] =
            json!(["x".repeat(1_000_000)]);
        let created = create(&object.to_string()).unwrap();
        assert!(created.success(), "{version}: {}", created.stderr);
    }
    let refused = create(&large_cronjobs()[0]).unwrap();
    assert!(refused.stderr.contains("holds more than 40000 values"), "{}", refused.stderr);
}

/// Another client deletes the lease, empties it and writes another holder into it.
fn spoil_lease(cluster: &Cluster) {
    let lease = ["lease", "outrider.outrider.dev", "--namespace=outrider-system"];
    let patch = |holder: Value| {
        let patch = json!({"spec": {"holderIdentity": holder}}).to_string();
        cluster.kubectl_ok(&[&["patch", "--type=merge", "-p", patch.as_str()], &lease[..]].concat(), None).unwrap();
    };
    for round in 0..5 {
        eventually("there is a lease", || cluster.kubectl(&[&["get"], &lease[..]].concat(), None).unwrap().success());
        match round % 3 {
            0 => drop(cluster.kubectl_ok(&[&["delete"], &lease[..]].concat(), None).unwrap()),
            1 => patch(json!("")),
            _ => patch(json!("somebody")),
        }
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn what_users_may_store_ends_no_leader_and_delays_no_review() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    install_of(&cluster, &[KINDS]);
    // Where the lease is.
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    let (attacked, shop) = (cluster.namespace("attacked").unwrap(), cluster.namespace("shop").unwrap());
    for namespace in [&attacked, &shop] {
        // No controller makes it here.
        namespace.kubectl_ok(&["create", "serviceaccount", "default"], None).unwrap();
    }
    let at_rest = at_rest(&cluster, &shop);
    for object in large_cronjobs() {
        attacked.kubectl_ok(&["create", "-f", "-"], Some(&object)).unwrap();
    }
    for set in sets() {
        cluster.kubectl_ok(&["create", "-f", "-"], Some(&set.to_string())).unwrap();
    }

    let group = MemoryGroup::limited_to(MEMORY, &binary(), cluster.dir()).unwrap();
    let flags = ["--leader-elect", KINDS];
    let outrider = Outrider::registered_binary(group.program(), &cluster, &cluster.kubeconfig(), &flags);
    registered(&cluster, &outrider);
    let server = reviews_of(&cluster, &outrider);
    let memory = |what: &str| {
        let (now, most) = group.resident().unwrap();
        println!("{what}: {} MB, {} MB at most, limit enforced: {}", now >> 20, most >> 20, group.is_enforced());
        assert!(most <= MEMORY, "{what}: {} MB", most >> 20);
    };

    let beside = at_rest.beside(&server, "of five stored CronJobs of 1.2 MB and of sets that no webhook saw");
    eventually("it leads", || outrider.leads());
    // Each write is refused for the number of values, or takes too long: what counts is that they are read and tried.
    eventually("every CronJob has had its turn", || outrider.reconciles_tried("cronjob") >= 5);
    creates(&shop, &outrider, "five stored CronJobs");
    beside.end();
    memory("five stored CronJobs");

    for pods in forged_pods().chunks(10) {
        attacked.kubectl_ok(&["create", "-f", "-"], Some(&list(pods))).unwrap();
    }
    let reconciled = outrider.reconciles_tried("sidecarset");
    let beside = at_rest.beside(&server, "of 150 pods with forged records that change six times");
    for round in 0..6 {
        let label = format!("round={round}");
        attacked.kubectl_ok(&["label", "pods", "--all", "--overwrite", &label], None).unwrap();
    }
    creates(&shop, &outrider, "150 forged pods");
    beside.end();
    thread::sleep(Duration::from_secs(1));
    memory("150 forged pods");
    let doctor = outrider_on(&cluster.kubeconfig(), &["doctor"]).stdout;
    assert!(doctor.contains("150 pods, by namespace and name, have more labels, or say more about sets"), "{doctor}");
    assert!(outrider.leads(), "the same process leads, as its memory was enough");
    // Sets that a pod only names are not reconciled: there would be 45,000 for each change.
    let changes = u64::try_from(PODS * 7 * (1 + sets().len())).unwrap();
    let tries = outrider.reconciles_tried("sidecarset") - reconciled;
    assert!(tries <= changes, "{tries}");

    let beside = at_rest.beside(&server, "of creates of 1 MB in a dry run");
    large_dry_runs(&attacked);
    beside.end();
    memory("creates of 1 MB");

    let beside = at_rest.beside(&server, "on the lease");
    spoil_lease(&cluster);
    beside.end();
    outrider.end();
}
