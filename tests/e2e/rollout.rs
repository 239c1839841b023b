//! Rollouts: running pods follow a set, watched from outside; the status and the revisions meanwhile.
//!
//! kwok makes pods Ready and does nothing about a new image. What a kubelet does then, this does: it restarts the container.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Cluster, Options};
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::{Outrider, client_config, eventually, install, service_account};
use crate::replicas::{Endpoints, bundles_in_force, get, service, webhooks_at};
use crate::room::may_register;
use crate::unavailable_pods::UnavailablePods;

const SET: &str = r"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: NAME}
spec:
  namespace: default
  selector: {matchLabels: {app: NAME}}
  updateStrategy: {maxUnavailable: MAX}
  containers: [{name: proxy, image: 'proxy:TAG'}]
  initContainers: [{name: native, image: 'native:TAG', restartPolicy: Always}]
";

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: COUNT
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: 'app:1'}]}
";

pub fn set(name: &str, tag: &str, max_unavailable: &str) -> String {
    SET.replace("NAME", name).replace("TAG", tag).replace("MAX", max_unavailable)
}

pub fn deployment(name: &str, count: usize) -> String {
    DEPLOYMENT.replace("NAME", name).replace("COUNT", &count.to_string())
}

pub fn pods(cluster: &Cluster, app: &str) -> Vec<Value> {
    let list = get(cluster, &["pods", "-n", "default", "-l", &format!("app={app}")]);
    list["items"].as_array().unwrap().clone()
}

/// The status of a set once it is that of the set's last change; null until then: what was true before may be what a test waits for.
pub fn status(cluster: &Cluster, set: &str) -> Value {
    let set = get(cluster, &["sidecarset", set]);
    let is_of_this_form = set["status"]["observedGeneration"] == set["metadata"]["generation"];
    if is_of_this_form { set["status"].clone() } else { Value::Null }
}

/// `[matched, updated, ready, updated and ready]` of a set.
pub fn counts(cluster: &Cluster, set: &str) -> [i64; 4] {
    let status = status(cluster, set);
    ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"].map(|field| status[field].as_i64().unwrap_or(-1))
}

/// Status and reason of a condition.
pub fn condition(status: &Value, type_: &str) -> (String, String) {
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// Images by container.
fn images(pod: &Value) -> BTreeMap<String, String> {
    let lists =
        ["containers", "initContainers"].iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    lists.map(|it| (it["name"].as_str().unwrap().to_owned(), it["image"].as_str().unwrap().to_owned())).collect()
}

/// Restarts the containers whose image has changed: first the pod is not ready, a moment later it is again.
struct Kubelet<'c> {
    cluster: &'c Cluster,
    /// Images that cannot be pulled.
    bad: BTreeSet<String>,
    /// How long a restart takes.
    restart: Duration,
    restarting: BTreeMap<String, Instant>,
    starts: u64,
}

impl<'c> Kubelet<'c> {
    fn new(cluster: &'c Cluster) -> Self {
        let restart = Duration::from_millis(300);
        Self { cluster, bad: BTreeSet::new(), restart, restarting: BTreeMap::new(), starts: 0 }
    }

    fn patch(&self, pod: &str, status: &Value) {
        let patch = json!({"status": status}).to_string();
        let args = ["patch", "pod", pod, "-n", "default", "--subresource=status", "--type=strategic", "-p", &patch];
        // It may be gone.
        drop(self.cluster.kubectl(&args, None));
    }

    /// Restarts what is due in the pods of an app.
    fn step(&mut self, app: &str) {
        for pod in pods(self.cluster, app) {
            let (name, images) = (pod["metadata"]["name"].as_str().unwrap().to_owned(), images(&pod));
            if pod["status"]["phase"] != "Running" {
                continue;
            }
            let runs = |list: &str| -> Vec<Value> { pod["status"][list].as_array().cloned().unwrap_or_default() };
            let is_new = |status: &Value| images[status["name"].as_str().unwrap()] != status["image"].as_str().unwrap();
            let lists = ["containerStatuses", "initContainerStatuses"];
            let changed = lists.iter().any(|list| runs(list).iter().any(is_new));
            if !changed {
                continue;
            }
            let since = *self.restarting.entry(name.clone()).or_insert_with(Instant::now);
            let ready = |status: &str| json!([{"type": "Ready", "status": status}, {"type": "ContainersReady", "status": status}]);
            if is_ready(&pod) {
                self.patch(&name, &json!({"conditions": ready("False")}));
            } else if since.elapsed() >= self.restart && !images.values().any(|image| self.bad.contains(image)) {
                self.starts += 1;
                let started = lists.map(|list| {
                    let statuses = runs(list).into_iter().map(|mut status| {
                        let name = status["name"].as_str().unwrap().to_owned();
                        status["image"] = images[&name].as_str().into();
                        status["imageID"] = format!("id-of-{}", images[&name]).into();
                        status["containerID"] = format!("test://{name}-{}", self.starts).into();
                        status
                    });
                    (list.to_owned(), Value::Array(statuses.collect()))
                });
                let mut status: serde_json::Map<String, Value> = started.into_iter().collect();
                status.insert("conditions".to_owned(), ready("True"));
                self.patch(&name, &Value::Object(status));
                self.restarting.remove(&name);
            }
        }
    }

    fn until(&mut self, app: &str, what: &str, mut holds: impl FnMut() -> bool) {
        eventually(what, || {
            self.step(app);
            holds()
        });
    }
}

/// The greatest number of pods of an app that were not ready at one time, as seen by a watch of its own.
fn most_unavailable<T>(cluster: &Cluster, app: &str, meanwhile: impl FnOnce() -> T) -> (T, usize) {
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(async { Client::try_from(client_config(cluster).await).unwrap() });
    let watch = UnavailablePods::watch(runtime.handle(), client, app);
    eventually("the watch has seen all pods", || watch.seen() >= pods(cluster, app).len());
    (meanwhile(), watch.most())
}

/// The greatest number that was counted meanwhile.
pub fn most<T>(count: impl Fn() -> usize + Sync, meanwhile: impl FnOnce() -> T) -> (T, usize) {
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !end.load(Ordering::Relaxed) {
                most = most.max(count());
                thread::sleep(Duration::from_millis(20));
            }
            most
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
        end.store(true, Ordering::Relaxed);
        let most = watching.join().unwrap();
        match outcome {
            Ok(outcome) => (outcome, most),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

pub fn stage() -> (Cluster, Outrider) {
    stage_with(&Options { audit: true, ..Options::default() })
}

/// The same in a cluster of this kind.
pub fn stage_with(options: &Options) -> (Cluster, Outrider) {
    let cluster = Cluster::start_with(options).unwrap();
    install(&cluster);
    let account = service_account(&cluster);
    may_register(&cluster);
    let outrider = Outrider::registered_as(&cluster, &account, &[]);
    outrider.ready();
    outrider.called(&cluster);
    (cluster, outrider)
}

/// Whether an image of a native sidecar can change in place: kubelets before 1.32 do not restart it.
pub fn restarts_native(cluster: &Cluster) -> bool {
    cluster.minor_version() >= 32
}

/// Where its image cannot change in place, each form of a set has the same native sidecar.
pub fn applied(cluster: &Cluster, manifest: &str) {
    let mut manifest = manifest.to_owned();
    if !restarts_native(cluster) {
        manifest = manifest.replace("native:2", "native:1").replace("native:3", "native:1");
    }
    cluster.kubectl_ok(&["apply", "-n", "default", "-f", "-"], Some(&manifest)).unwrap();
}

pub fn wait_ready(cluster: &Cluster, set: &str) {
    let args = ["wait", "--for=condition=Ready", &format!("sidecarset/{set}"), "--timeout=120s"];
    cluster.kubectl_ok(&args, None).unwrap();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn running_pods_follow_the_set_within_max_unavailable_and_the_status_says_how_far() {
    let (cluster, outrider) = stage();
    let mut kubelet = Kubelet::new(&cluster);
    applied(&cluster, &set("web", "1", "2"));
    // The next pod has it: nothing else is waited for.
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", 6));
    kubelet.until("web", "all are there", || counts(&cluster, "web") == [6, 6, 6, 6]);
    let before: Vec<Value> = pods(&cluster, "web");
    let writes_before = writes(&cluster);

    applied(&cluster, &set("web", "2", "2"));
    let ((), most) = most_unavailable(&cluster, "web", || {
        kubelet.until("web", "all follow", || counts(&cluster, "web") == [6, 6, 6, 6] && all_run(&cluster, "web", "2"));
    });
    assert!((1..=2).contains(&most), "{most} pods were not ready at one time");
    let after = pods(&cluster, "web");
    let uids =
        |pods: &[Value]| -> BTreeSet<String> { pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect() };
    assert_eq!(uids(&before), uids(&after), "none was created anew");
    for pod in &after {
        assert_eq!(images(pod)["app"], "app:1");
    }
    let reached = status(&cluster, "web");
    eventually("the rollout is said to be complete", || {
        condition(&status(&cluster, "web"), "Progressing") == ("True".to_owned(), "Complete".to_owned())
    });
    assert_eq!(condition(&reached, "Degraded").0, "False");
    // One patch for each pod, and none that changes nothing.
    eventually("the audit log has the writes", || writes(&cluster) >= writes_before + 6);
    assert_eq!(writes(&cluster), writes_before + 6, "writes of pods");

    // Two forms, two revisions of the set; the newest is named in the status.
    let revisions = get(&cluster, &["controllerrevisions", "-n", "outrider-system"]);
    let revisions = revisions["items"].as_array().unwrap();
    let names: Vec<&str> = revisions.iter().map(|it| it["metadata"]["name"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names.contains(&reached["latestRevision"].as_str().unwrap()), "{names:?}");
    assert!(revisions.iter().all(|it| it["metadata"]["ownerReferences"][0]["name"] == "web"));
    let reasons = || -> Vec<String> {
        let events = get(&cluster, &["events", "-A", "--field-selector", "involvedObject.kind=SidecarSet"]);
        events["items"].as_array().unwrap().iter().map(|it| it["reason"].as_str().unwrap().to_owned()).collect()
    };
    eventually("the event is written", || !reasons().is_empty());
    assert_eq!(reasons(), ["RolloutComplete"]);

    // A set that is deleted goes at once, and its revisions with it; its pods stay as they are.
    assert_eq!(get(&cluster, &["sidecarset", "web"])["metadata"]["finalizers"], Value::Null);
    cluster.kubectl_ok(&["delete", "sidecarset", "web", "--timeout=30s"], None).unwrap();
    eventually("the revisions are gone", || {
        get(&cluster, &["controllerrevisions", "-n", "outrider-system"])["items"] == json!([])
    });
    let left = pods(&cluster, "web");
    assert!(uids(&left) == uids(&after) && all_run(&cluster, "web", "2"), "{left:?}");
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

/// Whether all pods of an app run the set's containers of this tag.
fn all_run(cluster: &Cluster, app: &str, tag: &str) -> bool {
    pods(cluster, app).iter().all(|pod| {
        let images = images(pod);
        let native = if restarts_native(cluster) { tag } else { "1" };
        images["proxy"] == format!("proxy:{tag}") && images["native"] == format!("native:{native}")
    })
}

/// Patches of pods by Outrider that the API server has carried out: one that was in conflict with another is sent again.
fn writes(cluster: &Cluster) -> usize {
    let is_write = |event: &&Value| {
        let object = &event["objectRef"];
        let is_patch = object["resource"] == "pods" && event["verb"] == "patch";
        is_patch && event["user"]["username"] == crate::room::USER && event["responseStatus"]["code"] == 200
    };
    cluster.audit_events().unwrap().iter().filter(is_write).count()
}

/// Cases 92 to 95 on a real API server: a bad image, what cannot be changed in place, paused, a partition, a disruption budget.
#[test]
#[ignore = "needs a control plane: make test"]
fn what_stands_in_the_way_of_a_rollout_stops_it_and_is_said() {
    let (cluster, outrider) = stage();
    let mut kubelet = Kubelet::new(&cluster);
    kubelet.bad.insert("proxy:bad".to_owned());
    applied(&cluster, &set("web", "1", "1"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", 3));
    kubelet.until("web", "all are there", || counts(&cluster, "web") == [3, 3, 3, 3]);

    // Case 92.
    applied(&cluster, &set("web", "1", "1").replace("proxy:1", "proxy:bad"));
    kubelet.until("web", "the first one does not come back", || counts(&cluster, "web") == [3, 1, 2, 0]);
    applied(&cluster, &set("web", "2", "1"));
    kubelet.until("web", "a good image goes on", || counts(&cluster, "web") == [3, 3, 3, 3]);

    // Case 95: paused, then a partition.
    let with = |tag: &str, strategy: &str| {
        set("web", tag, "3").replace("maxUnavailable: 3", &format!("maxUnavailable: 3, {strategy}"))
    };
    applied(&cluster, &with("3", "paused: true"));
    kubelet.until("web", "it is paused", || {
        condition(&status(&cluster, "web"), "Progressing") == ("False".to_owned(), "Paused".to_owned())
            && counts(&cluster, "web") == [3, 0, 3, 0]
    });
    applied(&cluster, &with("3", "partition: 2"));
    kubelet.until("web", "two stay", || counts(&cluster, "web") == [3, 1, 3, 1]);

    // A disruption budget that allows nothing, whose controller says so.
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}}";
    applied(&cluster, budget);
    applied(&cluster, &with("3", "partition: 0"));
    kubelet.until("web", "the budget is kept", || {
        condition(&status(&cluster, "web"), "Progressing")
            == ("True".to_owned(), "WaitingForDisruptionBudget".to_owned())
    });
    assert_eq!(counts(&cluster, "web"), [3, 1, 3, 1]);
    cluster.kubectl_ok(&["delete", "pdb", "web", "-n", "default"], None).unwrap();
    kubelet.until("web", "without it all follow", || counts(&cluster, "web") == [3, 3, 3, 3]);

    // Case 93: what only a new pod can have.
    let env = with("3", "partition: 0").replace("'proxy:3'}", "'proxy:3', env: [{name: A, value: b}]}");
    applied(&cluster, &env);
    kubelet.until("web", "none can be changed", || {
        condition(&status(&cluster, "web"), "Degraded") == ("True".to_owned(), "NotUpdatableInPlace".to_owned())
    });
    // Written apart from the status of the set, in a request for each pod.
    kubelet.until("web", "each pod names what differs", || {
        pods(&cluster, "web").iter().all(|pod| {
            let conditions = pod["status"]["conditions"].as_array().unwrap();
            let upgradable = conditions.iter().find(|it| it["type"] == "outrider.dev/SidecarSetUpgradable");
            upgradable
                .is_some_and(|it| it["status"] == "False" && it["message"].as_str().unwrap().contains("differs in env"))
        })
    });
    assert_eq!(counts(&cluster, "web"), [3, 0, 3, 0]);

    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

/// A replica of which the test says what it knows.
struct Replica {
    port: u16,
    knows: Arc<Mutex<Option<String>>>,
}

impl Replica {
    fn start() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let (port, knows) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Option<String>>>::default());
        let answers = Arc::clone(&knows);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                drop(stream.read(&mut [0; 1024]));
                let reply = match &*answers.lock().unwrap() {
                    Some(text) => {
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())
                    }
                    None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
                };
                drop(stream.write_all(reply.as_bytes()));
            }
        });
        Self { port, knows }
    }

    /// Says that it answers for the Service.
    fn register(&self, cluster: &Cluster) {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "replica", "namespace": "outrider-system",
                "labels": {"kubernetes.io/service-name": "outrider-webhook", "endpointslice.kubernetes.io/managed-by": "test"},
            },
            "addressType": "IPv4", "ports": [{"name": "health", "port": self.port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": true}}],
        });
        cluster.kubectl_ok(&["apply", "-f", "-"], Some(&slice.to_string())).unwrap();
    }
}

/// An address of this machine that is not its loopback: the API server takes no other for an endpoint. Nothing is sent.
fn own_address() -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.250:9").unwrap();
    socket.local_addr().unwrap().ip().to_string()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn ready_waits_for_every_replica_that_answers_for_the_service() {
    let (cluster, outrider) = stage();
    let replica = Replica::start();
    replica.register(&cluster);
    applied(&cluster, &set("web", "1", "1"));
    eventually("the other replica is behind", || {
        condition(&status(&cluster, "web"), "Ready") == ("False".to_owned(), "ReplicaBehind".to_owned())
    });
    let wait = ["wait", "--for=condition=Ready", "sidecarset/web", "--timeout=1s"];
    assert!(!cluster.kubectl(&wait, None).unwrap().success());
    let object = get(&cluster, &["sidecarset", "web"]);
    let uid = object["metadata"]["uid"].as_str().unwrap();
    *replica.knows.lock().unwrap() = Some(format!("{uid} 1"));
    wait_ready(&cluster, "web");

    // The next generation is another question.
    applied(&cluster, &set("web", "2", "1"));
    eventually("the other replica is behind again", || {
        condition(&status(&cluster, "web"), "Ready") == ("False".to_owned(), "ReplicaBehind".to_owned())
    });
    *replica.knows.lock().unwrap() = Some(format!("{uid} 2"));
    wait_ready(&cluster, "web");
    let known = cluster_known(&outrider, "web");
    assert!(known.contains(&format!("{uid} 2")), "what the process itself answers: {known}");
    outrider.end();
}

fn cluster_known(outrider: &Outrider, set: &str) -> String {
    crate::process::get(outrider.health(), &format!("/known/sidecarsets/{set}")).unwrap()
}

/// Two replicas, of which the first leads, and where the API server finds them.
pub fn two_replicas() -> (Cluster, Outrider, Outrider, Arc<Endpoints>) {
    let cluster = Cluster::start().unwrap();
    install(&cluster);
    let account = service_account(&cluster);
    let flags = [
        "--certificates=self",
        "--leader-elect",
        // A busy machine renews it in this time.
        "--leader-elect-lease-duration=10s",
        "--leader-elect-renew-deadline=8s",
        "--leader-elect-retry-period=500ms",
    ];
    let first = Outrider::start(&cluster, &account, &flags);
    eventually("the first leads", || first.leads());
    let second = Outrider::start(&cluster, &account, &flags);
    first.ready();
    second.ready();
    let endpoints = Arc::new(Endpoints::default());
    endpoints.set(&[&first, &second]);
    let address = service(Arc::clone(&endpoints));
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(address))).unwrap();
    bundles_in_force(&cluster);
    (cluster, first, second, endpoints)
}

const PODS: usize = 200;

#[test]
#[ignore = "needs a control plane: make test"]
fn a_rollout_whose_leader_is_killed_is_finished_by_the_next_one_within_max_unavailable() {
    let (cluster, first, second, endpoints) = two_replicas();
    let mut kubelet = Kubelet::new(&cluster);
    // So long that there is a middle in which the leader can be killed.
    kubelet.restart = Duration::from_millis(250);
    applied(&cluster, &set("web", "1", "20"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", PODS));
    let all = i64::try_from(PODS).unwrap();
    kubelet.until("web", "all are there", || counts(&cluster, "web") == [all; 4]);

    applied(&cluster, &set("web", "2", "20"));
    let ((), most) = most_unavailable(&cluster, "web", || {
        // Until the new generation is counted, the status says that all have the current form.
        kubelet.until("web", "some follow", || (41..all).contains(&counts(&cluster, "web")[3]));
        first.kill();
        endpoints.set(&[&second]);
        kubelet.until("web", "the other one leads", || second.leads());
        kubelet.until("web", "most follow", || counts(&cluster, "web")[3] >= all * 2 / 3);
        kubelet.until("web", "all follow", || counts(&cluster, "web") == [all; 4] && all_run(&cluster, "web", "2"));
    });
    assert!((1..=20).contains(&most), "{most} pods were not ready at one time");
    assert_eq!(second.forbidden(), Vec::<String>::new());
    second.end();
}

/// As during an upgrade in which the definitions come last: server-side apply refuses a field that a definition lacks.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_status_is_written_with_an_older_definition_as_far_as_that_goes() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    install(&cluster);
    let account = service_account(&cluster);
    may_register(&cluster);
    let lacks = json!([{
        "op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/uninjectedPods",
    }]);
    let args = ["patch", "crd", "sidecarsets.apps.outrider.dev", "--type=json", "-p", &lacks.to_string()];
    cluster.kubectl_ok(&args, None).unwrap();
    let outrider = Outrider::registered_as(&cluster, &account, &[]);
    outrider.ready();
    outrider.called(&cluster);
    applied(&cluster, &set("web", "1", "1"));
    wait_ready(&cluster, "web");
    let status = status(&cluster, "web");
    assert_eq!((&status["observedGeneration"], &status["uninjectedPods"]), (&json!(1), &Value::Null));
    outrider.end();
}
