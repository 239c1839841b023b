//! `EventRateLimit` on a real API server: beside the original, and what it costs when events burst.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::Cluster;
use k8s_openapi::api::core::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::plugins::{apply, plugin, served_with, small};
use crate::plugins_asking::{namespace_and_users, programmed, run, said};
use crate::process::{Outrider, client_config, eventually};

fn event(name: &str, source: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "shop"}, "reason": "Test",
        "type": "Normal", "message": "m", "source": {"component": source},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "p", "uid": "u", "apiVersion": "v1"},
    })
}

fn event_limits() -> Value {
    json!([
        {"type": "Server", "qps": 1, "burst": 20},
        {"type": "Namespace", "qps": 1, "burst": 12, "cacheSize": 10},
        {"type": "User", "qps": 1, "burst": 16},
        {"type": "SourceAndObject", "qps": 1, "burst": 4},
    ])
}

#[test]
#[ignore = "needs a control plane: make test"]
fn events_are_limited_as_by_the_plugin_of_the_api_server() {
    let config = std::env::temp_dir().join(format!("outrider-events-{}.json", std::process::id()));
    let limited = json!({"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": event_limits()});
    let whole = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "EventRateLimit", "configuration": limited}]});
    fs::write(&config, whole.to_string()).unwrap();
    let original = small(&[
        "--enable-admission-plugins=EventRateLimit".to_owned(),
        format!("--admission-control-config-file={}", config.display()),
    ]);
    fs::remove_file(&config).unwrap();
    let (replaced, _outrider) = served_with(&[], &[]);
    for cluster in [&original, &replaced] {
        apply(cluster, &namespace_and_users());
    }
    apply(
        &replaced,
        &[plugin("events", &json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": event_limits()}}))],
    );
    programmed(&replaced, "events");
    // Buckets gain a token a second, so that how many pass is a matter of the machine; what is said is not.
    let texts = |cluster: &Cluster| {
        let events: Vec<Value> = (0..60).map(|at| event(&format!("e{at}"), &format!("s{}", at % 3))).collect();
        let said = run(cluster, "create", "", &events);
        let (refused, distinct) = (said.len(), said.into_iter().collect::<BTreeSet<String>>());
        assert!(refused > 20, "{refused}: {distinct:?}");
        distinct
    };
    let (theirs, ours) = (texts(&original), texts(&replaced));
    for text in &ours {
        assert!(text.starts_with("Too many requests: "), "{text}");
    }
    let of_all = |texts: &BTreeSet<String>| texts.iter().max_by_key(|text| text.len()).cloned();
    assert_eq!(of_all(&ours), of_all(&theirs), "{ours:?}\n{theirs:?}");
    assert!(ours.iter().any(|text| theirs.contains(text)), "{ours:?}\n{theirs:?}");
    // Dry runs take no token.
    let dry = cluster_says_dry(&replaced);
    assert!(dry.is_empty(), "{dry:?}");
}

fn cluster_says_dry(cluster: &Cluster) -> Vec<String> {
    let list = event("dry", "s0").to_string();
    said(&cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(&list)).unwrap())
}

/// What became of the events of a burst.
struct Burst {
    /// How long each took.
    took: Vec<Duration>,
    /// How long all of them took.
    lasted: Duration,
    /// How many a limit refused.
    refused: usize,
}

/// Creates events at a rate, so many of them at one time at most. The API server refuses with 429 too, by its priority and fairness, when
/// the machine is busy with other tests: those are not counted.
async fn burst(client: &Client, prefix: &str, at_once: usize) -> Burst {
    const RATE: u32 = 1000;
    const SECONDS: u32 = 3;
    let (api, turns) = (Api::<Event>::namespaced(client.clone(), "shop"), Arc::new(Semaphore::new(at_once)));
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for at in 0..RATE * SECONDS {
        ticks.tick().await;
        let turn = Arc::clone(&turns).acquire_owned().await.unwrap();
        let (api, event) = (api.clone(), serde_json::from_value(event(&format!("{prefix}{at}"), "load")).unwrap());
        tasks.spawn(async move {
            let _turn = turn;
            let began = Instant::now();
            let created = api.create(&PostParams::default(), &event).await;
            (began.elapsed(), created)
        });
    }
    let (mut took, mut refused) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (duration, created) = ended.unwrap();
        took.push(duration);
        match created {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.message.contains("limit reached") => refused += 1,
            Err(kube::Error::Api(status)) if status.code == 429 => {}
            Err(error) => panic!("{error}"),
        }
    }
    took.sort();
    Burst { took, lasted: start.elapsed(), refused }
}

/// Seconds of processor time, and what the API server measured of its calls.
#[derive(Clone, Copy)]
struct Spent {
    of_api_server: f64,
    of_outrider: f64,
    calls: f64,
    waited: f64,
}

impl Spent {
    fn so_far(cluster: &Cluster, outrider: &Outrider) -> Self {
        const DURATION: &str = "apiserver_admission_webhook_admission_duration_seconds";
        let metrics = cluster.kubectl_ok(&["get", "--raw", "/metrics"], None).unwrap();
        let sum = |name: &str, part: &str| -> f64 {
            let lines = metrics.lines().filter(|line| line.starts_with(name) && line.contains(part));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        Self {
            of_api_server: sum("process_cpu_seconds_total", ""),
            of_outrider: outrider.cpu_seconds(),
            calls: sum(&format!("{DURATION}_count"), "eventratelimit"),
            waited: sum(&format!("{DURATION}_sum"), "eventratelimit"),
        }
    }
}

/// A burst, with its figures.
struct Measured {
    burst: Burst,
    /// Milliseconds for each event.
    of_api_server: f64,
    of_outrider: f64,
}

impl Measured {
    fn rate(&self) -> f64 {
        count(self.burst.took.len()) / self.burst.lasted.as_secs_f64()
    }

    fn at(&self, share: usize) -> f64 {
        self.burst.took[(self.burst.took.len() - 1) * share / 100].as_secs_f64() * 1000.0
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

struct Bench {
    cluster: Cluster,
    outrider: Outrider,
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Bench {
    fn new() -> Self {
        let (cluster, outrider) = served_with(&[], &[]);
        apply(&cluster, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // Who records events does not send one again that a limit refused.
        let client = runtime.block_on(async { Client::try_from(client_config(&cluster).await).unwrap() });
        Self { cluster, outrider, runtime, client }
    }

    fn measure(&self, what: &str, prefix: &str, at_once: usize) -> Measured {
        let before = Spent::so_far(&self.cluster, &self.outrider);
        let burst = self.runtime.block_on(burst(&self.client, prefix, at_once));
        let after = Spent::so_far(&self.cluster, &self.outrider);
        let all = count(burst.took.len());
        let each = |of: fn(&Spent) -> f64| (of(&after) - of(&before)) * 1000.0 / all;
        let measured = Measured {
            of_api_server: each(|spent| spent.of_api_server),
            of_outrider: each(|spent| spent.of_outrider),
            burst,
        };
        let calls = after.calls - before.calls;
        let waited = if calls > 0.0 { (after.waited - before.waited) * 1000.0 / calls } else { 0.0 };
        eprintln!(
            "{what}, {at_once} at once: {:.0}/s, p50 {:.1} ms, p99 {:.1} ms, {} of {all} refused; processor time an event: API server \
             {:.2} ms, Outrider {:.2} ms; the API server called {calls} times and waited {waited:.2} ms each",
            measured.rate(),
            measured.at(50),
            measured.at(99),
            measured.burst.refused,
            measured.of_api_server,
            measured.of_outrider,
        );
        measured
    }
}

fn limits(qps: u32) -> Value {
    let limits: Vec<Value> = ["Server", "Namespace", "User", "SourceAndObject"]
        .iter()
        .map(|type_| json!({"type": type_, "qps": qps, "burst": qps}))
        .collect();
    plugin("events", &json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": limits}}))
}

/// Prints the figures, as ratios of the same run; what is asserted is that none fails but by a limit.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_thousand_events_a_second_do_not_fail() {
    let bench = Bench::new();
    let without = [("a", 20), ("b", 64)].map(|(prefix, at_once)| bench.measure("without the plugin", prefix, at_once));
    apply(&bench.cluster, &[limits(100_000)]);
    programmed(&bench.cluster, "events");
    let with = [("c", 20), ("d", 64)]
        .map(|(prefix, at_once)| bench.measure("with limits that are not reached", prefix, at_once));
    for (with, without) in with.iter().zip(&without) {
        assert_eq!((with.burst.refused, without.burst.refused), (0, 0));
        eprintln!(
            "with the plugin: {:.2} times the rate, {:.1} times the median, {:.1} times the API server's processor time",
            with.rate() / without.rate(),
            with.at(50) / without.at(50),
            with.of_api_server / without.of_api_server
        );
    }
    // So few that a busy machine creates more.
    apply(&bench.cluster, &[limits(5)]);
    let mut round = 0;
    eventually("the limit is in force", || {
        round += 1;
        let events: Vec<Value> = (0..80).map(|at| event(&format!("probe-{round}-{at}"), "probe")).collect();
        run(&bench.cluster, "create", "", &events).iter().any(|text| text.contains("limit reached"))
    });
    // How many are over the limit depends on how many a second this machine creates.
    bench.measure("with limits of 5 a second", "e", 64);
}
