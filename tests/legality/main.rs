//! Does the API server agree with us on which pods can carry which sets?
//!
//! Five hundred pairs of a pod and its sets, each changed at random and towards one of the rules of `docs/legality.md`, are
//! judged by us and by a real API server. A pod that we let in must be legal. A pod that we refuse must be illegal with the
//! set in it, save for what [`POLICIES`] lists, and for what an older API server does not know ([`versions`]).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod api_server;
mod examples;
mod faults;
mod judge;
mod mutations;
mod ours;
mod pair;
mod random;
mod report;
mod resources;
mod sets;
mod versions;

use std::sync::OnceLock;

use cluster::{Cluster, Options, Tools, progress_on_stderr};
use futures::StreamExt as _;

use crate::api_server::ApiServer;
use crate::faults::pairs_with_faults;
use crate::judge::{judge, judge_freely};
use crate::mutations::MUTATIONS;
use crate::pair::Pair;
use crate::random::Random;
use crate::report::{Policy, Report};

const PAIRS: u64 = 500;
const FREE_SETS: u64 = 1500;

/// What we refuse although the API server would not.
const POLICIES: &[Policy] = &[
    ("a native sidecar's host port is taken as long as a container's", |ours, _| {
        ours.contains("host port") && ours.contains("\"native\"")
    }),
    ("a host port on all addresses meets one on a single address", |ours, pod| {
        ours.contains("host port") && pod.to_string().contains("hostIP")
    }),
];

/// What each rule says. Each must be heard at least once with the API server in agreement, else the pairs do not try it.
const RULES: &[&str] = &[
    "ContainerClash",
    "VolumeClash",
    "PortClash",
    "both must be equal",
    "both take host port",
    "in a hook, the pod grants",
    "restarts on resize",
    "has a stopSignal, which needs spec.os.name",
    "has procMount Unmasked",
    "has volumeDevices",
    "has the seccomp profile",
    "uses resource claim",
    "uses volume",
    "reads variables from volume",
    "which is made for an ephemeral volume",
    "which a Windows pod may not have",
    "unknown to Windows",
    "has another hostProcess than the pod",
    "some containers are hostProcess containers and some are not",
    "above the pod's own limit",
    "the pod as a whole has requests of",
    "the pod as a whole has limits of",
    "annotations exceed",
];

/// One cluster for all tests here. Nothing is stored in it.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        // Gates that are off by default, and add rules.
        let minor = Tools::locate(&progress_on_stderr).unwrap().minor_version();
        let gates = [
            (33, "ContainerStopSignals=true"),
            (33, "ClusterTrustBundle=true"),
            (33, "ClusterTrustBundleProjection=true"),
            (35, "PodCertificateRequest=true"),
        ];
        let feature_gates =
            gates.iter().filter(|(since, _)| minor >= *since).map(|(_, gate)| (*gate).to_owned()).collect();
        // The API server watches the kinds that the last two need.
        let certificates = "--runtime-config=certificates.k8s.io/v1beta1=true".to_owned();
        let extra_apiserver_args = Some(certificates).filter(|_| minor >= 33).into_iter().collect();
        Cluster::start_with(&Options { kwok: false, feature_gates, extra_apiserver_args, ..Options::default() })
            .unwrap()
    })
}

/// Judges all, several at a time.
async fn report(questions: impl Iterator<Item = (String, Pair)>, freely: bool) -> Report {
    let namespace = cluster().namespace("legality").unwrap();
    let api_server = ApiServer::connect(cluster(), &namespace).await;
    let judged = futures::stream::iter(questions).map(|(question, pair)| {
        let api_server = &api_server;
        async move {
            let outcomes = if freely { judge_freely(api_server, &pair).await } else { judge(api_server, &pair).await };
            (question, outcomes)
        }
    });
    let mut judged = judged.buffered(8);
    let mut report = Report::new(cluster().minor_version(), POLICIES);
    while let Some((question, outcomes)) = judged.next().await {
        for outcome in outcomes {
            report.take(&question, outcome);
        }
    }
    report
}

fn pair_of(seed: u64) -> (String, Pair) {
    let mut random = Random::new(seed);
    let mut pair = Pair::new();
    let mut mutations = vec![MUTATIONS[usize::try_from(seed).unwrap() % MUTATIONS.len()]];
    while random.once_in(3) {
        mutations.push(random.pick(MUTATIONS));
    }
    for (_, mutate) in &mutations {
        mutate(&mut random, &mut pair);
    }
    let aims: Vec<_> = mutations.into_iter().map(|(aim, _)| aim).collect();
    (format!("pair {seed} ({})", aims.join(", ")), pair)
}

#[ignore = "starts a real API server: make test-cluster"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_agrees_on_five_hundred_pairs_of_pod_and_sets() {
    let report = report((0..PAIRS).map(pair_of), false).await;
    report.demand_agreement();
    assert_eq!(report.unheard(RULES), Vec::<&str>::new(), "no pair tries these rules");
    let useless = report.count("pod illegal by itself");
    assert!(useless < 25, "{useless} pods are illegal by themselves, and prove nothing");
}

#[ignore = "starts a real API server: make test-cluster"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_agrees_on_faults_of_a_set_alone() {
    report(pairs_with_faults(), false).await.demand_agreement();
}

/// Every field of a container and a volume, with any value: what we take is legal, and what we refuse is not.
#[ignore = "starts a real API server: make test-cluster"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_agrees_on_sets_with_any_value_in_any_field() {
    let examples = report(sets::examples(), true).await;
    examples.demand_agreement();
    assert_eq!(examples.count("injected, and legal"), sets::examples().count(), "the examples are not all right");
    let report = report((0..FREE_SETS).map(sets::free_set), true).await;
    report.demand_agreement();
    let legal = report.count("injected, and legal");
    assert!(legal > 100, "{legal} sets are taken, which proves little");
}
