//! What the calls of Outrider add to the creation of a pod, with many sets, on a real API server. `make latency`.
//!
//! One client creates pods one after the other: by turns one that no set selects, one that a set selects and one that a mandatory set
//! selects, so that what else the machine does falls on all alike.

use std::time::{Duration, Instant};

use cluster::{Cluster, Options};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::{Outrider, client_config, eventually, eventually_counts, install, service_account};
use crate::replicas::{CONFIGURATIONS, get, has_ca_bundles, list, webhooks_at};
use crate::rollout::condition;

const SETS: usize = 1_000;
/// Pods of each label, and before them, which are not measured.
const PODS: usize = 500;
const WARM_UP: usize = 50;
/// The labels `app` of the pods, and what they are.
const APPS: [(&str, &str); 3] = [("none", "no set"), ("set-500", "one set"), ("must", "a mandatory set")];

fn sets() -> Vec<Value> {
    let set = |name: &str| {
        json!({
            "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "containers": [{"name": "proxy", "image": "proxy:1"}]},
        })
    };
    let mut must = set("must");
    must["spec"]["optOut"] = json!("Denied");
    must["spec"]["clashPolicy"] = json!("Refuse");
    (1..SETS).map(|number| set(&format!("set-{number}"))).chain([must]).collect()
}

struct Bench {
    cluster: Cluster,
    account: std::path::PathBuf,
    runtime: Runtime,
    pods: Api<Pod>,
}

/// How long the creations took, by label, sorted, and how often the API server called a webhook for one.
struct Measured {
    took: [Vec<Duration>; APPS.len()],
    calls: [usize; APPS.len()],
}

impl Bench {
    fn start() -> Self {
        let options = Options { kwok: false, controller_manager: false, ..Options::default() };
        let cluster = Cluster::start_with(&options).unwrap();
        install(&cluster);
        cluster.kubectl_ok(&["create", "serviceaccount", "default", "--namespace=default"], None).unwrap();
        let account = service_account(&cluster);
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(async { Client::try_from(client_config(&cluster).await).unwrap() });
        Self { cluster, account, runtime, pods: Api::namespaced(client, "default") }
    }

    /// A process, with its webhooks.
    fn outrider(&self, flags: &[&str]) -> Outrider {
        let outrider = Outrider::start(&self.cluster, &self.account, &[&["--certificates=self"], flags].concat());
        outrider.ready();
        let webhooks = webhooks_at(outrider.webhooks);
        self.cluster.kubectl_ok(&["apply", "--server-side", "--force-conflicts", "-f", "-"], Some(&webhooks)).unwrap();
        eventually("the caBundles are written", || has_ca_bundles(&self.cluster));
        outrider
    }

    /// The calls of the entries for pods, and no others.
    fn calls(&self) -> usize {
        const COUNT: &str = "apiserver_admission_webhook_admission_duration_seconds_count";
        let metrics = self.cluster.kubectl_ok(&["get", "--raw", "/metrics"], None).unwrap();
        let lines = metrics.lines().filter(|line| line.starts_with(COUNT) && line.contains("\"pod.outrider.dev\""));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
    }

    fn create(&self, app: &str) -> Duration {
        let pod = serde_json::from_value(json!({
            "metadata": {"generateName": "p-", "labels": {"app": app}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        }));
        let start = Instant::now();
        let created = self.runtime.block_on(self.pods.create(&PostParams::default(), &pod.unwrap())).unwrap();
        let took = start.elapsed();
        assert!(created.name_any().starts_with("p-"));
        took
    }

    fn measure(&self) -> Measured {
        for (app, _) in APPS.iter().cycle().take(WARM_UP) {
            self.create(app);
        }
        let calls = APPS.map(|(app, _)| {
            let before = self.calls();
            self.create(app);
            self.calls() - before
        });
        let mut took = APPS.map(|_| Vec::with_capacity(PODS));
        for _ in 0..PODS {
            for ((app, _), took) in APPS.iter().zip(&mut took) {
                took.push(self.create(app));
            }
        }
        for took in &mut took {
            took.sort_unstable();
        }
        let (at_once, all) = (DeleteParams::default().grace_period(0), ListParams::default());
        drop(self.runtime.block_on(self.pods.delete_collection(&at_once, &all)).unwrap());
        Measured { took, calls }
    }
}

impl Measured {
    fn print(&self, what: &str) {
        for ((took, calls), (_, app)) in self.took.iter().zip(self.calls).zip(APPS) {
            let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1000.0;
            println!("{what:32} pod of {app:16} {calls} calls  p50 {:6.2} ms  p99 {:6.2} ms", at(50), at(99));
        }
    }
}

#[test]
#[ignore = "measures time: make latency"]
fn the_creation_of_a_pod_takes_longer_by_the_calls_that_its_sets_need() {
    let bench = Bench::start();
    let without = bench.measure();
    let wide = bench.outrider(&["--narrow-webhooks=false"]);
    bench.cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&list(&sets()))).unwrap();
    // `kubectl wait --all` asks for one after the other, a few a second.
    let ready = || {
        let sets = get(&bench.cluster, &["sidecarset"])["items"].as_array().unwrap().clone();
        let is_ready = |set: &&Value| condition(&set["status"], "Ready").0 == "True";
        sets.iter().filter(is_ready).count() as u64
    };
    eventually_counts("the sets are ready", SETS as u64, ready);
    let not_narrowed = bench.measure();
    wide.end();
    let narrow = bench.outrider(&["--narrow-webhooks"]);
    // It narrows the validating entry further once nothing has changed for a while.
    eventually("only pods of the mandatory set are validated", || {
        let of_pods = validating_condition(&bench.cluster);
        of_pods.lines().count() == 1 && of_pods.contains("'must'")
    });
    let narrowed = bench.measure();
    narrow.end();
    let configurations = CONFIGURATIONS.split(',').flat_map(|kind| ["delete", kind, "--all"]);
    for command in configurations.collect::<Vec<_>>().chunks(3) {
        bench.cluster.kubectl_ok(command, None).unwrap();
    }
    let again = bench.measure();
    for (what, measured) in [
        ("no webhook", &without),
        ("1,000 sets, every pod", &not_narrowed),
        ("1,000 sets, --narrow-webhooks", &narrowed),
        ("no webhook, at the end", &again),
    ] {
        measured.print(what);
    }
    // A container that was added gets the mount of the account's token, whereupon the API server calls the mutating entry once more. The
    // validating one is for pods of the mandatory set alone.
    let calls = [&without, &not_narrowed, &narrowed, &again].map(|measured| measured.calls);
    assert_eq!(calls, [[0, 0, 0], [2, 3, 3], [0, 2, 3], [0, 0, 0]]);
}

fn validating_condition(cluster: &Cluster) -> String {
    let list = get(cluster, &["validatingwebhookconfigurations"]);
    let webhooks =
        list["items"].as_array().unwrap().iter().flat_map(|item| item["webhooks"].as_array().into_iter().flatten());
    let mut of_pods = webhooks.filter(|webhook| webhook["name"] == "pod.outrider.dev");
    of_pods
        .find_map(|webhook| webhook["matchConditions"][0]["expression"].as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Sets that are created one after the other, each measured.
const NEW_SETS: usize = 100;

/// The window in which a pod is created without a new set.
#[test]
#[ignore = "measures time: make latency"]
fn a_pod_that_is_created_after_a_set_has_it_once_the_replica_has_read_the_set() {
    let bench = Bench::start();
    let outrider = bench.outrider(&["--narrow-webhooks=false"]);
    let client = bench.runtime.block_on(async { Client::try_from(client_config(&bench.cluster).await).unwrap() });
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.outrider.dev", "v1alpha1", "SidecarSet"));
    let sets: Api<DynamicObject> = Api::all_with(client, &resource);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let (mut took, mut without) = (Vec::with_capacity(NEW_SETS), 0);
    for set in self::sets().into_iter().take(NEW_SETS) {
        let app = set["metadata"]["name"].as_str().unwrap().to_owned();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"generateName": "p-", "labels": {"app": app}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        }))
        .unwrap();
        bench.runtime.block_on(sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap())).unwrap();
        let (start, mut has_set) = (Instant::now(), false);
        while !has_set {
            let asked = start.elapsed();
            let created = bench.runtime.block_on(bench.pods.create(&dry_run, &pod)).unwrap();
            has_set =
                created.spec.is_some_and(|spec| spec.containers.iter().any(|container| container.name == "proxy"));
            without += usize::from(!has_set);
            assert!(without < 100_000, "no replica has the set {app}");
            if has_set {
                took.push(asked);
            }
        }
    }
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!(
        "a new set is known {:.1} ms (p50), {:.1} ms (p99), {:.1} ms (at most) after it is stored; {without} pods were created before",
        at(50),
        at(99),
        at(100)
    );
    outrider.end();
}
