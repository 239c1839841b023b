//! An API server that is slow, comes and goes, forgets, or hangs: reviews are answered from the last snapshot, whose age is reported.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use cluster::in_own_network;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually};
use crate::proxy::{Proxy, Way};
use crate::stage::{Replica, Stage};
use crate::toy_webhook::post;
use crate::turn;

#[test]
#[ignore = "needs a control plane: make test"]
fn reviews_are_answered_whatever_becomes_of_the_api_server() {
    let _turn = turn();
    let body = || {
        let mut stage = Stage::set_up();
        let proxy =
            Proxy::start(stage.runtime.handle(), stage.cluster.apiserver_url()["https://".len()..].parse().unwrap());
        stage.account = through(&stage, &proxy);
        let replica = stage.replica(&["--certificates=self"]);
        stage.register();
        stage.apply_set();
        let asking = Asking::start(&stage, &replica);
        eventually("it leads", || replica.process.leads());

        cut_off(&stage, &proxy, &replica);
        slow_and_flapping(&stage, &proxy, &replica);
        forgetful(&stage, &proxy, &replica);
        hanging(&stage, &replica);

        let (answered, injected) = asking.end();
        println!("{answered} reviews meanwhile, all answered");
        assert!(answered > 100);
        assert_eq!(injected, answered, "by the set that was there all the time");
        stage.end(replica);
    };
    in_own_network("api_server::reviews_are_answered_whatever_becomes_of_the_api_server", body).unwrap();
}

/// The kubeconfig of Outrider's service account, by way of the proxy.
fn through(stage: &Stage, proxy: &Proxy) -> PathBuf {
    let direct = fs::read_to_string(&stage.account).unwrap();
    let path = stage.account.with_extension("proxied");
    fs::write(&path, direct.replace(&stage.cluster.apiserver_url(), &format!("https://{}", proxy.address))).unwrap();
    path
}

/// A client that sends requests to the replica all the time.
struct Asking {
    end: Arc<AtomicBool>,
    thread: JoinHandle<(usize, usize)>,
}

impl Asking {
    fn start(stage: &Stage, replica: &Replica) -> Self {
        let ca = stage.own_ca();
        let (end, address) = (Arc::<AtomicBool>::default(), replica.process.webhooks);
        let ended = Arc::clone(&end);
        let thread = thread::spawn(move || {
            let (mut answered, mut injected) = (0, 0);
            while !ended.load(Ordering::Relaxed) {
                let reply = post(address, ca.as_bytes(), "/mutate--v1-pod?timeout=10s", &review());
                answered += 1;
                injected += usize::from(reply["response"]["patch"].is_string());
                sleep(Duration::from_millis(50));
            }
            (answered, injected)
        });
        Self { end, thread }
    }

    fn end(self) -> (usize, usize) {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "namespace": "default",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

fn age(process: &Outrider) -> f64 {
    process.metric("outrider_snapshot_age_seconds").unwrap().parse().unwrap()
}

/// What the replica itself says about a set.
fn observed(stage: &Stage, name: &str) -> bool {
    let observed = ["get", "sidecarset", name, "-o=jsonpath={.status.observedGeneration}"];
    stage.cluster.kubectl(&observed, None).unwrap().stdout == "1"
}

fn apply_another_set(stage: &Stage, name: &str) {
    let set = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "containers": [{"name": "other", "image": "other:1"}]},
    });
    eventually("the set is applied", || {
        stage.cluster.kubectl(&["apply", "-f", "-"], Some(&set.to_string())).unwrap().success()
    });
}

fn cut_off(stage: &Stage, proxy: &Proxy, replica: &Replica) {
    let before = age(&replica.process);
    proxy.set(Way::Cut);
    eventually("the lease is lost", || !replica.process.leads());
    eventually("the snapshot gets older", || age(&replica.process) > before + 2.0);
    let told = replica.process.checks();
    assert!(told.contains(" 200 ") && told.contains("snapshot: generation"), "{told}");
    println!("cut off: {}", told.lines().find(|line| line.starts_with("snapshot")).unwrap());
    let reconciles = replica.process.reconciles("sidecarset");
    apply_another_set(stage, "meanwhile");
    sleep(Duration::from_secs(1));
    assert_eq!(replica.process.reconciles("sidecarset"), reconciles, "who does not lead writes nothing");
    proxy.set(Way::Open);
    eventually("what came meanwhile is seen", || observed(stage, "meanwhile"));
    eventually("it leads again", || replica.process.leads());
}

fn slow_and_flapping(stage: &Stage, proxy: &Proxy, replica: &Replica) {
    proxy.set(Way::Slow(Duration::from_millis(100)));
    apply_another_set(stage, "slow");
    eventually("what comes slowly is seen", || observed(stage, "slow"));
    for _ in 0..8 {
        proxy.set(Way::Cut);
        sleep(Duration::from_millis(200));
        proxy.set(Way::Open);
        sleep(Duration::from_millis(300));
    }
    apply_another_set(stage, "flapping");
    eventually("what came at last is seen", || observed(stage, "flapping"));
    assert!(replica.process.is_ready());
}

/// A new API server has nothing in its watch cache: what comes after the version that a watch knows is gone, and it says 410.
fn forgetful(stage: &Stage, proxy: &Proxy, replica: &Replica) {
    proxy.set(Way::Cut);
    apply_another_set(stage, "forgotten");
    stage.cluster.kubectl_ok(&["delete", "sidecarset", "slow", "--wait=false"], None).unwrap();
    stage.cluster.restart("kube-apiserver").unwrap();
    proxy.set(Way::Open);
    eventually("what was there before the API server is seen", || observed(stage, "forgotten"));
    eventually("the watch was refused and began anew", || replica.process.log().contains("Watch is too old"));
}

/// Nothing can be read or written; what runs, runs.
fn hanging(stage: &Stage, replica: &Replica) {
    eventually("it leads", || replica.process.leads());
    stage.cluster.pause("etcd").unwrap();
    eventually("the lease is lost", || !replica.process.leads());
    assert!(replica.process.is_ready());
    stage.cluster.resume("etcd").unwrap();
    eventually("it leads again", || replica.process.leads());
    apply_another_set(stage, "after");
    eventually("what came afterwards is seen", || observed(stage, "after"));
}
