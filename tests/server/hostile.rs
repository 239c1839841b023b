//! The largest bodies of the worst kinds, against the binary: memory stays bounded and is given back, and others are answered.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::MemoryGroup;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::beside::{self, AtRest};
use crate::client::{Client, plain_get};
use crate::hostile_conversions::conversions;
use crate::hostile_cronjobs::reviews;
use crate::process::Process;

pub const PODS: &str = "/mutate--v1-pod?timeout=30s";
const CLAIM_RANGES: &str = "/validate--v1-persistentvolumeclaim-limitranger?timeout=30s";
const QUOTAS: &str = "/validate--v1-pod-resourcequota?timeout=30s";
const OWNERS: &str = "/validate-any-any-any-any-ownerreferences?timeout=30s";
const CRON_JOBS: [&str; 2] =
    ["/mutate-batch-outrider-dev-v1-cronjob?timeout=30s", "/validate-batch-outrider-dev-v1-cronjob?timeout=30s"];
const SETS: &str = "/validate-apps-outrider-dev-v1alpha1-sidecarset?timeout=30s";

/// Just below the limit of a body.
pub const LARGEST: usize = 7 * 1024 * 1024 - 1024;

/// Megabytes above rest that one body may take.
const ONE: u64 = 64;
/// Bytes of the chart's limit of memory.
pub const CHART: u64 = 256 << 20;
/// Megabytes above rest that may stay, a minute later.
const KEPT: u64 = 16;

/// Clients that post hostile bodies.
const HOSTILE: usize = 2;

const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: log-agent}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: log-agent, image: 'proxy:1', ports: [{containerPort: 80}], resources: {requests: {cpu: 1m}}}]
---
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: sharing}
spec:
  selector: {matchLabels: {app: shared}}
  containers: [{name: sharing, image: 'sharing:1', args: [run], shareVolumePolicy: {type: enabled}, shareVolumeDevicePolicy: {type: enabled}}]
---
apiVersion: policy.outrider.dev/v1alpha1
kind: ClusterLimitRange
metadata: {name: claims}
spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}
---
apiVersion: policy.outrider.dev/v1alpha1
kind: AdmissionPlugin
metadata: {name: quota}
spec:
  plugin: ResourceQuota
  resourceQuota:
    limitedResources:
    - {resource: persistentvolumeclaims, matchContains: [requests.storage]}
    - {resource: pods, matchContains: [requests.cpu], matchScopes: [{scopeName: CrossNamespacePodAffinity, operator: Exists}]}
---
apiVersion: policy.outrider.dev/v1alpha1
kind: AdmissionPlugin
metadata: {name: owners}
spec: {plugin: OwnerReferencesPermissionEnforcement}
";

/// What memory each thing takes is measured alone.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A process of its own.
pub struct Server {
    _turn: tokio::sync::MutexGuard<'static, ()>,
    pub process: Process,
    /// Ends after the process in it.
    _group: Option<MemoryGroup>,
    pub webhooks: SocketAddr,
    health: SocketAddr,
    metrics: SocketAddr,
    pub ca: Arc<str>,
}

impl Server {
    async fn start() -> Self {
        Self::start_in(|_| None, &[]).await
    }

    /// With the memory that the chart gives a replica, where a control group can be made.
    pub async fn with_memory_of_chart(flags: &[&str]) -> Self {
        Self::start_in(|dir| Some(MemoryGroup::limited_to(CHART, &Process::binary(), dir).unwrap()), flags).await
    }

    async fn start_in(group: impl FnOnce(&Path) -> Option<MemoryGroup>, flags: &[&str]) -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let group = group(dir.path());
        let (ca_file, set) = (dir.path().join("ca.crt"), dir.path().join("set.yaml"));
        std::fs::write(&set, SET).unwrap();
        let set = set.to_str().unwrap();
        let more = [
            "--manifests",
            set,
            "--health-probe-bind-address=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--enable-kinds=*",
        ];
        let more = [&more, flags].concat();
        let binary = group.as_ref().map_or_else(Process::binary, |group| group.program().to_owned());
        let mut process = Process::standalone_of(&binary, &ca_file, &more);
        let listening = process.line("Listening");
        let address = |front: &str| listening[front].as_str().unwrap().parse().unwrap();
        process.discard_log();
        let [webhooks, health, metrics] = ["webhooks", "health", "metrics"].map(address);
        let ca = std::fs::read_to_string(&ca_file).unwrap().into();
        Self { _turn: turn, process, _group: group, webhooks, health, metrics, ca }
    }

    pub async fn post(&self, path: &str, body: &str) -> u16 {
        post(self.webhooks, &self.ca, path, body).await
    }
}

async fn post(address: SocketAddr, ca: &str, path: &str, body: &str) -> u16 {
    let client = Client::connect(address, ca).await.unwrap();
    client.post_until_answered(path, body).await.unwrap().status
}

/// A review of an object, of which `element` is repeated as often as there is room.
fn filled(path: &str, object: &str, element: impl Fn(usize) -> String) -> String {
    let (group, version, kind, resource) = if path == SETS {
        ("apps.outrider.dev", "v1alpha1", "SidecarSet", "sidecarsets")
    } else if path == CLAIM_RANGES {
        ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    } else {
        ("", "v1", "Pod", "pods")
    };
    let (before, behind) = object.split_once('@').unwrap();
    let mut body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"{group}","version":"{version}","kind":"{kind}"}},"resource":{{"group":"{group}","version":"{version}","resource":"{resource}"}},"namespace":"shop","operation":"CREATE","object":{before}"#
    );
    let room = LARGEST - behind.len() - 100;
    for number in 0.. {
        let element = element(number);
        if body.len() + element.len() > room {
            break;
        }
        write!(body, "{}{element}", if number == 0 { "" } else { "," }).unwrap();
    }
    body + behind + "}}"
}

pub fn small_review() -> String {
    let pod = r#"{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:1"}]}@}"#;
    filled(PODS, pod, |_| "x".repeat(LARGEST))
}

/// What is measured: name, path, body.
fn bodies() -> Vec<(String, &'static str, String)> {
    let pod = |spec: &str| format!(r#"{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{{{spec}}}}}"#);
    let app = r#""containers":[{"name":"app"}]"#;
    let map = |name: &str| format!(r#"{{"metadata":{{{name}}},"spec":{{{app}}}}}"#);
    let mut bodies = Vec::new();
    let mut add = |name, object: &str, element: &dyn Fn(usize) -> String| {
        bodies.push((String::from(name), PODS, filled(PODS, object, element)));
    };
    add("empty containers", &pod(r#""containers":[@]"#), &|_| "{}".to_owned());
    add("empty init containers", &pod(&format!(r#"{app},"initContainers":[@]"#)), &|_| "{}".to_owned());
    add("containers", &pod(r#""containers":[@]"#), &|i| format!(r#"{{"name":"n{i}","image":"b","command":["a"]}}"#));
    let affinity = |terms: &str| {
        pod(&format!(
            r#"{app},"affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{terms}]}}}}}}"#
        ))
    };
    let expressions = affinity(r#"{"matchExpressions":[{"key":"kubernetes.io/os"},@]}"#);
    add("expressions of an affinity", &expressions, &|_| "{}".to_owned());
    let values = affinity(r#"{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":[@]}]}"#);
    add("values of an affinity", &values, &|_| r#""""#.to_owned());
    let groups = format!(r#"{{"spec":{{{app}}}}},"userInfo":{{"groups":[@]}},"options":{{}}"#);
    add("groups of the user", &groups, &|_| r#""""#.to_owned());
    add("labels", &map(r#""labels":{"app":"web",@}"#), &|i| format!(r#""{i:x}":"""#));
    add("escaped labels", &map(r#""labels":{"app":"web",@}"#), &|i| format!(r#""\u0041{i:x}":"\u0041""#));
    add("annotations", &map(r#""labels":{"app":"web"},"annotations":{@}"#), &|i| format!(r#""{i:x}":"""#));
    add("labels of nodes", &pod(&format!(r#"{app},"nodeSelector":{{@}}"#)), &|i| format!(r#""{i:x}":"""#));
    add("variables", &pod(r#""containers":[{"name":"app","env":[@]}]"#), &|i| format!(r#"{{"name":"E{i}"}}"#));
    add("ports", &pod(r#""containers":[{"name":"app","ports":[@]}]"#), &|_| r#"{"containerPort":80}"#.to_owned());
    add("volumes", &pod(&format!(r#"{app},"volumes":[@]"#)), &|_| "{}".to_owned());
    let shared = |container: &str| {
        format!(
            r#"{{"metadata":{{"labels":{{"app":"shared"}}}},"spec":{{"containers":[{{"name":"app",{container}}}]}}}}"#
        )
    };
    let mount = |i: usize| format!(r#"{{"name":"v","mountPath":"/{i:x}"}}"#);
    add("mounts that are shared", &shared(r#""volumeMounts":[@]"#), &mount);
    let device = |i: usize| format!(r#"{{"name":"v{i:x}","devicePath":"/{i:x}"}}"#);
    add("devices that are shared", &shared(r#""volumeDevices":[@]"#), &device);
    let nested = |_: usize| r#"{"":0}"#.to_owned();
    add("a mount of maps", &shared(r#""volumeMounts":[{"name":"v","mountPath":"/a","x":[@]}]"#), &nested);
    add("arguments of maps", &shared(r#""image":"a"},{"name":"sharing","image":"sharing:1","args":[@]"#), &nested);
    add("pull secrets", &pod(&format!(r#"{app},"imagePullSecrets":[@]"#)), &|_| "{}".to_owned());
    add("empty strings", &pod(r#""containers":[{"name":"app","args":[@]}]"#), &|_| r#""""#.to_owned());
    let resources =
        r#""resources":{"requests":{"cpu":"1"}},"containers":[{"name":"app","resources":{"requests":{@}}}]"#;
    add("resources", &pod(resources), &|i| format!(r#""x{i}":"1""#));
    let half = (LARGEST - 600) / 2;
    let deep = format!("{}{}", "[".repeat(half), "]".repeat(half));
    let once = |element: String| move |i: usize| if i == 0 { element.clone() } else { "x".repeat(LARGEST) };
    add("deep", &pod(&format!(r#"{app},"x":@"#)), &once(deep.clone()));
    add("deep resources", &pod(r#""containers":[{"name":"app","resources":@}]"#), &once(deep));
    let set = r#"{"metadata":{"name":"a"},"spec":{"containers":[@]}}"#;
    let set = ("a set of empty maps", SETS, filled(SETS, set, |_| r#"{"":0}"#.to_owned()));
    let others = of_plugins().into_iter().chain([set]).chain(conversions());
    bodies.extend(others.map(|(name, path, body)| (name.to_owned(), path, body)));
    for path in CRON_JOBS {
        bodies.extend(reviews().into_iter().map(|(what, body)| (format!("{path}: {what}"), path, body)));
    }
    bodies
}

/// Bodies at the endpoints of plugins and ranges.
fn of_plugins() -> Vec<(&'static str, &'static str, String)> {
    let name = |i: usize| format!(r#""{i:x}":"1""#);
    let empty = |_: usize| "{}".to_owned();
    let extra = |i: usize| format!(r#""{i:x}":[]"#);
    let of_pod = |spec: &str| format!(r#"{{"spec":{{"containers":[{{"name":"app"}}],{spec}}}}}"#);
    let owner = r#"{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1","blockOwnerDeletion":true}"#;
    let by =
        |user: &str| format!(r#"{{"metadata":{{"ownerReferences":[{owner}]}}}},"userInfo":{{{user}}},"options":{{}}"#);
    let claim = r#"{"spec":{"resources":{"requests":{@}}}}"#;
    let terms = of_pod(r#""affinity":{"podAffinity":{"x":[@]}}"#);
    vec![
        ("requests of a claim", CLAIM_RANGES, filled(CLAIM_RANGES, claim, name)),
        ("requests of a pod", QUOTAS, filled(QUOTAS, &of_pod(r#""resources":{"requests":{@}}"#), name)),
        ("overhead of a pod", QUOTAS, filled(QUOTAS, &of_pod(r#""overhead":{@}"#), name)),
        ("terms of an affinity", QUOTAS, filled(QUOTAS, &terms, empty)),
        ("groups of an owner", OWNERS, filled(OWNERS, &by(r#""username":"k","groups":[@]"#), |_| r#""""#.to_owned())),
        ("extra of an owner", OWNERS, filled(OWNERS, &by(r#""username":"k","extra":{@}"#), extra)),
    ]
}

#[test]
fn the_memory_that_bodies_may_take_is_documented() {
    let page = include_str!("../../docs/security.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for claim in [
        format!("One body of the largest size takes at most {ONE} MB in addition to the memory of the idle process."),
        format!("a minute after sixteen bodies at one time, at most {KEPT} MB more than before are in use"),
    ] {
        assert!(page.contains(&claim), "docs/security.md does not say: {claim}");
    }
}

/// Waits a minute at most until no more than so many megabytes above rest are left.
async fn given_back(server: &Server, rest: u64, what: &str) {
    let mut seconds = 0;
    while server.process.memory().0 > rest + KEPT && seconds < 60 {
        sleep(Duration::from_secs(1)).await;
        seconds += 1;
    }
    let left = server.process.memory().0;
    println!("{what}: {rest} MB at rest, {left} MB after {seconds} s");
    assert!(left <= rest + KEPT, "{what}: {left} MB are left, {rest} MB were there before");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn one_body_of_any_kind_takes_little_memory_and_gives_it_back() {
    let server = Server::start().await;
    assert_eq!(server.post(PODS, &small_review()).await, 200);
    let rest = server.process.memory().0;
    for (name, path, body) in bodies() {
        assert_eq!(server.post(path, &body).await, 200, "{name}");
        let (now, most) = server.process.memory();
        println!("{name}: {rest} MB at rest, {most} MB at most so far, {now} MB afterwards");
        assert!(most <= rest + ONE, "{name}: {most} MB at most, {rest} MB at rest");
    }
    given_back(&server, rest, "after one of each").await;
}

/// The kernel ends a process that takes more than its group may; where no group can be made, the most that it took is compared.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn sixteen_bodies_at_one_time_stay_within_the_memory_of_the_chart_and_give_it_back() {
    let server = Server::with_memory_of_chart(&[]).await;
    assert_eq!(server.post(PODS, &small_review()).await, 200);
    let rest = server.process.memory().0;
    for (name, path, body) in bodies() {
        let body: Arc<str> = body.into();
        let mut posting = JoinSet::new();
        for _ in 0..16 {
            let (address, ca, body) = (server.webhooks, Arc::clone(&server.ca), Arc::clone(&body));
            posting.spawn(async move { post(address, &ca, path, &body).await });
        }
        for status in posting.join_all().await {
            assert!([200, 429, 504].contains(&status), "{name}: {status}");
        }
        let (now, most) = server.process.memory();
        println!("{name}: {most} MB at most so far, {now} MB afterwards");
        assert!(most <= CHART >> 20, "{name}: {most} MB");
        assert_eq!(server.post(PODS, &small_review()).await, 200, "after {name}");
    }
    given_back(&server, rest, "after sixteen of each").await;
}

/// Two clients post one hostile body after the other, while another one asks as it did before. What is asserted is that none of its
/// reviews, probes and scrapes is refused, times out or waits for a hostile body: it gets more answers than they. How long they take,
/// beside what they took before, is printed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn reviews_and_probes_are_answered_among_hostile_bodies() {
    let server = Server::start().await;
    let bodies: Arc<Vec<_>> = Arc::new(bodies());
    let asked = beside::Server { webhooks: server.webhooks, name: "localhost", ca: Arc::clone(&server.ca) };
    let beside = AtRest::of(&asked).beside(&asked, "of the largest bodies of the worst kinds");
    let mut hostile = JoinSet::new();
    for _ in 0..HOSTILE {
        let (address, ca, bodies) = (server.webhooks, Arc::clone(&server.ca), Arc::clone(&bodies));
        hostile.spawn(async move {
            let mut answered = 0;
            for (name, path, body) in bodies.iter() {
                let status = post(address, &ca, path, body).await;
                assert!([200, 429, 504].contains(&status), "{name}: {status}");
                answered += usize::from(status == 200);
            }
            answered
        });
    }
    let attack = tokio::spawn(hostile.join_all());
    let mut probes = 0;
    while !attack.is_finished() {
        assert_eq!(plain_get(server.health, "/healthz").await.0, 200);
        assert_eq!(plain_get(server.metrics, "/metrics").await.0, 200);
        probes += 1;
        sleep(Duration::from_millis(5)).await;
    }
    let decided: usize = attack.await.unwrap().into_iter().sum();
    let reviews = beside.end();
    println!("{decided} hostile bodies decided, {probes} probes answered");
    assert!(decided > 0);
    let posted = HOSTILE * bodies.len();
    assert!(reviews.min(probes) > posted, "{reviews} reviews and {probes} probes among {posted} hostile bodies");
}
