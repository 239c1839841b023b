//! Objects that users of one namespace may store, small in JSON and large once they are decoded, against a leader that has the
//! memory of the chart: it keeps leading, and pods of others are reviewed as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{Cluster, MemoryGroup, Namespace, Options};
use serde_json::json;

use crate::cronjob::{KINDS, registered};
use crate::forged_pods::{PODS, forged_pods};
use crate::hostile_objects::large_cronjobs;
use crate::process::{Outrider, binary, eventually, install_of};
use crate::replicas::list;

/// Bytes: the chart's memory limit of a replica.
const MEMORY: u64 = 256 << 20;
const REVIEWS: usize = 200;

const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: log-agent}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: log-agent, image: 'agent:1'}]
";

/// Creates pods in a dry run until the end. All must be answered, and no review be refused or out of time. How long reviews take is
/// printed: beside what they take at rest, it says whether the attack delays them.
fn creates(namespace: &Namespace<'_>, outrider: &Outrider, what: &str, ended: impl Fn() -> bool) {
    let pod = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{number}"), "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
    };
    let pods = list(&(0..REVIEWS).map(pod).collect::<Vec<_>>());
    let before = buckets(outrider);
    let mut rounds = 0;
    while rounds == 0 || !ended() {
        let created = namespace.kubectl(&["create", "--dry-run=server", "-o", "name", "-f", "-"], Some(&pods)).unwrap();
        assert!(created.success(), "{what}: {}", created.stderr);
        assert_eq!(created.stdout.lines().count(), REVIEWS, "{what}");
        rounds += 1;
    }
    let answered: Vec<(f64, u64)> =
        buckets(outrider).iter().zip(&before).map(|((le, now), (_, before))| (*le, now - before)).collect();
    let all = answered.last().unwrap().1;
    let within = |share: u64| answered.iter().find(|(_, count)| count * 100 >= all * share).unwrap().0 * 1e3;
    println!("{what}: {all} reviews, half within {} ms, 99 of 100 within {} ms", within(50), within(99));
    // The API server would ask again, and the pod be created late.
    let metrics = outrider.metrics();
    let is_unserved =
        |line: &&str| line.contains("path=\"/mutate--v1-pod\",verdict=\"unserved\"") && !line.ends_with(" 0");
    assert_eq!(metrics.lines().find(is_unserved), None, "{what}");
}

/// Upper bounds in seconds of the histogram of reviews of pods, with what is within each.
fn buckets(outrider: &Outrider) -> Vec<(f64, u64)> {
    let (series, path) = ("outrider_review_duration_seconds_bucket{le=\"", "\",path=\"/mutate--v1-pod\"} ");
    let metrics = outrider.metrics();
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(series)?.split_once(path));
    lines.map(|(le, count)| (le.parse().unwrap_or(f64::INFINITY), count.parse().unwrap())).collect()
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
    for object in large_cronjobs() {
        attacked.kubectl_ok(&["create", "-f", "-"], Some(&object)).unwrap();
    }

    let group = MemoryGroup::limited_to(MEMORY, &binary(), cluster.dir()).unwrap();
    let flags = ["--leader-elect", KINDS];
    let outrider = Outrider::registered_binary(group.program(), &cluster, &cluster.kubeconfig(), &flags);
    registered(&cluster, &outrider);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(SET)).unwrap();
    eventually("it leads", || outrider.leads());
    // Each write is refused for the number of values, or takes too long: what counts is that they are read and tried.
    eventually("every CronJob has had its turn", || outrider.reconciles_tried("cronjob") >= 5);
    let megabytes = |bytes: u64| bytes >> 20;
    let (now, most) = group.resident().unwrap();
    println!(
        "limit enforced: {}; five CronJobs of 1.2 MB: {} MB, {} MB at most",
        group.is_enforced(),
        megabytes(now),
        megabytes(most)
    );
    creates(&shop, &outrider, "at rest", || true);

    for pods in forged_pods().chunks(10) {
        attacked.kubectl_ok(&["create", "-f", "-"], Some(&list(pods))).unwrap();
    }
    let reconciled = outrider.reconciles_tried("sidecarset");
    let ended = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            // Each round is a change of every forged pod.
            for round in 0..6 {
                let label = format!("round={round}");
                attacked.kubectl_ok(&["label", "pods", "--all", "--overwrite", &label], None).unwrap();
            }
            ended.store(true, Ordering::Relaxed);
        });
        creates(&shop, &outrider, "while 150 pods with forged records change", || ended.load(Ordering::Relaxed));
    });
    thread::sleep(Duration::from_secs(1));
    let (now, most) = group.resident().unwrap();
    println!("150 forged pods: {} MB, {} MB at most", megabytes(now), megabytes(most));
    assert!(outrider.leads(), "the same process leads, as its memory was enough");
    assert!(most <= MEMORY, "{} MB", megabytes(most));
    // One set exists. Sets that a pod only names are not reconciled: there would be 45,000 for each change.
    let changes = u64::try_from(PODS * 7).unwrap();
    let tries = outrider.reconciles_tried("sidecarset") - reconciled;
    assert!(tries <= changes, "{tries}");
    outrider.end();
}
