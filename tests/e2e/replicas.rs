//! Two replicas behind one address, as a Service has it.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Options};
use engine::yaml;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, install, is_ready, outrider, service_account, takes_a_set};
use crate::room::{POD, SET, USER, containers};
use crate::toy_webhook::post;

/// Where a Service leads to.
#[derive(Default)]
pub struct Endpoints {
    /// Where each replica serves webhooks and its probes.
    replicas: Mutex<Vec<(SocketAddr, SocketAddr)>>,
    connections: Mutex<Vec<TcpStream>>,
}

impl Endpoints {
    pub fn add(&self, replica: &Outrider) {
        self.replicas.lock().unwrap().push((replica.webhooks, replica.health()));
    }

    /// These and no others from now on, also for clients that are connected already. No request may be in flight meanwhile.
    pub fn set(&self, replicas: &[&Outrider]) {
        self.replicas.lock().unwrap().clear();
        for replica in replicas {
            self.add(replica);
        }
        for connection in self.connections.lock().unwrap().drain(..) {
            // It may be closed already.
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

/// Each connection goes to one of the replicas that say they are ready, in turn.
pub fn service(endpoints: Arc<Endpoints>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (turn, client) in listener.incoming().flatten().enumerate() {
            let replicas = endpoints.replicas.lock().unwrap().clone();
            let in_turn = (0..replicas.len()).map(|step| replicas[(turn + step) % replicas.len()]);
            let ready = in_turn.filter(|(_, health)| is_ready(*health));
            if let Some(server) = ready.map(|(webhooks, _)| TcpStream::connect(webhooks)).find_map(Result::ok) {
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                endpoints.connections.lock().unwrap().push(server.try_clone().unwrap());
                thread::spawn(move || pass(from, to));
                thread::spawn(move || pass(server, client));
            }
        }
    });
    address
}

/// Passes on what comes, and its end.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    // However it ends, the other side learns that it has.
    drop(io::copy(&mut from, &mut to));
    drop(to.shutdown(Shutdown::Write));
}

/// Objects in one document: kubectl before 1.31 reads no stream of JSON that `---` parts.
pub fn list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// The printed webhook configurations, with an address in place of the Service.
pub fn webhooks_at(address: SocketAddr) -> String {
    at_address(&outrider(&["manifests", "webhooks"]), address)
}

/// The same for what another version printed.
pub fn at_address(configurations: &str, address: SocketAddr) -> String {
    let configurations = yaml::read(configurations).unwrap().into_iter().map(|document| {
        let mut configuration = document.value;
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            webhook["clientConfig"] = json!({"url": format!("https://{address}{path}")});
        }
        configuration
    });
    list(&configurations.collect::<Vec<_>>())
}

pub fn get(cluster: &Cluster, args: &[&str]) -> Value {
    serde_json::from_str(&cluster.kubectl_ok(&[&["get", "-o", "json"], args].concat(), None).unwrap()).unwrap()
}

fn review() -> Value {
    let pod = POD.replace("ROOM", "replicated");
    let pod = yaml::read(&pod).unwrap().remove(0).value;
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "5d3e4b1c", "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "name": "web", "namespace": "default",
            "operation": "CREATE", "userInfo": {"username": "somebody"}, "dryRun": false, "object": pod,
        },
    })
}

/// Creates pods while something happens; gives what comes of that, how many were created, and what kubectl said of those that
/// failed.
pub fn creating_pods<T>(cluster: &Cluster, disturb: impl FnOnce() -> T) -> (T, usize, Vec<String>) {
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let creating = scope.spawn(|| create_pods(cluster, &end));
        // Also when it panics, or the scope would wait for ever.
        let ending = EndWhenDropped(&end);
        let outcome = disturb();
        drop(ending);
        let (created, failed) = creating.join().unwrap();
        (outcome, created, failed)
    })
}

struct EndWhenDropped<'a>(&'a AtomicBool);

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One after the other, until the end.
fn create_pods(cluster: &Cluster, end: &AtomicBool) -> (usize, Vec<String>) {
    let (mut created, mut failed) = (0, Vec::new());
    while !end.load(Ordering::Relaxed) {
        let name = format!("web-{}", created + failed.len());
        let pod = POD.replace("ROOM", "replicated").replace("name: web", &format!("name: {name}"));
        let output = cluster.kubectl(&["create", "-f", "-"], Some(&pod)).unwrap();
        if output.success() {
            created += 1;
        } else {
            failed.push(output.stderr);
        }
    }
    (created, failed)
}

pub const CONFIGURATIONS: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations";

/// The certificate of the authority in the Secret.
pub fn own_authority(cluster: &Cluster) -> Vec<u8> {
    let secret = get(cluster, &["secret", "-n", "outrider-system", "outrider-ca"]);
    STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap()
}

pub fn has_ca_bundles(cluster: &Cluster) -> bool {
    let list = get(cluster, &[CONFIGURATIONS]);
    let webhooks =
        list["items"].as_array().unwrap().iter().flat_map(|item| item["webhooks"].as_array().into_iter().flatten());
    webhooks.map(|webhook| &webhook["clientConfig"]["caBundle"]).all(Value::is_string)
}

/// Waits until the caBundles are written and the API server goes by them, which it learns of by a watch.
pub fn bundles_in_force(cluster: &Cluster) {
    eventually("the caBundles are written", || has_ca_bundles(cluster));
    eventually("the API server goes by them", || takes_a_set(cluster));
}

/// In which pods can be created but do not run, and the kubeconfig of Outrider's service account.
pub fn small_cluster() -> (Cluster, PathBuf) {
    let options = Options { kwok: false, controller_manager: false, audit: true, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install(&cluster);
    // The controller-manager would make them.
    for namespace in ["--namespace=default", "--namespace=kube-system"] {
        cluster.kubectl_ok(&["create", "serviceaccount", "default", namespace], None).unwrap();
    }
    let account = service_account(&cluster);
    (cluster, account)
}

#[test]
#[ignore = "needs a control plane: make test"]
fn one_of_two_writes_both_answer_and_no_pod_fails_when_the_leader_ends() {
    let (cluster, account) = small_cluster();
    let flags = ["--certificates=self", "--leader-elect", "--drain-delay=2s"];
    let leader = Outrider::start(&cluster, &account, &flags);
    eventually("the first leads", || leader.leads());
    let other = Outrider::start(&cluster, &account, &flags);
    other.ready();
    leader.ready();
    let endpoints = Arc::new(Endpoints::default());
    endpoints.set(&[&leader, &other]);
    let address = service(endpoints);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(address))).unwrap();
    bundles_in_force(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&SET.replace("ROOM", "replicated"))).unwrap();
    let status = || get(&cluster, &["sidecarset", "replicated"])["status"].clone();
    eventually("the set is observed", || status()["observedGeneration"] == 1);

    let ca = own_authority(&cluster);
    let mut patches = Vec::new();
    for replica in [&leader, &other] {
        let mut patch = Value::Null;
        eventually("the replica injects", || {
            patch = post(replica.webhooks, &ca, "/mutate--v1-pod", &review())["response"]["patch"].clone();
            patch.is_string()
        });
        patches.push(patch);
    }
    assert_eq!(patches[0], patches[1], "both give the same answer");
    assert!(leader.leads() && !other.leads());
    assert!(leader.has_reconciled() && !other.has_reconciled(), "one writes");
    let holder = || {
        get(&cluster, &["lease", "-n", "outrider-system", "outrider.outrider.dev"])["spec"]["holderIdentity"].clone()
    };
    let first_holder = holder();

    let ((), created, failed) = creating_pods(&cluster, || {
        eventually("pods are counted", || status()["matchedPods"].as_i64() > Some(2));
        leader.end();
        eventually("the other one leads", || other.leads());
        let before = status()["matchedPods"].as_i64();
        eventually("the other one counts", || status()["matchedPods"].as_i64() > before);
    });
    assert_eq!(failed, Vec::<String>::new());
    assert_ne!(holder(), first_holder);
    let pods = get(&cluster, &["pods"]);
    let pods = pods["items"].as_array().unwrap();
    assert_eq!(pods.len(), created);
    for pod in pods {
        assert_eq!(containers(pod), ["proxy", "app"]);
    }
    eventually("all are counted", || status()["matchedPods"] == created);

    // Each configuration was written once, by the leader of then; its successor had no reason to.
    let events = cluster.audit_events().unwrap();
    let writes = events.iter().filter(|event| {
        event["user"]["username"] == USER
            && event["verb"] == "patch"
            && event["responseStatus"]["code"] == 200
            && event["objectRef"]["resource"].as_str().is_some_and(|name| CONFIGURATIONS.contains(name))
    });
    assert_eq!(writes.count(), 2);
    other.end();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn without_any_replica_pods_wait_but_the_cluster_lives() {
    let (cluster, account) = small_cluster();
    let outrider = Outrider::start(&cluster, &account, &["--certificates=self"]);
    outrider.ready();
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(outrider.webhooks))).unwrap();
    bundles_in_force(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&SET.replace("ROOM", "replicated"))).unwrap();
    outrider.end();

    let pod = POD.replace("ROOM", "replicated");
    let create = |args: &[&str]| cluster.kubectl(&[&["create", "-f", "-"], args].concat(), Some(&pod)).unwrap();
    let refused = create(&["--namespace=default"]);
    assert!(refused.stderr.contains("failed calling webhook \"pod.outrider.dev\""), "{}", refused.stderr);
    let system = create(&["--namespace=kube-system"]);
    assert!(system.success(), "{}", system.stderr);
    // The ways out: excluding a namespace, deleting a set, deleting the configurations.
    cluster.kubectl_ok(&["label", "namespace", "default", "outrider.dev/exclude="], None).unwrap();
    eventually("an excluded namespace takes pods", || create(&["--namespace=default"]).success());
    cluster.kubectl_ok(&["delete", "sidecarset", "replicated", "--timeout=30s"], None).unwrap();
    cluster.kubectl_ok(&["delete", "mutatingwebhookconfiguration/outrider-mutating"], None).unwrap();
    cluster.kubectl_ok(&["delete", "validatingwebhookconfiguration/outrider-validating"], None).unwrap();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_plugin_that_is_switched_on_fails_no_pod_while_two_replicas_get_to_know_it() {
    let (cluster, account) = small_cluster();
    let flags = ["--certificates=self", "--leader-elect"];
    let (one, two) = (Outrider::start(&cluster, &account, &flags), Outrider::start(&cluster, &account, &flags));
    one.ready();
    two.ready();
    let endpoints = Arc::new(Endpoints::default());
    endpoints.set(&[&one, &two]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(service(endpoints)))).unwrap();
    bundles_in_force(&cluster);
    let plugin = |pool: &str| {
        json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin", "metadata": {"name": "node"},
            "spec": {"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": format!("pool={pool}")}}})
        .to_string()
    };
    let is_programmed = |generation: u64| {
        let status = get(&cluster, &["admissionplugin", "node"])["status"].clone();
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        status["observedGeneration"] == generation
            && conditions.any(|one| one["type"] == "Programmed" && one["status"] == "True")
    };
    let ((), created, failed) = creating_pods(&cluster, || {
        for round in 1..=4 {
            let applied = cluster.kubectl(&["apply", "--server-side", "-f", "-"], Some(&plugin(&format!("p{round}"))));
            assert!(applied.unwrap().success());
            eventually("it is programmed", || is_programmed(round));
        }
    });
    assert_eq!(failed, Vec::<String>::new());
    assert!(created > 4, "{created}");
    let pods = get(&cluster, &["pods", "-n", "default"]);
    let selected =
        pods["items"].as_array().unwrap().iter().filter(|pod| pod["spec"]["nodeSelector"].is_object()).count();
    assert!(selected > 0, "no pod was changed");
}
