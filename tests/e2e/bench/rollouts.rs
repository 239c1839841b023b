//! What rollouts cost: memory of the leader, time, and requests to the API server. `make bench-rollouts`.
//!
//! No controller and no kubelet runs: pods are created as they are and stay, and what a kubelet does about a new image, the test does.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Cluster, MemoryGroup, Options};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::{Outrider, binary, client_config, install, service_account};
use crate::replicas::list;
use crate::room::{USER, may_register};
use crate::unavailable_pods::UnavailablePods;

/// Sets of a few pods each, and one of many.
const SETS: usize = 200;
const PODS_OF_EACH: usize = 15;
const PODS_OF_BIG: usize = 2_000;
/// Pods of the big set that may be unavailable at one time, and how long a container takes to start again.
const AT_A_TIME: usize = 100;
const RESTART: Duration = Duration::from_secs(1);
/// Requests of the test at one time.
const AT_ONCE: usize = 32;
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(600);

fn names() -> Vec<(String, usize)> {
    let small = (0..SETS).map(|n| (format!("set-{n}"), PODS_OF_EACH));
    small.chain([("big".to_owned(), PODS_OF_BIG)]).collect()
}

fn set(name: &str, tag: &str) -> Value {
    json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {
            "namespace": "default", "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"maxUnavailable": if name == "big" { AT_A_TIME } else { PODS_OF_EACH }},
            "containers": [{"name": "proxy", "image": format!("proxy:{tag}")}],
        },
    })
}

struct Stage {
    cluster: Cluster,
    runtime: Runtime,
    client: Client,
    group: MemoryGroup,
    outrider: Outrider,
}

impl Stage {
    fn start() -> Self {
        let options = Options { audit: true, kwok: false, controller_manager: false, ..Options::default() };
        let cluster = Cluster::start_with(&options).unwrap();
        install(&cluster);
        let account = service_account(&cluster);
        may_register(&cluster);
        // With a limit that is not met: it is about the process's number.
        let group = MemoryGroup::limited_to(4 << 30, &binary(), cluster.dir()).unwrap();
        let outrider = Outrider::registered_binary(group.program(), &cluster, &account, &[]);
        outrider.ready();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}});
        cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&account.to_string())).unwrap();
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(async { Client::try_from(client_config(&cluster).await).unwrap() });
        Self { cluster, runtime, client, group, outrider }
    }

    fn apply(&self, sets: &[Value]) {
        self.cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&list(sets))).unwrap();
    }

    fn resident_mb(&self) -> u64 {
        self.group.resident().unwrap().0 / 1_000_000
    }

    fn create_pods(&self) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let all = names().into_iter().flat_map(|(set, count)| (0..count).map(move |n| (set.clone(), n)));
        let created = futures::stream::iter(all).for_each_concurrent(AT_ONCE, |(set, n)| {
            let pods = pods.clone();
            async move {
                let labels = json!({"app": set, "pod-template-hash": "5d8f9c7b6", "app.kubernetes.io/part-of": "shop"});
                let metadata = json!({"name": format!("{set}-5d8f9c7b6-{n}"), "labels": labels});
                let spec = json!({"nodeName": "n", "containers": [{"name": "app", "image": "app:1"}]});
                let pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
                pods.create(&PostParams::default(), &pod).await.unwrap();
            }
        });
        self.runtime.block_on(created);
    }

    /// Starts a kubelet for all pods.
    fn kubelet(&self) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        self.runtime.spawn(async move {
            let events = watcher::watcher(pods.clone(), watcher::Config::default());
            events
                .for_each_concurrent(None, |event| {
                    let pods = pods.clone();
                    async move {
                        if let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event {
                            restart(&pods, &pod).await;
                        }
                    }
                })
                .await;
        });
    }

    /// Names of the sets that all of so many pods follow, as the status of their current generation says.
    fn followed(&self, sets: &[(String, usize)]) -> Vec<String> {
        let listed = self.cluster.kubectl_ok(&["get", "sidecarsets", "-o", "json"], None).unwrap();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let is_followed = |set: &&Value| {
            let (name, status) = (&set["metadata"]["name"], &set["status"]);
            let count = sets.iter().find(|(set, _)| name == set).map_or(0, |(_, count)| *count);
            let counted = ["matchedPods", "updatedPods", "updatedReadyPods"].iter().all(|field| status[field] == count);
            counted && status["observedGeneration"] == set["metadata"]["generation"]
        };
        let all = listed["items"].as_array().unwrap().iter().filter(is_followed);
        all.map(|set| set["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// How long it takes until all pods of these sets are updated and ready.
    fn until_followed(&self, sets: &[(String, usize)]) -> Duration {
        let start = Instant::now();
        loop {
            let followed = self.followed(sets);
            if followed.len() == sets.len() {
                return start.elapsed();
            }
            assert!(start.elapsed() < LIMIT, "{} of {} sets are followed", followed.len(), sets.len());
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// Requests of Outrider so far, by verb and resource.
    fn requests(&self) -> BTreeMap<String, usize> {
        let mut requests = BTreeMap::new();
        for event in self.cluster.audit_events().unwrap().iter().filter(|event| event["user"]["username"] == USER) {
            let object = &event["objectRef"];
            let what =
                [&event["verb"], &object["resource"], &object["subresource"]].map(|part| part.as_str().unwrap_or("-"));
            *requests.entry(what.join(" ")).or_default() += 1;
        }
        requests
    }

    /// Gives the sets another image, and prints what came of it.
    fn roll_out(&self, what: &str, sets: &[(String, usize)], tag: &str) {
        let before = self.requests();
        self.apply(&sets.iter().map(|(name, _)| set(name, tag)).collect::<Vec<_>>());
        let took = self.until_followed(sets);
        let pods: usize = sets.iter().map(|(_, pods)| pods).sum();
        let mut new = self.requests();
        new.retain(|what, count| {
            *count -= before.get(what).copied().unwrap_or_default();
            *count > 0
        });
        let all: usize = new.values().sum();
        let each = f64::from(u32::try_from(all).unwrap()) / f64::from(u32::try_from(pods).unwrap());
        println!("{what}: {pods} pods followed in {took:.1?}; {each:.2} requests for each pod: {new:?}");
        println!("{what}: the leader has {} MB", self.resident_mb());
    }
}

/// As a kubelet: first the pod is not ready, then its containers run what it asks for.
async fn restart(pods: &Api<Pod>, pod: &Pod) {
    let Some(spec) = &pod.spec else { return };
    let status = pod.status.as_ref();
    let running = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let runs = |name: &str| running.iter().find(|status| status.name == name).map(|status| status.image.as_str());
    if spec.containers.iter().all(|container| runs(&container.name) == container.image.as_deref()) {
        return;
    }
    let conditions =
        |status: &str| json!([{"type": "Ready", "status": status}, {"type": "ContainersReady", "status": status}]);
    let patch = |status: Value| {
        let (pods, name) = (pods.clone(), pod.name_any());
        async move {
            let patch = Patch::Strategic(json!({"status": status}));
            pods.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
        }
    };
    let is_ready = |pod: &Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
    };
    if is_ready(pod) {
        // Goes on with the event of this.
        return patch(json!({"conditions": conditions("False")})).await;
    }
    if !running.is_empty() {
        tokio::time::sleep(RESTART).await;
    }
    let started: Vec<Value> = spec
        .containers
        .iter()
        .map(|container| {
            let image = container.image.as_deref().unwrap_or_default();
            json!({
                "name": container.name, "image": image, "imageID": format!("id-of-{image}"), "ready": true, "restartCount": 0,
                "containerID": format!("test://{}-{image}", container.name),
            })
        })
        .collect();
    patch(json!({"phase": "Running", "conditions": conditions("True"), "containerStatuses": started})).await;
}

#[test]
#[ignore = "measures time: make bench-rollouts"]
fn five_thousand_pods_of_two_hundred_sets_follow() {
    let stage = Stage::start();
    stage.apply(&names().iter().map(|(name, _)| set(name, "1")).collect::<Vec<_>>());
    thread::sleep(Duration::from_secs(10));
    println!("{} sets and no pods: the leader has {} MB", SETS + 1, stage.resident_mb());
    stage.kubelet();
    let start = Instant::now();
    stage.create_pods();
    println!("pods were created in {:.1?}", start.elapsed());
    stage.until_followed(&names());
    println!("{} pods: the leader has {} MB", SETS * PODS_OF_EACH + PODS_OF_BIG, stage.resident_mb());

    let all = names();
    stage.roll_out("one small set", &all[..1], "2");
    stage.roll_out("200 sets at once", &all[..SETS], "3");
    let watch = UnavailablePods::watch(stage.runtime.handle(), stage.client.clone(), "big");
    stage.roll_out("the big set", &all[SETS..], "4");
    let most = watch.most();
    let rounds = u32::try_from(PODS_OF_BIG.div_ceil(AT_A_TIME)).unwrap();
    println!(
        "the big set: at most {most} pods were not ready at one time; its budget alone sets {:?}",
        RESTART * rounds
    );
    assert!(most <= AT_A_TIME, "{most}");
    assert_eq!(stage.outrider.forbidden(), Vec::<String>::new());
    stage.outrider.end();
}
